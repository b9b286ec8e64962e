"""Paddle's rules: one table of types, and one row per operation for its 0-d tensors and Python scalars.

Source: Paddle 3.3.1 itself. The table and the exceptions for 0-d tensors are in `paddle/phi/common/type_promotion.h`,
which the wheel ships; its Python operators convert Python scalars. The conformance tests compare every cell with
measurements of Paddle. The document "Paddle type promotion" describes the same rules with a few misprints.

Paddle's operators and functions treat Python scalars differently, and so do its eager and static modes. These rules are
those of eager mode, and of the operator if there is one; tests/conformance/departures.py lists the differences.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from typing import ClassVar

from supremum.decisions import Verdict
from supremum.formats import CATEGORIES, DType, as_format
from supremum.lattice import Lattice
from supremum.operands import TYPE_OF_CATEGORY, Operand, Operands
from supremum.operations import OPERATIONS, REDUCTIONS, Operation
from supremum.rules.array_casts import C_ROUTES, HALVES, NATIVE, ArrayCasts
from supremum.rules.lattices import INEXACT, SIGNED
from supremum.rules.reductions import BITS, IN_FLOAT32, NARROW_FLOATS, REAL_PARTS, TRUTH, UNCONVERTED, Reduction, to
from supremum.rules.rule_set import RuleSet
from supremum.rules.verdicts import ALREADY, MEASURED, Storing

_ORDER = Lattice(
    {
        "bool": ("uint8", "int8"),
        "uint8": ("int16",),
        **SIGNED,
        "int64": ("float16", "bfloat16"),
        **INEXACT,
    }
)
"""`promoteTypes` in the header, whose 144 cells are the joins of this order."""
# Types of tensors without a row in Paddle's table.
_UNORDERED = ("float8_e4m3fn", "float8_e5m2")
_DEFAULTS = {"bool": "bool", "integer": "int64", "float": "float32", "complex": "complex64"}
"""The type of a Python scalar without a tensor to take it from, by category."""
_INTEGERS = ("uint8", "int8", "int16", "int32", "int64")


class _ZeroD(enum.Enum):
    """How a 0-d tensor counts in an operation with other tensors."""

    TENSOR = "a tensor like any other"
    YIELDS = "less than a tensor with dimensions of its category; otherwise the table holds, for any two types"
    TABLE = "a tensor like any other, but the table holds for any two types"


class _Scalar(enum.Enum):
    """How a Python scalar counts in an operation with tensors."""

    CATEGORY = "its category: its default type is felt only where that category is higher than the tensors'"
    TENSOR = "a tensor of its default type"
    NOTHING = "nothing: it is cast to the tensors' type"


@dataclass(frozen=True, slots=True)
class _Row:
    """How an operation differs from promoting tensors by the table.

    Args:
        zero_d: how 0-d tensors count.
        scalars: the categories of Python scalars that it accepts.
        scalar: how Python scalars count.
        promotes: whether it promotes tensors of different types at all.
        narrows: whether a Python complex converts even wider 0-d tensors to complex64.
    """

    zero_d: _ZeroD = _ZeroD.TENSOR
    scalars: tuple[str, ...] = ()
    scalar: _Scalar = _Scalar.CATEGORY
    promotes: bool = True
    narrows: bool = False


_TENSORS = _Row()
_COMPOSED = _Row(zero_d=_ZeroD.YIELDS)  # composed of arithmetic on tensors, and promotes like it
_OPERATOR = _Row(zero_d=_ZeroD.YIELDS, scalars=CATEGORIES)
_BITS = _Row(promotes=False, scalars=("bool", "integer"), scalar=_Scalar.NOTHING)
_BITWISE = "bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift"
_OF_FLOATS = (
    "exp expm1 log log1p log2 log10 sqrt reciprocal sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh"
)
# Where measurements found no kernel, the array API standard applies: the sign bit of a bool, the real part of a float.
_AS_THE_STANDARD = "ceil floor round trunc sign signbit isfinite isinf isnan conj real imag"
_TABLE: dict[str, _Row] = (
    to(_OPERATOR, "result_type promote_types add subtract multiply")
    | to(_OPERATOR, "equal not_equal less less_equal greater greater_equal")
    | to(replace(_OPERATOR, narrows=True), "remainder pow divide")
    | to(replace(_OPERATOR, zero_d=_ZeroD.TABLE), "floor_divide")
    | to(_BITS, _BITWISE)
    | to(_Row(scalars=CATEGORIES, scalar=_Scalar.TENSOR), "where")
    | to(replace(_OPERATOR, scalars=CATEGORIES[:-1], scalar=_Scalar.NOTHING), "copysign")
    | to(_COMPOSED, "hypot l1_loss mse_loss poisson_nll_loss outer vecdot")
    | to(_TENSORS, "logical_and logical_or logical_xor maximum minimum fmax fmin nextafter huber_loss")
    | to(_TENSORS, f"logaddexp atan2 {_OF_FLOATS}")
    | to(_TENSORS, "positive negative square bitwise_invert logical_not abs")
    | to(_TENSORS, "concat stack diff solve cross matmul tensordot clip")
    | to(_TENSORS, _AS_THE_STANDARD)
    | to(_TENSORS, REDUCTIONS)
)
_COMPUTES: Mapping[str, Mapping[str, str]] = (
    to(to("float32", _INTEGERS), f"divide hypot logaddexp {_OF_FLOATS}")
    | {"atan2": to("float64", _INTEGERS), "vecdot": {"int32": "int64"}}  # vecdot is a sum of products
)
# Paddle promotes formats for which it has no kernel. These rules refuse a category only if the operation is undefined
# for it, or if Paddle refuses it before it looks for a kernel.
_ACCEPTS: dict[str, tuple[str, ...]] = (
    to(CATEGORIES, (name for name in OPERATIONS if name not in f"{_BITWISE} {_AS_THE_STANDARD} bitwise_invert".split()))
    | to(CATEGORIES[1:], f"positive hypot logaddexp matmul tensordot vecdot cross {_OF_FLOATS}")
    | to(CATEGORIES[1:3], "signbit clip")
    | {"poisson_nll_loss": CATEGORIES[2:], "solve": CATEGORIES[2:3]}
)
_NUMERIC = Reduction(CATEGORIES[1:], numbers=False)
_REDUCTIONS = {
    "sum": Reduction(gives=to("int64", "bool int32"), accumulates=IN_FLOAT32, numbers=False, source="as measured"),
    "prod": _NUMERIC,
    "cumulative_sum": replace(_NUMERIC, gives=to("int64", _INTEGERS)),
    "cumulative_prod": _NUMERIC,
    "mean": Reduction(accumulates=to("float32", BITS), numbers=False),
    # For integers, Paddle subtracts a mean without its fraction: its variance of 1 and 2 is 1.
    **to(Reduction(("float",), numbers=False), "var std"),
    **to(Reduction(gives=TRUTH, numbers=False), "any all"),
    **to(Reduction(("integer", "float"), numbers=False), "min max"),
}
# A product of tensors of two types has kernels for these types, which convert tensors of the listed types. Paddle finds
# some of them in one order only.
_PRODUCT_KERNELS: Mapping[str, tuple[str, ...]] = {
    "float32": ("int32", "int64"),
    "complex64": ("uint8", "int16", "bfloat16", "float16", "float32"),
    "complex128": ("uint8", "int16", "bfloat16", "float16", "float32", "float64"),
}


@dataclass(frozen=True, eq=False, repr=False)
class PaddleRuleSet(RuleSet):
    """Rules that are a table of types with exceptions for 0-d tensors and Python scalars.

    A Python bool, unlike a bool tensor, is a scalar. Paddle promotes two operands at a time. With more operands, these
    rules refuse a call if they refuse any two of them, and otherwise promote all at once.

    Args:
        name, summary, source: as for every rule set.
    """

    reads_dimensions: ClassVar[bool] = True

    def _meet(self, operation: Operation, operands: Operands) -> Verdict:
        row = _TABLE[operation.name]
        if operation.name == "clip":
            return _clip(operands)
        tensors = tuple(operand for operand in operands if not operand.is_python_scalar)
        scalars = sorted({operand.category for operand in operands if operand.is_python_scalar}, key=CATEGORIES.index)
        if refused := [TYPE_OF_CATEGORY[category].__name__ for category in scalars if category not in row.scalars]:
            return Verdict.refuse(f"Paddle's {operation.name} does not accept Python {' and '.join(refused)}")
        if operation.name in ("matmul", "tensordot"):
            return _multiply(operands)
        if scalars and (row.scalar is _Scalar.TENSOR or not tensors):
            tensors = tuple(o.with_dtype(_DEFAULTS[o.category]) if o.is_python_scalar else o for o in operands)
            reasons = [f"a Python {TYPE_OF_CATEGORY[each].__name__} counts as {_DEFAULTS[each]}" for each in scalars]
            met = _meet_tensors(operation.name, row, tensors)
            return replace(met, reason=(*reasons, *met.reason))
        met = _meet_tensors(operation.name, row, tensors)
        if met.result is None or not scalars:
            return met
        return _meet_scalar(row, operands, scalars[-1], met.result.dtype, met.reason if len(tensors) > 1 else ())


def _names(operands: Iterable[Operand]) -> str:
    return " and ".join(dict.fromkeys(str(operand.dtype) for operand in operands))


def _refusal(name: str, row: _Row, a: Operand, b: Operand) -> str:
    """Why two tensors of different types do not promote; empty if they do."""
    if not row.promotes:
        return f"Paddle's {name} does not promote: its tensors must have one type, got {_names((a, b))}"
    if unordered := _names(tensor for tensor in (a, b) if str(tensor.dtype) in _UNORDERED):
        return f"Paddle's table has no row for {unordered}, which works only with itself"
    if row.zero_d is not _ZeroD.TENSOR and 0 in (a.ndim, b.ndim):
        return ""
    categories = {a.category, b.category}
    if "complex" in categories or categories == {"float"}:
        return ""
    return f"Paddle promotes tensors only if both are floats or one is complex, got {_names((a, b))}"


def _meet_tensors(name: str, row: _Row, tensors: Operands) -> Verdict:
    own = tensors[0].format.dtype
    if all(tensor.dtype == own for tensor in tensors):
        return Verdict.accept(own, len(tensors), ALREADY)
    for a, b in combinations(tensors, 2):
        if a.dtype != b.dtype and (why := _refusal(name, row, a, b)):
            return Verdict.refuse(why)
    with_dimensions = {tensor.category for tensor in tensors if tensor.ndim != 0 and row.zero_d is _ZeroD.YIELDS}
    staying = [tensor for tensor in tensors if tensor.ndim != 0 or tensor.category not in with_dimensions]
    reason: list[str] = []
    if yielding := _names(tensor for tensor in tensors if tensor not in staying):
        reason.append(f"tensors with dimensions outrank 0-d {yielding} of the same category")
    met = _ORDER.join(*(str(tensor.dtype) for tensor in staying))
    assert met is not None  # complex128 is above everything, and none of the joins is ambiguous
    if len(staying) > 1:
        reason.append(f"Paddle's table promotes {_names(staying)} to {met}")
    if len(tensors) > 2:
        reason.append("Paddle promotes two operands at a time; here all are promoted at once")
    return Verdict.accept(as_format(met).dtype, len(tensors), *reason)


def _meet_scalar(row: _Row, operands: Operands, category: str, own: DType, reason: tuple[str, ...]) -> Verdict:
    """The verdict on tensors of the common type `own` with Python scalars, the highest of which has `category`."""
    python, default = f"a Python {TYPE_OF_CATEGORY[category].__name__}", _DEFAULTS[category]
    is_higher = CATEGORIES.index(category) > CATEGORIES.index(as_format(own).category)
    if is_higher and str(own) in _UNORDERED:
        return Verdict.refuse(*reason, f"Paddle's table has no row for {own}, which {python} needs")
    if row.narrows and category == "complex" and all(operand.ndim == 0 for operand in operands):
        together, why = default, f"{python} converts 0-d tensors to {default} here, even wider ones"
    elif is_higher and row.scalar is _Scalar.CATEGORY:
        together = _ORDER.join(str(own), default)
        why = f"{python} counts as {default} next to {own}, which is of a lower category: {together}"
    else:
        together, why = own, f"{python} takes the tensors' type, {own}"
    return Verdict.accept(as_format(together).dtype, len(operands), *reason, why)


def _clip(operands: Operands) -> Verdict:
    """The verdict on an array and its bounds, which Paddle reads as numbers, whatever their type."""
    own, *bounds = operands
    if own.is_python_scalar:
        return Verdict.refuse("Paddle's clip needs a tensor as first operand")
    if any(bound.category == "complex" for bound in bounds):
        return Verdict.refuse("Paddle's clip does not accept complex bounds")
    to_float = own.category == "integer" and any(bound.category == "float" for bound in bounds)
    target = as_format(_DEFAULTS["float"]).dtype if to_float else own.format.dtype
    why = f"a float bound converts {own.dtype} to {target}" if to_float else f"the bounds are read as {target}"
    return Verdict.accept(target, len(operands), why)


def _multiply(operands: Operands) -> Verdict:
    """The verdict on the tensors of a matrix product."""
    names = dict.fromkeys(str(operand.dtype) for operand in operands)
    if len(names) == 1:
        return Verdict.accept(operands[0].format.dtype, len(operands), ALREADY)
    for name in names:
        if all(other in _PRODUCT_KERNELS.get(name, ()) for other in names if other != name):
            why = f"the kernel for {name} takes {_names(operands)}"
            return Verdict.accept(as_format(name).dtype, len(operands), why)
    return Verdict.refuse(f"Paddle's product needs tensors of one type, got {_names(operands)}")


_CASTS = ArrayCasts(
    "Paddle",
    "PaddlePaddle 3.3.1 on x86-64",
    # Not the formats of 8 bits: what becomes of a number beyond their range depends on how far beyond it is.
    NATIVE - {"uint16", "uint32", "uint64"} | {*HALVES},
    C_ROUTES,
    is_defined=False,
    through=IN_FLOAT32,
)
PADDLE = PaddleRuleSet(
    name="paddle",
    summary="PaddlePaddle 3: tensors with dimensions are promoted only between floats and with complex",
    source="PaddlePaddle 3.3.1, paddle/phi/common/type_promotion.h; Paddle type promotion",
    spelling="paddle",
    accepts=_ACCEPTS,
    formats=frozenset((*_ORDER.nodes, *_UNORDERED)),
    computes=_COMPUTES,
    quotients=UNCONVERTED,  # what converts them is in `computes`
    gives={"l1_loss": REAL_PARTS},
    measured=MEASURED,
    item=Storing.CAST,  # in place, `a.add_(b)` changes the dtype of `a`, and `a += b` makes a new tensor
    agreeing=frozenset(("concat", "stack", "diff", "solve")),
    lacks={"solve": NARROW_FLOATS},
    reductions=_REDUCTIONS,
    array_casts=_CASTS,
)
