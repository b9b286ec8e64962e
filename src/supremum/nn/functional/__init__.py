"""The functions behind the layers; they compute in the result type of inputs and parameters.

They hold no weights and read no policy.
"""

from supremum.formats import at_least_float32
from supremum.nn.functional.activations import elu, gelu, leaky_relu, log_softmax, relu, sigmoid, silu, softmax, tanh
from supremum.nn.functional.attention import dot_product_attention, rotary_embedding
from supremum.nn.functional.convolution import conv, conv_transpose
from supremum.nn.functional.dropout import as_key as as_key
from supremum.nn.functional.dropout import dropout
from supremum.nn.functional.dtype_promotion import as_floating as as_floating
from supremum.nn.functional.dtype_promotion import check_held as check_held
from supremum.nn.functional.dtype_promotion import common_dtype, promote_dtype
from supremum.nn.functional.dtype_promotion import new_array as new_array
from supremum.nn.functional.dtype_promotion import promote_arrays as promote_arrays
from supremum.nn.functional.embedding import attend, embedding
from supremum.nn.functional.masks import combine_masks, make_attention_mask, make_causal_mask
from supremum.nn.functional.normalization import (
    batch_norm,
    group_norm,
    instance_norm,
    layer_norm,
    moments,
    normalize,
    rms_norm,
)
from supremum.nn.functional.pooling import avg_pool, global_average_pool, global_max_pool, max_pool
from supremum.nn.functional.products import dense, dense_general, einsum
from supremum.nn.functional.shape_checks import MOST as MOST
from supremum.nn.functional.shape_checks import as_axes as as_axes
from supremum.nn.functional.shape_checks import positive_int as positive_int
from supremum.public_names import public_names

__all__ = [
    "at_least_float32", "attend", "avg_pool", "batch_norm", "combine_masks", "common_dtype",
    "conv", "conv_transpose", "dense", "dense_general", "dot_product_attention", "dropout", "einsum",
    "elu", "embedding", "gelu", "global_average_pool", "global_max_pool", "group_norm", "instance_norm",
    "layer_norm", "leaky_relu", "log_softmax", "make_attention_mask", "make_causal_mask", "max_pool",
    "moments", "normalize", "promote_dtype", "relu", "rms_norm",
    "rotary_embedding", "sigmoid", "silu", "softmax", "tanh",
]  # fmt: skip


def __dir__() -> list[str]:
    return public_names(globals())
