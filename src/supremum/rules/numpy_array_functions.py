"""NumPy's functions of whole arrays: what reductions accumulate in and give, and where several arrays meet.

Source: NumPy 2 and 1.26 (`numpy/_core/src/umath/reduction.c` and `ufunc_type_resolution.c`, which sum narrow integers
in the default one; `numpy/_core/_methods.py` for means and variances; `numpy/linalg/_linalg.py`, `_commonType`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from supremum.decisions import Verdict
from supremum.formats import CATEGORIES, FORMATS, as_format
from supremum.operands import Operand
from supremum.rules.numpy_casts import default_of
from supremum.rules.reductions import REAL_PARTS, TRUTH, Reduction, to, to_default

_OWN = [row.name for row in FORMATS if row.is_builtin]
_FOREIGN_INTEGERS = [row.name for row in FORMATS if row.category == "integer" and not row.is_builtin]
# NumPy takes the integers of ml_dtypes for no integers: it keeps them.
_SUMMED = Reduction(
    gives=to_default("int64", "uint64", least_bits=8),
    accumulates={"float16": "float32"},
    source="`HALF_pairwise_sum` along contiguous elements",
)
_FLOAT64 = to("float64", (name for name in _OWN if as_format(name).category in ("bool", "integer")))
_VARIANCE = Reduction(gives=_FLOAT64 | {name: REAL_PARTS[name] for name in _OWN if name in REAL_PARTS})
REDUCTIONS: Mapping[str, Reduction] = (
    {"sum": _SUMMED, "prod": replace(_SUMMED, source="`HALF_multiply` along contiguous elements")}
    | dict.fromkeys(("cumulative_sum", "cumulative_prod"), replace(_SUMMED, accumulates={}))
    | {"mean": Reduction(gives=_FLOAT64, accumulates={"float16": "float32"}, source="`_mean` in _methods.py")}
    | dict.fromkeys(("var", "std"), _VARIANCE)
    | dict.fromkeys(("any", "all"), Reduction(gives=TRUTH))
    # There are no loops of `maximum` for them, but for the first type that they cast to.
    | dict.fromkeys(("min", "max"), Reduction(gives=to("int8", _FOREIGN_INTEGERS)))
)
FOLLOWS: Mapping[str, str] = dict.fromkeys(("concat", "stack", "diff", "cross", "tensordot"), "result_type") | {
    "outer": "multiply"
}
LACKING_BOOL: Mapping[str, tuple[str, ...]] = {"cross": CATEGORIES[1:]}


def as_arrays(operands: tuple[Operand, ...]) -> tuple[Operand, ...]:
    """Operands as functions see them that make arrays of all: a Python number has its default dtype."""
    made = (o.with_dtype(default_of(o.name)) if o.dtype is None else o for o in operands)
    return tuple(replace(each, ndim=1) for each in made)


def solved(operands: tuple[Operand, ...]) -> Verdict:
    """Where the arrays of `linalg.solve` meet: in single precision if all are in it, in double if any is not."""
    rows = [operand.format for operand in as_arrays(operands)]
    takes_foreign = any(row.category == "complex" and row.is_builtin for row in rows)
    if refused := [
        str(row) for row in rows if row.name in _NOT_SOLVED or (row.name in _FOREIGN_COMPLEX and not takes_foreign)
    ]:
        return Verdict.refuse(f"NumPy's linalg does not accept {' and '.join(dict.fromkeys(refused))}")
    precise = any(row.name not in _SINGLE for row in rows)
    highest = max((row.category for row in rows), key=CATEGORIES.index)
    single, double = ("complex64", "complex128") if highest == "complex" else ("float32", "float64")
    met = as_format(double if precise else single)
    names = " and ".join(dict.fromkeys(map(str, rows)))
    why = f"solve computes {names} in {met}: single precision is for {' and '.join(_SINGLE)} alone"
    return Verdict.accept(met.dtype, len(operands), why)


_SINGLE = ("float32", "complex64")
_NOT_SOLVED = ("float16",)
_FOREIGN_COMPLEX = [row.name for row in FORMATS if row.category == "complex" and not row.is_builtin]
