"""MLX's rules: a table of types for two arrays, which more arrays apply one after the other.

Source: MLX 0.32.4 itself, on the CPU. `promote_types` in mlx/dtype.cpp is the table, and python/src/convert.cpp and
python/src/utils.cpp convert Python numbers. The conformance tests compare every cell with measurements of MLX.

The table is JAX's lattice of types and Python numbers, with complex64 above everything. Where two types meet only in
the weak float, as uint64 and int8 do, MLX gives float32, which is not their least upper bound. The order of three
arrays therefore matters: uint64, int8 and float16 are float32, and uint64, float16 and int8 are float16. Arrays are
never weak, and arrays without dimensions promote like all others. On a GPU, MLX has no float64.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from supremum.decisions import Verdict
from supremum.fix import letter
from supremum.formats import CATEGORIES, Format, as_format
from supremum.lattice import Lattice
from supremum.number_conversion import Steps, fits
from supremum.operands import TYPE_OF_CATEGORY, WEAK_NAMES, Operand, Operands
from supremum.operations import OPERATIONS, Operation
from supremum.rules.array_casts import C_ROUTES, ArrayCasts
from supremum.rules.lattices import SIGNED, UNSIGNED, weak_defaults
from supremum.rules.reductions import BITS, IN_FLOAT32, REAL_PARTS, TRUTH, UNCONVERTED, Reduction, to, to_default
from supremum.rules.rule_set import RuleSet
from supremum.rules.verdicts import ALREADY, MEASURED, Storing, climb

_ORDER = Lattice(
    {
        "bool": ("int*",),
        "int*": ("uint8", "int8"),
        **UNSIGNED,
        "uint64": ("float*",),
        **SIGNED,
        "int64": ("float*",),
        "float*": ("bfloat16", "float16"),
        "bfloat16": ("float32",),
        "float16": ("float32",),
        "float32": ("float64",),
        "float64": ("complex*",),
        "complex*": ("complex64",),
    }
)
_DEFAULTS = weak_defaults("int32", "float32", "complex64")
_BOOL, _INT32, _INT64, _FLOAT32, _FLOAT64 = map(as_format, ("bool", "int32", "int64", "float32", "float64"))
_WRAPPING = ("uint64",)
"""The integers that a negative Python int wraps around to; MLX checks the range of the others."""

_BITWISE = "bitwise_and bitwise_or bitwise_xor bitwise_invert bitwise_left_shift bitwise_right_shift"
_ACCEPTS: dict[str, tuple[str, ...]] = (
    to(CATEGORIES, OPERATIONS)
    | to(CATEGORIES[:3], "remainder atan2 expm1 ceil floor trunc")
    | to(CATEGORIES[:2], _BITWISE)
    | to(CATEGORIES[1:], "negative")
    | to(CATEGORIES[2:], "matmul tensordot")
    | {"solve": ("float",)}
)
# Functions without a form for Python numbers, and those that need an array as first operand, next to which all numbers
# take their types.
_OF_ARRAYS = (
    "positive", "trunc", "l1_loss", "mse_loss", "concat", "stack", "diff", "matmul", "tensordot", "vecdot", "outer",
    "cross", "solve",
)  # fmt: skip
_OF_AN_ARRAY = ("clip",)
_OF_TRUTHS = ("logical_and", "logical_or", "logical_xor")
"""Functions that convert each operand to bool by itself, whatever the others are (`logical_and` in mlx/ops.cpp)."""
_FIRST: Mapping[str, tuple[str, ...]] = {"solve": ("float32", "float64")}
"""The types that a function needs as first operand."""

_SUMS = to_default("int32", "uint32")
_FLOATS = to("float32", BITS)
_SUMMED = Reduction(gives=_SUMS, accumulates=IN_FLOAT32, numbers=False, source="as measured")
_REDUCTIONS = (
    to(_SUMMED, "sum prod")
    | {"cumulative_sum": Reduction(gives={"bool": "int32"}, numbers=False)}
    | {"cumulative_prod": Reduction(numbers=False)}
    # MLX rounds the sum before it divides, so the mean of large float16 numbers is infinite there, and not here.
    | {
        "mean": Reduction(
            gives=_FLOATS,
            accumulates={**IN_FLOAT32, **{name: _SUMS.get(name, name) for name in BITS}},
            numbers=False,
            source="as measured",
        )
    }
    | to(Reduction(gives=_FLOATS | dict(REAL_PARTS), numbers=False), "var std")
    | to(Reduction(gives=TRUTH, numbers=False), "any all")
    | to(Reduction(numbers=False), "min max")
)
_RETURNS_0_D = ("sum", "prod")
"""Reductions that return an array without dimensions as it is (`sum` and `prod` in mlx/ops.cpp)."""
_SHIFTED = {"bool": "uint8"}
# MLX multiplies narrow integers in their own type, in which a product may wrap around, and adds them in 32 bits.
_COMPUTES: Mapping[str, Mapping[str, str]] = (
    to(_SHIFTED, "bitwise_left_shift bitwise_right_shift")
    | {"vecdot": _SUMS}
    | to(UNCONVERTED, "l1_loss mse_loss")  # these do not convert integers to floats
)


class _Number(NamedTuple):
    """The type that a Python number is first converted to, and whether an int out of range wraps around."""

    row: Format
    wraps: bool


class _CommonType(NamedTuple):
    """The common type of some operands, the conversion of each Python number, by position, and the reason."""

    name: str
    numbers: Mapping[int, _Number]
    reason: tuple[str, ...]


@dataclass(frozen=True, eq=False, repr=False)
class MlxRules(RuleSet):
    """Rules that promote two operands at a time, from left to right, by joins in a lattice.

    MLX raises for a Python int that is out of range of an integer array. Next to a bool array, the int becomes an int32
    and wraps around silently, as a negative int does next to uint64; explanations mention it.

    Args:
        name, summary, source: as for every rule set.
    """

    reads_numbers: ClassVar[tuple[type, ...]] = (int,)
    reads_dimensions: ClassVar[bool] = True

    def _meet(self, operation: Operation, operands: Operands) -> Verdict:
        if why := _refusal(operation.name, operands):
            return Verdict.refuse(why)
        met = _folded(operation.name, operands)
        wrapping: list[str] = []
        for position, number in met.numbers.items():
            value = operands[position].value
            if not isinstance(value, int):
                continue
            if not fits(value, _INT64):
                why = f"{letter(position)} does not fit int64, to which MLX converts a Python int"
                return Verdict.refuse(*met.reason, why, overflow=True)
            if number.row.is_inexact or fits(value, number.row):
                continue
            if not number.wraps:
                why = f"the Python int {letter(position)} is out of range for {number.row}"
                return Verdict.refuse(*met.reason, why, overflow=True)
            wrapping.append(f"{letter(position)} is out of range for {number.row}, and MLX wraps it around silently")
        return Verdict.accept(as_format(met.name).dtype, len(operands), *met.reason, *wrapping)

    def _reduce(self, operation: Operation, operands: Operands) -> Verdict:
        verdict, own = super()._reduce(operation, operands), operands[0].dtype
        if verdict.result is None or own is None or operands[0].ndim != 0 or operation.name not in _RETURNS_0_D:
            return verdict
        return Verdict.accept(own, 1, f"{operation.name} returns an array without dimensions as it is, in {own}")

    def _number_steps(self, operation: Operation, operands: Operands, position: int, target: Format) -> Steps:
        number = _folded(operation.name, operands).numbers.get(position)
        if number is None:  # a bool
            return (target,)
        first = number.row.component
        if operands[position].category in CATEGORIES[2:] and first is not _FLOAT64:
            first = _FLOAT32  # MLX reads a Python float as a C float, unless it needs a double
        return (target,) if first is target else (first, target)


def _refusal(name: str, operands: Operands) -> str:
    """Why a function refuses operands because of their kind or their place; empty if it does not."""
    if not operands[0].is_python_scalar and str(operands[0].dtype) not in _FIRST.get(name, _ORDER.edges):
        return f"MLX's {name} needs {' or '.join(_FIRST[name])} as first operand, got {operands[0].dtype}"
    asked = operands if name in _OF_ARRAYS else operands[:1] if name in _OF_AN_ARRAY else ()
    kinds = dict.fromkeys(TYPE_OF_CATEGORY[operand.category].__name__ for operand in asked if operand.is_python_scalar)
    return f"MLX's {name} needs an array, got Python {' and '.join(kinds)}" if kinds else ""


def _alone(operand: Operand) -> str:
    """The type of an operand that no array gives a type."""
    if operand.dtype is not None:
        return str(operand.dtype)
    value = operand.value
    return _INT64.name if isinstance(value, int) and not fits(value, _INT32) else _DEFAULTS[operand.name]


def _folded(name: str, operands: Operands) -> _CommonType:
    """The common type of the operands of a function, found from left to right, before Python ints are checked."""
    if name in _OF_TRUTHS:
        alone = {i: _Number(as_format(_alone(o)), wraps=False) for i, o in enumerate(operands) if o.dtype is None}
        return _CommonType(_BOOL.name, alone, (f"{name} converts each operand to bool",))
    nodes = [operand.name if operand.dtype is None else str(operand.dtype) for operand in operands]
    numbers, reason = dict[int, _Number](), list[str]()
    if all(operand.is_python_scalar for operand in operands[:2]):
        reason = [f"{operand.name} alone counts as {_alone(operand)}" for operand in operands[:2]]
        nodes[:2] = map(_alone, operands[:2])
        numbers |= {i: _Number(as_format(node), wraps=False) for i, node in enumerate(nodes[:2])}
    elif nodes[0] in _DEFAULTS:
        nodes[0], numbers[0] = _typed(nodes[0], nodes[1], reason)
    common = nodes[0]
    for position, node in enumerate(nodes[1:], 1):
        if node in _DEFAULTS:
            node, numbers[position] = _typed(node, nodes[0] if name in _OF_AN_ARRAY else common, reason)
        joined, dtype = _join(common, node)
        if common != node:
            reason.append(climb(joined, (_ORDER.path(common, joined), _ORDER.path(node, joined))))
        if dtype != joined:
            reason.append(f"{joined} is a weak kind, and MLX gives {dtype}")
        common = dtype
    return _CommonType(common, numbers, tuple(dict.fromkeys(reason)) or (ALREADY,))


def _join(a: str, b: str) -> tuple[str, str]:
    """The join of two types or kinds of numbers, and the type that MLX gives it."""
    joined = _ORDER.join(a, b)
    assert joined is not None  # complex64 is above everything, and none of the joins is ambiguous
    return joined, _DEFAULTS.get(joined, joined)


def _typed(number: str, beside: str, reason: list[str]) -> tuple[str, _Number]:
    """The type that a Python number takes next to an array."""
    _, dtype = _join(number, beside)
    reason.append(f"{number} counts as {dtype} next to {beside}")
    return dtype, _Number(as_format(dtype), wraps=beside == _BOOL.name or dtype in _WRAPPING)


_FORMATS = frozenset(name for name in _ORDER.nodes if name not in WEAK_NAMES)
_CASTS = ArrayCasts(
    "MLX",
    "MLX 0.32.4 on x86-64",
    _FORMATS,
    C_ROUTES,
    is_defined=False,
    through=IN_FLOAT32,
)
MLX = MlxRules(
    name="mlx",
    summary="MLX on the CPU: JAX's lattice, but uint64 with a signed integer is float32, and complex64 is above all",
    source="MLX 0.32.4, promote_types in mlx/dtype.cpp",
    accepts=_ACCEPTS,
    formats=_FORMATS,
    computes=_COMPUTES,
    quotients=_FLOATS,
    gives=to(REAL_PARTS, "huber_loss l1_loss"),
    measured=MEASURED,
    stands_in=to("atan2", "hypot copysign nextafter")
    | {"fmax": "maximum", "fmin": "minimum", "signbit": "isnan", "poisson_nll_loss": "divide"},
    item=Storing.CAST,  # `a[0] = b`; `a += b` changes the dtype of `a`, and `a.at[0].add(b)` makes a new array
    reductions=_REDUCTIONS,
    library="MLX",
    spelling="mlx",
    array_casts=_CASTS,
)
