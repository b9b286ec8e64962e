"""PyTorch's rules, operation by operation.

Dtypes promote by a table within a rank of operands, and by category between ranks. The accepted dtypes were measured,
and the conformance tests compare every cell with the installed PyTorch. If an operation lacks a kernel for a format but
has one for others in its category, these rules accept the format: the gap is in a build, not a rule.

Source: PyTorch 2.13, `promoteTypes` in c10/core/ScalarType.cpp; `combine_categories` and `update_result_type_state` in
aten/src/ATen/native/TypeProperties.cpp; BinaryOps.cpp, Pow.cpp, Loss.cpp there; torch/nn/functional.py for the losses.
"""

from __future__ import annotations

import enum
import math
from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from supremum.decisions import Verdict
from supremum.errors import ArgumentError
from supremum.fix import Fix
from supremum.formats import CATEGORIES, FORMATS, DType, Format, Kind, as_format, is_available
from supremum.lattice import Lattice
from supremum.number_conversion import Steps, fits, usual_steps
from supremum.operands import Operand, OperandLike, Operands, as_operand
from supremum.operations import OPERATIONS, Operation, Result, as_operation
from supremum.rules.array_casts import BYTES, C_ROUTES, HALVES, NATIVE, ArrayCasts
from supremum.rules.lattices import INEXACT, SIGNED
from supremum.rules.reductions import BITS, IN_FLOAT32, NARROW_FLOATS, REAL_PARTS, TRUTH, Reduction, to
from supremum.rules.rule_set import RuleSet, Target
from supremum.rules.runtimes import Runtime
from supremum.rules.verdicts import ALREADY, MEASURED, Storing
from supremum.typing import DTypeLike, Scalar

# Thirteen dtypes are a lattice, whose joins are the table in `promoteTypes`.
_ORDER = Lattice(
    {
        "bool": ("uint8", "int8"),
        "uint8": ("int16",),
        **SIGNED,
        "int64": ("bfloat16", "float16"),
        **INEXACT,
        "float16": ("float32", "complex32"),
        "complex32": ("complex64",),
    }
)
# The other dtypes promote only with themselves. These unsigned ones also promote to the floats of the lattice, but not
# to the complex dtypes above those, which no order can express.
_BARE_UNSIGNED = ("uint1", "uint2", "uint4", "uint16", "uint32", "uint64")
_FLOAT8 = ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu")
_SHELL = ("uint1", "uint2", "uint4", "int1", "int2", "int4")
"""Dtypes that tensors can have but almost no function supports."""
_KNOWN = frozenset(filter(is_available, (*_ORDER.nodes, *_BARE_UNSIGNED, *_FLOAT8, *_SHELL)))
_COMPLEX_OF = {"float16": "complex32", "bfloat16": "complex64", "float32": "complex64", "float64": "complex128"}
"""`toComplexType`; its keys are also the dtypes that `torch.set_default_dtype` accepts."""


class _Rank(enum.Enum):
    """The ranks of operands, lowest first."""

    NUMBER = "Python numbers"
    ZERO_D = "0-d tensors"
    DIMENSIONED = "tensors with dimensions"


@dataclass(frozen=True, slots=True)
class _CommonDtype:
    """The common dtype of some operands (None if torch refuses them), and the reason."""

    name: str | None
    reason: tuple[str, ...] = ()


def _promote(a: str, b: str) -> _CommonDtype:
    """The common dtype of two dtypes of one rank (`promoteTypes`).

    >>> (
    ...     _promote("uint8", "int8").name,
    ...     _promote("uint16", "float16").name,
    ...     _promote("uint16", "int64").name,
    ... )
    ('int16', 'float16', None)
    """
    if a == b:
        return _CommonDtype(a)
    if a in _ORDER.edges and b in _ORDER.edges:
        joined = _ORDER.join(a, b)
        return _CommonDtype(joined, (f"{a} and {b} promote to {joined}",))
    if a in _FLOAT8 or b in _FLOAT8:
        return _CommonDtype(None, (f"torch does not promote float8 with another dtype, got {a} and {b}",))
    unsigned, other = (a, b) if a in _BARE_UNSIGNED else (b, a)
    if unsigned not in _BARE_UNSIGNED:
        return _CommonDtype(None, (f"torch does not promote int1, int2 or int4 with another dtype, got {a} and {b}",))
    if as_format(other).kind is not Kind.FLOAT:
        return _CommonDtype(None, (f"torch promotes {unsigned} only with floats of at least 16 bits, got {other}",))
    return _CommonDtype(other, (f"{other} outranks {unsigned}",))


def _common_type(operands: Sequence[tuple[_Rank, str]]) -> _CommonDtype:
    """The common dtype of operands of any rank (`result_type`).

    Operands of one rank promote pairwise from left to right. A lower rank changes the result only if its category is
    higher.

    Args:
        operands: the rank and dtype name of each operand.

    >>> _common_type([(_Rank.DIMENSIONED, "int8"), (_Rank.ZERO_D, "int64")]).name
    'int8'
    """
    met, below = _CommonDtype(None), ""
    for rank in _Rank:
        group = [name for its_rank, name in operands if its_rank is rank]
        if not group:
            continue
        met = _combine(_fold(group), met, rank.value, below)
        if met.name is None:
            break
        below = f"{rank.value} ({met.name})"
    return met


def _fold(names: Sequence[str]) -> _CommonDtype:
    met = _CommonDtype(names[0])
    for name in names[1:]:
        if met.name is None:
            break
        step = _promote(met.name, name)
        met = _CommonDtype(step.name, (*met.reason, *step.reason))
    return met


def _combine(higher: _CommonDtype, lower: _CommonDtype, rank: str, below: str) -> _CommonDtype:
    if higher.name is None or lower.name is None:
        return higher
    reason = (*lower.reason, *higher.reason)
    category, category_below = as_format(higher.name).category, as_format(lower.name).category
    if CATEGORIES.index(category_below) <= CATEGORIES.index(category):
        return _CommonDtype(higher.name, (*reason, f"{rank} ({higher.name}) outrank {below} of no higher category"))
    raised = f"{below} are of a higher category than {rank} ({higher.name})"
    if category_below != "complex":
        step = _promote(higher.name, lower.name)
        return _CommonDtype(step.name, (*reason, raised, *step.reason))
    if category != "float":
        return _CommonDtype(lower.name, (*reason, raised))
    widened = _COMPLEX_OF.get(higher.name)
    conversion = (
        f"torch has no complex dtype of {higher.name}" if widened is None else f"{higher.name} becomes {widened}"
    )
    return _CommonDtype(widened, (*reason, raised, conversion))


_UP_TO_FLOAT, _INEXACT = CATEGORIES[:3], CATEGORIES[2:]
_COMPARISONS = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")
_ACCEPTS: dict[str, tuple[str, ...]] = (
    to(CATEGORIES, (row.name for row in OPERATIONS.values() if row.arity == 1 and row.result is Result.FLOAT))
    | to(CATEGORIES, "add multiply divide logical_and logical_or logical_xor logical_not outer diff")
    | to(CATEGORIES, "isfinite isinf isnan conj real")
    | to(_UP_TO_FLOAT, ("sign", "signbit", *_COMPARISONS[2:]))
    | to(_UP_TO_FLOAT, "maximum minimum fmax fmin atan2 copysign")
    | to(_INEXACT, "logaddexp l1_loss vecdot")
    | {"round": ("integer", "float")}
)
# `at::opmath_type` of float16 and bfloat16 is float32 (aten/src/ATen/OpMathType.h).
_OPMATH = "`at::opmath_type`"
_SUMMED = Reduction(gives=to("int64", BITS), accumulates=IN_FLOAT32, source=_OPMATH)
_REDUCTIONS = (
    to(_SUMMED, "sum cumulative_sum cumulative_prod")
    | {"prod": replace(_SUMMED, accumulates={})}
    | {"mean": Reduction(_INEXACT, accumulates=IN_FLOAT32, source=_OPMATH)}
    | to(Reduction(_INEXACT, gives=REAL_PARTS, accumulates=IN_FLOAT32, lacks=_FLOAT8, source=_OPMATH), "var std")
    | to(Reduction(gives=dict(TRUTH) | {"uint8": "uint8"}), "any all")
    | to(Reduction(_UP_TO_FLOAT), "min max")
)
_TYPES_ONLY = ("result_type", "promote_types")
_MOVES = ("where", "positive", "conj", "real")  # these only move their operands
_SUBTRACTS = ("subtract", "l1_loss")  # torch does not subtract a bool, not even from a float

# The positions of Python numbers. Functions that are Python operators accept one on either side, as the operator does.
_NUMBERS_EVERYWHERE = (*_TYPES_ONLY, "add", "subtract", "multiply", "divide", "floor_divide", "where")
_NUMBERS_BESIDE_TENSOR = (
    *("remainder", "pow", *_COMPARISONS),
    *("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_left_shift", "bitwise_right_shift"),
)
_NUMBERS_SECOND = ("copysign", "clip")

# Losses that first broadcast their operands, so a 0-d operand no longer counts as one.
_BROADCASTS_FIRST = ("huber_loss", "l1_loss", "mse_loss")

_INT32, _INT64, _UINT64 = as_format("int32"), as_format("int64"), as_format("uint64")
_READ_IN_FLOAT32 = ("multiply", "divide", "floor_divide")
_FLOAT32, _HALVES = as_format("float32"), (as_format("bfloat16"), as_format("float16"))
_INTEGERS = frozenset(row.name for row in FORMATS if row.category == "integer")
# Functions that check the range of Python numbers: for which formats, and at which positions.
_CHECKED: dict[str, tuple[frozenset[str], tuple[int, ...]]] = {
    "where": (_INTEGERS | {"float32", "complex32", "complex64"}, (0, 1)),
    "pow": (_INTEGERS | {"float16", "bfloat16"}, (1,)),
    "clip": (frozenset(_KNOWN), (1, 2)),  # `Scalar::to`
}
# These rules treat all numbers of a category alike between two neighbouring bounds.
_BOUNDS = sorted({bound for row in map(as_format, _KNOWN) for bound in (row.min, row.max, -row.max)})


@dataclass(frozen=True, eq=False, repr=False)
class TorchRules(RuleSet):
    """PyTorch's promotion with a given default dtype.

    Operands have three ranks: tensors with dimensions, 0-d tensors and Python numbers. Operands of one rank promote
    pairwise from left to right, as in `torch.cat`, `torch.addcmul` and everything built on TensorIterator. Whether
    torch refuses them can depend on their order.

    Args:
        name, summary, source: as for every rule set.
        default_dtype: the value of `torch.get_default_dtype()`: the dtype of Python floats. It is in `quotients`, too.
    """

    default_dtype: str = "float32"

    def with_default(self, dtype: DTypeLike) -> TorchRules:
        """The same rules after `torch.set_default_dtype(dtype)`.

        Args:
            dtype: float16, bfloat16, float32 or float64.

        Raises:
            ValueError: for any other dtype, which torch does not accept either.

        >>> TORCH.with_default("float64").name
        'torch[float64]'
        """
        default = as_format(dtype).name
        if default not in _COMPLEX_OF:
            raise ArgumentError(f"torch's default dtype must be one of {', '.join(_COMPLEX_OF)}, got {default}")
        if default == TORCH.default_dtype:
            return TORCH
        summary = f"PyTorch after torch.set_default_dtype(torch.{default})"
        name, quotients = f"{TORCH.name}[{default}]", to(default, BITS)
        return replace(TORCH, name=name, summary=summary, default_dtype=default, quotients=quotients)

    def read(self, value: OperandLike) -> Any:
        """As in the base class; PyTorch reads a NumPy bool as a float (torch/csrc/utils/python_arg_parser.cpp)."""
        scalar: Any = value
        if not isinstance(value, np.generic) or not scalar.dtype.isbuiltin:
            return scalar
        number = scalar.item()
        return float(number) if isinstance(number, bool) else number

    def key_of(self, operand: Operand) -> Hashable:
        """As in the base class."""
        return (operand.category, operand.dtype, operand.ndim == 0, _interval(operand.value))

    def _name_of(self, operand: Operand) -> str:
        """The name of the dtype that torch gives an operand, including Python numbers."""
        if operand.dtype is not None:
            return str(operand.dtype)
        beyond_int64 = isinstance(operand.value, int) and operand.value > _INT64.max
        integer = _UINT64.name if beyond_int64 else _INT64.name
        default = self.default_dtype
        return {"integer": integer, "float": default, "complex": _COMPLEX_OF[default]}[operand.category]

    def _meet(self, operation: Operation, operands: Operands) -> Verdict:
        names = [self._name_of(operand) for operand in operands]
        if absent := [name for name in names if name not in _KNOWN]:
            return Verdict.refuse(f"the installed ml_dtypes has no {absent[0]}")
        broadcasts = operation.name in _BROADCASTS_FIRST
        ranks = [_Rank.DIMENSIONED if broadcasts else _rank(operand) for operand in operands]
        met = _common_type(list(zip(ranks, names, strict=True)))
        if met.name is None:
            return Verdict.refuse(*met.reason)
        if met.name not in _KNOWN:
            return Verdict.refuse(f"the installed ml_dtypes has no {met.name}")
        shell = next((name for name in _SHELL if name in (met.name, *names)), None)
        if shell is not None and not _accepts_shell(operation, operands, names, met.name):
            return Verdict.refuse(_shell_objection(shell))
        return Verdict.accept(as_format(met.name).dtype, len(operands), *(met.reason or (ALREADY,)))

    def _settle_operation(self, operation: Operation, operands: Operands) -> Verdict:
        if refusal := self._refusal_of_numbers(operation, operands):
            return refusal
        if operation.name == "square":
            return self._square(operands)
        if operation.name == "clip" and len(operands) == 2 and not operands[1].is_python_scalar:
            return self._settle_operation(as_operation("maximum"), operands)  # `clamp_min` and `clamp_max` of a tensor
        if operation.name == "poisson_nll_loss":
            return self._poisson_nll_loss(operands)
        if operation.name in _SUBTRACTS and any(operand.category == "bool" for operand in operands):
            return Verdict.refuse("torch does not subtract bool; use bitwise_xor or logical_not")
        if operation.name == "pow" and operands[1].is_python_scalar and {o.category for o in operands} == {"bool"}:
            # torch has no pow kernel for bools, but the exponents 0 and 1 only fill and copy.
            return self._meet(operation, operands)
        verdict = super()._settle_operation(operation, operands)
        return verdict if verdict.result is None else self._rounded(operation, operands, verdict)

    def _rounded(self, operation: Operation, operands: Operands, verdict: Verdict) -> Verdict:
        """An accepted verdict with the dtypes in which torch computes and returns."""
        common = as_format(verdict.compute[0])
        if operation.name == "huber_loss":
            return _with_input_dtype(operands[0], verdict)
        if operation.name == "l1_loss" and common.category == "complex":
            return verdict.resulting_in(common.component.dtype, "l1_loss of complex numbers is real")
        if any(_stays_in_float32(operation, operands, i, common) for i in range(len(operands))):
            return _rounded_once(operation, common, verdict)
        return _within_range(operation, operands, common, verdict)

    def _number_steps(self, operation: Operation, operands: Operands, position: int, target: Format) -> Steps:  # noqa: ARG002
        # torch converts to 16 bits through float32 (`c10::Half(float)`), and from int64 directly to float32.
        operand = operands[position]
        if target in _HALVES:
            return (_FLOAT32, target)
        is_large = operand.category == "integer" and isinstance(operand.value, int) and not fits(operand.value, _INT32)
        if is_large and target is _FLOAT32:
            return (as_format(self._name_of(operand)), target)
        return usual_steps(operand.category, target)

    def _refusal_of_numbers(self, operation: Operation, operands: Operands) -> Verdict | None:
        numbers = [i for i, operand in enumerate(operands) if operand.is_python_scalar]
        if operation.name in _NUMBERS_EVERYWHERE:
            asked = None
        elif operation.name in _NUMBERS_BESIDE_TENSOR:
            asked = None if len(numbers) < len(operands) else "at least one tensor"
        elif operation.name in _NUMBERS_SECOND:
            asked = None if 0 not in numbers else "a tensor as first operand"
        else:
            asked = "tensors, not Python numbers"
        if not numbers or asked is None:
            return _refusal_of_values(operation, operands)
        return Verdict.refuse(f"torch's {operation.name} needs {asked}")

    def _find_fix(
        self, operation: Operation, target: Target | None, runtime: Runtime, operands: Operands
    ) -> Fix | None:
        if any(self._name_of(operand) in _SHELL and not runtime.holds(operand) for operand in operands):
            return None  # torch has no explicit casts of them either
        return super()._find_fix(operation, target, runtime, operands)

    def _first_targets(self, operands: Operands) -> list[DType]:
        """The formats of the lattice first, because most functions have no kernels for the others."""
        from supremum.rules.fixes import targets_of  # only a refusal imports it

        return [dtype for dtype in targets_of(operands) if as_format(dtype).name in _ORDER.nodes]

    def _objection_to_cast(self, value: Operand, target: Format) -> str:
        shell = next((name for name in (self._name_of(value), target.name) if name in _SHELL), None)
        return super()._objection_to_cast(value, target) if shell is None else _shell_objection(shell)

    def _square(self, operands: Operands) -> Verdict:
        # pow(x, 2): the square of a bool is an int64.
        verdict = self._settle_operation(as_operation("pow"), (*operands, as_operand(2)))
        return replace(verdict, compute=verdict.compute[:1])

    def _poisson_nll_loss(self, operands: Operands) -> Verdict:
        # exp(input) - target * input, where each step promotes separately.
        rate = self._settle_operation(as_operation("exp"), operands[:1])
        product = self._settle_operation(as_operation("multiply"), operands)
        if rate.result is None or product.result is None:
            return rate if rate.result is None else product
        ndim = 0 if all(operand.ndim == 0 for operand in operands) else None
        terms = (_computed(rate, operands[0].ndim), _computed(product, ndim))
        loss = self._settle_operation(as_operation("subtract"), terms)
        return replace(loss, reason=(f"poisson_nll_loss is exp(a) - b * a, here {terms[0]} - {terms[1]}", *loss.reason))


def _rank(operand: Operand) -> _Rank:
    if operand.is_python_scalar:
        return _Rank.NUMBER
    return _Rank.ZERO_D if operand.ndim == 0 else _Rank.DIMENSIONED


def _accepts_shell(operation: Operation, operands: Operands, names: list[str], common: str) -> bool:
    """Whether a call neither converts its operands nor computes with them."""
    if operation.name == "pow":  # a power of 1 only fills, whatever the exponents
        return operands[0].is_python_scalar and operands[0].value == 1 and common not in _SHELL
    return operation.name in _TYPES_ONLY or (operation.name in _MOVES and set(names) == {common})


def _shell_objection(name: str) -> str:
    return f"{name} is a shell dtype in torch, which has no conversions and no kernels for it"


def _computed(verdict: Verdict, ndim: int | None) -> Operand:
    assert verdict.result is not None
    return Operand(as_format(verdict.result.dtype).category, verdict.result.dtype, ndim=ndim)


def _stays_in_float32(operation: Operation, operands: Operands, position: int, common: Format) -> bool:
    """Whether an operand is not rounded to the 16 bits that the result has.

    The kernels of the three operations read a second operand in float32 if it is a number or a 0-d tensor of a
    different dtype (`opmath_t` in BinaryOpsKernel.cpp). Python's `*` moves a number on its left to that position, and
    `/` multiplies a number on its left with the reciprocal.
    """
    operand = operands[position]
    if common not in _HALVES or operation.name not in _READ_IN_FLOAT32:
        return False
    if operand.is_python_scalar:
        return position == 1 or operation.name != "floor_divide"
    return position == 1 and operand.ndim == 0 and operand.dtype != common.dtype


def _rounded_once(operation: Operation, common: Format, verdict: Verdict) -> Verdict:
    why = f"torch computes {operation.name} of {common} with a number in float32, and rounds only the result"
    compute = (_FLOAT32.dtype,) * len(verdict.compute)
    return replace(verdict, compute=compute, reason=(*verdict.reason, why))


def _with_input_dtype(operand: Operand, verdict: Verdict) -> Verdict:
    # torch writes the loss into a tensor with the dtype of the input (huber_loss in Loss.cpp).
    if operand.dtype is None or operand.category != "float":
        return Verdict.refuse(*verdict.reason, f"torch cannot cast the loss back to the dtype of the input, {operand}")
    return verdict.resulting_in(operand.dtype, "the loss has the dtype of the input")


def _values(operands: Operands) -> dict[int, Scalar]:
    """The known values of Python numbers, by position."""
    return {i: o.value for i, o in enumerate(operands) if o.is_python_scalar and o.value is not None}


def _refusal_of_values(operation: Operation, operands: Operands) -> Verdict | None:
    """The refusal of Python numbers that torch cannot read, before it promotes anything."""
    values = _values(operands)
    if any(isinstance(value, int) and not _INT64.min <= value <= _UINT64.max for value in values.values()):
        return Verdict.refuse("Python ints must be between -2**63 and 2**64 - 1 in torch", overflow=True)
    to_integer = operation.name == "pow" and operands[0].category in ("bool", "integer")
    if to_integer and isinstance(exponent := values.get(1), int) and exponent > _INT64.max:
        return Verdict.refuse("the exponent does not fit int64, to which pow converts it", overflow=True)
    return None


def _within_range(operation: Operation, operands: Operands, common: Format, verdict: Verdict) -> Verdict:
    """The verdict after a check whether Python numbers fit the dtype they are converted to."""
    values = _values(operands)
    if operation.name == "pow" and common.category == "integer" and 1 in values and values[1].real < 0:
        return Verdict.refuse("torch does not raise integers to negative integer powers")
    formats, positions = _CHECKED.get(operation.name, (frozenset[str](), ()))
    if common.name in formats and any(_overflows(common, values[i]) for i in positions if i in values):
        why = f"a Python number does not fit {common}, and {operation.name} checks its range"
        return Verdict.refuse(why, overflow=True)
    if common.category == "integer" and any(not common.min <= v.real <= common.max for v in values.values()):
        why = f"a Python number does not fit {common}, and torch wraps it around"
        return replace(verdict, reason=(*verdict.reason, why))
    return verdict


def _overflows(row: Format, value: Scalar) -> bool:
    # Unsigned dtypes accept negative numbers as their two's complement (`overflows` in c10/util/overflows.h).
    low = min(row.min, -row.max)
    return any(math.isfinite(part) and not low <= part <= row.max for part in (value.real, value.imag))


def _interval(value: Scalar | None) -> Hashable:
    """The position of a number among the bounds of torch's dtypes, the only property that verdicts depend on."""
    if value is None:
        return None
    parts = (value.real, value.imag) if isinstance(value, complex) else (value,)
    return tuple((bisect_left(_BOUNDS, part), bisect_right(_BOUNDS, part)) for part in parts)


_CASTS = ArrayCasts(
    "PyTorch",
    "PyTorch 2.13 on x86-64",
    # Not to float8_e8m0fnu, where negative numbers lose their sign.
    NATIVE | {*HALVES, "complex32", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz"},
    C_ROUTES,
    is_defined=False,
    through=to("float32", (*HALVES, *BYTES)),
    clamps=frozenset(("float8_e4m3fn",)),
)
TORCH = TorchRules(
    name="torch",
    summary="PyTorch as it starts, with float32 as default dtype",
    source="PyTorch 2.13",
    accepts=_ACCEPTS,
    formats=_KNOWN,
    quotients=to(TorchRules.default_dtype, BITS),
    in_place=Storing.SAME_KIND,  # `canCast` in c10/core/ScalarType.h, called by TensorIterator::compute_types
    item=Storing.CAST,  # `copy_` and `fill_`, which check the range of Python numbers only
    agreeing=frozenset(("matmul", "tensordot", "vecdot", "cross", "solve")),
    lacks={"solve": (*NARROW_FLOATS, "complex32")},
    reductions=_REDUCTIONS,
    measured=MEASURED,
    library="torch",
    spelling="torch",
    array_casts=_CASTS,
)
