"""The table of weights: for each layer and library, the names and layouts of its weights there.

Loading converts from the library's layout to the one here, exporting the other way round. A layer without a row, such
as a layer of your own, has the same names and layouts everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from supremum.nn.functional.products import ELLIPSIS, Equation
from supremum.nn.layer import Layer
from supremum.nn.layers.attention import MultiHeadAttention
from supremum.nn.layers.bidirectional import Bidirectional
from supremum.nn.layers.convolution import Conv, ConvTranspose
from supremum.nn.layers.embedding import Embedding
from supremum.nn.layers.normalization import BatchNorm, GroupNorm, InstanceNorm, LayerNorm, RMSNorm
from supremum.nn.layers.products import Dense, DenseGeneral, Einsum
from supremum.nn.layers.recurrent import RNN
from supremum.nn.layers.recurrent_cells import GRUCell, LSTMCell, SimpleRNNCell
from supremum.nn.module_tree import snake_case
from supremum.nn.weights.forms import Form, Weight, renamed, same
from supremum.nn.weights.steps import (
    AddBiases,
    AddGateBiases,
    FlipWindow,
    Join,
    MoveAxes,
    NoRecurrentBias,
    Reshape,
    Split,
    Step,
    SwapFirstGates,
    Unstack,
)

Row: TypeAlias = Callable[[Any], Sequence[Form]]
"""A function of a built layer that returns its forms in a library: the first is written, all are read."""

LIBRARIES = ("flax", "nnx", "keras", "torch")
"""Flax linen, Flax nnx, Keras 3 and PyTorch. Weights of nnx can be read as those of `"flax"`, too."""


def forms_of(layer: Layer, library: str) -> Sequence[Form]:
    """The forms of a built layer in a library, from the table.

    Args:
        layer: the layer; a subclass of a layer in the table has the row of that layer.
        library: the name of the library.
    """
    for kind in type(layer).__mro__:
        if (row := _TABLE.get((kind, library))) is not None:
            return row(layer)
    return (Form(same(*(variable.name for variable in layer.own_variables()))),)


def has_row(layer: Layer) -> bool:
    """Whether the table has a layer, which then has counterparts in the libraries."""
    return any((kind, LIBRARIES[0]) in _TABLE for kind in type(layer).__mro__)


def _always(*forms: Form) -> Row:
    def row(_layer: Layer) -> Sequence[Form]:
        return forms

    return row


_SAME_KERNEL = _always(Form(same("kernel", "bias")))
# A matrix of shape (outputs, inputs); a kernel with the channels first, in the opposite order; the channels alone.
_OUTPUTS_FIRST = MoveAxes((0,), (-1,))
_CHANNELS_FIRST = MoveAxes((0, 1), (-1, -2))
_SWAPPED_CHANNELS = MoveAxes((-1,), (-2,))


def _torch_kernel(*steps: Step) -> Form:
    return Form((Weight(("weight",), ("kernel",), steps), *renamed(bias="bias")))


def _norm(scale: str, offset: str, mean: str = "", variance: str = "", **buffers: Any) -> Form:
    """A norm with these names, and if given, with running statistics, which Flax linen has in a collection."""
    statistics = ((mean, "moving_mean"), (variance, "moving_variance")) if mean else ()
    weights = tuple(Weight((theirs,), (ours,), (), "batch_stats") for theirs, ours in statistics)
    return Form((*renamed(gamma=scale, beta=offset), *weights), buffers=buffers)


def _torch_general(layer: DenseGeneral) -> Sequence[Form]:
    """A `torch.nn.Linear` of all contracted axes at once; it has no batch axes."""
    if layer.batch_axis not in ((), []):
        return (Form(same("kernel", "bias")),)
    features, kernel = layer.features, layer.kernel.shape
    matrix = (math.prod(kernel[: -len(features)]), math.prod(features))
    return (
        Form(
            (
                Weight(("weight",), ("kernel",), (_OUTPUTS_FIRST, Reshape(matrix, kernel))),
                Weight(("bias",), ("bias",), (Reshape((math.prod(features),), features),)),
            )
        ),
    )


def _keras_general(layer: DenseGeneral) -> Sequence[Form]:
    """A `keras.layers.EinsumDense`, whose bias has axes of length 1 between those of batch and features."""
    kernel, features = layer.kernel.shape, layer.features
    count = 1 if isinstance(layer.batch_axis, int) else len(layer.batch_axis)
    if not count or layer.bias is None:
        return (Form(same("kernel", "bias")),)
    spec: Any = layer.input_spec  # with batch axes it has the number of axes
    others = spec.ndim - (len(kernel) - len(features))
    bias = (*kernel[:count], *(1,) * others, *features)
    return (Form((*same("kernel"), Weight(("bias",), ("bias",), (Reshape(bias, layer.bias.shape),)))),)


def _keras_einsum(layer: Einsum) -> Sequence[Form]:
    """A `keras.layers.EinsumDense`, whose bias has axes of length 1 between those of the kernel."""
    terms = Equation.parse(layer.equation)
    sizes = dict(zip(terms.kernel, layer.shape, strict=True))
    outputs = terms.outputs
    first = next((at for at, letter in enumerate(outputs) if letter in sizes), 0)
    if layer.bias_shape is None or ELLIPSIS in outputs[first:]:
        return (Form(same("kernel", "bias")),)
    bias = tuple(sizes.get(letter, 1) for letter in outputs[first:])
    return (Form((*same("kernel"), Weight(("bias",), ("bias",), (Reshape(bias, layer.bias_shape),)))),)


def _torch_transpose(layer: ConvTranspose) -> Sequence[Form]:
    """A `torch.nn.ConvTranspose`, the gradient of a convolution: shape (channels, filters / groups, *window)."""
    if layer.transpose_kernel:
        return (_torch_kernel(_CHANNELS_FIRST),)
    *window, inputs, _ = layer.kernel.shape
    groups, outputs = layer.groups, layer.filters // layer.groups
    return (
        _torch_kernel(
            _CHANNELS_FIRST,  # (*window, filters / groups, channels), with the channels of each group together
            FlipWindow(),
            Reshape((*window, outputs, groups * inputs), (*window, outputs, groups, inputs)),
            MoveAxes((-3, -1), (-1, -3)),
            Reshape((*window, inputs, groups, outputs), (*window, inputs, groups * outputs)),
        ),
    )


def _keras_transpose(layer: ConvTranspose) -> Sequence[Form]:
    """A transposed convolution of Keras, the gradient of a convolution: shape (*window, filters, channels)."""
    steps = () if layer.transpose_kernel else (_SWAPPED_CHANNELS, FlipWindow())
    return (Form((Weight(("kernel",), ("kernel",), steps), *same("bias"))),)


def _flax_gates(inputs: str, states: str, biases: str) -> tuple[Weight, ...]:
    """The weights of a cell of Flax, in one or more matrices for the inputs and as many for the states."""
    x, h, b = inputs.split(), states.split(), biases.split()
    join = (Join(len(x)),)
    return (
        Weight(tuple(f"{name}/kernel" for name in x), ("kernel",), join),
        Weight(tuple(f"{name}/bias" for name in b), ("bias",), join),
        Weight(tuple(f"{name}/kernel" for name in h), ("recurrent_kernel",), join),
    )


_LINEN_SIMPLE = Form(_flax_gates("i", "h", "i"))
_NNX_SIMPLE = Form(_flax_gates("dense_i", "dense_h", "dense_i"))
_LINEN_LSTM = Form(_flax_gates("ii if ig io", "hi hf hg ho", "hi hf hg ho"))
_NNX_LSTM = Form(_flax_gates("ii if_ ig io", "hi hf hg ho", "hi hf hg ho"))
_NNX_OPTIMIZED_LSTM = Form(_flax_gates("dense_i", "dense_h", "dense_h"))
_LINEN_GRU = Form((*_flax_gates("ir iz in", "hr hz hn", "ir iz in"), *renamed(recurrent_bias="hn/bias")))
_NNX_GRU = Form(
    (
        *renamed(kernel="dense_i/kernel"),
        Weight(("dense_i/bias",), ("bias", "recurrent_bias"), (NoRecurrentBias(),)),
        *renamed(recurrent_kernel="dense_h/kernel"),
    )
)
_KERAS_GRU = Form(
    (
        Weight(("kernel",), ("kernel",), (SwapFirstGates(),)),
        Weight(("recurrent_kernel",), ("recurrent_kernel",), (SwapFirstGates(),)),
        Weight(("bias",), ("bias", "recurrent_bias"), (Unstack(), SwapFirstGates(), AddGateBiases())),
    )
)


def _torch_cell(bias: Weight) -> Form:
    return Form(
        (
            Weight(("weight_ih",), ("kernel",), (_OUTPUTS_FIRST,)),
            Weight(("weight_hh",), ("recurrent_kernel",), (_OUTPUTS_FIRST,)),
            bias,
        )
    )


_BIASES = ("bias_ih", "bias_hh")
_TORCH_CELL = _torch_cell(Weight(_BIASES, ("bias",), (AddBiases(),)))
_TORCH_GRU = _torch_cell(Weight(_BIASES, ("bias", "recurrent_bias"), (AddGateBiases(),)))


def _keras_kind(layer: RNN) -> str:
    """The name that Keras gives a recurrent layer, such as `"simple_rnn"`."""
    return snake_case(type(layer.cell).__name__.removesuffix("Cell").replace("RNN", "_RNN"))


def _keras_rnn(layer: RNN) -> Sequence[Form]:
    return (Form(children={"cell": (f"{_keras_kind(layer)}_cell", "*")}),)


def _keras_bidirectional(layer: Bidirectional) -> Sequence[Form]:
    kind = _keras_kind(layer.forward)
    ways = ("forward", "backward")
    return (Form(children={way: (f"{way}_{kind}", f"{way}_*") for way in ways}),)


def _torch_attention(layer: MultiHeadAttention) -> Sequence[Form]:
    """A `torch.nn.MultiheadAttention`, whose projections are packed; or four of `torch.nn.Linear`.

    It is packed in one matrix if query, key and value have the same number of features, and in three otherwise.
    """
    query, key, value, output = (each.kernel.shape for each in (layer.query, layer.key, layer.value, layer.output))
    features, *heads = query
    width = math.prod(heads)
    projections = {name: (f"{letter}_proj",) for name, letter in (("query", "q"), ("key", "k"), ("value", "v"))}
    separate = Form(children={**projections, "output": ("out_proj",)})
    if not (width == features == output[-1] and key[1:] == value[1:] == query[1:]):
        return (separate,)
    names = tuple(projections)
    kernels, biases = (tuple(f"{name}/{kind}" for name in names) for kind in ("kernel", "bias"))
    others = (
        Weight(("in_proj_bias",), biases, (Split(3), Reshape((width,), query[1:]))),
        Weight(("out_proj/weight",), ("output/kernel",), (_OUTPUTS_FIRST, Reshape((width, features), output))),
        *renamed(**{"output/bias": "out_proj/bias"}),
    )
    given = zip(names, (query, key, value), strict=True)
    three = tuple(
        Weight(
            (f"{letter[0][0]}_proj_weight",), (f"{name}/kernel",), (_OUTPUTS_FIRST, Reshape((shape[0], width), shape))
        )
        for (name, shape), letter in zip(given, projections.values(), strict=True)
    )
    if not features == key[0] == value[0]:
        return (Form((*three, *others)), separate)
    one = Weight(("in_proj_weight",), kernels, (Split(3, 0), _OUTPUTS_FIRST, Reshape((features, width), query)))
    return (Form((one, *others)), separate)


_FLAX_ATTENTION = _always(Form(children={"output": ("out",)}))
_FLAX_BIDIRECTIONAL = _always(Form(children={"forward": ("forward_rnn",), "backward": ("backward_rnn",)}))
_FLAX_NORM = _always(_norm("scale", "bias"))
_FLAX_BATCH_NORM = _always(_norm("scale", "bias", "mean", "var"))
_FLAX_EMBEDDING = _always(Form(same("embedding")))
_FLAX_CELL = _always(Form(children={"cell": ("cell",)}))
_KERAS_NORM = _always(_norm("gamma", "beta"))
_TORCH_NORM = _always(_norm("weight", "bias"))

_TABLE: dict[tuple[type, str], Row] = {
    (Dense, "flax"): _SAME_KERNEL,
    (Dense, "nnx"): _SAME_KERNEL,
    (Dense, "keras"): _SAME_KERNEL,
    (Dense, "torch"): _always(_torch_kernel(_OUTPUTS_FIRST)),
    (DenseGeneral, "flax"): _SAME_KERNEL,
    (DenseGeneral, "nnx"): _SAME_KERNEL,
    (DenseGeneral, "keras"): _keras_general,
    (DenseGeneral, "torch"): _torch_general,
    (Einsum, "flax"): _SAME_KERNEL,
    (Einsum, "nnx"): _SAME_KERNEL,
    (Einsum, "keras"): _keras_einsum,
    (Einsum, "torch"): _SAME_KERNEL,  # PyTorch has no such layer
    (Conv, "flax"): _SAME_KERNEL,
    (Conv, "nnx"): _SAME_KERNEL,
    (Conv, "keras"): _SAME_KERNEL,
    (Conv, "torch"): _always(_torch_kernel(_CHANNELS_FIRST)),
    (ConvTranspose, "flax"): _SAME_KERNEL,
    (ConvTranspose, "nnx"): _SAME_KERNEL,
    (ConvTranspose, "keras"): _keras_transpose,
    (ConvTranspose, "torch"): _torch_transpose,
    (Embedding, "flax"): _FLAX_EMBEDDING,
    (Embedding, "nnx"): _FLAX_EMBEDDING,
    (Embedding, "keras"): _always(Form(renamed(embedding="embeddings"))),
    (Embedding, "torch"): _always(Form(renamed(embedding="weight"))),
    (LayerNorm, "flax"): _FLAX_NORM,
    (LayerNorm, "nnx"): _FLAX_NORM,
    (LayerNorm, "keras"): _KERAS_NORM,
    (LayerNorm, "torch"): _TORCH_NORM,
    (GroupNorm, "flax"): _FLAX_NORM,
    (GroupNorm, "nnx"): _FLAX_NORM,
    (GroupNorm, "keras"): _KERAS_NORM,
    (GroupNorm, "torch"): _TORCH_NORM,
    (InstanceNorm, "flax"): _FLAX_NORM,
    (InstanceNorm, "nnx"): _FLAX_NORM,
    (InstanceNorm, "keras"): _KERAS_NORM,  # GroupNormalization(groups=-1)
    (InstanceNorm, "torch"): _TORCH_NORM,
    (RMSNorm, "flax"): _FLAX_NORM,
    (RMSNorm, "nnx"): _FLAX_NORM,
    # RMSNormalization, and LayerNormalization(rms_scaling=True).
    (RMSNorm, "keras"): _always(_norm("scale", ""), _norm("gamma", "")),
    (RMSNorm, "torch"): _TORCH_NORM,
    (BatchNorm, "flax"): _FLAX_BATCH_NORM,
    (BatchNorm, "nnx"): _FLAX_BATCH_NORM,
    (BatchNorm, "keras"): _always(_norm("gamma", "beta", "moving_mean", "moving_variance")),
    (BatchNorm, "torch"): _always(
        _norm("weight", "bias", "running_mean", "running_var", num_batches_tracked=np.int64(0))
    ),
    (SimpleRNNCell, "flax"): _always(_LINEN_SIMPLE, _NNX_SIMPLE),
    (SimpleRNNCell, "nnx"): _always(_NNX_SIMPLE),
    (SimpleRNNCell, "keras"): _always(Form(same("kernel", "recurrent_kernel", "bias"))),
    (SimpleRNNCell, "torch"): _always(_TORCH_CELL),
    (LSTMCell, "flax"): _always(_LINEN_LSTM, _NNX_LSTM, _NNX_OPTIMIZED_LSTM),
    (LSTMCell, "nnx"): _always(_NNX_LSTM, _NNX_OPTIMIZED_LSTM),
    (LSTMCell, "keras"): _always(Form(same("kernel", "recurrent_kernel", "bias"))),
    (LSTMCell, "torch"): _always(_TORCH_CELL),
    (GRUCell, "flax"): _always(_LINEN_GRU, _NNX_GRU),
    (GRUCell, "nnx"): _always(_NNX_GRU),
    (GRUCell, "keras"): _always(_KERAS_GRU),
    (GRUCell, "torch"): _always(_TORCH_GRU),
    (RNN, "flax"): _FLAX_CELL,
    (RNN, "nnx"): _FLAX_CELL,
    (RNN, "keras"): _keras_rnn,
    (RNN, "torch"): _always(Form(children={"cell": ("l0",)})),
    (Bidirectional, "flax"): _FLAX_BIDIRECTIONAL,
    (Bidirectional, "nnx"): _FLAX_BIDIRECTIONAL,
    (Bidirectional, "keras"): _keras_bidirectional,
    (Bidirectional, "torch"): _always(
        Form(children={"forward": ("",), "forward/cell": ("l0",), "backward": ("",), "backward/cell": ("l0_reverse",)})
    ),
    (MultiHeadAttention, "flax"): _FLAX_ATTENTION,
    (MultiHeadAttention, "nnx"): _FLAX_ATTENTION,
    (MultiHeadAttention, "keras"): _always(Form(children={"output": ("attention_output",)})),
    (MultiHeadAttention, "torch"): _torch_attention,
}
