"""The dtype in which autocast runs each JAX primitive, and the reason: one row for each primitive.

The reference is PyTorch's `torch.autocast` for CUDA: the lists in its document `amp.md`, and its registry for the
operations that the document omits. `follows` names the torch functions that a row follows. A row that departs from
torch says so in its reason. A primitive without a row is left alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from supremum.argument_checks import chosen, text
from supremum.errors import ArgumentError, shown

COMPUTE: Final = "compute"
"""Operands are cast to the compute dtype, which is also the dtype of the result."""
FLOAT32: Final = "float32"
"""Operands are cast to float32, which is also the dtype of the result."""
WIDEST: Final = "widest"
"""Operands are cast to the widest dtype among them, which is also the dtype of the result."""
EACH: Final = "each"
"""Each operand keeps its dtype, which is also the dtype of the corresponding result."""
DECLARED: Final = "declared"
"""Left alone: operands are cast back to the dtypes that the function declares."""

INSIDE: Final = "inside"
"""For a function: its operations are treated one by one."""

RULES: tuple[str, ...] = (COMPUTE, FLOAT32, WIDEST, EACH, DECLARED)

# Names of scopes, and of a jitted function, that mark parts of a program for autocast, and in profiles. The prefix
# keeps them apart from names that users choose, such as a layer called "autocast".
DISABLED_SCOPE: Final = "supremum.autocast.disabled"
DECIDED_SCOPE: Final = "supremum.autocast"
KEEP_CALL: Final = "supremum_autocast_astype"

RECIPROCAL: Final = "reciprocal"
"""Exception to `WIDEST`: a number divided by an array runs in float32."""
SQUARE: Final = "square"
"""Exception to `WIDEST`: an array multiplied with itself runs in float32."""
BIAS: Final = "bias"
"""Exception to `WIDEST`: a product plus the bias of its layer runs in the dtype of the product."""

_SQUARES = "float16 overflows from 256 on; variances and norms consist of squares"

EXCEPTIONS: Mapping[str, str] = MappingProxyType(
    {
        RECIPROCAL: "a reciprocal; the reciprocal of a small number overflows float16",
        SQUARE: f"a square; {_SQUARES}",
        BIAS: "the bias of a product, as in torch's linear and conv",
    }
)
"""The reason for each exception. Exceptions belong to a row: they do not apply where `ops=` sets another rule."""


@dataclass(frozen=True, slots=True)
class Row:
    """How autocast treats a primitive.

    Args:
        name: the name of the primitive.
        rule: one of `RULES`.
        reason: the reason for the rule.
        follows: the torch functions whose treatment by `torch.autocast` the row follows.
        moves: whether the primitive only moves values, which then keep a dtype that was set by hand.
        fills: whether the result also has a single repeated value if the operand has.
        exception: for `WIDEST`, one of `EXCEPTIONS`, the operands to which the rule does not apply; empty for none.
    """

    name: str
    rule: str
    reason: str
    follows: tuple[str, ...] = ()
    moves: bool = False
    fills: bool = False
    exception: str = ""


def _rows(rule: str, reason: str, names: str, follows: str = "", **options: Any) -> list[Row]:
    return [Row(name, rule, reason, tuple(follows.split()), **options) for name in names.split()]


def _namesakes(rule: str, reason: str, names: str) -> list[Row]:
    """Rows of primitives that follow the torch function of the same name."""
    return [Row(name, rule, reason, (name,)) for name in names.split()]


_SUMS = "float16 overflows at 65504 and bfloat16 stops counting at 256: sums are kept in float32"
_RANGE = "its result soon leaves the range of float16"
_STEEP = "close to its singularity it multiplies the rounding errors of a narrow operand"
_MOVES = "only moves values"
_MEETS = "only moves values into one array"
_SAME = "as accurate as its operands in any dtype"

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
    *_rows(COMPUTE, "as dot_general, for products of groups", "ragged_dot_general"),
    *_rows(
        COMPUTE,
        "products are most of the work, and XLA accumulates them in float32",
        "conv_general_dilated",
        "conv1d conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d conv_transpose3d convolution _convolution",
    ),
    # Results beyond the range of float16, and multiplied errors
    *_rows(FLOAT32, _RANGE, "exp", "exp softmax log_softmax softmin softplus"),
    *_namesakes(FLOAT32, _RANGE, "expm1"),
    *_rows(FLOAT32, "as exp", "exp2"),
    *_rows(FLOAT32, _RANGE, "pow", "pow __pow__ __rpow__"),
    *_rows(FLOAT32, _RANGE, "integer_pow", "pow __pow__"),
    *_rows(FLOAT32, _SQUARES, "square", "pow norm"),
    *_rows(FLOAT32, "the derivative of tanh, asin and the like; 1 - x**2 cancels near one", "one_minus_square"),
    *_rows(FLOAT32, "powers and sums with terms that cancel", "polynomial"),
    *_namesakes(FLOAT32, "torch lists it; the square of a small number underflows in float16", "rsqrt"),
    *_rows(FLOAT32, _STEEP, "log log2", "log log2 log10"),
    *_namesakes(FLOAT32, _STEEP, "log1p tan acos asin"),
    *_namesakes(FLOAT32, _RANGE, "cosh sinh"),
    *_rows(FLOAT32, _STEEP, "erf_inv", "erfinv"),
    *_rows(
        FLOAT32,
        "departs from torch, which does not list it: a series with terms that cancel",
        "lgamma digamma igamma igammac igamma_grad_a random_gamma regularized_incomplete_beta polygamma "
        "zeta bessel_i0e bessel_i1e",
    ),
    # Sums
    *_rows(FLOAT32, _SUMS, "reduce_sum", "sum"),
    *_rows(FLOAT32, _SUMS, "reduce_prod", "prod"),
    *_namesakes(FLOAT32, _SUMS, "cumsum cumprod"),
    *_rows(FLOAT32, _SUMS, "cumlogsumexp", "logsumexp"),
    *_rows(FLOAT32, _SUMS, "reduce_window_sum"),
    *_rows(FLOAT32, "the gradient of a pooled maximum, a sum where windows overlap", "select_and_scatter_add"),
    *_rows(FLOAT32, "a sum over devices", "psum psum_invariant reduce_scatter unreduced_psum"),
    *_rows(
        FLOAT32,
        "softmax and logsumexp subtract it, and the difference must not be rounded first",
        "reduce_max reduce_min",
        "softmax log_softmax logsumexp",
    ),
    # Linear algebra and Fourier transforms
    *_rows(
        FLOAT32,
        "factorisations lose accuracy with every pivot, and have no 16-bit kernels",
        "cholesky lu qr householder_product eigh eig svd schur hessenberg triangular_solve tridiagonal "
        "tridiagonal_solve cholesky_update symmetric_product",
    ),
    *_rows(FLOAT32, "sums over the whole signal, and complex numbers have no 16-bit format", "fft"),
    # Moves of values
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
    *_rows(WIDEST, _SAME + "; an array times itself is a square and runs in float32", "mul", "norm", exception=SQUARE),
    *_rows(
        WIDEST,
        _SAME + "; a number divided by an array is a reciprocal and runs in float32",
        "div",
        "reciprocal __rdiv__ __rtruediv__",
        exception=RECIPROCAL,
    ),
    *_namesakes(WIDEST, _SAME, "atan2"),
    *_rows(
        WIDEST,
        "torch does not list it; XLA evaluates it in float32 and rounds once",
        "sin cos atan tanh logistic erf erfc sqrt cbrt acosh asinh atanh",
    ),
    *_rows(WIDEST, "only compares values", "eq ne lt le gt ge eq_to le_to lt_to is_finite argmax argmin"),
    # Left alone
    *_rows(
        DECLARED,
        "writes into an existing array, in the dtype of that array; departs from torch, which takes the widest",
        "scatter scatter-add scatter-mul scatter-min scatter-max scatter-sub",
        "scatter_add",
    ),
    *_rows(
        DECLARED, "its result depends on the bits of its dtype", "nextafter bitcast_convert_type select_and_gather_add"
    ),
    *_rows(DECLARED, "there is no 16-bit complex format", "complex real imag conj"),
    *_rows(DECLARED, "reads and writes references, which have a fixed dtype", "get swap addupdate"),
    *_rows(
        DECLARED,
        "code outside JAX gets the dtypes that it expects",
        "pure_callback io_callback debug_callback debug_print ffi_call pallas_call",
    ),
    *_rows(
        DECLARED,
        "contains a function that expects the dtypes it declares",
        "reduce reduce_window select_and_scatter custom_linear_solve custom_lin linear_call custom_partitioning "
        "composite",
    ),
    *_rows(
        DECLARED,
        "takes no numbers that autocast casts",
        "iota rng_uniform rng_bit_generator random_bits random_seed random_wrap random_unwrap random_fold_in "
        "random_split random_clone threefry2x32 empty empty2 create_token after_all axis_index not and or xor "
        "shift_left shift_right_logical shift_right_arithmetic population_count clz reduce_and reduce_or reduce_xor "
        "ragged_all_to_all",
    ),
]

AUTOCAST_OPERATIONS: dict[str, Row] = {row.name: row for row in _TABLE}
"""The rows by primitive; `register_operation` adds to them.

>>> AUTOCAST_OPERATIONS["dot_general"].rule, AUTOCAST_OPERATIONS["exp"].rule
('compute', 'float32')
"""

_EXACT = "its products with ones and zeros only move values, and must not round them"
FUNCTIONS: dict[str, Row] = {
    row.name: row
    for row in (
        *_rows(FLOAT32, "products of products in 16 bits soon overflow or consist of errors", "expm expm_frechet qdwh"),
        *_rows(FLOAT32, "its solution multiplies the errors of its products", "_lstsq _pinv"),
        *_rows(FLOAT32, "a statistic like a variance; its product is a mean over the examples", "cov corrcoef"),
        *_rows(FLOAT32, "a series, evaluated by a product", "_owens_t_impl"),
        *_rows(FLOAT32, _EXACT, "lu _rsf2csf_2d convolution_matrix"),
    )
}
"""The rows of functions that JAX itself jits, by name; a row applies to all operations inside.

PyTorch does not list them: each is a single operation there, and `torch.autocast` does not look inside it."""

BUILT_IN: frozenset[Row] = frozenset(_TABLE)
"""The rows of this file, without registered ones."""


def register_operation(name: str, rule: str, reason: str) -> None:
    """Set the rule by which autocast treats a primitive, new or known.

    It applies to the whole process and to functions traced afterwards; use `ops=` for a single call.

    Args:
        name: the name of the primitive.
        rule: `"compute"`, `"float32"`, `"widest"`, `"each"` or `"declared"`.
        reason: the reason, for reports.

    Raises:
        UnknownNameError: for an unknown rule; a `ValueError`.
        ArgumentError: for an empty reason; a `ValueError`.

    >>> register_operation(
    ...     "my_fused_attention", "compute", "accumulates in float32 inside"
    ... )
    """
    chosen("rule", rule, RULES)
    if not text("reason", reason):
        raise ArgumentError(f"reason must say why {shown(name)} has this rule, got '': the report shows it")
    AUTOCAST_OPERATIONS[text("name", name)] = Row(name, rule, reason)
