"""TensorFlow as shipped: its standard operators, which promote nothing, and two modes that promote.

Source: TensorFlow 2.21 (`tensorflow/python/framework/flexible_dtypes.py` for the modes; everything else measured).
The modes are a lattice of fifteen strong and five weak dtypes. A weak dtype has a width: uint8 and a Python float
promote to weak float64. SAFE accepts a join only if it is the dtype of an operand and holds the strong operands.

Only some operations promote: `equal` does and `not_equal` does not. The others need tensors of one dtype in every
mode, which Python numbers take. TensorFlow folds more than two operands from left to right, which makes SAFE depend
on their order; these rules promote all at once, and so accept what any order accepts.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, replace
from typing import ClassVar

from supremum.decisions import ResultType, Verdict
from supremum.formats import CATEGORIES, Format, as_format
from supremum.lattice import Lattice
from supremum.number_conversion import Steps, usual_steps
from supremum.operands import Operand, Operands
from supremum.operations import ASSIGN, Operation
from supremum.rules.array_casts import HALVES, NATIVE, PACKING_ROUTES, ArrayCasts
from supremum.rules.lattices import INEXACT, SIGNED, UNSIGNED
from supremum.rules.reductions import IN_FLOAT32, NARROW_FLOATS, REAL_PARTS, TRUTH, Reduction, to
from supremum.rules.rule_set import RuleSet
from supremum.rules.verdicts import ALREADY, LOSSES_AS_DIVISION, MEASURED, climb, ints_beyond

_ORDER = Lattice(
    {
        "bool": ("weak int32",),
        "weak int32": ("weak int64",),
        "weak int64": ("uint8", "int8", "weak float32"),
        **UNSIGNED,
        "uint64": ("weak float64",),
        **SIGNED,
        "int64": ("weak float64",),
        "weak float32": ("weak float64",),
        "weak float64": ("bfloat16", "float16", "weak complex128"),
        **INEXACT,
        "weak complex128": ("complex64",),
    }
)
_WEAK = "weak "
_STRONG = tuple(node for node in _ORDER.nodes if not node.startswith(_WEAK))
_NUMBERS = {"bool": "bool", "integer": "int32", "float": "float32", "complex": "complex128"}
"""The dtype of a Python number without a tensor to take it from."""
_INT32, _INT64, _UINT64, _FLOAT64 = (as_format(name) for name in ("int32", "int64", "uint64", "float64"))
# The dtypes to which TensorFlow converts a Python bool, as measured; no reason for this list is known.
_TAKES_BOOL = ("bool", "uint64", "int32", "int64", "float16", "float32", "float64", "complex128")
_FLOAT32, _HALVES = as_format("float32"), (as_format("bfloat16"), as_format("float16"))
_QUESTIONS = ("result_type", "promote_types")
_PROMOTES = frozenset(
    (*_QUESTIONS, "assign", "add", "subtract", "multiply", "divide", "floor_divide", "remainder", "pow", "equal",
     "maximum", "minimum", "matmul", "tensordot", "clip")
)  # fmt: skip
_STRENGTHENS = ("maximum", "minimum", "clip")
_NUMERIC, _REAL, _BITS = CATEGORIES[1:], CATEGORIES[1:3], CATEGORIES[:2]
# The categories with kernels; TensorFlow may promote other dtypes too.
_ACCEPTS: dict[str, tuple[str, ...]] = (
    to(_NUMERIC, "add subtract pow divide negative square sign abs conj real reciprocal")
    | to(CATEGORIES, "multiply equal not_equal where positive imag")
    | to(_REAL, "floor_divide remainder maximum minimum round less less_equal greater greater_equal cross")
    | to(CATEGORIES[2:3], "atan2 nextafter ceil floor isfinite isinf isnan")
    | to(_BITS, "bitwise_and bitwise_or bitwise_xor bitwise_invert")
)
_SIGNED, _UNSIGNED = "int8 int16 int32 int64", "uint8 uint16 uint32 uint64"
_CASTING = "`CASTING_SPECIALIZATION` in tensorflow/core/kernels/reduction_ops.h"
_KEPT = Reduction(_NUMERIC, keeps_weak=True)
_SUMMED = replace(_KEPT, accumulates={"bfloat16": "float32"}, source=_CASTING)
REDUCTIONS: dict[str, Reduction] = (
    {"sum": _SUMMED}
    | to(_KEPT, "prod cumulative_sum cumulative_prod")
    | {"mean": replace(_SUMMED, accumulates={**_SUMMED.accumulates, **to("int64", _SIGNED), **to("uint64", _UNSIGNED)})}
    | dict.fromkeys(("var", "std"), Reduction(("float", "complex"), gives=REAL_PARTS, keeps_weak=True))
    | dict.fromkeys(("any", "all"), Reduction(("bool",), gives=TRUTH))
    | dict.fromkeys(("min", "max"), Reduction(_REAL, keeps_weak=True))
)
"""TensorFlow's reductions; tensors keep their dtype, and integers wrap around."""


QUOTIENTS: dict[str, str] = to("float32", "uint8 int8 uint16 int16") | to("float64", "uint32 int32 uint64 int64")
"""The floats to which TensorFlow's division converts integers."""


class Mode(enum.Enum):
    """How much promotion is implicit."""

    OFF = "no promotion between tensors"
    SAFE = "the result is one of the operands' dtypes and holds the others"
    ALL = "everything promotes"


@dataclass(frozen=True, eq=False, repr=False)
class TensorFlowRules(RuleSet):
    """The rules of one dtype conversion mode.

    Args:
        name, summary, source: as for every rule set.
        mode: the mode.
    """

    reads_numbers: ClassVar[tuple[type, ...]] = (int,)

    mode: Mode

    def _settle_operation(self, operation: Operation, operands: Operands) -> Verdict:
        verdict = super()._settle_operation(operation, operands)
        if verdict.result is not None and verdict.result.weak and operation.name in _STRENGTHENS:
            why = f"{operation.name} returns a strong dtype even for weak operands"
            return verdict.resulting_in(verdict.result.dtype, why)
        return verdict

    def _meet(self, operation: Operation, operands: Operands) -> Verdict:
        promotes = operation.name in _PROMOTES and self.mode is not Mode.OFF
        verdict = self._promote(operands) if promotes else _agree(operation, operands)
        if verdict.result is None or (promotes and operation.name in _QUESTIONS):
            return verdict
        target, is_bool = str(verdict.result.dtype), CATEGORIES[0]
        if target not in _TAKES_BOOL and any(o.is_python_scalar and o.category == is_bool for o in operands):
            return Verdict.refuse(*verdict.reason, f"TensorFlow does not convert a Python bool to {target}")
        is_alone = len(operands) == 1 and operands[0].weak and self.mode is not Mode.OFF
        return replace(verdict, result=ResultType(verdict.compute[0], weak=True)) if is_alone else verdict

    def _number_steps(self, operation: Operation, operands: Operands, position: int, target: Format) -> Steps:  # noqa: ARG002
        # A number first takes the dtype of the tensor, even if both are then divided as floats.
        tensors = [operand.format for operand in operands if not operand.is_python_scalar]
        if target.is_inexact and tensors and operands[position].category == tensors[0].category == "integer":
            return (tensors[0], target)
        return (_FLOAT32, target) if target in _HALVES else usual_steps(operands[position].category, target)

    def _brought(self, into: Operand, value: Operand) -> Verdict:
        return self._settle_operation(ASSIGN, (into, value))  # unlike promote_types, ASSIGN checks Python bools

    def _promote(self, operands: Operands) -> Verdict:
        if beyond := ints_beyond(operands, _INT32):
            return Verdict.refuse(f"{beyond} does not fit int32, to which TensorFlow converts ints", overflow=True)
        nodes = [_node(operand) for operand in operands]
        met = _ORDER.join(*nodes)
        assert met is not None  # complex128 is above everything, and none of the joins is ambiguous
        row = as_format(met.removeprefix(_WEAK))
        paths = tuple(_ORDER.path(node, met) for node in nodes)
        reason = climb(met, paths)
        if self.mode is Mode.SAFE and (objection := _objection(nodes, met, row)):
            return Verdict.refuse(reason, objection)
        return Verdict(ResultType(row.dtype, met.startswith(_WEAK)), (row.dtype,) * len(operands), (reason,), paths)


def _node(operand: Operand) -> str:
    if operand.dtype is None:
        return _WEAK + _NUMBERS[operand.category]
    name = operand.format.name
    if not operand.weak:
        return name
    # TensorFlow has only five weak dtypes; other weak arrays take the default dtype of their category.
    return _WEAK + (name if _WEAK + name in _ORDER.edges else _NUMBERS[operand.category])


def _objection(nodes: list[str], met: str, row: Format) -> str | None:
    strong = [as_format(node) for node in nodes if not node.startswith(_WEAK)]
    if row.name not in [node.removeprefix(_WEAK) for node in nodes]:
        return f"mode SAFE needs a result with the dtype of an operand, got {met}"
    if lost := [str(each) for each in strong if not row.holds(each)]:
        return f"mode SAFE must keep precision, but {row} does not hold {' and '.join(dict.fromkeys(lost))}"
    return None


def _agree(operation: Operation, operands: Operands) -> Verdict:
    """The verdict on tensors that must have one dtype, which Python numbers take if their category allows it."""
    tensors = [operand.format for operand in operands if not operand.is_python_scalar]
    highest = max((operand.category for operand in operands), key=CATEGORIES.index)
    if not tensors:
        row = as_format(_NUMBERS[highest])
        why = f"Python numbers without a tensor have the default dtype, {row}"
        return Verdict.accept(row.dtype, len(operands), why)
    row = tensors[0]
    if others := [str(each) for each in dict.fromkeys(tensors) if each is not row]:
        return Verdict.refuse(f"{operation.name} needs tensors of one dtype, got {' and '.join((str(row), *others))}")
    if CATEGORIES.index(highest) > CATEGORIES.index(row.category):
        return Verdict.refuse(f"a Python number must fit the tensor, but a Python {highest} does not fit {row}")
    # A Python int is first converted to a wider format; a further conversion to its dtype may overflow silently.
    through = row if row is _UINT64 else _INT64
    if row.category == "float" and row.is_builtin:
        through = _FLOAT64
    if beyond := ints_beyond(operands, through):
        return Verdict.refuse(f"{beyond} does not fit {through}, to which TensorFlow converts it", overflow=True)
    numbers = [operand for operand in operands if operand.is_python_scalar]
    reason = f"Python numbers take the tensors' dtype, {row}" if numbers else ALREADY
    if row.category != CATEGORIES[0] and any(number.category == CATEGORIES[0] for number in numbers):
        reason = f"a Python bool is converted to {row}"
    return Verdict.accept(row.dtype, len(operands), reason)


# TensorFlow's NumPy API has some of these as compositions, which promote like NumPy or through a float64 constant.
_STANDS_IN = (
    to("atan2", "hypot logaddexp copysign")
    | to("log", "log2 log10")
    | {"fmax": "maximum", "fmin": "minimum", "trunc": "floor", "signbit": "isnan"}
    | {"vecdot": "matmul", "outer": "multiply", "diff": "concat"}
    | LOSSES_AS_DIVISION
)


CASTS = ArrayCasts(
    "TensorFlow",
    "TensorFlow 2.21 on x86-64",
    NATIVE | {*HALVES, "float8_e4m3fn", "float8_e5m2"},
    PACKING_ROUTES,
    is_defined=False,
    through=IN_FLOAT32,
    flushes=frozenset(("float32",)),
    drops_imaginary=True,
)


_AS_SHIPPED = "TensorFlow as shipped with dtype_conversion_mode="
TF_OFF = TensorFlowRules(
    name="tf-off",
    summary="TensorFlow's own operators, which promote nothing: tensors must agree, Python numbers take their dtype",
    source="TensorFlow 2.21.0",
    mode=Mode.OFF,
    formats=frozenset(_STRONG),
    accepts=_ACCEPTS,
    computes={"divide": QUOTIENTS},
    measured=MEASURED,
    stands_in=_STANDS_IN,
    lacks=to(tuple(_UNSIGNED.split()), "abs sign pow") | {"solve": NARROW_FLOATS},
    reductions=REDUCTIONS,
    library="tf.math",
    spelling="tensorflow",
    array_casts=CASTS,
)
TF_ALL = replace(
    TF_OFF,
    name="tf-all",
    summary=f"{_AS_SHIPPED}'all': a lattice, weak tensors included",
    mode=Mode.ALL,
    weak_arrays=True,
)
TF_SAFE = replace(
    TF_ALL,
    name="tf-safe",
    summary=f"{_AS_SHIPPED}'safe': that lattice where nothing widens or is lost",
    mode=Mode.SAFE,
)
