"""NumPy's type order, its safe casts, and the promotion that follows from them, ml_dtypes formats included.

Source: NumPy 2 (`numpy/_core/src/multiarray/`: `common_dtype.c`, `dtypemeta.c`, `usertypes.c`, `abstractdtypes.c`) and
ml_dtypes 0.6 (`ml_dtypes/_src/`: `ints.cc`, `floats.cc`, `complex.cc`, `casts.cc`). The functions accept
names of formats and of weak kinds (`"int*"`) alike; None means a refusal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import permutations, product

from supremum.formats import CATEGORIES, FORMATS, Format, as_format
from supremum.lattice import Lattice
from supremum.operands import WEAK_NAMES, Operand

# NumPy's safe casts among its own types. Only those from 64-bit integers to float64 lose values.
_OWN = Lattice(
    {
        "bool": ("int8", "uint8"),
        "int8": ("int16", "float16"),
        "uint8": ("int16", "uint16", "float16"),
        "int16": ("int32", "float32"),
        "uint16": ("int32", "uint32", "float32"),
        "int32": ("int64", "float64"),
        "uint32": ("int64", "uint64", "float64"),
        "int64": ("float64",),
        "uint64": ("float64",),
        "float16": ("float32",),
        "float32": ("float64", "complex64"),
        "float64": ("complex128",),
        "complex64": ("complex128",),
    }
)
Ask = Callable[[str, str], "str | None"]
LOOP_ORDER: tuple[str, ...] = (
    "bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64",
    "float16", "float32", "float64", "complex64", "complex128",
)  # fmt: skip
"""NumPy's own types in the order in which it tries them; it uses the first that all operands cast to safely."""
# The order in which ml_dtypes registers its formats, and so the order of their type numbers.
_EXTENSIONS = (
    "bfloat16", "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2",
    "float8_e5m2fnuz", "float6_e2m3fn", "float6_e3m2fn", "float4_e2m1fn", "float8_e8m0fnu", "int1", "uint1", "int2",
    "uint2", "int4", "uint4", "bcomplex32", "complex32",
)  # fmt: skip
# NumPy added float16 late, so it has the highest number of NumPy's own types.
_TYPE_NUMBER = {name: i for i, name in enumerate((*LOOP_ORDER, *_EXTENSIONS))} | {"float16": len(LOOP_ORDER) - 0.5}
# The only format that ml_dtypes registers as a float (kind "f"); NumPy does not know the kind of the others.
_KNOWN_AS_FLOAT = "float8_e5m2"
# NumPy treats extension types of equal size and unknown kind as equivalent if ml_dtypes registers any cast between
# them. It registers none for float8_e8m0fnu, and no other such type has the size of bfloat16.
_EQUIVALENT = tuple(
    row.name
    for row in FORMATS
    if row.kind.category == "float" and row.bits <= 8 and row.name not in (_KNOWN_AS_FLOAT, "float8_e8m0fnu")
)
_WEAK_TRIES = {
    "int*": ("uint8", "int8", "int64"),
    "float*": ("float16", "float64"),
    "complex*": ("complex64", "complex128"),
}
"""The dtypes that a Python number may take with an extension format, in order; the last is its default dtype."""


def _casts_of_extensions() -> Iterator[tuple[str, str]]:
    """The safe casts from and to the formats of ml_dtypes."""
    rows = [row for row in FORMATS if not row.is_builtin]
    narrow = [row for row in rows if row.category == "integer"]
    yield from (("bool", row.name) for row in rows)
    yield from _casts_of_integers(narrow)
    for row in rows:
        if row.is_inexact:
            yield from _casts_of_inexact(row)
    yield from permutations(_EQUIVALENT, 2)
    yield from _casts_between_integers_and_equivalents(narrow)
    yield from permutations([row.name for row in rows if row.category == "complex"], 2)


def _casts_of_integers(narrow: Sequence[Format]) -> Iterator[tuple[str, str]]:
    """The safe casts from integer formats to integers and to NumPy's own types."""
    # An integer format casts to every wider one that holds it and, because it is narrow, to every float.
    yield from ((row.name, own) for row in narrow for own in LOOP_ORDER if as_format(own).holds(row))
    yield from ((a.name, b.name) for a, b in permutations(narrow, 2) if a.kind is b.kind and b.holds(a))


def _casts_of_inexact(row: Format) -> Iterator[tuple[str, str]]:
    """The safe casts between a float or complex format and NumPy's own types."""
    yield from (("uint8", row.name), ("int8", row.name))
    narrowest = "complex64" if row.category == "complex" else "float32"
    yield from ((row.name, own) for own in _OWN.upper_bounds(narrowest))


def _casts_between_integers_and_equivalents(narrow: Sequence[Format]) -> Iterator[tuple[str, str]]:
    """The safe casts between integer formats and the types that NumPy treats as equivalent, in both directions."""
    for row, name in product(narrow, _EQUIVALENT):
        # float6_e2m3fn does not hold 4-bit integers, and ml_dtypes registers no cast between them.
        if not (row.bits == 4 and name == "float6_e2m3fn"):
            yield from ((row.name, name), (name, row.name))


def _safe_casts() -> dict[str, frozenset[str]]:
    targets = {name: {name} for name in _TYPE_NUMBER} | {name: set(_OWN.upper_bounds(name)) for name in LOOP_ORDER}
    for source, target in _casts_of_extensions():
        targets[source].add(target)
    return {name: frozenset(names) for name, names in targets.items()}


_SAFE_CASTS = _safe_casts()


def casts_safely(source: str, target: str) -> bool:
    """Whether NumPy calls the cast from one format to another safe.

    >>> casts_safely("int8", "float4_e2m1fn"), casts_safely("float8_e4m3fn", "float16")
    (True, False)
    """
    return target in _SAFE_CASTS[source]


def has_cast(operand: Operand, target: Format) -> bool:
    """Whether NumPy has the cast at all, safe or not.

    >>> from supremum.operands import as_operand
    >>> (
    ...     has_cast(as_operand("int4"), as_format("int8")),
    ...     has_cast(as_operand("int4"), as_format("bfloat16")),
    ... )
    (True, False)
    """
    if operand.dtype is None or (target.is_builtin and operand.format.is_builtin):
        return True
    if operand.category == "complex" and target.category != "complex":
        return True  # through one of NumPy's own complex formats
    # Between two formats of ml_dtypes there are the safe casts and few others.
    own = operand.format
    return target.is_builtin or own.is_builtin or (own.is_of_arrays and casts_safely(own.name, target.name))


def _has_any_cast(source: str, target: str) -> bool:
    """Whether NumPy has a cast between two formats, safe or not."""
    rows = as_format(source), as_format(target)
    if any(row.is_builtin for row in rows) or casts_safely(source, target) or "bfloat16" in (source, target):
        return True
    categories = [row.category for row in rows]
    if _FEWEST_CASTS in (source, target) or categories == ["integer", "integer"]:
        return False
    return not (_LACKS_INT4 in (source, target) and "integer" in categories)


def objection_to_cast(value: Operand, target: Format) -> str:
    """Why NumPy has no cast of a value to a format, safe or not; empty where it has one."""
    if value.is_python_scalar or _has_any_cast(str(value.dtype), target.name):
        return ""
    return f"NumPy has no cast from {value.dtype} to {target}"


# The formats for which ml_dtypes registers fewer casts.
_FEWEST_CASTS, _LACKS_INT4 = "float8_e8m0fnu", "float6_e2m3fn"
# In the order of `dtype_kind_to_simplified_ordering`, which lacks "W", the kind of ml_dtypes' complex formats.
_KINDS = "buifcV"


def casts_same_kind(source: str, target: str) -> bool:
    """Whether NumPy casts one format to another with `casting="same_kind"`, as in-place operators and `out=` do.

    Source: NumPy 2 (`numpy/_core/src/multiarray/convert_datatype.c`, `PyArray_LegacyCanCastTypeTo`).

    >>> (
    ...     casts_same_kind("float64", "float32"),
    ...     casts_same_kind("int8", "uint8"),
    ...     casts_same_kind("uint8", "int8"),
    ... )
    (True, False, True)
    """
    if casts_safely(source, target):
        return True
    kinds = as_format(source).dtype.kind, as_format(target).dtype.kind
    is_ordered = all(kind in _KINDS for kind in kinds) and _KINDS.index(kinds[0]) <= _KINDS.index(kinds[1])
    return is_ordered and _has_any_cast(source, target)


def first_for(sources: Iterable[str]) -> str | None:
    """The first of NumPy's own types that all the given formats cast to safely."""
    targets = [_SAFE_CASTS[source] for source in sources]
    return next((name for name in LOOP_ORDER if all(name in names for names in targets)), None)


def default_of(name: str) -> str:
    """The format itself, or the default format of a Python number without stronger operands.

    >>> default_of("int*"), default_of("int8")
    ('int64', 'int8')
    """
    return _WEAK_TRIES[name][-1] if name in WEAK_NAMES else name


def asked(a: str, b: str) -> str | None:
    """The type that `a` promotes to with `b`; None if `a` leaves the answer to `b`."""
    if a in WEAK_NAMES:
        return _promote_weak(a, b)
    if b in WEAK_NAMES:
        return _promote_with_weak(a, b) if as_format(a).is_builtin else None
    if _TYPE_NUMBER[b] > _TYPE_NUMBER[a]:
        return None
    if as_format(a).is_builtin:
        return first_for((a, b))
    if casts_safely(a, b):
        return b
    if casts_safely(b, a):
        return a
    return first_for((a, b)) if a == _KNOWN_AS_FLOAT and as_format(b).is_builtin else None


def _promote_weak(a: str, b: str) -> str | None:
    if b in WEAK_NAMES:
        return a if _height(b) < _height(a) else None
    if not as_format(b).is_builtin:
        return next((answer for own in _WEAK_TRIES[a] if (answer := asked(b, own)) is not None), None)
    is_lower = _height(b) < min(_height(a), CATEGORIES.index("float"))
    return default_of(a) if is_lower else None


def _promote_with_weak(a: str, weak: str) -> str | None:
    if _height(weak) <= _height(a):
        return a
    if weak == "complex*" and as_format(a).category == "float":
        return next(name for name in LOOP_ORDER if as_format(name).category == "complex" and casts_safely(a, name))
    return None


def _height(name: str) -> int:
    return CATEGORIES.index(WEAK_NAMES[name] if name in WEAK_NAMES else as_format(name).category)


def common(a: str, b: str, ask: Ask = asked) -> str | None:
    """The common type of two types (NumPy's `PyArray_CommonDType`), which is weak only if both are.

    >>> (
    ...     common("int8", "uint8"),
    ...     common("float16", "int*"),
    ...     common("bfloat16", "float*"),
    ...     common("bfloat16", "uint16"),
    ... )
    ('int16', 'float16', 'float64', None)
    """
    return a if a == b else ask(a, b) or ask(b, a)


def common_of_all(names: Sequence[str], ask: Ask = asked) -> str | None:
    """The common type of any number of types (NumPy's `PyArray_PromoteDTypeSequence`).

    It is not a fold over pairs. NumPy moves the most knowledgeable type, as its source calls it, to the front, promotes
    each of the others with that one, and then promotes the results with each other.

    Args:
        names: the types.
        ask: returns the type that its first argument promotes to with the second, or None.

    >>> (
    ...     common_of_all(["int8", "uint8", "float16"]),
    ...     common(common("int8", "uint8"), "float16"),
    ... )
    ('float16', 'float32')
    """
    if len(names) == 1:
        return names[0]
    order: list[str | None] = list(names)
    result = _bring_forward(order, len(order), ask)
    main = order[0]
    assert main is not None  # only later places are ever cleared
    for name in order[1 if result is None else 2 :]:
        if name is None:
            continue
        promoted = ask(main, name)
        if promoted is None:
            return None
        result = promoted if result is None else common(result, promoted, ask)
        if result is None:
            return None
    return result


def _bring_forward(order: list[str | None], length: int, ask: Ask) -> str | None:
    """Move the most knowledgeable type to the front, clear types that cannot matter, and promote the first two."""
    half = length // 2
    result = None
    for low in range(half):
        high = length - 1 - low
        a, b = order[low], order[high]
        assert a is not None  # cleared places are outside the part that the next call visits
        assert b is not None
        result = a if a == b else ask(a, b)
        if result is None:
            order[low], order[high] = b, a
        elif result == a:
            order[high] = None
    return result if length == 2 else _bring_forward(order, length - half, ask)
