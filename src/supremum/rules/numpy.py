"""NumPy 2's rules (NEP 50).

Without an operation, the answer is that of `np.result_type`. With an operation it is that of the function, which can
differ, because a function looks for a loop that its operands cast to: `np.add` computes bfloat16 and uint16 in float32,
although `np.result_type` refuses them. 0-d arrays are treated like all other arrays.

Source: NumPy 2 and ml_dtypes 0.6; `numpy_casts` and `numpy_loops` name the source files. Reductions and functions of
several arrays are those of NumPy 2 and 1.26: `numpy/_core/src/umath/reduction.c` and `ufunc_type_resolution.c` for the
sums of narrow integers in the default integer dtype; `numpy/_core/_methods.py` for means and variances; `_commonType`
in `numpy/linalg/_linalg.py`.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from supremum.decisions import ResultType, Verdict
from supremum.fix import letter
from supremum.formats import CATEGORIES, FORMATS, Format, as_format
from supremum.number_conversion import Steps, converts, interval, usual_steps
from supremum.operands import WEAK_NAMES, Operand, Operands
from supremum.operations import Family, Operation, as_operation
from supremum.rules.array_casts import BYTES, C_ROUTES, ArrayCasts, named
from supremum.rules.numpy_casts import casts_same_kind, common_of_all, default_of, has_cast, objection_to_cast
from supremum.rules.numpy_loops import FUNCTIONS, compares_by_value, find_loop, listed
from supremum.rules.reductions import REAL_PARTS, TRUTH, Reduction, to, to_default
from supremum.rules.rule_set import RuleSet
from supremum.rules.verdicts import LOSSES_AS_DIVISION, Storing, checked_ints, with_result_of

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
_CASTS = ArrayCasts(
    "NumPy",
    "NumPy 2.4 and 1.26 on x86-64",
    named("complex32", "bcomplex32"),
    C_ROUTES,
    is_defined=False,
    through=to("float32", ("bfloat16", *BYTES)),  # of ml_dtypes; to its own float16 NumPy rounds once
)
_MAXIMUM = as_operation("maximum")
_FOLLOWS = to("result_type", "concat stack diff cross tensordot") | {"outer": "multiply"}
SHARED: dict[str, Any] = {
    "measured": frozenset(("where", "solve", *FUNCTIONS, *LOSSES_AS_DIVISION, *_FOLLOWS, *_REDUCTIONS)),
    "accepts": {"cross": CATEGORIES[1:]},
    "stands_in": LOSSES_AS_DIVISION,
    "follows": _FOLLOWS,
    "reductions": _REDUCTIONS,
    "library": "NumPy",
    "array_casts": _CASTS,
    "in_place": Storing.SAME_KIND,  # the default of `casting` (numpy/_core/src/umath/ufunc_object.c) since NumPy 1.10
    # `array_assign_subscript` casts unsafely (numpy/_core/src/multiarray/mapping.c). NumPy 1.26 wraps a Python int that
    # does not fit around, with a DeprecationWarning.
    "item": Storing.CAST,
}
"""The fields in which NumPy 2 and NumPy 1.26 have the same values."""


@dataclass(frozen=True, eq=False, repr=False)
class NumpyFunctions(RuleSet):
    """The rules that NumPy 2 and NumPy 1.26 share.

    Args:
        name, summary, source: as for every rule set.
        follows: for functions of several arrays, the operation whose promotion they share.
    """

    follows: Mapping[str, str] = field(default_factory=dict[str, str], kw_only=True)

    def _settle(self, operation: Operation, operands: Operands) -> Verdict:
        followed = self.follows.get(operation.name)
        if followed is None:
            return super()._settle(operation, operands)
        verdict = self._settle_operation(as_operation(followed), as_arrays(operands))
        if verdict.result is None:
            return verdict
        if followed != "result_type":
            verdict = replace(verdict, reason=(*verdict.reason, f"{operation.name} promotes like {followed}"))
        is_limited = operation.name in self.accepts
        return (is_limited and self._refusal_of_category(operation, verdict, verdict.compute[0])) or verdict

    def _is_same_kind(self, source: Format, target: Format) -> bool:
        return casts_same_kind(source.name, target.name)

    def _allows_cast(self, operand: Operand, target: Format, may_cut: bool) -> bool:  # noqa: ARG002
        return has_cast(operand, target)


def ufunc_of(operation: Operation, operands: Operands) -> Operation:
    """The ufunc that a function calls: with one bound, `clip` is `maximum` or `minimum`, which have the same loops."""
    return _MAXIMUM if operation.name == "clip" and len(operands) == 2 else operation


def as_arrays(operands: Operands) -> Operands:
    """Convert all operands to arrays, as some functions do; a Python number gets its default dtype."""
    arrays = (o.with_dtype(default_of(o.name)) if o.dtype is None else o for o in operands)
    return tuple(replace(each, ndim=1) for each in arrays)


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


@dataclass(frozen=True, eq=False, repr=False)
class NumpyRules(NumpyFunctions):
    """NumPy's rules: promotion without a function, else a search for the function's loop."""

    def key_of(self, operand: Operand) -> Hashable:
        """As in the base class: `np.result_type` takes dtypes before arrays, and values of floats never matter."""
        value = interval(operand.value) if isinstance(operand.value, int) else None
        return (operand.category, operand.dtype, operand.ndim is None, value)

    def _settle_operation(self, operation: Operation, operands: Operands) -> Verdict:
        if operation.family is Family.REDUCTION:
            return self._reduce(operation, operands)
        if operation.name == "solve":
            return solved(operands)
        if operation.name == "clip":
            return self._clip(operation, operands)
        if operation.name in FUNCTIONS:
            return self._run(operation, operands)
        if operation.name == "where":
            return checked_ints(self._meet(operation, operands), operands)
        return self._meet(operation, operands)

    def _meet(self, operation: Operation, operands: Operands) -> Verdict:
        if len(operands) == 1:
            return _settle_single(operands[0])
        # Dtypes come before arrays and numbers, as in np.result_type; the order can matter with three or more.
        nodes = [operand.name for operand in sorted(operands, key=lambda operand: operand.ndim is not None)]
        common_type = common_of_all(nodes)
        if common_type is None:
            return Verdict.refuse(f"{operation.name} needs a common type, and NumPy has none for {listed(nodes)}")
        dtype = as_format(default_of(common_type)).dtype
        weak = [node for node in nodes if node in WEAK_NAMES]
        if common_type in WEAK_NAMES:
            return Verdict.accept(dtype, len(operands), f"Python numbers alone take the default dtype, here {dtype}")
        beside = (f"{listed(weak)} is weak (NEP 50)",) if weak else ()
        return Verdict.accept(dtype, len(operands), f"the common type of {listed(nodes)} is {dtype}", *beside)

    def _run(self, operation: Operation, operands: Operands) -> Verdict:
        nodes = tuple(operand.name for operand in operands)
        if len(operands) == 1:
            # A function of one operand has no array that a Python number could take its dtype from.
            alone = _settle_single(operands[0])
            if alone.result is None:
                return alone
            nodes = (str(alone.result.dtype),)
        loop, reason = find_loop(operation.name, nodes)
        if loop is None:
            return Verdict.refuse(reason)
        compute = tuple(as_format(name).dtype for name in loop)
        verdict = with_result_of(operation, Verdict(ResultType(compute[0]), compute, (reason,)))
        return verdict if compares_by_value(operation.name, nodes) else checked_ints(verdict, operands)

    def _number_steps(self, operation: Operation, operands: Operands, position: int, target: Format) -> Steps:
        operand = operands[position]
        nodes = tuple(each.name for each in operands)
        if operation.name in FUNCTIONS and len(nodes) > 1 and compares_by_value(operation.name, nodes):
            return ()
        if not _is_convertible(operand, target.name):
            return ()  # only for questions about types alone; functions raise
        return usual_steps(operand.category, target)

    def ignores_bound(self, array: Operand, bound: Operand, *, is_lower: bool) -> bool:
        """As in the base class: true for an int at or past the end of an array's range (`_clip` in `_methods.py`)."""
        if array.dtype is None or not array.format.is_builtin or not isinstance(bound.value, int):
            return False
        is_integer = array.category == bound.category == "integer"
        return is_integer and (bound.value <= array.format.min if is_lower else bound.value >= array.format.max)

    def _clip(self, operation: Operation, operands: Operands) -> Verdict:
        alone = _settle_single(operands[0])
        if alone.result is None:
            return alone
        # `np.clip` calls the method of an array.
        array = operands[0].with_dtype(alone.result.dtype) if operands[0].dtype is None else operands[0]
        bounds = operands[1:]
        ignored = [
            position
            for position, bound in enumerate(bounds, 1)
            if len(bounds) > 1 and self.ignores_bound(array, bound, is_lower=position == 1)
        ]
        kept = tuple(each for position, each in enumerate((array, *bounds)) if position not in ignored)
        verdict = self._run(ufunc_of(operation, kept), kept) if len(kept) > 1 else alone
        if verdict.result is None or not ignored:
            return verdict
        without = f"NumPy skips {' and '.join(map(letter, ignored))}, because no element is out of that bound"
        return Verdict.accept(verdict.result.dtype, len(operands), *verdict.reason, without)

    def _objection_to_cast(self, value: Operand, target: Format) -> str:
        return objection_to_cast(value, target)


def _settle_single(operand: Operand) -> Verdict:
    """The verdict on a single operand: an array keeps its dtype; a number has the default dtype, a large int uint64."""
    if operand.dtype is not None:
        return Verdict.accept(operand.format.dtype, 1, f"a single operand keeps its dtype, {operand.dtype}")
    default = default_of(operand.name)
    candidates = (default, "uint64") if isinstance(operand.value, int) else (default,)
    for name in candidates:
        if _is_convertible(operand, name):
            return Verdict.accept(as_format(name).dtype, 1, f"a Python number alone takes a default dtype, {name}")
    return Verdict.refuse("the Python int does not fit 64 bits, and NumPy would convert it to an object", overflow=True)


def _is_convertible(operand: Operand, target: str) -> bool:
    value = operand.value
    return not isinstance(value, int) or converts(value, as_format(target))


NUMPY = NumpyRules(
    name="numpy",
    summary="NumPy 2 (NEP 50), ml_dtypes formats included",
    source="NumPy 2, ml_dtypes 0.6",
    **SHARED,
)
