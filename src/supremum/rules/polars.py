"""Polars' rules: the supertype of columns, the values of Python ints, and one row per operation that differs.

Source: Polars 2.1.0 itself, and Polars 1.30.0 for the rules "polars-1". Its function `get_supertype`, in
crates/polars-core/src/utils/supertype.rs, has the types; the plans of expressions convert Python numbers. The
conformance tests compare every cell with measurements of both versions.

These rules are those of expressions, which run in `select`. Operators of a Series mostly agree;
tests/conformance/departures.py lists the differences. Polars promotes operands from left to right. Nulls never change a
type; a result is nullable if a column is known to be.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

from supremum.decisions import Verdict
from supremum.formats import CATEGORIES, COLUMN_FORMATS, FORMATS, Format, Kind, as_format
from supremum.lattice import Lattice
from supremum.number_conversion import Steps, fits, is_beyond_integers
from supremum.operands import TYPE_OF_CATEGORY, WEAK_NAMES, Operand, Operands
from supremum.operations import ASSIGN, Operation, Result
from supremum.rules.array_casts import ArrayCasts
from supremum.rules.columns import Columns
from supremum.rules.lattices import SIGNED, UNSIGNED
from supremum.rules.reductions import BITS, INTEGERS, TRUTH, Reduction, to
from supremum.rules.rule_set import RuleSet
from supremum.rules.verdicts import ALREADY, LOSSES_AS_DIVISION, MEASURED, Storing

_row = partial(as_format, columns=True)
_WIDEST = _row("int128")
_INTEGERS: dict[str, tuple[str, ...]] = {
    "bool": ("uint8", "int8"),
    **UNSIGNED,
    "uint64": ("uint128",),
    "uint128": (_WIDEST.name,),
    **SIGNED,
    "int64": (_WIDEST.name,),
}
_NEGATIVE = Lattice({**_INTEGERS, "uint64": ("int64",)})
"""The order for a negative Python int next to an unsigned column: int64, even for uint64."""
_FLOATS = Lattice({"float16": ("float32",), "float32": ("float64",)})
_FLOAT_OF: dict[str, str] = (
    to("float16", "bool uint8 int8")
    | to("float32", "uint16 int16")
    | to("float64", "uint32 int32 uint64 int64 uint128 int128")
)
"""The narrowest float that Polars promotes each other type to."""
_DEFAULTS: tuple[str, ...] = ("int32", "int64", "uint64")
"""The types of a Python int without a column to take one from: the first that holds it."""
_DEFAULT_FLOAT = "float64"
_SIGNED_ROWS, _UNSIGNED_ROWS = (
    tuple(row for row in FORMATS if row.kind is kind and row.bits >= 8) for kind in (Kind.SIGNED, Kind.UNSIGNED)
)
_LITERALS = range(-(2**127), 2**127)
"""The Python ints that Polars reads."""
_EXPONENTS = range(2**32)
"""The exponents of integers, which Polars casts to UInt32."""
_BOUNDS = sorted(
    {bound for row in (*_SIGNED_ROWS, *_UNSIGNED_ROWS) for bound in (int(row.min), int(row.max))}
    | {edge for each in (_LITERALS, _EXPONENTS) for edge in (each.start, each.stop - 1)}
)
"""These rules treat all ints alike between two neighbouring bounds."""

_UP_TO_FLOAT, _NUMBERS = CATEGORIES[:3], CATEGORIES[1:3]
_BITWISE = ("bitwise_and", "bitwise_or", "bitwise_xor")
_ACCEPTS: dict[str, tuple[str, ...]] = (
    to(_UP_TO_FLOAT, "add divide atan2 less less_equal greater greater_equal maximum minimum positive")
    | to(_UP_TO_FLOAT, "exp log log1p log2 log10 sqrt")
    | to(_NUMBERS, "pow sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh clip")
)
_SUMS = to("uint32", "bool") | to("int64", "uint8 int8 uint16 int16")
_COMPUTES: Mapping[str, Mapping[str, str]] = {
    "add": to("uint32", "bool"),
    "vecdot": _SUMS,
    "diff": {"uint8": "int16", "uint16": "int32", "uint32": "int64", "uint64": "int64"},
}
_STAND_INS: Mapping[str, str] = (
    dict(LOSSES_AS_DIVISION)
    | to("divide", "hypot copysign nextafter logaddexp solve")
    | {"fmax": "maximum", "fmin": "minimum", "signbit": "isnan", "expm1": "exp", "reciprocal": "sqrt", "square": "abs"}
    | to("bitwise_and", "bitwise_left_shift bitwise_right_shift")
    | to("positive", "conj real")
    | to("vecdot", "matmul tensordot")
    | to("multiply", "outer cross")
)
_PRODUCTS = to("int64", "bool int8 uint8 int16 uint16 int32 uint32")
_COLUMN_NAMES = tuple(row.name for row in COLUMN_FORMATS)
_MEANS = to("float64", (*BITS, *_COLUMN_NAMES))
_REDUCTIONS: Mapping[str, Reduction] = (
    to(
        Reduction(_UP_TO_FLOAT, gives=_SUMS, accumulates={"float16": "float32"}, source="as measured"),
        "sum cumulative_sum",
    )
    | to(Reduction(_UP_TO_FLOAT, gives=_PRODUCTS), "prod cumulative_prod")
    | {"mean": Reduction(_UP_TO_FLOAT, gives=_MEANS, accumulates={"float16": "float32"}, source="as measured")}
    | to(Reduction(_UP_TO_FLOAT, gives=_MEANS), "var std")
    | to(Reduction(gives={**TRUTH, **to("bool", _COLUMN_NAMES)}), "any all")
    | to(Reduction(_UP_TO_FLOAT), "min max")
)


class _Type(NamedTuple):
    """The type of an operand, or of several operands together.

    Args:
        name: the name of a format, or the weak kind of Python numbers.
        value: the Python int of the largest magnitude, if all operands are Python ints.
    """

    name: str
    value: int | None = None

    @property
    def category(self) -> str:
        return WEAK_NAMES.get(self.name) or _row(self.name).category

    @property
    def default(self) -> str:
        """The type without a column."""
        if self.name == "int*":
            return next(
                (name for name in _DEFAULTS if self.value is None or fits(self.value, _row(name))), _WIDEST.name
            )
        return _DEFAULT_FLOAT if self.name == "float*" else self.name

    @property
    def is_number(self) -> bool:
        return self.name.endswith("*")

    def __str__(self) -> str:
        return f"a Python {TYPE_OF_CATEGORY[self.category].__name__}" if self.is_number else self.name


@dataclass(frozen=True, eq=False, repr=False)
class PolarsRules(RuleSet):
    """Supertypes of columns; Python ints take the type of a column that holds them.

    Args:
        name, summary, source: as for every rule set.
        integers: the order of Boolean and the integer types.
        floats: for each of these types, the narrowest float type that it promotes to.
        literal_columns: operations in which Python numbers count as columns.
        masks_integers: whether bitwise operations accept a Boolean column with an integer column.
        compares_in_int128: whether comparisons take a Python int of more than 64 bits as Int128.
    """

    integers: Lattice = field(default_factory=lambda: Lattice(_INTEGERS), kw_only=True)
    floats: Mapping[str, str] = field(default_factory=lambda: _FLOAT_OF, kw_only=True)
    literal_columns: frozenset[str] = field(default=frozenset(), kw_only=True)
    masks_integers: bool = field(default=False, kw_only=True)
    compares_in_int128: bool = field(default=True, kw_only=True)

    def key_of(self, operand: Operand) -> Hashable:
        """As in the base class."""
        if not isinstance(operand.value, (int, float)):
            return super().key_of(operand)
        whole = _whole(operand.value)
        return (super().key_of(operand), bisect_left(_BOUNDS, whole), bisect_right(_BOUNDS, whole))

    def _number_steps(self, operation: Operation, operands: Operands, position: int, target: Format) -> Steps:  # noqa: ARG002
        return _CASTS.steps(_LITERAL, target) if operands[position].category == "float" else (target,)

    def _settle_operation(self, operation: Operation, operands: Operands) -> Verdict:
        if why := self._objection(operation, operands):
            return why
        special = {"pow": self._power, "atan2": self._angle, "clip": _clip}.get(operation.name)
        return special(operands) if special else super()._settle_operation(operation, operands)

    def _objection(self, operation: Operation, operands: Operands) -> Verdict | None:
        """The refusal of Python numbers for which Polars has no type; None if it has one for each."""
        if any(operand.category == CATEGORIES[-1] for operand in operands):
            return Verdict.refuse("Polars has no complex numbers")
        values = [operand.value for operand in operands if type(operand.value) is int]
        if any(value not in _LITERALS for value in values):
            return Verdict.refuse("Polars reads Python ints of up to 128 bits", overflow=True)
        if operation.name != "pow" and operation.name not in self.literal_columns:
            columns = [o.format for o in operands if o.dtype is not None and o.category == "integer"]
            compares_wide = self.compares_in_int128 and operation.result is Result.BOOL
            holding = [_SIGNED_ROWS[-1], _UNSIGNED_ROWS[-1], *columns]
            if compares_wide and all(map(_WIDEST.holds, columns)):
                holding.append(_WIDEST)
            if columns and any(not any(fits(value, row) for row in holding) for value in values):
                why = "Polars makes a Python int null that fits neither int64 nor uint64, next to a column of integers"
                return Verdict.refuse(why, overflow=True)
        return self._objection_to_bits(operation, operands)

    def _objection_to_bits(self, operation: Operation, operands: Operands) -> Verdict | None:
        bools = [operand for operand in operands if operand.category == "bool"]
        others = [operand for operand in operands if operand.category != "bool"]
        if operation.name not in _BITWISE or not bools or not others:
            return None
        if self.masks_integers and all(operand.dtype is not None for operand in others):
            return None
        return Verdict.refuse(f"Polars' {operation.name} does not accept Boolean next to {others[0].name}")

    def _allows_cast(self, operand: Operand, target: Format, may_cut: bool) -> bool:  # noqa: ARG002
        """As in the base class; an int that is too large for an exponent stays too large as an integer of any type."""
        is_exponent = type(operand.value) is not int or operand.value < _EXPONENTS.stop
        return is_exponent or target.category != CATEGORIES[1] or not target.is_of_arrays

    def _assigned(self, value: Operand, into: Operand, how: Storing) -> Verdict:
        return self._objection(ASSIGN, (value, into)) or super()._assigned(value, into, how)

    def _meet(self, operation: Operation, operands: Operands) -> Verdict:
        types = [_type_of(operand) for operand in operands]
        reason: list[str] = []
        if operation.name in self.literal_columns:
            types = [_Type(each.default) for each in types]
        met = types[0]
        for each in types[1:]:
            together = self._supertype(met, each)
            if not met.name == each.name == together.name:
                reason.append(f"{met} and {each} promote to {together.name}")
            met = together
        if met.name != met.default:
            reason.append(f"{met} without a column is {met.default}")
        name = met.default
        return _accepted(name, len(operands), *(reason or (ALREADY,)))

    def _supertype(self, a: _Type, b: _Type) -> _Type:
        """The type of two operands together."""
        if a.is_number and b.is_number:
            return self._of_numbers(a, b)
        if a.is_number or b.is_number:
            number, column = (a, b) if a.is_number else (b, a)
            stays = number.name == "float*" and column.category == "bool"
            return number if stays else _Type(self._beside(number, column))
        if "float" not in (a.category, b.category):
            return _Type(self._joined(self.integers, a.name, b.name))
        names = (each.name if each.category == "float" else self.floats[each.name] for each in (a, b))
        joined = _FLOATS.join(*names)
        assert joined is not None  # float64 is above everything
        return _Type(joined)

    def _joined(self, order: Lattice, a: str, b: str) -> str:
        """The join of two types in an order of integers; Int128 takes the others, also where the order lacks it."""
        joined = _WIDEST.name if _WIDEST.name in (a, b) else order.join(a, b)
        assert joined is not None  # int128 or float64 is above everything
        return joined

    def _of_numbers(self, a: _Type, b: _Type) -> _Type:
        """The type of two Python numbers together: weak, unless both defaults promote to a third type."""
        floats = [each for each in (a, b) if each.name == "float*"]
        if floats:
            return floats[0]
        together = self._supertype(_Type(a.default), _Type(b.default))
        return next((each for each in (a, b) if each.default == together.name), together)

    def _beside(self, number: _Type, column: _Type) -> str:
        """The type of a Python number next to a column."""
        if column.category == "float":
            return column.name
        if number.name == "float*" or column.category == "bool":
            return number.default
        value = number.value
        if value is None or fits(value, _row(column.name)):
            return column.name
        rows = _SIGNED_ROWS if value < 0 or _row(column.name).signed else _UNSIGNED_ROWS
        narrowest = next(row.name for row in (*rows, _UNSIGNED_ROWS[-1], _WIDEST) if fits(value, row))
        return self._joined(_NEGATIVE if value < 0 else self.integers, column.name, narrowest)

    def _power(self, operands: Operands) -> Verdict:
        """The verdict on a power, which has the type of its base, or of the exponent if only that is a float."""
        base, exponent = types = [_type_of(operand) for operand in operands]
        if "bool" in (base.category, exponent.category):
            return Verdict.refuse("Polars' pow does not accept Boolean")
        is_raised_to_float = (base.category, exponent.category) == ("integer", "float")
        gives = (exponent if is_raised_to_float else base).default
        why = f"a power has the type of its {'exponent' if is_raised_to_float else 'base'}, {gives}"
        if _Type(gives).category == "float":
            return _accepted(gives, 2, why)
        if exponent.value is not None and exponent.value not in _EXPONENTS:
            return Verdict.refuse("the exponent of an integer must be between 0 and 2**32 - 1 in Polars", overflow=True)
        # Integers wrap around, so that wider ones have the same low bits.
        wide = self._supertype(_Type(gives), exponent).name
        is_array = _row(gives).is_of_arrays
        computed = wide if wide in INTEGERS or not is_array else _UNSIGNED_ROWS[-1].name
        verdict = _accepted(computed, len(types))
        return replace(verdict.resulting_in(_row(gives).dtype), reason=(why,))

    def _angle(self, operands: Operands) -> Verdict:
        """The verdict on `arctan2`, which has the type of its first operand."""
        first = _type_of(operands[0])
        gives = first.default if first.category == "float" else _DEFAULT_FLOAT
        return _accepted(gives, 2, f"arctan2 takes its first operand, {first.name}, as {gives}")


def _type_of(operand: Operand) -> _Type:
    value = operand.value if type(operand.value) is int else None
    return _Type(operand.name, value)


def _accepted(name: str, count: int, *reason: str) -> Verdict:
    return Verdict.accept(_row(name).dtype, count, *reason)


def _whole(value: float) -> float:
    """A number as Polars casts it to an integer: without its fraction; infinities and NaN stay and fit no integer."""
    return int(value) if isinstance(value, float) and math.isfinite(value) else value


def _clip(operands: Operands) -> Verdict:
    """The verdict on a column and its bounds, which Polars casts to the type of the column."""
    own, *bounds = operands
    if own.is_python_scalar:
        return Verdict.refuse("Polars' clip needs a column as first operand")
    if own.category == "bool":
        return Verdict.refuse("Polars' clip does not accept Boolean")
    for bound in bounds if own.category == "integer" else ():
        if isinstance(bound.value, (int, float)) and not fits(_whole(bound.value), own.format):
            number = TYPE_OF_CATEGORY[bound.category].__name__
            why = f"a Python {number} does not fit {own.dtype}, to which Polars casts the bounds"
            return Verdict.refuse(why, overflow=True)
    return Verdict.accept(own.format.dtype, len(operands), f"the bounds are cast to {own.dtype}")


_CASTS = ArrayCasts(
    "Polars",
    "Polars 2.1 on x86-64",
    frozenset({*_FLOAT_OF, *_FLOATS.nodes}),
    through={"float16": "float32"},
    raises=is_beyond_integers,  # a cast that is not strict gives null
)
_LITERAL = _row(_DEFAULT_FLOAT)
POLARS = PolarsRules(
    name="polars",
    summary="Polars 2: supertypes of columns, and Python ints in the narrowest type that holds them",
    source="Polars 2.1.0, crates/polars-core/src/utils/supertype.rs",
    accepts=_ACCEPTS,
    measured=MEASURED,
    stands_in=_STAND_INS,
    lacks={"negative": tuple(row.name for row in (*_UNSIGNED_ROWS, *COLUMN_FORMATS))},
    reductions=_REDUCTIONS,
    formats=_CASTS.formats,
    computes=_COMPUTES,
    quotients=_MEANS,
    columns=Columns(never_missing=frozenset(("sum", "prod", "any", "all"))),
    item=Storing.CAST,  # except with a mask; what does not fit becomes null
    library="Polars",
    spelling="polars",
    array_casts=_CASTS,
)
_FLOAT_OF_1: dict[str, str] = {
    name: "float32" if each == "float16" else each for name, each in _FLOAT_OF.items() if name != "uint128"
}
_FORMATS_1 = _CASTS.formats - {"float16", "uint128"}
POLARS_1 = replace(
    POLARS,
    name="polars-1",
    summary="Polars 1: uint64 with signed integers is float64, and there is no float16",
    source="Polars 1.30.0, crates/polars-core/src/utils/supertype.rs",
    stands_in=dict(_STAND_INS) | {"trunc": "floor"},
    reductions=dict(_REDUCTIONS) | to(Reduction(CATEGORIES[:1]), "any all"),
    integers=Lattice({**_INTEGERS, "uint64": (_DEFAULT_FLOAT,), "int64": (_DEFAULT_FLOAT,)}),
    floats=_FLOAT_OF_1,
    formats=_FORMATS_1,
    literal_columns=frozenset(("maximum", "minimum")),
    masks_integers=True,
    compares_in_int128=False,
    array_casts=replace(_CASTS, measured="Polars 1.30 on x86-64", formats=_FORMATS_1),
)
