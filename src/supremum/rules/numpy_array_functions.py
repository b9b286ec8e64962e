"""NumPy's functions of whole arrays: the dtypes of reductions, and the common dtype of several arrays.

Source: NumPy 2 and 1.26 (`numpy/_core/src/umath/reduction.c` and `ufunc_type_resolution.c` for the sums of narrow
integers in the default integer dtype; `numpy/_core/_methods.py` for means and variances; `_commonType` in
`numpy/linalg/_linalg.py`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from supremum.decisions import Verdict
from supremum.formats import CATEGORIES, FORMATS, Format, as_format
from supremum.operands import Operand, Operands
from supremum.operations import Operation
from supremum.rules.numpy_casts import casts_same_kind, default_of, has_cast
from supremum.rules.reductions import REAL_PARTS, TRUTH, Reduction, to, to_default
from supremum.rules.rule_set import RuleSet
from supremum.rules.verdicts import LOSSES_AS_DIVISION, Storing

_OWN = [row.name for row in FORMATS if row.is_builtin]
_FOREIGN_INTEGERS = [row.name for row in FORMATS if row.category == "integer" and not row.is_builtin]
# NumPy does not know that the integers of ml_dtypes are integers, so their sums keep their dtype.
_SUMMED = Reduction(
    gives=to_default("int64", "uint64", least_bits=8),
    accumulates={"float16": "float32"},
    source="`HALF_pairwise_sum` along contiguous elements",
)
_FLOAT64 = to("float64", (name for name in _OWN if as_format(name).category in ("bool", "integer")))
_VARIANCE = Reduction(gives=_FLOAT64 | {name: REAL_PARTS[name] for name in _OWN if name in REAL_PARTS})
_REDUCTIONS = (
    {"sum": _SUMMED, "prod": replace(_SUMMED, source="`HALF_multiply` along contiguous elements")}
    | to(replace(_SUMMED, accumulates={}), "cumulative_sum cumulative_prod")
    | {"mean": Reduction(gives=_FLOAT64, accumulates={"float16": "float32"}, source="`_mean` in _methods.py")}
    | to(_VARIANCE, "var std")
    | to(Reduction(gives=TRUTH), "any all")
    # `maximum` has no loops for these integers, so it uses that of the first type that they cast to.
    | to(Reduction(gives=to("int8", _FOREIGN_INTEGERS)), "min max")
)
SHARED: dict[str, Any] = {
    "accepts": {"cross": CATEGORIES[1:]},
    "stands_in": LOSSES_AS_DIVISION,
    "follows": to("result_type", "concat stack diff cross tensordot") | {"outer": "multiply"},
    "reductions": _REDUCTIONS,
    "library": "NumPy",
    "in_place": Storing.SAME_KIND,  # the default of `casting` (numpy/_core/src/umath/ufunc_object.c) since NumPy 1.10
    # `array_assign_subscript` casts unsafely (numpy/_core/src/multiarray/mapping.c). NumPy 1.26 wraps a Python int that
    # does not fit around, with a DeprecationWarning.
    "item": Storing.CAST,
}
"""The fields in which NumPy 2 and NumPy 1.26 have the same values."""


class NumpyFunctions(RuleSet):
    """The rules that NumPy 2 and NumPy 1.26 share."""

    def _follow(self, operation: Operation, operands: Operands) -> Verdict | None:
        return super()._follow(operation, as_arrays(operands))

    def _is_same_kind(self, source: Format, target: Format) -> bool:
        return casts_same_kind(source.name, target.name)

    def _is_castable(self, operand: Operand, target: Format, *, may_cut: bool) -> bool:
        return has_cast(operand, target) and super()._is_castable(operand, target, may_cut=may_cut)


def as_arrays(operands: Operands) -> Operands:
    """Convert all operands to arrays, as some functions do; a Python number gets its default dtype."""
    made = (o.with_dtype(default_of(o.name)) if o.dtype is None else o for o in operands)
    return tuple(replace(each, ndim=1) for each in made)


def solved(operands: Operands) -> Verdict:
    """The common dtype in `linalg.solve`: single precision if all arrays have it, otherwise double."""
    rows = [operand.format for operand in as_arrays(operands)]
    absent = {"float16"}
    if not any(row.category == "complex" and row.is_builtin for row in rows):
        absent |= {row.name for row in FORMATS if row.category == "complex" and not row.is_builtin}
    if refused := [row.name for row in rows if row.name in absent]:
        return Verdict.refuse(f"NumPy's linalg does not accept {' and '.join(dict.fromkeys(refused))}")
    precise = any(row.name not in _SINGLE for row in rows)
    highest = max((row.category for row in rows), key=CATEGORIES.index)
    single, double = ("complex64", "complex128") if highest == "complex" else ("float32", "float64")
    met = as_format(double if precise else single)
    names = " and ".join(dict.fromkeys(map(str, rows)))
    why = f"solve computes {names} in {met}: single precision is for {' and '.join(_SINGLE)} alone"
    return Verdict.accept(met.dtype, len(operands), why)


_SINGLE = ("float32", "complex64")
