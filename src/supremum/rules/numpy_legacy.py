"""NumPy's rules before NEP 50, which look at values: those of NumPy 1.26.

Next to arrays with dimensions, a 0-d array or Python number of the same category or a lower one counts as the
smallest dtype that holds its value: int8 with `np.int64(5)` is int8, and int8 with 300 is int16. Scalars alone count
by their dtypes. As in NumPy 2, a function looks for a loop where `np.result_type` promotes. The value of a 0-d array
that only a program in motion would know is not guessed: where it matters, the call is refused. `int*` stands for a
number that every integer dtype holds.

Source: NumPy 1.26 (`numpy/core/src/multiarray/convert_datatype.c`: `should_use_min_scalar`, `min_scalar_type_num`,
`promote_types`; `numpy/core/src/umath/ufunc_type_resolution.c`), for NumPy's own dtypes; ml_dtypes' are refused.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import NamedTuple

from supremum.decisions import ResultType, Verdict, letter
from supremum.formats import Kind, as_format
from supremum.operands import Operand, Scalar
from supremum.operations import Operation
from supremum.rules.numpy_casts import LOOP_ORDER, casts_safely, common, common_of_all
from supremum.rules.numpy_loops import FUNCTIONS, Search, find_loop, listed
from supremum.rules.rule_set import LOSSES_AS_DIVISION, RuleSet, given
from supremum.rules.values import fits

_ROUNDING = ("ceil", "floor", "trunc")
# Integers had no loops of their own for these yet.
_FUNCTIONS = FUNCTIONS | {name: replace(FUNCTIONS[name], own=("float",)) for name in _ROUNDING}
_PYTHON = {"bool": ("bool",), "integer": ("int64", "uint64"), "float": ("float64",), "complex": ("complex128",)}
"""The dtypes of Python numbers, first choice first."""
_SMALL: dict[str, Scalar] = {"bool": True, "integer": 1, "float": 1.0, "complex": 1j}
# Floats and complex numbers are one kind to this NumPy when it asks whether scalars are of a higher one.
_HEIGHT = {"bool": 0, "integer": 1, "float": 2, "complex": 2}
_FLOAT16_LIMIT, _FLOAT32_LIMIT = 65000, 3.4e38
_UNSIGNED, _SIGNED = (tuple(f"{kind}{bits}" for bits in (8, 16, 32, 64)) for kind in ("uint", "int"))
# One value of each interval that NumPy tells apart.
_PROBES: dict[str, tuple[Scalar, ...]] = {
    "bool": (True,),
    "integer": (*(-(2**bits) for bits in (63, 31, 15, 7)), 1, *(2**bits for bits in (7, 8, 15, 16, 31, 32, 63))),
    "float": (1.0, 65504.0, 1e39),
    "complex": (1j, 1e39j),
}


class _Seen(NamedTuple):
    """An operand as value-based promotion sees it.

    Args:
        name: its dtype.
        is_scalar: whether it has no dimensions.
        minimal: the smallest dtype that holds its value; its own where it has dimensions.
        is_small: whether that is unsigned, and the signed dtype of the same width would do as well.
    """

    name: str
    is_scalar: bool
    minimal: str
    is_small: bool


@dataclass(frozen=True, eq=False)
class NumpyLegacyRules(RuleSet):
    """Value-based promotion."""

    def _key(self, operand: Operand) -> Hashable:
        if operand.dtype is not None and not operand.format.is_builtin:
            return (operand.dtype, operand.ndim == 0)
        return (operand.is_python_scalar, operand.category, *_ways_to_see(operand))

    def _judge(self, operation: Operation, operands: tuple[Operand, ...]) -> Verdict:
        is_question = operation.name in ("result_type", "promote_types", "where")
        if not is_question and operation.name not in FUNCTIONS:
            return Verdict.refuse(f"NumPy has no function {operation.name}")
        foreign = [o.format.name for o in operands if o.dtype is not None and not o.format.is_builtin]
        if foreign:
            return Verdict.refuse(f"these rules are for NumPy's own dtypes, and not for {listed(foreign)}")
        ways = [_ways_to_see(operand) for operand in operands]
        if beyond := [letter(i) for i, way in enumerate(ways) if not way]:
            return Verdict.refuse(
                f"{' and '.join(beyond)} is beyond 64 bits: NumPy makes an object of it", overflow=True
            )
        verdicts = [_decide(operation, seen) for seen in product(*ways)]
        if len({verdict.compute for verdict in verdicts}) == 1:
            return verdicts[0]
        unknown = listed([f"{way[0].name}[]" for way in ways if len(way) > 1])
        results = listed([str(v.result.dtype) if v.result else "refused" for v in verdicts])
        return Verdict.refuse(
            f"NumPy 1.26 looks at the value of {unknown}, which is not known here: it gives {results}"
        )

    def _meet(self, operation: Operation, operands: tuple[Operand, ...]) -> Verdict:
        return self._judge(operation, operands)


def _ways_to_see(operand: Operand) -> tuple[_Seen, ...]:
    """All that an operand can be to NumPy: one thing if its value is known, nothing for an int beyond 64 bits."""
    if operand.is_python_scalar:
        value = _SMALL[operand.category] if operand.value is None else operand.value
        names = [
            name for name in _PYTHON[operand.category] if not isinstance(value, int) or fits(value, as_format(name))
        ]
        return (_Seen(names[0], True, *_minimal(names[0], value)),) if names else ()
    row = operand.format
    if operand.ndim != 0:
        return (_Seen(row.name, False, row.name, False),)
    values = _PROBES[row.category] if operand.held is None else (operand.held,)
    held = [value for value in values if operand.held is not None or fits(value, row)]
    return tuple(dict.fromkeys(_Seen(row.name, True, *_minimal(row.name, value)) for value in held))


def _minimal(name: str, value: Scalar) -> tuple[str, bool]:
    """The smallest dtype that holds a value of a dtype, as NumPy 1.26 reckons it; whether the signed one would too."""
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


def _looks_at_values(seen: Sequence[_Seen]) -> bool:
    heights = [(each.is_scalar, _HEIGHT[as_format(each.name).category]) for each in seen]
    arrays = [height for is_scalar, height in heights if not is_scalar]
    return 0 < len(arrays) < len(seen) and max(arrays) >= max(height for _, height in heights)


def _decide(operation: Operation, seen: tuple[_Seen, ...]) -> Verdict:
    by_value = _looks_at_values(seen)
    shrunk = [
        f"{each.name} of that value counts as {each.minimal}" for each in seen if by_value and each.minimal != each.name
    ]
    if operation.name not in FUNCTIONS:
        met = _meet(seen, by_value)
        return Verdict.accept(as_format(met).dtype, len(seen), *shrunk, f"they meet in {met}")
    if not by_value:
        seen = tuple(_Seen(each.name, each.is_scalar, each.name, False) for each in seen)
    function, names = _FUNCTIONS[operation.name], tuple(each.name for each in seen)
    if function.search in (Search.PROMOTED, Search.COMPARED):
        met = _meet(seen, by_value)
        found, why = ((met,) * len(seen), f"they meet in {met}") if function.has_loop(met) else (None, "")
        why = why or f"they meet in {met}, and {operation.name} has no loop for it"
    elif (not by_value and operation.name not in _ROUNDING) or function.search is Search.TRUTH:
        found, why = find_loop(operation.name, names)
    elif function.search is Search.FLOAT64 and all(_HEIGHT[as_format(name).category] < 2 for name in names):
        found, why = ("float64",) * len(seen), f"{operation.name} computes integers and bools in float64"
    else:
        loops = [name for name in LOOP_ORDER if function.has_loop(name) and all(_casts(each, name) for each in seen)]
        found = (loops[0],) * len(seen) if loops else None
        why = f"{loops[0]} is the first loop of {operation.name} that they cast to safely" if loops else ""
        why = why or f"{operation.name} has no loop that they cast to safely"
    if found is None:
        return Verdict.refuse(*shrunk, why)
    compute = tuple(as_format(name).dtype for name in found)
    return given(operation, Verdict(ResultType(compute[0]), compute, (*shrunk, why)))


def _casts(each: _Seen, target: str) -> bool:
    """Whether a scalar casts safely to a dtype by its value, and an array by its dtype."""
    is_signed = each.is_small and as_format(target).kind is not Kind.UNSIGNED
    return casts_safely(each.minimal.removeprefix("u") if is_signed else each.minimal, target)


def _meet(seen: tuple[_Seen, ...], by_value: bool) -> str:
    if not by_value:
        met = common_of_all([each.name for each in seen])
    else:
        met, is_small = seen[0].minimal, seen[0].is_small
        for each in seen[1:]:
            met = _promote((each.minimal, each.is_small), (met, is_small))
            is_small = is_small and each.is_small
    assert met is not None  # NumPy's own dtypes all promote
    return met


def _promote(a: tuple[str, bool], b: tuple[str, bool]) -> str:
    """Where two meet, either of which may be an unsigned dtype whose value the signed one holds as well."""
    (left, left_is_small), (right, right_is_small) = a, b
    if left_is_small and as_format(right).kind not in (Kind.BOOL, Kind.UNSIGNED):
        left = left.removeprefix("u")
    elif not left_is_small and right_is_small and as_format(left).kind not in (Kind.BOOL, Kind.UNSIGNED):
        right = right.removeprefix("u")
    met = common(left, right)
    assert met is not None  # NumPy's own dtypes all promote
    return met


NUMPY_LEGACY = NumpyLegacyRules(
    name="numpy-legacy",
    summary="NumPy 1.26: value-based promotion, before NEP 50; NumPy's own dtypes",
    source="NumPy 1.26.4",
    stands_in=LOSSES_AS_DIVISION,
    library="NumPy",
)
