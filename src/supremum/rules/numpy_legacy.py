"""The value-based rules of NumPy 1.26, before NEP 50.

Next to arrays with dimensions, a 0-d array or Python number of the same category or a lower one counts as the
smallest dtype that holds its value: int8 with `np.int64(5)` is int8, and int8 with 300 is int16. Scalars alone count
by their dtypes. As in NumPy 2, `np.result_type` promotes, while a function looks for a loop. These rules do not guess a
value of a 0-d array that is known only at run time; if it matters, they refuse the call. `int*` stands for a number
that every integer dtype holds.

Source: NumPy 1.26 (`numpy/core/src/multiarray/convert_datatype.c`: `should_use_min_scalar`, `min_scalar_type_num`,
`promote_types`; `numpy/core/src/umath/ufunc_type_resolution.c`) and ml_dtypes 0.5.4, the last version for it. The value
of a 0-d array of an ml_dtypes format never matters. Beside such a format, the value of a number decides which loops it
casts to and, if the result is one of NumPy's own dtypes, which dtype it is promoted as.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import NamedTuple

from supremum.decisions import ResultType, Verdict
from supremum.fix import letter
from supremum.formats import Format, Kind, as_format
from supremum.number_conversion import Steps, fits
from supremum.operands import WEAK_NAMES, Operand, Operands
from supremum.operations import Family, Operation, as_operation
from supremum.rules.numpy import SHARED, NumpyFunctions, solved, ufunc_of
from supremum.rules.numpy_casts import asked, casts_safely, common, common_of_all, default_of, objection_to_cast
from supremum.rules.numpy_loops import (
    FUNCTIONS,
    Loop,
    Search,
    candidates,
    compares_by_value,
    find_loop,
    height,
    listed,
)
from supremum.rules.verdicts import with_result_of
from supremum.typing import Scalar

_ROUNDING = ("ceil", "floor", "trunc")
# NumPy 1.26 has no integer loops for these.
_FUNCTIONS = FUNCTIONS | {name: replace(FUNCTIONS[name], own=("float",)) for name in _ROUNDING}
_PYTHON = {"bool": ("bool",), "integer": ("int64", "uint64"), "float": ("float64",), "complex": ("complex128",)}
"""The dtypes that Python numbers may take, in order."""
_SMALL: dict[str, Scalar] = {"bool": True, "integer": 1, "float": 1.0, "complex": 1j}
_OF_KNOWN_KIND = "float8_e5m2"
_ABSENT = ("int1", "uint1", "complex32", "bcomplex32")  # new in ml_dtypes 0.6
_FLOAT16_LIMIT, _FLOAT32_LIMIT = 65000, 3.4e38
_OF_LONG_LONG = _LARGEST, _ = "uint64", "int64"
_UNSIGNED, _SIGNED = (tuple(f"{kind}{bits}" for bits in (8, 16, 32, 64)) for kind in ("uint", "int"))
# One value from each interval that NumPy distinguishes.
_PROBES: dict[str, tuple[Scalar, ...]] = {
    "bool": (True,),
    "integer": (*(-(2**bits) for bits in (63, 31, 15, 7)), 1, *(2**bits for bits in (7, 8, 15, 16, 31, 32, 63))),
    "float": (1.0, 65504.0, 1e39),
    "complex": (1j, 1e39j),
}


class _Seen(NamedTuple):
    """An operand as value-based promotion sees it.

    Args:
        node: its dtype, or the weak kind of a Python number.
        name: its dtype.
        is_dtype: whether it is only a dtype and not an array.
        is_scalar: whether it has no dimensions.
        minimal: the smallest dtype that holds its value; its own dtype if it has dimensions.
        is_small: whether `minimal` is unsigned and the signed dtype of the same width holds the value too.
    """

    node: str
    name: str
    is_dtype: bool
    is_scalar: bool
    minimal: str
    is_small: bool


@dataclass(frozen=True, eq=False, repr=False)
class NumpyLegacyRules(NumpyFunctions):
    """Value-based promotion."""

    reads_values = True

    def key_of(self, operand: Operand) -> Hashable:
        """As in the base class."""
        return (operand.is_python_scalar, operand.category, *_possible_views(operand))

    def _settle_operation(self, operation: Operation, operands: Operands) -> Verdict:
        if operation.family is Family.REDUCTION:
            return self._reduce(operation, operands)
        if absent := [o.format.name for o in operands if o.dtype is not None and o.format.name in _ABSENT]:
            return Verdict.refuse(f"ml_dtypes 0.5.4, the last for NumPy 1.26, has no {listed(absent)}")
        if operation.name == "solve":
            return solved(operands)
        ways = [_possible_views(operand) for operand in operands]
        if beyond := [letter(i) for i, way in enumerate(ways) if not way]:
            nodes = tuple(operand.name for operand in operands)
            if operation.name in FUNCTIONS and len(nodes) > 1 and compares_by_value(operation.name, nodes):
                return _in_loop(operation, *find_loop(operation.name, nodes))
            why = f"{' and '.join(beyond)} does not fit 64 bits, so NumPy would convert it to an object"
            return Verdict.refuse(why, overflow=True)
        called = ufunc_of(operation, operands)
        verdicts = [_decide(called, seen) for seen in product(*ways)]
        if len({verdict.compute for verdict in verdicts}) == 1:
            return verdicts[0]
        unknown = listed([f"{way[0].name}[]" for way in ways if len(way) > 1])
        results = listed([str(v.result.dtype) if v.result else "refused" for v in verdicts])
        why = f"NumPy 1.26 promotes by the value of {unknown}, which is not known here"
        return Verdict.refuse(f"{why}: the result could be {results}")

    def _number_steps(self, operation: Operation, operands: Operands, position: int, target: Format) -> Steps:
        is_compared_by_value = not _possible_views(operands[position])
        return () if is_compared_by_value else super()._number_steps(operation, operands, position, target)

    def _meet(self, operation: Operation, operands: Operands) -> Verdict:
        # A reduction has a single operand and nothing to promote it with.
        is_reduction = operation.family is Family.REDUCTION
        return self._settle_operation(as_operation("result_type") if is_reduction else operation, operands)

    def _objection_to_cast(self, value: Operand, target: Format) -> str:
        return super()._objection_to_cast(value, target) or objection_to_cast(value, target)


def _possible_views(operand: Operand) -> tuple[_Seen, ...]:
    """The ways in which NumPy may see an operand: one if its value is known, none for an int beyond 64 bits."""
    if operand.is_python_scalar:
        value = _SMALL[operand.category] if operand.value is None else operand.value
        rows = map(as_format, _PYTHON[operand.category])
        names = [row.name for row in rows if not isinstance(value, int) or fits(value, row)]
        return (_Seen(operand.name, names[0], False, True, *_minimal(names[0], value)),) if names else ()
    row = operand.format
    if operand.ndim != 0 or not row.is_builtin:
        return (_Seen(row.name, row.name, operand.ndim is None, operand.ndim == 0, row.name, False),)
    values = _PROBES[row.category] if operand.held is None else (operand.held,)
    cases = [value for value in values if operand.held is not None or fits(value, row)]
    return tuple(dict.fromkeys(_Seen(row.name, row.name, False, True, *_minimal(row.name, value)) for value in cases))


def _minimal(name: str, value: Scalar) -> tuple[str, bool]:
    """The smallest dtype that NumPy 1.26 finds for a value of a dtype, and whether the signed one would do too."""
    row = as_format(name)
    if row.category == "integer":
        names = _SIGNED if value < 0 else _UNSIGNED  # pyright: ignore[reportOperatorIssue] (no complex value is an integer's)
        least = next(each for each in names if fits(value, as_format(each)))
        return least, least in _UNSIGNED and fits(value, as_format(least.removeprefix("u")))
    if isinstance(value, complex):
        is_narrow = abs(value.real) < _FLOAT32_LIMIT and abs(value.imag) < _FLOAT32_LIMIT
        return ("complex64" if is_narrow else name), False
    if row.category == "float" and (abs(value) < _FLOAT16_LIMIT or not math.isfinite(value)):
        return "float16", False
    if name == "float64" and abs(value) < _FLOAT32_LIMIT:
        return "float32", False
    return name, False


def _promotes_by_value(seen: Sequence[_Seen]) -> bool:
    heights = [(each.is_scalar, height(each.name, _OF_KNOWN_KIND)) for each in seen]
    arrays = [height for is_scalar, height in heights if not is_scalar]
    return 0 < len(arrays) < len(seen) and max(arrays) >= max(height for _, height in heights)


def _has_unknown_kind(name: str) -> bool:
    """Whether NumPy does not know the kind of a format, as for all of ml_dtypes but one."""
    return name != _OF_KNOWN_KIND and not as_format(name).is_builtin


def _decide(operation: Operation, seen: tuple[_Seen, ...]) -> Verdict:
    """The verdict on operands that are seen in one of the possible ways."""
    by_value = _promotes_by_value(seen)
    if not by_value:
        seen = tuple(each._replace(minimal=each.name, is_small=False) for each in seen)
    shrunk = [f"{each.name} of that value counts as {each.minimal}" for each in seen if each.minimal != each.name]
    if operation.name in FUNCTIONS:
        verdict = _decide_function(operation, seen, by_value)
    else:
        verdict = _decide_promotion(operation, seen, by_value)
    return replace(verdict, reason=(*shrunk, *verdict.reason))


def _decide_promotion(operation: Operation, seen: tuple[_Seen, ...], by_value: bool) -> Verdict:
    """The verdict on an operation that needs only a common type."""
    met = _meet(seen, by_value, knows_numbers=operation.name != "where")
    if met is None:
        names = listed([each.name for each in seen])
        return Verdict.refuse(f"{operation.name} needs a common type, and NumPy has none for {names}")
    return Verdict.accept(as_format(met).dtype, len(seen), f"the common type is {met}")


def _decide_function(operation: Operation, seen: tuple[_Seen, ...], by_value: bool) -> Verdict:
    """The verdict on a function, which computes in a loop."""
    return _in_loop(operation, *_loop_of(operation.name, seen, by_value))


def _in_loop(operation: Operation, loop: Loop | None, why: str) -> Verdict:
    """The verdict on a function that computes in a loop, or has none."""
    if loop is None:
        return Verdict.refuse(why)
    compute = tuple(as_format(name).dtype for name in loop)
    return with_result_of(operation, Verdict(ResultType(compute[0]), compute, (why,)))


def _loop_of(operation: str, seen: tuple[_Seen, ...], by_value: bool) -> tuple[Loop | None, str]:
    """The loop that a function runs, and the reason; None if it has no loop."""
    function, names = _FUNCTIONS[operation], tuple(each.name for each in seen)
    is_own = all(as_format(name).is_builtin for name in names)
    if is_own and function.search in (Search.PROMOTED, Search.COMPARED):
        return _loop_of_common_type(operation, seen, by_value)
    if (not by_value and operation not in _ROUNDING) or function.search is Search.TRUTH:
        return find_loop(operation, names)
    if function.search is Search.FLOAT64 and is_own and not any(as_format(name).is_inexact for name in names):
        return ("float64",) * len(seen), f"{operation} computes integers and bools in float64"
    return _first_loop(operation, seen)


def _loop_of_common_type(operation: str, seen: tuple[_Seen, ...], by_value: bool) -> tuple[Loop | None, str]:
    """The loop of the type that operands of NumPy's own dtypes promote to, and the reason; None if there is none."""
    met = _meet(seen, by_value)
    assert met is not None  # NumPy's own dtypes all promote
    if _FUNCTIONS[operation].has_loop(met):
        return (met,) * len(seen), f"the common type is {met}"
    return None, f"the common type is {met}, and {operation} has no loop for it"


def _first_loop(operation: str, seen: tuple[_Seen, ...]) -> tuple[Loop | None, str]:
    """The first loop that all operands cast to safely, and the reason; None if there is none."""
    for loop in candidates(_FUNCTIONS[operation], tuple(each.name for each in seen)):
        if all(map(_casts, seen, loop)):
            return loop, f"{loop[0]} is the first loop of {operation} with a safe cast from the operands"
    return None, f"{operation} has no loop with a safe cast from the operands"


def _casts(each: _Seen, target: str) -> bool:
    """Whether a scalar casts safely to a dtype by its value, and an array by its dtype."""
    is_signed = each.is_small and as_format(target).kind is not Kind.UNSIGNED
    return casts_safely(each.minimal.removeprefix("u") if is_signed else each.minimal, target)


def _meet(seen: tuple[_Seen, ...], by_value: bool, *, knows_numbers: bool = False) -> str | None:
    """The common type, or None; with `knows_numbers`, Python numbers are not 0-d arrays with formats of ml_dtypes."""
    if not all(as_format(each.name).is_builtin for each in seen):
        nodes = [each.node if knows_numbers else each.name for each in sorted(seen, key=lambda each: not each.is_dtype)]
        met = common_of_all(nodes, _asked)
        # NumPy looks at values only if the result is one of its own types.
        if met is None or not as_format(default_of(met)).is_builtin:
            return met
    if not by_value:
        # With only scalars, NumPy promotes a long long with each operand in turn. These rules refuse it beside any
        # format of unknown kind.
        is_refused = any(map(_is_long_long, seen)) and any(_has_unknown_kind(each.name) for each in seen)
        return None if is_refused else common_of_all([each.name for each in seen])
    ordered = sorted(seen, key=lambda each: each.is_dtype)
    first, *others = (_SmallestType(each.minimal, each.is_small, _is_long_long(each)) for each in ordered)
    promoted: _SmallestType | None = first
    for each in others:
        promoted = None if promoted is None else _promote(each, promoted)
    return None if promoted is None else promoted.name


def _asked(a: str, b: str) -> str | None:
    """The type that `a` promotes to with `b`; in NumPy 1.26, Python numbers answer instead of NumPy's own types."""
    if a in WEAK_NAMES and b not in WEAK_NAMES and as_format(b).is_builtin:
        return common(a, b)
    if b in WEAK_NAMES and a not in WEAK_NAMES and as_format(a).is_builtin:
        return None
    return asked(a, b)


class _SmallestType(NamedTuple):
    """The common type of some operands.

    Args:
        name: the name of the dtype.
        is_small: whether it is unsigned and the signed dtype of the same width would do too.
        is_long_long: whether it is C's long long while NumPy's own 64-bit integers are C's long; no format of
            ml_dtypes casts to long long.
    """

    name: str
    is_small: bool
    is_long_long: bool


def _is_long_long(each: _Seen) -> bool:
    return each.minimal == _LARGEST and each.node in ("int*", "int64")


def _promote(a: _SmallestType, b: _SmallestType) -> _SmallestType | None:
    left, right = a.name, b.name
    if a.is_small and _makes_signed(right):
        left = left.removeprefix("u")
    elif not a.is_small and b.is_small and _makes_signed(left):
        right = right.removeprefix("u")
    is_long_long = a.is_long_long or b.is_long_long
    if is_long_long and (_has_unknown_kind(left) or _has_unknown_kind(right)):
        return None
    met = common(left, right)
    if met is None:
        return None
    return _SmallestType(met, a.is_small and b.is_small, is_long_long and met in _OF_LONG_LONG)


def _makes_signed(other: str) -> bool:
    row = as_format(other)
    return row.is_builtin and row.kind not in (Kind.BOOL, Kind.UNSIGNED)


NUMPY_LEGACY = NumpyLegacyRules(
    name="numpy-legacy",
    summary="NumPy 1.26: value-based promotion, before NEP 50",
    source="NumPy 1.26.4, ml_dtypes 0.5.4",
    **SHARED,
)
