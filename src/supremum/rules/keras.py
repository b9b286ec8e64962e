"""Keras 3's own rules, `keras.backend.result_type`: JAX's lattice, with 64-bit results narrowed to 32 bits.

Source: Keras 3.15 (`keras/src/backend/common/dtypes.py`) with its JAX backend and `floatx` float32. Only Python ints
and floats are weak; a Python complex counts as complex64. Unlike in JAX, a result is never weak. The order of pairs
would therefore matter, so all operands are promoted at once. Operations are those of `keras.ops`, with the dtypes of
its symbolic tensors. Where a function was measured to return a different dtype for arrays, or to refuse them, these
rules follow the function. They accept formats for which only JAX's kernel is missing, and refuse float8 with other
dtypes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from supremum.decisions import Verdict
from supremum.formats import CATEGORIES, IN_32_BITS, Format, as_format
from supremum.lattice import Lattice
from supremum.number_conversion import Steps
from supremum.operands import Operand, Operands
from supremum.operations import OPERATIONS, Family, Operation
from supremum.rules.lattices import INEXACT, SIGNED, UNSIGNED
from supremum.rules.reductions import BITS, IN_FLOAT32, NARROW_FLOATS, REAL_PARTS, TRUTH, Reduction, to, to_default
from supremum.rules.rule_set import RuleSet
from supremum.rules.verdicts import LOSSES_AS_DIVISION, MEASURED, Storing, climb, ints_beyond

_ORDER = Lattice(
    {
        "bool": ("int*",),
        "int*": ("uint8", "int8", "complex64"),
        **UNSIGNED,
        "uint64": ("float*",),
        **SIGNED,
        "int64": ("float*",),
        "float*": ("bfloat16", "float16"),
        **INEXACT,
    }
)
_NUMBERS = {"int*": "int32", "float*": "float32", "complex*": "complex64"}
"""The dtype of a Python number without a tensor to take it from."""
_FLOAT_ROW, _INT32_ROW = as_format("float32"), as_format("int32")
_FLOAT, _BOOL, _INT32 = _FLOAT_ROW.dtype, as_format("bool").dtype, _INT32_ROW.dtype
_FLOAT8 = ("float8_e4m3fn", "float8_e5m2")
# Functions of one operand that do not promote it, and so accept a float8.
_TAKES_FLOAT8 = (
    "abs", "negative", "square", "round", "sign", "conj", "trunc", "real", "imag", "exp", "expm1", "reciprocal",
    "isfinite", "isinf", "isnan", "logical_not",
    "sum", "prod", "cumulative_sum", "cumulative_prod", "any", "all", "min", "max", "std",
)  # fmt: skip
_UPCAST = "keras/src/backend/jax/numpy.py and the jax.numpy functions it calls"
_FLOATS = to("float32", BITS)
_COMPUTES = to({"bool": "int32"}, "floor_divide remainder pow square bitwise_left_shift bitwise_right_shift") | to(
    _FLOATS, "ceil floor"
)
_AVERAGED = Reduction(gives=_FLOATS, accumulates=IN_FLOAT32, source=_UPCAST)
_REDUCTIONS = (
    to(replace(_AVERAGED, gives=to_default("int32", "uint32")), "sum prod")
    | to(Reduction(gives={"bool": "int32"}), "cumulative_sum cumulative_prod")
    | to(_AVERAGED, "mean var")
    | {"std": replace(_AVERAGED, gives=_FLOATS | dict(REAL_PARTS))}
    | to(Reduction(gives=TRUTH), "any all")
    | to(Reduction(), "min max")
)


@dataclass(frozen=True, eq=False, repr=False)
class KerasRules(RuleSet):
    """Joins in a lattice of formats, Python ints and Python floats, with results of at most 32 bits per component.

    JAX, with which Keras computes, raises for a Python int that does not fit int32. A further conversion to a narrower
    dtype wraps around silently. Questions about types alone ignore values.

    Args:
        name, summary, source: as for every rule set.
    """

    reads_numbers: ClassVar[tuple[type, ...]] = (int,)

    def _meet(self, operation: Operation, operands: Operands) -> Verdict:
        names = [operand.name for operand in operands]
        if operation.name == "clip" and names[0] == str(_BOOL):
            names[0] = str(_INT32)  # Keras casts such an array before it looks at the bounds
        if operation.name in _TAKES_FLOAT8 and names[0] in _FLOAT8:
            return Verdict.accept(as_format(names[0]).dtype, 1, f"{operation.name} accepts float8 without conversion")
        if narrow := [name for name in dict.fromkeys(names) if name in _FLOAT8]:
            return Verdict.refuse(f"Keras does not convert float8 implicitly, got {' and '.join(narrow)}")
        only_numbers = all(operand.dtype is None for operand in operands)
        strong = _NUMBERS if only_numbers else {"complex*": _NUMBERS["complex*"]}
        nodes = [strong.get(name, name) for name in names]
        met = _ORDER.join(*nodes)
        assert met is not None  # complex128 is above everything, and none of the joins is ambiguous
        paths = tuple(_ORDER.path(node, met) for node in nodes)
        reason = [climb(met, paths)]
        if "complex*" in names:
            reason.insert(0, f"a Python complex counts as {_NUMBERS['complex*']}")
        dtype = _NUMBERS.get(met, met)
        if dtype != met:
            reason.append(f"{met} is a weak kind, and Keras' floatx has 32 bits: {dtype}")
        if dtype in IN_32_BITS:
            reason.append(f"Keras converts {dtype} to {IN_32_BITS[dtype]}, as JAX does by default")
            dtype = IN_32_BITS[dtype]
        return replace(Verdict.accept(as_format(dtype).dtype, len(operands), *reason), paths=paths)

    def _settle_operation(self, operation: Operation, operands: Operands) -> Verdict:
        if operation.family is not Family.QUESTION and (beyond := ints_beyond(operands, _INT32_ROW)):
            why = f"{beyond} does not fit {_INT32_ROW}, to which JAX first converts a Python int"
            return Verdict.refuse(why, overflow=True)
        verdict = super()._settle_operation(operation, operands)
        if verdict.result is None:
            return verdict
        name, dtype = operation.name, verdict.result.dtype
        exponent = operands[-1].value
        if name == "pow" and not as_format(dtype).is_inexact and isinstance(exponent, int) and exponent < 0:
            return Verdict.refuse(*verdict.reason, f"JAX does not raise {dtype} to a negative power")
        if name == "matmul" and all(operand.name == "int8" for operand in operands):
            return Verdict.accept(_INT32, len(operands), *verdict.reason, f"{name} converts int8 to int32")
        return verdict

    def _number_steps(self, operation: Operation, operands: Operands, position: int, target: Format) -> Steps:
        if ints_beyond(operands[position : position + 1], _INT32_ROW):
            return ()  # only for questions about types alone; functions raise
        usual = super()._number_steps(operation, operands, position, target)
        # JAX reads a Python float as float32.
        reads_float = operands[position].category in CATEGORIES[2:] and usual[0] is not _FLOAT_ROW
        return (_FLOAT_ROW, *usual) if reads_float else usual

    def _objection_to_cast(self, value: Operand, target: Format) -> str:
        # Keras casts a float8 like any other format, although sums refuse it.
        return "" if {value.name, target.name} & {*_FLOAT8} else super()._objection_to_cast(value, target)

    def _allows_cast(self, operand: Operand, target: Format, may_cut: bool) -> bool:  # noqa: ARG002
        return target.name not in IN_32_BITS  # JAX silently makes 32 bits of 64


KERAS = KerasRules(
    name="keras",
    summary="Keras 3's own result_type, with floatx float32: JAX's lattice, and then 64 bits are held in 32",
    source="Keras 3.15.1 on JAX, keras/src/backend/common/dtypes.py",
    accepts={name: CATEGORIES for name in OPERATIONS if not name.startswith("bitwise_")}
    | dict.fromkeys(("bitwise_left_shift", "bitwise_right_shift"), CATEGORIES[:2])
    | {"clip": CATEGORIES[:3], "cross": CATEGORIES[1:]},
    formats=frozenset((*_ORDER.nodes, *_FLOAT8)),
    computes=_COMPUTES,
    quotients=_FLOATS,
    lacks={"solve": NARROW_FLOATS},
    reductions=_REDUCTIONS,
    measured=MEASURED,
    stands_in={"positive": "negative", "copysign": "atan2", "vecdot": "matmul"} | LOSSES_AS_DIVISION,
    library="Keras",
    spelling="keras",
    # `Variable.assign` casts its argument, and `assign_add` assigns a sum (keras/src/backend/common/variables.py).
    in_place=Storing.CAST,
    item=Storing.CAST,
)
