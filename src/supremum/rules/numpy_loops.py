"""The loops of NumPy's functions, and the search for the loop of a call.

Source: NumPy 2 (`numpy/_core/src/umath/`: `dispatching.cpp`, `ufunc_type_resolution.c`,
`special_integer_comparisons.cpp`; `numpy/_core/src/multiarray/convert_datatype.c`, `can_cast_pyscalar_scalar_to`;
`numpy/_core/code_generators/generate_umath.py`) and ml_dtypes 0.6 (`ml_dtypes/_src/`: the `Register...UFuncs` of
`floats.cc`, `ints.cc`, `complex.cc`).
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from supremum.formats import CATEGORIES, Kind, as_format
from supremum.operands import WEAK_NAMES
from supremum.rules.numpy_casts import LOOP_ORDER, casts_safely, common, common_of_all, default_of

Loop = tuple[str, ...]
"""The formats of the operands of a loop."""


class Search(enum.Enum):
    """How a function finds its loop among NumPy's own types; with an ml_dtypes format, it takes the first."""

    FIRST = "the first loop that all operands cast to safely"
    FLOAT64 = "likewise, but integers and bools go to float64"
    PROMOTED = "the loop of the type that the operands promote to"
    COMPARED = "likewise, but integers are compared as integers"
    TRUTH = "the loop of the one type that all have, else bool"
    INEXACT = "the loop of the operand's own type, else the first one for floats or complex numbers"
    OWN = "the loop of the operand's own type, else none"


@dataclass(frozen=True, slots=True)
class FunctionLoops:
    """The loops of a function, each for operands of one format.

    Args:
        own: categories of NumPy's own types with loops.
        extension: categories of ml_dtypes formats with loops.
        search: how the function finds the loop of a call.
    """

    own: tuple[str, ...]
    extension: tuple[str, ...]
    search: Search

    def has_loop(self, name: str) -> bool:
        """Whether the function has a loop for operands of this format."""
        row = as_format(name)
        return row.category in (self.own if row.is_builtin else self.extension)


_ANY, _NUMERIC, _INEXACT = CATEGORIES, CATEGORIES[1:], CATEGORIES[2:]
_BITS, _UP_TO_FLOAT = CATEGORIES[:2], CATEGORIES[:3]
_INTEGER, _REAL, _FLOAT = CATEGORIES[1:2], CATEGORIES[1:3], CATEGORIES[2:3]


def _rows(names: str, own: tuple[str, ...], extension: tuple[str, ...], search: Search) -> dict[str, FunctionLoops]:
    return dict.fromkeys(names.split(), FunctionLoops(own, extension, search))


FUNCTIONS: dict[str, FunctionLoops] = {
    **_rows("add multiply", _ANY, _NUMERIC, Search.PROMOTED),
    **_rows("subtract", _NUMERIC, _NUMERIC, Search.PROMOTED),
    **_rows("positive negative sign", _NUMERIC, _INEXACT, Search.PROMOTED),
    **_rows("maximum minimum fmax fmin abs", _ANY, _INEXACT, Search.PROMOTED),
    **_rows("equal not_equal less less_equal greater greater_equal", _ANY, _INEXACT, Search.COMPARED),
    **_rows("logical_and logical_or logical_xor", _ANY, _INEXACT, Search.TRUTH),
    **_rows("logical_not isfinite isinf isnan", _ANY, _INEXACT, Search.FIRST),
    **_rows("divide", _INEXACT, _INEXACT, Search.FLOAT64),
    **_rows("floor_divide remainder", _REAL, _REAL, Search.FIRST),
    **_rows("pow square reciprocal conj", _NUMERIC, _INEXACT, Search.FIRST),
    **_rows("ceil floor trunc", _UP_TO_FLOAT, _FLOAT, Search.FIRST),
    # These three are not ufuncs. `round` returns an array of integers unchanged and rounds all others with `rint`. Real
    # and imaginary parts are attributes; for a complex format that NumPy does not know they are wrong (the array itself
    # and zeros), so these rules refuse them.
    **_rows("round", _NUMERIC, _INEXACT, Search.INEXACT),
    **_rows("real imag", _ANY, _UP_TO_FLOAT, Search.OWN),
    # These have loops only for NumPy's own types; `clip` has three operands.
    **_rows("matmul vecdot clip", _ANY, (), Search.FIRST),
    **_rows("atan2 hypot copysign nextafter logaddexp signbit", _FLOAT, _FLOAT, Search.FIRST),
    **_rows("bitwise_and bitwise_or bitwise_xor bitwise_invert", _BITS, (), Search.FIRST),
    **_rows("bitwise_left_shift bitwise_right_shift", _INTEGER, (), Search.FIRST),
    **_rows(
        "exp expm1 log log1p log2 log10 sqrt sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh",
        _INEXACT, _INEXACT, Search.FIRST,
    ),
}  # fmt: skip
"""The functions of NumPy, by the name of their operation."""

# Comparisons have two more loops, which compare int64 and uint64 without a common type.
_MIXED_LOOPS: tuple[Loop, ...] = (("int64", "uint64"), ("uint64", "int64"))


@lru_cache(maxsize=16_384)  # the search for a fix often looks up the same few loops
def find_loop(operation: str, nodes: tuple[str, ...]) -> tuple[Loop | None, str]:
    """Find the loop that a NumPy function runs for a call, and the reason; None if it has no loop.

    Args:
        operation: a name from `FUNCTIONS`.
        nodes: the formats of the operands; a weak kind for a Python number.

    >>> find_loop("add", ("bfloat16", "uint16"))
    (('float32', 'float32'), 'float32 is the first loop of add with a safe cast from bfloat16 and uint16')
    >>> find_loop("subtract", ("bool", "bool"))
    (None, 'the common type of bool is bool, and subtract has no loop for it')
    """
    function, count = FUNCTIONS[operation], len(nodes)
    strong = [node for node in nodes if node not in WEAK_NAMES]
    if len(strong) == count and len(set(nodes)) == 1 and function.has_loop(nodes[0]):
        return (nodes[0],) * count, f"{operation} has a loop for {nodes[0]}"
    if function.search is Search.OWN:
        return None, f"{operation} has no loop for {nodes[0]}"
    if function.search is Search.TRUTH:
        return ("bool",) * count, f"{operation} converts operands of other or different types to bool"
    if compares_by_value(operation, nodes):
        dtype = strong[0] if strong else default_of(nodes[0])
        return (dtype,) * count, f"{operation} compares a Python int with integers by value, however large it is"
    if all(as_format(node).is_builtin for node in strong):
        if function.search is Search.FLOAT64 and all(height(node) <= _HEIGHT["integer"] for node in nodes):
            return ("float64",) * count, f"{operation} computes integers and bools in float64"
        if function.search in (Search.PROMOTED, Search.COMPARED):
            return _promoted_loop(operation, function, nodes)
    weakly = _numbers_are_weak(nodes)
    for loop in candidates(function, nodes):
        if all(_casts(node, target, weakly) for node, target in zip(nodes, loop, strict=True)):
            return loop, f"{loop[0]} is the first loop of {operation} with a safe cast from {listed(nodes)}"
    return None, f"{operation} has no loop with a safe cast from {listed(nodes)}"


def compares_by_value(operation: str, nodes: Sequence[str]) -> bool:
    """Whether a call compares a Python int with integers by value, so the int need not fit their dtype."""
    is_comparison = FUNCTIONS[operation].search is Search.COMPARED
    return is_comparison and "int*" in nodes and all(node == "int*" or _is_own_integer(node) for node in nodes)


def candidates(function: FunctionLoops, nodes: Sequence[str]) -> list[Loop]:
    """All loops that a search tries, in order: those of the operands' ml_dtypes formats, then NumPy's own.

    The two mixed loops of comparisons are left out, because NumPy defines them for C's long long, which no format of
    ml_dtypes casts to.

    Args:
        function: the function.
        nodes: the formats of the operands; a weak kind for a Python number.
    """
    wanted = _INEXACT if function.search is Search.INEXACT else CATEGORIES
    own = [name for name in LOOP_ORDER if function.has_loop(name) and as_format(name).category in wanted]
    strong = [name for name in dict.fromkeys(nodes) if name not in WEAK_NAMES]
    extensions = [name for name in strong if not as_format(name).is_builtin and function.has_loop(name)]
    return [(name,) * len(nodes) for name in (*extensions, *own)]


def listed(nodes: Sequence[str]) -> str:
    """The distinct names, joined by "and"."""
    return " and ".join(dict.fromkeys(nodes))


def _is_own_integer(node: str) -> bool:
    return node not in WEAK_NAMES and as_format(node).is_builtin and as_format(node).category == "integer"


def _promoted_loop(operation: str, function: FunctionLoops, nodes: Sequence[str]) -> tuple[Loop | None, str]:
    common_type = common_of_all(nodes)
    assert common_type is not None  # NumPy's own types and Python numbers all promote
    dtype = default_of(common_type)
    if function.search is Search.COMPARED and all(map(_is_own_integer, nodes)) and not _is_own_integer(dtype):
        signed_first = as_format(nodes[0]).kind is Kind.SIGNED
        loop = _MIXED_LOOPS[0 if signed_first else 1]
        return loop, f"{operation} compares signed and unsigned integers directly, without a common type"
    if function.has_loop(dtype):
        return (dtype,) * len(nodes), f"the common type of {listed(nodes)} is {dtype}"
    return None, f"the common type of {listed(nodes)} is {dtype}, and {operation} has no loop for it"


def _casts(node: str, target: str, weakly: bool) -> bool:
    if node not in WEAK_NAMES:
        return casts_safely(node, target)
    row = as_format(target)
    if not weakly:
        return casts_safely(default_of(node), target)
    if row.is_builtin:
        return CATEGORIES.index(WEAK_NAMES[node]) <= CATEGORIES.index(row.category)
    return casts_safely(default_of(common(node, target) or node), target)


# In a search, a Python number is weak only if an array has the same or a higher category. NumPy does not know the
# categories of ml_dtypes formats and ranks them above all. It ranks floats and complex numbers alike.
_HEIGHT = {"bool": 0, "integer": 1, "float": 2, "complex": 2}


def height(node: str, known: str = "") -> int:
    """NumPy's rank of the category of a node, for deciding whether a scalar has a higher one than the arrays.

    Args:
        node: a format or a weak kind.
        known: a format of ml_dtypes whose category NumPy knows.
    """
    is_unknown = node not in WEAK_NAMES and node != known and not as_format(node).is_builtin
    return 3 if is_unknown else _HEIGHT[WEAK_NAMES.get(node) or as_format(node).category]


def _numbers_are_weak(nodes: Sequence[str]) -> bool:
    of_numbers = [height(node) for node in nodes if node in WEAK_NAMES]
    of_arrays = [height(node) for node in nodes if node not in WEAK_NAMES]
    return max(of_arrays, default=-1) >= max(of_numbers, default=-1)
