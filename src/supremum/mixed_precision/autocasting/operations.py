"""In which dtype autocast runs each primitive of JAX, and why: one row each.

The reference are the lists of PyTorch's `torch.autocast` for CUDA (its document `amp.md`, and its registry for the
operations that the document leaves out); `follows` names the functions of torch that a row takes after. A row that
departs from them says so in its reason. A primitive without a row is left alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from supremum.argument_checks import chosen, text
from supremum.errors import ArgumentError, shown

COMPUTE: Final = "compute"
"""Operands are cast to the compute dtype, and the result has it."""
FLOAT32: Final = "float32"
"""Operands are cast to float32, and the result has it."""
WIDEST: Final = "widest"
"""Operands meet in the widest dtype among them, and the result has it."""
EACH: Final = "each"
"""Every operand keeps its dtype, and so does the result that goes with it."""
DECLARED: Final = "declared"
"""Left alone: operands are cast back to the dtypes that the function declares."""

INSIDE: Final = "inside"
"""For a function: what is in it is treated operation by operation."""

RULES: tuple[str, ...] = (COMPUTE, FLOAT32, WIDEST, EACH, DECLARED)

RECIPROCAL: Final = "reciprocal"
"""Of an operation that takes the widest: a number divided by an array runs in float32."""
SQUARE: Final = "square"
"""Of an operation that takes the widest: an array with itself runs in float32."""
BIAS: Final = "bias"
"""Of an operation that takes the widest: a product and the bias of its layer run in the dtype of the product."""

_SQUARES = "float16 overflows from 256 on; variances and norms are made of it"

EXCEPTIONS: Mapping[str, str] = MappingProxyType(
    {
        RECIPROCAL: "a reciprocal: that of a small number is beyond float16",
        SQUARE: f"a square; {_SQUARES}",
        BIAS: "the bias of a product, as in torch's linear and conv",
    }
)
"""Why each exception is made. They are part of a row: where another rule is asked for, there are none."""


@dataclass(frozen=True, slots=True)
class Row:
    """How autocast treats a primitive.

    Args:
        name: the name of the primitive.
        rule: one of `RULES`.
        reason: why.
        follows: the functions of torch whose treatment by `torch.autocast` it takes after.
        moves: whether it only moves values, so that a dtype given by hand stays theirs.
        fills: whether, moreover, all values of the result are one where all of the operand are.
        exception: of a row that takes the widest, one of `EXCEPTIONS`: operands for which it does not; empty for none.
    """

    name: str
    rule: str
    reason: str
    follows: tuple[str, ...] = ()
    moves: bool = False
    fills: bool = False
    exception: str = ""


def _rows(
    rule: str,
    reason: str,
    names: str,
    follows: str = "",
    *,
    moves: bool = False,
    fills: bool = False,
    exception: str = "",
) -> list[Row]:
    return [Row(name, rule, reason, tuple(follows.split()), moves, fills, exception) for name in names.split()]


_SUMS = "float16 overflows at 65504 and bfloat16 stops counting at 256: sums are kept in float32"
_RANGE = "its result leaves the range of float16 quickly"
_STEEP = "close to its singularity it multiplies the rounding errors of a narrow operand"
_SPECIAL = "a series whose terms cancel"
_MATRIX = "factorisations lose accuracy with every pivot, and have no 16-bit kernels"
_MOVES = "moves values and computes nothing"
_MEETS = "only moves values, which meet in one array"
_SAME = "as accurate as its operands in any dtype"
_COMPARES = "compares what it is given"
_WRITES = "writes into an array that is there, in the dtype of that array; departs from torch, which takes the widest"
_BITS = "its result depends on the bits of its dtype"
_HOST = "code outside of JAX gets the dtypes that it expects"
_ASIDE = "departs from torch, which does not list it: "

_TABLE: list[Row] = [
    # Products
    *_rows(
        COMPUTE,
        "products are most of the work, and XLA accumulates them in float32; departs from torch for dot, vdot, "
        "tensordot and bilinear, which are this one primitive in JAX",
        "dot_general",
        "__matmul__ matmul mm mv bmm addmm addmv addbmm baddbmm addr linear chain_matmul einsum multi_dot "
        "linalg_vecdot scaled_dot_product_attention",
    ),
    *_rows(COMPUTE, "products of groups, else as dot_general", "ragged_dot_general"),
    *_rows(
        COMPUTE,
        "products are most of the work, and XLA accumulates them in float32",
        "conv_general_dilated",
        "conv1d conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d conv_transpose3d convolution _convolution",
    ),
    # What leaves the range of float16, or multiplies errors
    *_rows(FLOAT32, _RANGE, "exp", "exp softmax log_softmax softmin softplus"),
    *_rows(FLOAT32, _RANGE, "expm1", "expm1"),
    *_rows(FLOAT32, "as exp", "exp2"),
    *_rows(FLOAT32, _RANGE, "pow", "pow __pow__ __rpow__"),
    *_rows(FLOAT32, _RANGE, "integer_pow", "pow __pow__"),
    *_rows(FLOAT32, _SQUARES, "square", "pow norm"),
    *_rows(FLOAT32, "the derivative of tanh, asin and the like; 1 - x**2 cancels near one", "one_minus_square"),
    *_rows(FLOAT32, "powers and sums whose terms cancel", "polynomial"),
    *_rows(
        FLOAT32,
        "torch lists it; the square of a small number is zero in float16, and this its inverse",
        "rsqrt",
        "rsqrt",
    ),
    *_rows(FLOAT32, _STEEP, "log log2", "log log2 log10"),
    *_rows(FLOAT32, _STEEP, "log1p", "log1p"),
    *_rows(FLOAT32, _STEEP, "tan", "tan"),
    *_rows(FLOAT32, _STEEP, "acos", "acos"),
    *_rows(FLOAT32, _STEEP, "asin", "asin"),
    *_rows(FLOAT32, _RANGE, "cosh", "cosh"),
    *_rows(FLOAT32, _RANGE, "sinh", "sinh"),
    *_rows(FLOAT32, _STEEP, "erf_inv", "erfinv"),
    *_rows(
        FLOAT32,
        _ASIDE + _SPECIAL,
        "lgamma digamma igamma igammac igamma_grad_a random_gamma regularized_incomplete_beta polygamma "
        "zeta bessel_i0e bessel_i1e",
    ),
    # Sums
    *_rows(FLOAT32, _SUMS, "reduce_sum", "sum"),
    *_rows(FLOAT32, _SUMS, "reduce_prod", "prod"),
    *_rows(FLOAT32, _SUMS, "cumsum", "cumsum"),
    *_rows(FLOAT32, _SUMS, "cumprod", "cumprod"),
    *_rows(FLOAT32, _SUMS, "cumlogsumexp", "logsumexp"),
    *_rows(FLOAT32, _SUMS, "reduce_window_sum"),
    *_rows(FLOAT32, "the gradient of a pooled maximum, a sum where windows overlap", "select_and_scatter_add"),
    *_rows(FLOAT32, "a sum over devices", "psum psum_invariant reduce_scatter unreduced_psum"),
    *_rows(
        FLOAT32,
        "softmax and logsumexp subtract it, and the difference shall not be rounded first",
        "reduce_max reduce_min",
        "softmax log_softmax logsumexp",
    ),
    # Linear algebra and Fourier transforms
    *_rows(
        FLOAT32,
        _MATRIX,
        "cholesky lu qr householder_product eigh eig svd schur hessenberg triangular_solve tridiagonal "
        "tridiagonal_solve cholesky_update symmetric_product",
    ),
    *_rows(FLOAT32, "sums over the whole signal, and complex numbers have no 16-bit format", "fft"),
    # What only moves values
    *_rows(
        WIDEST,
        _MOVES,
        "broadcast_in_dim reshape squeeze transpose slice dynamic_slice rev copy stop_gradient pvary pbroadcast tile "
        "split unstack",
        moves=True,
        fills=True,
    ),
    *_rows(
        WIDEST,
        _MOVES,
        "gather name sharding_constraint layout_constraint reshard all_gather all_gather_invariant "
        "all_to_all ppermute pmax pmin cummax cummin reduce_window_max reduce_window_min reduce_precision",
        moves=True,
    ),
    *_rows(WIDEST, _MEETS, "concatenate", "cat", moves=True),
    *_rows(WIDEST, _MEETS, "stack", "stack", moves=True),
    *_rows(WIDEST, _MEETS, "dynamic_update_slice", "index_put", moves=True),
    *_rows(WIDEST, _MEETS, "select_n pad", moves=True),
    *_rows(EACH, _MOVES, "sort top_k approx_top_k optimization_barrier device_put", moves=True),
    # Arithmetic
    *_rows(WIDEST, _SAME + "; the bias of a product takes its dtype", "add", exception=BIAS),
    *_rows(WIDEST, _SAME, "sub neg add_any abs sign floor ceil round clamp max min rem"),
    *_rows(
        WIDEST,
        _SAME + "; an array multiplied with itself is a square and runs in float32",
        "mul",
        "norm",
        exception=SQUARE,
    ),
    *_rows(
        WIDEST,
        _SAME + "; a number divided by an array is a reciprocal and runs in float32",
        "div",
        "reciprocal __rdiv__ __rtruediv__",
        exception=RECIPROCAL,
    ),
    *_rows(WIDEST, "meets in the widest of its operands", "atan2", "atan2"),
    *_rows(
        WIDEST,
        "torch does not list it; XLA evaluates it in float32 and rounds once",
        "sin cos atan tanh logistic erf erfc sqrt cbrt acosh asinh atanh",
    ),
    *_rows(
        WIDEST,
        _COMPARES,
        "eq ne lt le gt ge eq_to le_to lt_to is_finite argmax argmin",
    ),
    # Left alone
    *_rows(
        DECLARED,
        _WRITES,
        "scatter scatter-add scatter-mul scatter-min scatter-max scatter-sub",
        "scatter_add",
    ),
    *_rows(DECLARED, _BITS, "nextafter bitcast_convert_type select_and_gather_add"),
    *_rows(DECLARED, "there is no 16-bit complex format", "complex real imag conj"),
    *_rows(DECLARED, "reads and writes references, which have one dtype", "get swap addupdate"),
    *_rows(DECLARED, _HOST, "pure_callback io_callback debug_callback debug_print ffi_call pallas_call"),
    *_rows(
        DECLARED,
        "a function of its own inside, which expects the dtypes that it declares",
        "reduce reduce_window select_and_scatter custom_linear_solve custom_lin linear_call custom_partitioning "
        "composite",
    ),
    *_rows(
        DECLARED,
        "makes numbers or takes none that are cast",
        "iota rng_uniform rng_bit_generator random_bits random_seed random_wrap random_unwrap random_fold_in "
        "random_split random_clone threefry2x32 empty empty2 create_token after_all axis_index not and or xor "
        "shift_left shift_right_logical shift_right_arithmetic population_count clz reduce_and reduce_or reduce_xor "
        "ragged_all_to_all",
    ),
]

AUTOCAST_OPERATIONS: dict[str, Row] = {row.name: row for row in _TABLE}
"""The rows by primitive; `register_operation` adds to them."""

_REPEATED = "products of products: rounded to 16 bits they are soon out of range, or all error"
_SOLVED = "what it solves for multiplies the errors of its products"
_STATISTIC = "a statistic, as variances are; its product is a mean over the examples"
_EXACT = "its products with ones and zeros only move values, and shall not round them"
FUNCTIONS: dict[str, Row] = {
    row.name: row
    for row in (
        *_rows(FLOAT32, _REPEATED, "expm expm_frechet qdwh"),
        *_rows(FLOAT32, _SOLVED, "_lstsq _pinv"),
        *_rows(FLOAT32, _STATISTIC, "cov corrcoef"),
        *_rows(FLOAT32, "a series, evaluated by a product", "_owens_t_impl"),
        *_rows(FLOAT32, _EXACT, "lu _rsf2csf_2d convolution_matrix"),
    )
}
"""The rows of functions that JAX has jitted, by their names: everything inside of them is treated so.

PyTorch's lists have none of them: there each is one operation, and autocast does not look inside of it."""

BUILT_IN: frozenset[Row] = frozenset(_TABLE)
"""The rows that nobody registered."""


def register_operation(name: str, rule: str, reason: str) -> None:
    """Say how autocast treats a primitive of one's own, or another one than before.

    It is process-wide and acts on what is traced afterwards; for one call there is `ops=`.

    Args:
        name: the name of the primitive.
        rule: `"compute"`, `"float32"`, `"widest"`, `"each"` or `"declared"`.
        reason: why, for reports.

    Raises:
        UnknownNameError: for another rule; a `ValueError`.
        ArgumentError: for an empty reason; a `ValueError`.

    >>> register_operation("my_fused_attention", "compute", "accumulates in float32 inside")
    """
    chosen("rule", rule, RULES)
    if not text("reason", reason):
        raise ArgumentError(f"say why {shown(name)} is treated so: the report shows it")
    AUTOCAST_OPERATIONS[text("name", name)] = Row(name, rule, reason)
