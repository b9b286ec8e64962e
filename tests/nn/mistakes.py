"""Mistakes in the use of the layers and functions that compute, by topic and class of error."""

from supremum import nn
from supremum.arrays import InPlaceError
from supremum.errors import ArgumentError, OperandError, UnknownNameError

# A line for each mistake: the expression, and a part of the message, in which … stands for any text. An indented line
# continues the message.
OF_COMPUTATIONS = {
    ("attention", OperandError): """
    dot_product_attention(x.astype("complex64"), x, x) | attention is not defined for complex numbers
    dot_product_attention(x, x, x, bias=jnp.ones(5, "complex64")) | attention is not defined for complex numbers
    dot_product_attention(x, x, x, dtype="complex64") | attention is not defined for complex numbers; dtype must be
        real, got complex64
    dot_product_attention(x, x, x, mask=jnp.ones((5, 5), int)) | the mask of attention must be boolean, or
        floating-point to add, got int32; use mask.astype(bool)
    dot_product_attention(x, x, x, bias=jnp.ones((5, 5), bool)) | the bias of attention must be numbers to add to
        scores, got bool; use mask=
    dot_product_attention(x, x, x, scale=ones()) | multiply the query by it
    make_attention_mask(ones(2), ones(2)) | query_valid must be boolean, got float32; use a comparison, such as tokens
    combine_masks(ones(2)) | a mask must be boolean, got float32
    """,
    ("attention", ArgumentError): """
    dot_product_attention(x, x, x, dtype="int32") | dtype must be floating-point or complex, got int32; use
        dtype='float32'
    dot_product_attention(x[0, 0], x, x) | shape (batch..., length, heads, dim)
    dot_product_attention(x, x[:1], x) | query, key and value must have…, got query (2, 5, 4, 3), key (1, 5, 4, 3),
        value (2, 5, 4, 3)
    dot_product_attention(x, x[..., :2], x) | query and key must have the same…, got query (2, 5, 4, 3), key (2, 5, 4,
        2), value (2, 5, 4, 3)
    dot_product_attention(x, x, x[:, :4]) | key and value must have the same…, got query (2, 5, 4, 3), key (2, 5, 4,
        3), value (2, 4, 4, 3)
    dot_product_attention(x, x[:, :, :3], x[:, :, :3]) | the heads of key and value must divide those of query, got
        query (2, 5, 4, 3), key (2, 5,
    dot_product_attention(x, x[:, :, :0], x[:, :, :0]) | the heads of key and value must divide those of query, got
        query (2, 5, 4, 3), key (2, 5,
    dot_product_attention(x, x, x, mask=jnp.ones((3, 5), bool)) | the mask of attention must broadcast to (batch...,
        heads, queries, keys), here (2,…, got (3, 5)
    dot_product_attention(x, x, x, bias=ones(4, 5)) | the bias of attention must broadcast to (batch..., heads,
        queries, keys), here (2,…, got (4, 5)
    dot_product_attention(x, x, x, dropout_rate=0.5) | dropout_rate=0.5 needs a random key; use
        dropout_key=jax.random.key(0)
    dot_product_attention(x, x, x, dropout_rate=1.0) | from 0 to below 1
    dot_product_attention(x, x, x, chunk=0) | chunk must be an integer of at least 1, got 0
    make_causal_mask(-1) | queries must be from 0 to
    make_attention_mask(jnp.ones((), bool), jnp.ones(2, bool)) | batch..., length
    combine_masks(jnp.ones(2, bool), jnp.ones(3, bool)) | masks must have shapes that broadcast, got [(2,), (3,)]
    """,
    ("bidirectional", OperandError): """
    Bidirectional(GRUCell(2)) | Bidirectional needs RNN layers, got GRUCell(dtype='float32')
    """,
    ("bidirectional", UnknownNameError): """
    Bidirectional(RNN(GRUCell(2)), merge="cat") | unknown merge 'cat'
    """,
    ("bidirectional", ArgumentError): """
    Bidirectional(RNN(GRUCell(2), reverse=True)) | without reverse=True
    Bidirectional(RNN(GRUCell(2)), RNN(GRUCell(2))) | with reverse=True and keep_order
    Bidirectional(rnn("gru")) | the forward layer already has weights, which a copy would share
    Bidirectional(RNN(GRUCell(2)), RNN(GRUCell(2), reverse=True, keep_order=True, return_state=True)) | same
        return_state
    built(Bidirectional(RNN(GRUCell(2))), x)(x, initial_state=ones(3, 2)) | initial_state must be a pair, for the
        forward and the backward layer
    """,
    ("convolution", ArgumentError): """
    ConvTranspose(6, (3,), groups=4) | groups must divide filters=6, got 4
    nn.initialize(ConvTranspose(6, (3,), groups=3), ones(1, 5, 4)) | groups must divide the 4 channels, got 3
    conv_transpose(ones(1, 5, 4), ones(3, 4, 6), groups=2) | with groups=2 and 4 input channels, the kernel must have
    conv(ones(5, 2), ones(3, 2, 4)) | inputs must have shape (batch, 1 spatial dimensions, channels) for a kernel of…,
        got (5, 2)
    conv(ones(1, 5, 2), ones(2, 4)) | the kernel must have shape (*window, channels, filters), got (2, 4)
    conv(ones(1, 5, 2), ones(0, 2, 4)) | the window of the kernel must not be empty, got kernel shape (0, 2, 4)
    conv(ones(1, 5, 3), ones(3, 2, 4)) | with groups=1 and 3 input channels, the kernel must have shape (*window,…, got
        (3, 2, 4)
    conv(ones(1, 5, 4), ones(3, 2, 3), groups=2) | filters a multiple of groups
    conv(ones(1, 5, 2), ones(3, 2, 4), ones(1)) | bias must have shape (4,) to match the other arguments, got (1,)
    conv(ones(1, 5, 2), ones(3, 2, 4), strides=0) | strides must be an integer of at least 1, or one for each of the
        1…, got 0; use strides=(1,)
    conv(ones(1, 5, 2), ones(3, 2, 4), strides=(1, 1)) | strides must be an integer of at least 1, or one for each of
        the 1 spatial dimensions, got (1, 1)
    conv(ones(1, 5, 2), ones(3, 2, 4), strides=1.0) | strides must be an integer of at least 1, or one for each of the
        1 spatial dimensions, got 1.0
    conv(ones(1, 5, 2), ones(3, 2, 4), groups=0) | groups must be an integer of at least 1, got 0; use groups=1
    conv(ones(1, 5, 2), ones(3, 2, 4), padding=-1) | padding must be one of SAME, VALID, CIRCULAR, CAUSAL, a number…,
        got -1; use padding=((1, 1),)
    conv(ones(1, 5, 2), ones(3, 2, 4), padding=[(1, 2), (1, 2)]) | padding must be one of SAME, VALID, CIRCULAR,
        CAUSAL, a number of…, got [(1, 2), (1, 2)]
    conv(ones(1, 5, 2), ones(3, 2, 4), padding=None) | padding must be one of SAME, VALID, CIRCULAR, CAUSAL, a number
        of positions, or pairs of …, got None
    conv(ones(1, 5, 5, 2), ones(3, 3, 2, 4), padding="CAUSAL") | padding='CAUSAL' needs one dimension of space, got 2
    conv(ones(1, 5, 2), ones(3, 2, 4), padding="CIRCULAR", input_dilation=2) | padding='CIRCULAR' needs input_dilation=1
    conv(ones(1, 0, 2), ones(3, 2, 4), padding="CIRCULAR") | padding='CIRCULAR' needs inputs that are not empty, got
        shape (1, 0, 2)
    conv_transpose(ones(1, 5, 3), ones(3, 2, 4)) | with groups=1 and 3 input channels, the kernel must have shape
        (*window,…, got (3, 2, 4)
    conv_transpose(ones(1, 5, 3), ones(3, 3, 4), transpose_kernel=True) | with groups=1 and 3 input channels, the
        kernel must have shape (*window,…, got (3, 3, 4)
    conv_transpose(ones(1, 0, 2), ones(3, 2, 4), padding="CIRCULAR") | padding='CIRCULAR' needs inputs that are not
        empty, got shape (1, 0, 2)
    Conv(4, 3) | kernel_size must have an…, got 3; use kernel_size=(3, 3) for images, (3,) for sequences
    Conv(4, ()) | kernel_size must have an integer of at least 1 for each dimension of space, got
    Conv(4, (3, 0)) | kernel_size must have an integer of at least 1 for each dimension of space, got (3, 0)
    Conv(0, (3,)) | filters must be an integer of at least 1, got 0
    Conv(4, (3,), groups=3) | groups must divide filters=4, got 3; use filters=3
    built(Conv(4, (3,), groups=2), ones(1, 5, 3)) | groups must divide the 3 channels, got 2
    built(Conv(4, (3,)), ones(1, 5, 3))(ones(1, 5, 4)) | input 0 must have length 3 along axis -1, got 4
    built(Conv(4, (3,)), ones(1, 5, 3))(ones(1, 5, 5, 3)) | input 0 must have 3 axes, got 4
    ConvTranspose(4, 3) | kernel_size must have an integer of at least 1 for each dimension of space, got
    built(ConvTranspose(4, (3,)), ones(5, 3)) | inputs must have shape (batch, 1 spatial dimensions, channels) for
        kernel_size=(3,), got (5, 3)
    """,
    ("convolution", UnknownNameError): """
    conv(ones(1, 5, 2), ones(3, 2, 4), padding="same") | did you mean 'SAME'
    conv_transpose(ones(1, 5, 2), ones(3, 2, 4), padding="CAUSAL") | unknown padding
    Conv(4, (3,), padding="VLAID") | did you mean 'VALID'
    """,
    ("decoding", ArgumentError): """
    KeyValueCache.empty(1, 1, 1, 1, dtype="int8") | floating
    KeyValueCache.empty(1, 0, 1, 1, dtype="float32") | max_length must be an integer of at least 1, got 0; use
        max_length=1
    x.append(ROW[:1], ROW) | keys of shape (1, 1, 4, 5) do not fit
    x.append(ROW, ROW[..., :4]) | values of shape
    x.append(ROW, ones(2, 2, 4, 5)) | keys and values must have the same length, got 1 keys and 2 values
    decoder()(data(2, 6, 8), data(2, 6, 8), cache=x) | without key=
    decoder()(data(2, 6, 8)[0], cache=x) | got query of shape (6, 8)
    decoder()(data(2, 6, 8), cache=x) | keys of shape (2, 6, 2, 2) do not fit a cache with keys of shape (2, 3, 4, 5)
    """,
    ("decoding", OperandError): """
    x.append(ROW * 1j, ROW) | keys must be floating-point, got complex64
    """,
    ("dropout", ArgumentError): """
    dropout(KEY, ones(3), 1.5) | rate must be from 0 to 1, got 1.5
    dropout(KEY, ones(3), -0.1) | rate must be from 0 to 1, got -0.1
    dropout(KEY, ones(3), float("nan")) | rate must be from 0 to 1, got nan
    dropout(KEY, ones(3), 0.5, broadcast_axes=1) | broadcast_axes must be within -1 to 0 for an array of 1 dimensions,
        got 1
    Dropout(2) | rate must be from 0 to 1, got 2
    Dropout(0.5)(ones(3), training=True) | the layer needs random numbers but has no key; use nn.functional_call(model,
        variables, x, random_key=
    """,
    ("dropout", OperandError): """
    dropout(KEY, ones(3), "0.5") | rate must be a number, got '0.5'
    dropout(KEY, ones(3), True) | rate must be a number, got True
    dropout(KEY, jnp.ones(3, "int32"), 0.5) | dropout needs floating-point or complex values, got int32; use
        x.astype('float32')
    dropout(KEY, jnp.ones(3, bool), 0.5) | dropout needs floating-point or complex values, got bool
    dropout(0, ones(3), 0.5) | dropout needs a random key, got int; use key=jax.random.key(0)
    dropout(jax.random.split(KEY, 2), ones(3), 0.5) | dropout needs a random key, got
    dropout(ones(2), ones(3), 0.5) | dropout needs a random key, got
    """,
    ("embedding", OperandError): """
    embedding(ones(2), data(5, 2)) | indices must be integers, got float32; use indices.astype('int32')
    embedding(jnp.ones(2, bool), data(5, 2)) | indices must be integers, got bool
    embedding(True, data(5, 2)) | indices must be integers, got bool
    embedding(1.0, data(5, 2)) | indices must be integers, got float32
    embedding([1], data(5, 2)) | argument 0 must be a numeric array, …, got list
    """,
    ("embedding", ArgumentError): """
    embedding(jnp.ones(2, "int32"), data(5)) | the table must have shape (rows, features), got (5,)
    embedding(0, ones(0, 2)) | the table must have at least one row, got 0 rows and index 0
    embedding(0, data(5, 2), dtype="int32") | dtype must be floating-point or complex, got int32; use dtype='float32'
    attend(data(3), data(5, 2)) | inputs and table must have shapes (..., features) and (rows, features), got (3,) and
        (5, 2)
    attend(data(2), data(2)) | inputs and table must have shapes (..., features) and (rows, features), got (2,) and (2,)
    attend(ones(), data(2, 1)) | inputs and table must have shapes (..., features) and (rows, features), got () and (2,
        1)
    Embedding(0, 2) | num_embeddings must be an integer of at least 1, got 0
    Embedding(2, -1) | features must be an integer of at least 1, got -1
    built(Embedding(3, 2), jnp.asarray([0]))(jnp.asarray([3])) | indices must be from 0 to 2 for a table of 3 rows, got
        3
    """,
    ("embedding", nn.UninitializedError): """
    Embedding(3, 2).attend(data(2)) | Embedding(dtype='float32') has no table yet
    """,
    ("layers", RuntimeError): """
    nn.functional_call(nn.Dense(2), {}, ones(1, 2)) | the layer has no weights yet
    """,
    ("layers", InPlaceError): """
    built(nn.Dense(2), ones(1, 2)).bias.assign(jnp.ones(2, "complex64")) | complex64 cannot be stored in float32
    """,
    ("layers", ValueError): """
    nn.functional_call(built(nn.Dense(2), ones(1, 2)), {"kernle": 0}, ones(1, 2)) | unknown variable 'kernle': did you
        mean 'kernel'
    built(nn.Conv(2, (3, 3)), ones(1, 2)) | inputs must have shape (batch, 2 spatial dimensions, channels) for
        kernel_size=(3, 3), got (1, 2)
    nn.Dense(2, dtype="flaot16") | did you mean 'float16'
    built(nn.Dense(2), ones(1, 2)).bias.assign(ones(3)) | the new value of variable 'bias' must have shape (2,), got
        (3,)
    """,
    ("merging", OperandError): """
    Add()(ones(2, 3)) | Add needs a list of inputs, got DynamicJaxprTracer; use [x, y]
    Maximum()([ones(2) + 0j, ones(2)]) | Maximum is not defined for complex numbers
    """,
    ("merging", ArgumentError): """
    Add()([]) | Add needs at least one array, got none
    Concatenate()([]) | at least one array
    Subtract()([ones(1)]) | Subtract needs two inputs, got 1
    Subtract()([ones(1)] * 3) | Subtract needs two inputs, got 3
    Add()([ones(2, 3), ones(3)]) | Add needs arrays with the same number of axes, each of one length or length 1, got
        (2, 3) and (3,)
    Average()([ones(2, 3), ones(2, 2)]) | Average needs arrays with the same number of axes, each of one length…, got
        (2, 3) and (2, 2)
    Maximum()([ones(2), ones(3)]) | Maximum needs arrays with the same number of axes, each of one length or length 1,
        got (2,) and (3,)
    Concatenate()([ones(2, 3), ones(1, 3)]) | Concatenate needs arrays of the same shape except for axis -1, got (2, 3)
        and (1, 3)
    Concatenate(2)([ones(2, 3)]) | axis must be within -2 to 1 for an array of 2 dimensions, got (2,)
    Concatenate()([ones(2, 3), ones(3)]) | Concatenate needs arrays of the same shape except for axis -1, got (2, 3)
        and (3,)
    Concatenate()([ones(), ones()]) | axis must be an axis of the array, which has none, got (-1,)
    """,
    ("models", ValueError): """
    nn.Network(x, nn.Dense(1)(nn.Input((2,)))) | depend on SymbolicTensor… not among the inputs
    nn.Network(x, ones(2)) | the outputs of a functional model must be symbolic…, got Array([1., 1.], dtype=float32)
    nn.Network(ones(2), x) | the inputs of a functional model must be symbolic…, got Array([1., 1.], dtype=float32)
    nn.Network([], x) | inputs of a functional model
    nn.Network() | a Network must get inputs and outputs, or be a subclass with a `call` method
    nn.Network(outputs=x) | a Network must get inputs and outputs, or be a subclass with a `call` method
    nn.Input((2, -1)) | the shape of an Input must consist of lengths, or None for any length, got -1 in (2, -1)
    nn.Input((2,), "float17") | did you mean
    """,
    ("multi-head attention", ArgumentError): """
    MultiHeadAttention(4, num_key_value_heads=3) | num_key_value_heads must divide num_heads=4, got 3
    MultiHeadAttention(0) | num_heads must be an integer of at least 1, got 0
    MultiHeadAttention(2, 0) | head_dim must be an integer of at least 1, got 0
    MultiHeadAttention(4, dropout_rate=1.0) | from 0 to below 1
    nn.initialize(MultiHeadAttention(3), x) | num_heads must divide the 8 features of the query, got 3
    nn.initialize(MultiHeadAttention(4), x[0, 0]) | the query must have shape (batch..., length, features), got (8,)
    MultiHeadAttention(4).init_cache(1, 2) | before init_cache
    built(MultiHeadAttention(4), x)(x[..., :4]) | input 0 must have length 8 along axis -1, got 4
    built(MultiHeadAttention(4), x)(x, value=x) | give key= too
    built(MultiHeadAttention(4), x)(x, x[:1]) | query, key and value must…, got query (2, 5, 4, 2), key (1, 5, 4, 2),
        value (1, 5, 4, 2)
    """,
    ("multi-head attention", OperandError): """
    built(MultiHeadAttention(4), x)(x * 1j) | attention is not defined for complex numbers
    """,
    ("norm layers", ArgumentError): """
    built(BatchNorm(), ones(4)) | must have at least 2 axes, got 1
    built(BatchNorm(axis=3), ones(2, 4)) | axis must be within -2 to 1 for an array of 2 dimensions, got 3
    built(BatchNorm(axis=(1, 2)), ones(2, 4)) | axis must be one number, the axis of the channels, got (1, 2); use
        axis=-1
    built(BatchNorm(momentum=1.5), ones(2, 4)) | momentum must be from 0 to 1, got 1.5
    built(LayerNorm(axes=(1, -1)), ones(2, 4)) | axes must be different axes, got (1, -1), which repeats one of the 2
    built(LayerNorm(axes=5), ones(2, 4)) | axes must be within -2 to 1 for an array of 2 dimensions, got (5,)
    built(GroupNorm(3), ones(2, 4)) | groups must divide the 4 channels, got 3
    built(GroupNorm(2), ones(4)) | input 0 must have at least 2 axes, got 1
    built(InstanceNorm(), ones(2, 4)) | input 0 must have at least 3 axes, got 2
    built(LayerNorm(epsilon=0), ones(2, 4)) | epsilon must be from 2.1e-26 to 3.4e+38, where 1 / sqrt(epsilon) and its
        slope are…, got 0
    """,
    ("normalization", ArgumentError): """
    moments(ones(2, 3), 2) | axes must be within -2 to 1 for an array of 2 dimensions, got 2
    moments(ones(2, 3), (1, -1)) | axes must be different axes, got (1, -1), which repeats one of the 2
    moments(ones(2, 3), 1.0) | axes must be an axis or a tuple of axes, got 1.0
    moments(ones(2, 3), 0, mask=jnp.ones(4, bool)) | the mask must broadcast to the shape of x, (2, 3), got (4,)
    moments(ones(2, 3), 0, mask=jnp.ones((1, 2, 3), bool)) | must broadcast to the shape of x
    layer_norm(x, axes=3) | axes must be within -3 to 2 for an array of 3 dimensions, got 3
    layer_norm(x, axes=(-1, 2)) | axes must be different axes, got (-1, 2), which repeats one of the 3
    layer_norm(x, ones(3)) | scale must have shape (4,), that of x over axes (2,), got (3,) for x of shape (2, 3, 4)
    layer_norm(x, None, ones(1)) | offset must have shape (4,), that of x over axes (2,), got (1,) for x of shape (2,
        3, 4)
    rms_norm(x, ones(1, 4)) | scale must have shape (4,), that of x over axes (2,), got (
    group_norm(x, groups=3) | groups must divide the 4 channels, got 3
    group_norm(x, groups=0) | groups must divide the 4 channels, got 0
    group_norm(x[0, 0], groups=1) | group_norm needs x of shape (batch, *space, channels), got (4,); add a batch axis
    group_norm(x, ones(2), groups=2) | scale must have shape (4,), that of x over axes (2,), got (
    instance_norm(x[0]) | instance_norm needs x of shape (batch, *space, channels), got (3, 4)
    batch_norm(x, ones(3), ones(4)) | mean must have shape (4,), that of x over axes (2,), got (3,) for x of shape (2,
        3, 4)
    batch_norm(x, ones(12), ones(12), axis=(1, 2)) | axis must be one number, the axis of the channels, got (1, 2); use
        axis=-1
    normalize(x, ones(3), 1.0, epsilon=1e-3) | mean must broadcast to the shape of x
    layer_norm(x, dtype="int32") | dtype must be floating-point or complex, got int32; use dtype='float32'
    layer_norm(x, epsilon=0) | epsilon must be from 2.1e-26 to 3.4e+38, where 1 / sqrt(epsilon)…, got 0; use
        epsilon=1e-6
    layer_norm(x, epsilon=1e-40) | in float32
    layer_norm(x, epsilon=float("nan")) | epsilon must be from 2.1e-26 to 3.4e+38, where 1 / sqrt(epsilon) and its
        slope…, got nan
    layer_norm(x, epsilon=-1e-3) | epsilon must be from 2.1e-26 to 3.4e+38, where 1 / sqrt(epsilon) and its slope…, got
        -0.001
    layer_norm(x, epsilon="1e-3") | epsilon must be a positive number, got '1e-3'
    """,
    ("normalization", OperandError): """
    moments(ones(2, 3), 0, mask=jnp.ones(3, "int32")) | the mask must be boolean, got int32
    batch_norm(x, ones(4), jnp.ones(4, "complex64")) | the variance must be real, got complex64
    """,
    ("pooling", ArgumentError): """
    max_pool(ones(2, 4), (2,)) | inputs must have shape (batch, 1 spatial dimensions, channels) for window=(2,), got
        (2, 4)
    max_pool(ones(2, 4, 1), 2) | window must have an integer of at…, got 2; use window=(2, 2) for images, (2,) for
        sequences
    max_pool(ones(2, 4, 1), (0,)) | window must have an integer of at least 1 for each dimension of space, got (0,)
    max_pool(ones(2, 4, 1), (2,), strides=0) | strides must be an integer of at least 1, or one for each of the 1
        spatial dimensions, got 0
    max_pool(ones(2, 4, 1), (2,), padding=2) | every window must contain an input, got padding (2, 2) around 4
        positions for windows of 2
    avg_pool(ones(2, 0, 1), (2,), padding=1) | around 0 positions
    global_max_pool(ones(2, 0, 1)) | at least one position
    global_average_pool(ones(2, 3)) | global pooling needs inputs of shape (batch, *space, channels) with at least
        one…, got (2, 3)
    MaxPool(2) | window must have an integer of at…, got 2; use window=(2, 2) for images, (2,) for sequences
    MaxPool((2,))(ones(1, 2, 2, 1)) | inputs must have shape (batch, 1 spatial dimensions, channels) for window=(2,),
        got (1, 2, 2, 1)
    """,
    ("pooling", UnknownNameError): """
    max_pool(ones(2, 4, 1), (2,), padding="CIRCULAR") | choose from SAME, VALID
    AvgPool((2,), padding="same") | did you mean 'SAME'
    """,
    ("pooling", OperandError): """
    max_pool(ones(2, 4, 1) + 0j, (2,)) | max_pool is not defined for complex numbers; x must be real, got complex64;
        use x.real
    global_max_pool(ones(2, 4, 1) + 0j) | global_max_pool
    """,
    ("products", ArgumentError): """
    dense(ones(2, 3), ones(4, 2)) | inputs and kernel must have shapes (..., n) and (n, m), got (2, 3) and (4, 2)
    dense(ones(), ones(4, 2)) | inputs and kernel must have shapes (..., n) and (n, m), got () and (4, 2)
    dense(ones(4), ones(4)) | inputs and kernel must have shapes (..., n) and (n, m), got (4,) and (4,)
    dense(ones(4), ones(4, 2), ones(1)) | bias must have shape (2,) to match the other arguments, got (1,)
    dense(ones(4), ones(4, 2), dtype="int32") | dtype must be floating-point or complex, got int32; use dtype='float32'
    dense_general(ones(2, 3), ones(2, 4)) | the kernel must have shape (3, ...) for inputs of shape (2, 3) with
        axes=(1,)…, got (2, 4)
    dense_general(ones(2, 3), ones(3, 4), axes=2) | axes must be within -2 to 1 for an array of 2 dimensions, got 2
    dense_general(ones(2, 3), ones(3, 4), axes=(1, -1)) | axes must be different axes, got (1, -1), which repeats one
        of the 2
    dense_general(ones(2, 3), ones(3, 4), axes=1.5) | axes must be an axis or a tuple of axes, got 1.5; use axes=(-1,)
    dense_general(ones(2, 3), ones(3, 2), axes=0, batch_axes=1) | batch_axes must be the first axes in order, got (1,);
        use batch_axes=(0,) and
    dense_general(ones(2, 3), ones(2, 3), axes=0, batch_axes=0) | axes and batch_axes must not overlap, got axis 0 in
        axes=(0,) and batch_axes=(0,)
    dense_general(ones(2, 3), ones(3, 4, 5), ones(4)) | bias must have shape (4, 5) to match the other arguments, got
        (4,)
    einsum("ab,bc", ones(2, 3), ones(3, 2)) | equation must have inputs and a kernel, as in '...i,io->...o', got 'ab
    einsum("ab->a", ones(2, 3), ones(3, 2)) | equation must have inputs and a kernel, as in '...i,io->...o', got 'ab
    einsum("a1,1c->ac", ones(2, 3), ones(3, 2)) | equation must have inputs and a kernel, as in…, got 'a1,1c->ac':
        terms must consist of letters
    einsum("...a,...b->...b", ones(2, 3), ones(3, 2)) | equation must have inputs and a kernel, as in '...i,io->...o',
        got '...a,
    einsum("...a,ab->b", ones(2, 3), ones(3, 2)) | equation must have inputs and a kernel, as in '...i,io->...o', got
        '...a,
    einsum("ab,bb->ab", ones(2, 3), ones(3, 3)) | equation must have inputs and a kernel, as in '...i,io->...o', got
        'ab,bb->ab': a letter is
    einsum("ab,bc->ad", ones(2, 3), ones(3, 2)) | equation must have inputs and a kernel, as in '...i,io->...o', got
        'ab,bc->ad': a letter of the
    einsum("ab,bc->ac", ones(2, 3), ones(4, 2)) | axis 'b' of the equation 'ab,bc->ac' must have one size, got 3 and 4
        with inputs of shape (2,
    einsum("ab,bc->ac", ones(2, 1), ones(4, 2)) | axis 'b' of the equation 'ab,bc->ac' must have one size, got 1 and 4
        with inputs of shape (2,
    einsum("ab,bc->ac", ones(2, 2, 3), ones(3, 2)) | inputs and kernel must have one axis for each letter of the…, got
        shapes (2, 2, 3) and (3, 2)
    einsum("ab,bc->ac", ones(2, 3), ones(3, 2), ones(3)) | bias must have shape (2,) to match the other arguments, got
        (3,)
    Dense(0) | units must be an integer of at least 1, got 0
    Dense(2.5) | units must be an integer of at least 1, got 2.5
    Dense(np.True_) | units must be an integer of at least 1, got np.True_
    built(Dense(2), ones()) | Dense needs inputs of shape (..., n), got a number; use x[None]
    built(Dense(2), ones(1, 3))(ones(1, 4)) | input 0 must have length 3 along axis -1, got 4
    DenseGeneral((2, 0)) | features must be an integer of at least 1, or one for each of the 2 spatial dimensions, got
        (2, 0)
    built(DenseGeneral(2, axis=3), ones(1, 3)) | axes must be within -2 to 1 for an array of 2 dimensions, got 3
    Einsum("ab,bc->ac", (3,)) | a number for each letter of the kernel 'bc'
    Einsum("ab,bc->ac", (3, 2), bias_shape=(3,)) | bias_shape must have shape (2,) to match the other arguments, got
        (3,)
    built(Einsum("ab,bc->ac", (3, 2)), ones(2, 4)) | axis 'b' of the equation 'ab,bc->ac' must have one size, got 4 and
        3 with inputs of shape (2,
    """,
    ("products", OperandError): """
    dense([1.0], ones(1, 2)) | argument 0 must be a numeric array, …, got list
    """,
    ("recurrent", OperandError): """
    RNN(nn.Dense(2)) | RNN needs a RecurrentCell, such as LSTMCell(64), got Dense(dtype='float32')
    rnn("gru")(x, mask=ones(3, 5)) | mask must be bool, got float32
    rnn("gru")(x, sequence_lengths=ones(3)) | sequence_lengths must be integer, got float32
    """,
    ("recurrent", ArgumentError): """
    RNN(GRUCell(2, dtype="mixed_float16"), dtype="mixed_bfloat16") | dtype must be the policy of the cell,
        'mixed_float16', got 'mixed_bfloat16'; make the cell with dtype='mixed_bfloat16'
    RNN(rnn("gru").cell, dtype="mixed_bfloat16") | dtype must be the policy of the cell, 'float32'
    rnn("gru")(x[0, 0]) | must have at least 2 axes
    rnn("gru")(x[..., :1]) | input 0 must have length 2 along axis -1, got 1
    rnn("gru")(x, mask=jnp.ones((5, 3), bool)) | mask must have shape (3, 5) for these inputs, got (5, 3)
    rnn("gru")(x, sequence_lengths=jnp.ones(2, int)) | sequence_lengths must have shape (3,) for these inputs, got (2,)
    rnn("gru")(x, mask=jnp.ones((3, 5), bool), sequence_lengths=jnp.ones(3, int)) | only one of mask and
        sequence_lengths can be given
    rnn("gru")(x, initial_state=ones(3, 5)) | state must have shape (3, 4) for x of shape (3, 2) and 4 units, got (3, 5)
    rnn("lstm")(x, initial_state=ones(3, 4)) | a pair of hidden and cell state
    built(RNN(ForgetfulCell()), x) | ForgetfulCell(dtype='float32') must keep the dtypes of its state,…, got
        [dtype('int32')]
    """,
    ("recurrent", RuntimeError): """
    nn.functional_call(RNN(GRUCell(2)), {}, x) | no weights yet
    """,
    ("reshaping", ArgumentError): """
    Flatten()(ones()) | inputs must have a batch axis, got a number; use x[None]
    Reshape((-1, -1)) | target_shape must be a tuple of sizes, of which one may be -1, got (-1, -1); use
        target_shape=(-1,)
    Reshape((-2,)) | target_shape must be a tuple of sizes, of which one may be -1, got
    Reshape(3) | target_shape must be a tuple of sizes, of which one may be -1, got
    Reshape((5,))(x) | target_shape must have the 12 values of the input shape (3, 4), got (5,)
    Reshape((5, -1))(x) | target_shape must have the 12 values of the input shape (3, 4), got (5, -1)
    Reshape((0, -1))(x) | target_shape must have the 12 values of the input shape (3, 4), got (0, -1)
    Reshape((1, 3))(ones(3, 2, 1)) | target_shape must have the 2 values of the input shape (2, 1), got (1, 3)
    Permute((0, 1)) | dims must have each axis from 1 on exactly once, got (0, 1); use dims=(2, 1)
    Permute((1, 1)) | dims must have each axis from 1 on exactly once, got
    Permute(1) | dims must have each axis from 1 on exactly once, got
    Permute((2, 1))(ones(2, 3)) | inputs must have 3 axes for dims=(2, 1), got shape (2, 3)
    """,
    ("rotary", OperandError): """
    rotary_embedding(x * 1j, 0) | rotary_embedding is not defined for complex numbers
    rotary_embedding(x, np.ones(300, bool)) | positions must be numbers, got bool
    """,
    ("rotary", ArgumentError): """
    rotary_embedding(x[..., :3], 0) | x must have shape (batch..., length, heads, head_dim) with an even head_dim, got
        (2, 300, 3, 3)
    rotary_embedding(x[0, 0], 0) | x must have shape (batch..., length, heads, head_dim) with an even head_dim, got (3,
        8)
    rotary_embedding(x, np.arange(4)) | positions must broadcast to (batch..., length), here (2, 300), got (4,)
    rotary_embedding(x, 0, base=0) | base must be positive, got 0
    """,
    ("softmax", OperandError): """
    softmax(jnp.ones(2, "complex64")) | not defined for complex numbers; x must be real, got complex64
    softmax(ones(2), dtype="complex64") | dtype must be real, got complex64
    softmax(ones(2), mask=ones(2)) | must be boolean, got float32; use mask.astype(bool)
    log_softmax(jnp.ones(2, "complex64")) | not defined for complex numbers; x must be real, got complex64
    log_softmax(ones(2), dtype="complex64") | dtype must be real, got complex64
    log_softmax(ones(2), mask=ones(2)) | must be boolean, got float32; use mask.astype(bool)
    """,
    ("softmax", ArgumentError): """
    softmax(ones(2), dtype="int32") | dtype must be floating-point or complex, got int32; use dtype='float32'
    softmax(ones(2), mask=jnp.ones((3, 1), bool)) | must broadcast to the shape of x, (2,), got (3, 1)
    softmax(ones(2, 3), 2) | axis must be within -2 to 1 for an array of 2 dimensions, got 2
    softmax(ones()) | axis must be an axis of the array, which has none, got -1
    log_softmax(ones(2), dtype="int32") | dtype must be floating-point or complex, got int32; use dtype='float32'
    log_softmax(ones(2), mask=jnp.ones((3, 1), bool)) | must broadcast to the shape of x, (2,), got (3, 1)
    log_softmax(ones(2, 3), 2) | axis must be within -2 to 1 for an array of 2 dimensions, got 2
    log_softmax(ones()) | axis must be an axis of the array, which has none, got -1
    """,
}
