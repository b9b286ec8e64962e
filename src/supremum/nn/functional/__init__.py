"""What layers compute, as functions of arrays, in the dtype that inputs and parameters meet in."""

from typing import Any

from supremum.formats import at_least_float32
from supremum.nn.functional.activations import elu, gelu, leaky_relu, relu, sigmoid, silu, tanh
from supremum.nn.functional.attention import dot_product_attention
from supremum.nn.functional.convolution import CONV_PADDINGS as CONV_PADDINGS
from supremum.nn.functional.convolution import TRANSPOSED_PADDINGS as TRANSPOSED_PADDINGS
from supremum.nn.functional.convolution import conv, conv_transpose
from supremum.nn.functional.dropout import as_rate as as_rate
from supremum.nn.functional.dropout import dropout
from supremum.nn.functional.dropout import rate_below_one as rate_below_one
from supremum.nn.functional.dtype_promotion import check_held as check_held
from supremum.nn.functional.dtype_promotion import common_dtype, promote_dtype
from supremum.nn.functional.dtype_promotion import is_held as is_held
from supremum.nn.functional.einsum_equations import Equation as Equation
from supremum.nn.functional.embedding import attend, embedding
from supremum.nn.functional.masks import combine_masks, make_attention_mask, make_causal_mask
from supremum.nn.functional.masks import split_additive as split_additive
from supremum.nn.functional.merging import add, average, concatenate, maximum, multiply, subtract
from supremum.nn.functional.moments import has_axis as has_axis
from supremum.nn.functional.moments import joint_moments as joint_moments
from supremum.nn.functional.moments import moments
from supremum.nn.functional.normalization import batch_norm, group_norm, instance_norm, layer_norm, normalize, rms_norm
from supremum.nn.functional.padding import Padding as Padding
from supremum.nn.functional.padding import as_padding as as_padding
from supremum.nn.functional.pooling import POOL_PADDINGS as POOL_PADDINGS
from supremum.nn.functional.pooling import avg_pool, global_average_pool, global_max_pool, max_pool, min_pool
from supremum.nn.functional.products import dense, dense_general, einsum
from supremum.nn.functional.products import general_axes as general_axes
from supremum.nn.functional.random_keys import as_key as as_key
from supremum.nn.functional.real_only import refuse_complex as refuse_complex
from supremum.nn.functional.recurrent import Activation as Activation
from supremum.nn.functional.recurrent import gru_step, lstm_step, simple_rnn_step
from supremum.nn.functional.rotary import rotary_embedding
from supremum.nn.functional.shape_checks import MOST as MOST
from supremum.nn.functional.shape_checks import Ints as Ints
from supremum.nn.functional.shape_checks import all_whole as all_whole
from supremum.nn.functional.shape_checks import as_axes as as_axes
from supremum.nn.functional.shape_checks import axis_numbers as axis_numbers
from supremum.nn.functional.shape_checks import check_shape as check_shape
from supremum.nn.functional.shape_checks import positive_int as positive_int
from supremum.nn.functional.shape_checks import positive_ints as positive_ints
from supremum.nn.functional.shape_checks import window_size as window_size
from supremum.nn.functional.softmax import log_softmax, softmax
from supremum.renamed_names import renamed_name

__all__ = [
    "add", "at_least_float32", "attend", "average", "avg_pool", "batch_norm", "combine_masks", "common_dtype",
    "concatenate", "conv", "conv_transpose", "dense", "dense_general", "dot_product_attention", "dropout", "einsum",
    "elu", "embedding", "gelu", "global_average_pool", "global_max_pool", "group_norm", "gru_step", "instance_norm",
    "layer_norm", "leaky_relu", "log_softmax", "lstm_step", "make_attention_mask", "make_causal_mask", "max_pool",
    "maximum", "min_pool", "moments", "multiply", "normalize", "promote_dtype", "relu", "rms_norm",
    "rotary_embedding", "sigmoid", "silu", "simple_rnn_step", "softmax", "subtract", "tanh",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    return renamed_name(__name__, name)
