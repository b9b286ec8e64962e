"""PyArrow's rules: the join of numeric types that its compute functions cast to, and a row for each exception.

Source: PyArrow 26.0.1 itself. `CommonNumeric` in cpp/src/arrow/compute/kernels/codegen_internal.cc is the join, and
`MergeTypes` in cpp/src/arrow/type.cc has the rule for tables that are concatenated. The conformance tests compare every
cell with measurements of PyArrow.

A Python number is a scalar of int64 or float64, which counts like an array. Bools and float16 have few kernels, and
promote with nothing else. Nulls never change a type. Functions cast their operands safely: an integer that the float
type does not hold is an error, and never rounded.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace

from supremum.decisions import Verdict
from supremum.fix import letter
from supremum.formats import CATEGORIES, DType, Format, as_format
from supremum.lattice import Lattice
from supremum.number_conversion import fits
from supremum.operands import TYPE_OF_CATEGORY, Operand, Operands
from supremum.operations import OPERATIONS, Family, Operation
from supremum.rules.array_casts import C_ROUTES, ArrayCasts
from supremum.rules.columns import Columns
from supremum.rules.lattices import SIGNED, UNSIGNED
from supremum.rules.reductions import UNCONVERTED, Reduction, to, to_default
from supremum.rules.rule_set import RuleSet
from supremum.rules.verdicts import ALREADY, LOSSES_AS_DIVISION, MEASURED, Storing, climb

_ORDER = Lattice(
    {
        "bool": (),
        **UNSIGNED,
        "uint64": ("int64",),
        **SIGNED,
        "int64": ("float32",),
        "float16": (),
        "float32": ("float64",),
        "float64": (),
    }
)
_NUMBERS: Mapping[str, str] = {"int*": "int64", "float*": "float64"}
"""The types of the scalars that PyArrow makes of Python numbers."""
_ROWS = {name: as_format(name) for name in _ORDER.nodes}
_INTEGERS = tuple(name for name, row in _ROWS.items() if row.category == "integer")
_INT64 = _ROWS["int64"]
_HALF = ("float16",)

_BITWISE = "bitwise_and bitwise_or bitwise_xor bitwise_invert bitwise_left_shift bitwise_right_shift"
_REAL, _COMPARED = CATEGORIES[1:3], CATEGORIES[:3]
_ACCEPTS: Mapping[str, tuple[str, ...]] = (
    to(_REAL, OPERATIONS)
    | to(_COMPARED, "result_type promote_types where concat stack")
    | to(_COMPARED, "equal not_equal less less_equal greater greater_equal")
    | to(CATEGORIES[:1], "logical_and logical_or logical_xor logical_not")
    | to(CATEGORIES[1:2], _BITWISE)
)
_OF_HALF = "result_type promote_types where concat stack negative sign isfinite isinf isnan conj real"
_OF_FLOATS = (
    "exp expm1 log log1p log2 log10 sqrt sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh ceil floor trunc"
)
_TAKES: Mapping[str, Mapping[str, str]] = to(to("float64", _INTEGERS), f"atan2 hypot {_OF_FLOATS}")
"""For each function, the types without a kernel that it converts, even next to a narrower float, and to which."""
_STANDS_IN = (
    {"positive": "negative", "square": "abs", "signbit": "isnan", "reciprocal": "sqrt", "floor_divide": "divide"}
    | to("atan2", "copysign nextafter logaddexp solve")
    | to("multiply", "matmul tensordot vecdot outer cross")
    | {"stack": "concat", "clip": "maximum"}
    | to("atan2", LOSSES_AS_DIVISION)  # PyArrow's division of integers drops the fraction
)
_OF_ARRAYS = ("concat", "diff")
"""Functions without a form for Python numbers."""
_FLOATS = Lattice({"bool": (), "float16": ("float32",), "float32": ("float64",)})
_IN_FLOAT: Mapping[str, str] = (
    to("float16", "int8 uint8") | to("float32", "int16 uint16") | to("float64", "int32 uint32 int64 uint64")
)
"""The float that an integer becomes next to a float column, if that is not wider."""

_SUMS = {**to_default("int64", "uint64"), "bool": "uint64", "float32": "float64"}
_KEPT = Reduction(_REAL, lacks=_HALF)
_REDUCTIONS: Mapping[str, Reduction] = (
    to(replace(_KEPT, accepts=_COMPARED, gives=_SUMS), "sum prod")
    | to(_KEPT, "cumulative_sum cumulative_prod")
    | {"mean": replace(_KEPT, accepts=_COMPARED, gives=to("float64", _ORDER.nodes))}
    | to(replace(_KEPT, gives=to("float64", _ORDER.nodes)), "var std")
    | to(Reduction(CATEGORIES[:1]), "any all")
    | to(replace(_KEPT, accepts=_COMPARED), "min max")
)
_UNCAST = {"bool", *_HALF}
"""PyArrow has no cast between these two."""


@dataclass(frozen=True, eq=False, repr=False)
class PyArrowRules(RuleSet):
    """Joins in an order of types, in which Python numbers are int64 and float64.

    Args:
        name, summary, source: as for every rule set.
    """

    def key_of(self, operand: Operand) -> Hashable:
        """As in the base class."""
        value = operand.value
        flags = [_is_held(value, name) for name in _ORDER.nodes] if type(value) is int else ()
        return (super().key_of(operand), *flags)

    def _meet(self, operation: Operation, operands: Operands) -> Verdict:
        nodes = [_NUMBERS.get(operand.name, operand.name) for operand in operands]
        if why := _objection_to_operands(operation, operands, nodes):
            return Verdict.refuse(why)
        reason = _reasons_of_numbers(operands)
        arrays = [node for node, operand in zip(nodes, operands, strict=True) if not operand.is_python_scalar]
        takes = _TAKES.get(operation.name, {})
        if sources := dict.fromkeys(node for node in nodes if node in takes):
            reason.append(f"{operation.name} converts {' and '.join(sources)} to float64")
        nodes = [takes.get(node, node) for node in nodes]
        join, why = _concatenated(nodes) if operation.name == "concat" else _joined(nodes)
        if join is None:
            return Verdict.refuse(*reason, why)
        reason += [why, *_reasons_of_checks(arrays, join)]
        return Verdict.accept(_ROWS[join].dtype, len(operands), *reason)

    def _settle_operation(self, operation: Operation, operands: Operands) -> Verdict:
        verdict = super()._settle_operation(operation, operands)
        if verdict.result is None or operation.family is Family.REDUCTION:
            return verdict
        for position, (operand, target) in enumerate(zip(operands, verdict.compute, strict=True)):
            if type(operand.value) is int and not _is_held(operand.value, str(target)):
                why = f"{letter(position)} is an int that {target} does not hold, and pyarrow raises"
                return Verdict.refuse(*verdict.reason, why, overflow=True)
        return verdict

    def _refusal_of_category(self, operation: Operation, met: Verdict, dtype: DType) -> Verdict | None:
        if str(dtype) in self.lacks.get(operation.name, ()):
            return Verdict.refuse(*met.reason, f"{self.library} has no {operation.name} of {dtype}")
        return super()._refusal_of_category(operation, met, dtype)

    def _allows_cast(self, operand: Operand, target: Format, may_cut: bool) -> bool:  # noqa: ARG002
        """As in the base class; PyArrow casts safely."""
        if operand.is_python_scalar:
            return type(operand.value) is not int or target.name not in _ROWS or _is_held(operand.value, target.name)
        return {operand.name, target.name} != _UNCAST

    def _assigned(self, value: Operand, into: Operand, how: Storing) -> Verdict:
        if not value.is_python_scalar and value.dtype != into.dtype:
            return Verdict.refuse(f"pyarrow stores only values of the same type, got {value.dtype} for {into.dtype}")
        if isinstance(value.value, bool) and into.category == CATEGORIES[1]:
            return Verdict.refuse(f"pyarrow makes no {into.dtype} of a Python bool")
        number, name = value.value, into.format.name
        # An int is rounded to float16, but must be held by the other types.
        if type(number) is int and name in _ROWS and name not in _HALF and not _is_held(number, name):
            why = f"{value} is an int that {into.dtype} does not hold, and pyarrow raises"
            return Verdict.refuse(why, overflow=True)
        return super()._assigned(value, into, how)


def _objection_to_operands(operation: Operation, operands: Operands, nodes: Sequence[str]) -> str:
    """Why PyArrow refuses operands before it looks for their common type; empty if it does not."""
    if absent := dict.fromkeys(node for node in nodes if node not in _ORDER.edges):
        return f"pyarrow has no {' and '.join(absent)} arrays"
    if operation.name in _OF_ARRAYS and (kinds := _kinds(operands)):
        return f"pyarrow's {operation.name} needs arrays, got Python {' and '.join(kinds)}"
    return ""


def _reasons_of_numbers(operands: Operands) -> list[str]:
    """The types that Python numbers count as."""
    numbers = dict.fromkeys(operand.name for operand in operands if operand.name in _NUMBERS)
    return [f"{number} counts as {_NUMBERS[number]}" for number in numbers]


def _reasons_of_checks(arrays: Sequence[str], join: str) -> list[str]:
    """The values of arrays that a safe cast to the common type does not accept."""
    checked = [node for node in dict.fromkeys(arrays) if not _ROWS[join].holds(_ROWS[node])]
    return [f"pyarrow raises for {node} values beyond {_largest(join)}" for node in checked]


def _kinds(operands: Operands) -> list[str]:
    """The types of the Python numbers among operands."""
    names = (TYPE_OF_CATEGORY[operand.category].__name__ for operand in operands if operand.is_python_scalar)
    return list(dict.fromkeys(names))


def _is_held(value: int, name: str) -> bool:
    """Whether PyArrow converts a Python int to a type, which must hold it exactly."""
    largest = _largest(name)
    return fits(value, _INT64) and (-largest if _ROWS[name].is_inexact else _ROWS[name].min) <= value <= largest


def _largest(name: str) -> int:
    """The largest integer that a safe cast to a type accepts."""
    row = _ROWS[name]
    return 2 ** (row.mantissa + 1) if row.is_inexact else int(row.max)


def _joined(nodes: Sequence[str]) -> tuple[str | None, str]:
    """The common type of the operands of a function, and the reason."""
    join = _ORDER.join(*nodes)
    if join is None:
        return None, f"pyarrow's functions have no common type of {' and '.join(dict.fromkeys(nodes))}"
    return join, climb(join, [_ORDER.path(node, join) for node in nodes])


def _concatenated(nodes: Sequence[str]) -> tuple[str | None, str]:
    """The common type of columns, which tables merge one after the other, and the reason."""
    common, reason = nodes[0], dict[str, None]()
    for node in nodes[1:]:
        has_float = any(_ROWS[each].is_inexact for each in (common, node))
        pair = [_IN_FLOAT.get(each, each) for each in (common, node)] if has_float else [common, node]
        join = (_FLOATS if has_float else _ORDER).join(*pair)
        if join is None:
            return None, f"pyarrow does not merge columns of {common} and {node}"
        if common != node:
            reason[f"columns of {common} and {node} are merged in {join}"] = None
        common = join
    return common, ", ".join(reason) or ALREADY


_CASTS = ArrayCasts(
    "PyArrow",
    "PyArrow 26.0.1 on x86-64, with safe=False",
    frozenset(_ORDER.nodes),
    C_ROUTES,
    is_defined=False,
)
PYARROW = PyArrowRules(
    name="pyarrow",
    summary="PyArrow's functions: Python numbers count as int64 and float64, and integers take the type of a float",
    source="PyArrow 26.0.1, CommonNumeric in arrow/compute/kernels/codegen_internal.cc",
    accepts=_ACCEPTS,
    gives={"sign": to("int8", _INTEGERS)},
    quotients=UNCONVERTED,  # what it converts, it converts before it promotes
    measured=MEASURED,
    stands_in=_STANDS_IN,
    lacks=to(_HALF, (name for name in OPERATIONS if name not in _OF_HALF.split())),
    item=Storing.CAST,  # as in `fill_null`, which casts numbers; arrays are immutable
    reductions=_REDUCTIONS,
    columns=Columns(never_missing=frozenset()),
    library="pyarrow",
    spelling="pyarrow",
    array_casts=_CASTS,
)
