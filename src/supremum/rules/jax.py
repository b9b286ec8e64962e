"""JAX's rules: a lattice for x64 on, the same with one changed edge for x64 off, and few edges when strict.

Source: JAX type promotion (JEP 9407) for the first eighteen types, and JAX 0.12 itself for the small formats
(`jax/_src/dtypes.py`, `_type_promotion_lattice`) and for what the functions of `jax.numpy` then do. The conformance
tests compare every pair and every function with the installed JAX.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from supremum.decisions import ResultType, Verdict
from supremum.fix import letter
from supremum.formats import CATEGORIES, FORMATS, IN_32_BITS, DType, Format, Kind, as_format
from supremum.lattice import Lattice
from supremum.number_conversion import Steps, fits, usual_steps
from supremum.operands import WEAK_NAMES, Operand, Operands, weak_name
from supremum.operations import OPERATIONS, Operation
from supremum.rules.array_casts import SATURATING, ArrayCasts, named
from supremum.rules.jax_flags import holds_64_bits
from supremum.rules.lattices import INEXACT, SIGNED, UNSIGNED, held_format, weak_defaults
from supremum.rules.reductions import BITS, IN_FLOAT32, REAL_PARTS, TRUTH, Reduction, to, to_default
from supremum.rules.rule_set import LatticeRuleSet
from supremum.rules.verdicts import LOSSES_AS_DIVISION, MEASURED, ints_beyond

_X64_EDGES: dict[str, tuple[str, ...]] = {
    "bool": ("int*",),
    "int*": ("uint8", "int8"),
    **UNSIGNED,
    "uint64": ("float*",),
    **SIGNED,
    "int64": ("float*",),
    "float*": ("bfloat16", "float16", "complex*"),
    **INEXACT,
    "complex*": ("complex64",),
    "complex128": (),
}
# The small formats are directly above the weak kind of their category and have no joins with the other formats in it,
# so nothing widens 4 or 8 bits by accident. (JAX has no complex32 or bcomplex32.)
_SMALL_FLOATS = tuple(row.name for row in FORMATS if row.kind is Kind.FLOAT and row.bits < 16)
_SMALL_INTEGERS = tuple(row.name for row in FORMATS if row.category == "integer" and row.bits < 8)


def _with_small_formats(edges: dict[str, tuple[str, ...]]) -> Lattice:
    weak = {"int*": edges["int*"] + _SMALL_INTEGERS, "float*": edges["float*"] + _SMALL_FLOATS}
    return Lattice(edges | weak | dict.fromkeys(_SMALL_FLOATS + _SMALL_INTEGERS, ()))


def _strict_lattice() -> Lattice:
    names = [name for name in (*_X64_EDGES, *_SMALL_FLOATS, *_SMALL_INTEGERS) if name not in WEAK_NAMES]
    edges = {weak: [name for name in names if as_format(name).category == WEAK_NAMES[weak]] for weak in WEAK_NAMES}
    return Lattice(
        dict.fromkeys(names, ())
        | edges
        | {"int*": ["float*", *edges["int*"]], "float*": ["complex*", *edges["float*"]]}
    )


# The functions of `jax.numpy` that differ from the common pattern, as measured with `jax.eval_shape` over all dtypes.
_ACCEPTS: dict[str, tuple[str, ...]] = (
    to(CATEGORIES, OPERATIONS)
    | to(CATEGORIES[1:], "subtract negative round sign cross")
    | to(CATEGORIES[:3], "floor_divide remainder hypot copysign nextafter ceil floor trunc signbit clip")
    | to(CATEGORIES[:2], (name for name in OPERATIONS if name.startswith("bitwise_")))
)
_INT32_ROW, _FLOAT32_ROW, _FLOAT64_ROW = as_format("int32"), as_format("float32"), as_format("float64")
_INT32 = _INT32_ROW.dtype
_COMPUTES = to({"bool": "int32"}, "floor_divide remainder pow square bitwise_left_shift bitwise_right_shift")
# Formats without a kernel for a function of arrays. JAX has one for abs of int1, which returns int8: a departure.
_LACKS: dict[str, tuple[str, ...]] = {
    "pow": _SMALL_INTEGERS,
    "abs": tuple(name for name in _SMALL_INTEGERS if as_format(name).kind is Kind.SIGNED),
    "copysign": _SMALL_FLOATS,
    "signbit": _SMALL_FLOATS,
}
# Functions that return a strong dtype for weak operands, and the categories of results for which they do.
_STRENGTHENS: dict[str, tuple[str, ...]] = {"pow": ("integer",), "log10": CATEGORIES, "cross": CATEGORIES}
# The same unless all operands are weak.
_STRENGTHENS_MIXED: dict[str, tuple[str, ...]] = {"logaddexp": ("complex",)}
_WIDE_INTEGER_BITS, _NARROWEST_BITS = 64, 4
_UPCAST = "`_upcast_f16` in jax/_src/numpy/reductions.py"
_BELOW_4_BITS = tuple(name for name in _SMALL_INTEGERS if as_format(name).bits < _NARROWEST_BITS)


def _floats(wide: str) -> dict[str, str]:
    """The float dtype of every integer, given that of 64-bit integers."""
    return {name: wide if as_format(name).bits >= _WIDE_INTEGER_BITS else "float32" for name in BITS}


def _quotients(wide: str) -> dict[str, str]:
    """The floats of operations such as division; JAX has none for 1-bit and 2-bit integers."""
    return {name: target for name, target in _floats(wide).items() if name not in _BELOW_4_BITS}


def _reductions(signed: str, unsigned: str, wide: str) -> dict[str, Reduction]:
    """The reductions of `jax.numpy`, given the default integers and the float dtype for 64-bit integers."""
    gives = to_default(signed, unsigned, least_bits=8)
    summed = Reduction(gives=gives, accumulates=IN_FLOAT32, lacks=_SMALL_INTEGERS, source=_UPCAST)
    floats = _floats(wide)
    averaged = Reduction(gives=floats, accumulates=IN_FLOAT32, lacks=_BELOW_4_BITS, source=_UPCAST)
    return (
        to(summed, "sum prod")
        # This is `jax.numpy.cumulative_sum`; `cumsum`, `cumulative_prod` and `cumprod` keep the dtype of integers.
        | {"cumulative_sum": replace(summed, accumulates={}, source="")}
        | {"cumulative_prod": Reduction(gives={"bool": signed})}
        | {"mean": averaged}
        | to(replace(averaged, gives=floats | dict(REAL_PARTS)), "var std")
        | to(Reduction(gives=TRUTH), "any all")
        | to(Reduction(), "min max")
    )


_HALVES = (as_format("bfloat16"), as_format("float16"))


@dataclass(frozen=True, eq=False, repr=False)
class JaxRuleSet(LatticeRuleSet):
    """A lattice, and the result dtypes of the functions of `jax.numpy`.

    JAX first converts a Python int to the default integer dtype, and raises if it does not fit. A further conversion to
    a narrower dtype wraps around silently, which explanations mention. Questions about types alone ignore values.
    """

    reads_numbers: ClassVar[tuple[type, ...]] = (int,)  # the value of a float or complex never matters

    def _settle_operation(self, operation: Operation, operands: Operands) -> Verdict:
        asks_for_types = operation.name in ("result_type", "promote_types")
        has_int_exponent = operation.name == "pow" and operands[1].dtype is None and operands[1].category == "integer"
        default = as_format(held_format("int*", self.defaults, self.held_as))
        converted = () if asks_for_types else operands[:1] if has_int_exponent else operands
        if beyond := ints_beyond(converted, default):
            why = f"{beyond} does not fit {default}, to which JAX first converts a Python int"
            return Verdict.refuse(why, overflow=True)
        if has_int_exponent:
            return self._pow_with_int_exponent(operation, operands[0], operands[1])
        verdict = super()._settle_operation(operation, operands)
        if verdict.result is None or asks_for_types:
            return self._with_default(operation, verdict)
        verdict = self._adjust_result(operation, operands, verdict, verdict.result)
        wrapping = [
            f"{letter(i)} is out of range for {target}, and JAX wraps it around silently"
            for i, (operand, target) in enumerate(zip(operands, verdict.compute, strict=False))
            if as_format(target).category == "integer" and not _int_fits(operand, as_format(target))
        ]
        return replace(verdict, reason=(*verdict.reason, *wrapping))

    def _with_default(self, operation: Operation, verdict: Verdict) -> Verdict:
        """The answer to a question about types, whose dtype is the default one if it is weak.

        Source: `dtypes._lattice_result_type` and `dtypes.result_type` in jax/_src/dtypes.py.
        """
        if verdict.result is None or not verdict.result.weak:
            return verdict
        own = as_format(verdict.result.dtype)
        held_as: Mapping[str, str] = {} if operation.types_only else self.held_as
        bits = as_format(held_format(weak_name(own.category), self.defaults, held_as)).bits
        if own.bits == bits:
            return verdict
        default = next(row for row in FORMATS if (row.kind, row.bits) == (own.kind, bits))
        why = f"the operands are weak, and JAX's result_type then returns its default dtype, {default}"
        return Verdict.accept(default.dtype, len(verdict.compute), *verdict.reason, why, weak=True)

    def _number_steps(self, operation: Operation, operands: Operands, position: int, target: Format) -> Steps:
        operand = operands[position]
        if operation.name == "pow" and position == 1 and operand.category == "integer" and operand.dtype is None:
            return ()  # JAX multiplies repeatedly and never converts the exponent
        usual = usual_steps(operand.category, target)
        if operand.category not in WEAK_NAMES.values():
            return usual
        # Under explicit x64 a number is converted directly, as in compiled JAX; eager JAX converts it to 32 bits first.
        default = self.defaults[weak_name(operand.category)]
        first = as_format(self.held_as.get(default, default)).component
        if operand.category == "integer":
            # All formats in the usual steps hold an int32 exactly.
            if not _int_fits(operand, first):
                return ()  # only for questions about types alone; otherwise JAX raises
            return usual if _int_fits(operand, _INT32_ROW) or not target.is_inexact else (first, *_from_wide(target))
        # A Python float already is a float64.
        return usual if first is target else (*((first,) if first is not _FLOAT64_ROW else ()), *_from_wide(target))

    def _pow_with_int_exponent(self, operation: Operation, base: Operand, exponent: Operand) -> Verdict:
        """The verdict on a power with a Python int as exponent: JAX multiplies, and the int gets no dtype."""
        met = self._meet(operation, (base,))
        if met.result is None:
            return met
        row = as_format(met.result.dtype)
        if not row.is_inexact and isinstance(exponent.value, int) and exponent.value < 0:
            return Verdict.refuse(*met.reason, f"JAX does not raise {row} to a negative power")
        reason = "JAX computes a power with a Python int exponent by repeated multiplication"
        if row.kind is Kind.BOOL:
            return Verdict.accept(_INT32, 2, reason, f"pow converts bool to {_INT32}")
        return Verdict.accept(met.result.dtype, 2, *met.reason, reason, weak=met.result.weak)

    def _adjust_result(self, operation: Operation, operands: Operands, verdict: Verdict, result: ResultType) -> Verdict:
        name, row = operation.name, as_format(result.dtype)
        if str(verdict.compute[0]) in _LACKS.get(name, ()):
            return Verdict.refuse(*verdict.reason, f"{self.library} has no {name} of {verdict.compute[0]}")
        strengthening = _STRENGTHENS.get(name, ())
        if not all(operand.weak for operand in operands):
            strengthening = (*strengthening, *_STRENGTHENS_MIXED.get(name, ()))
        # With an integer array as exponent, the result has the dtype of a weak base and is strong.
        to_integer_power = name == "pow" and operands[0].weak and operands[1].category == "integer"
        if result.weak and (row.category in strengthening or (to_integer_power and not operands[1].weak)):
            return verdict.resulting_in(result.dtype, f"{name} returns a strong dtype even for weak operands")
        return verdict


def _from_wide(target: Format) -> Steps:
    """The steps in which XLA converts a number that JAX holds in a wide format; to 16 bits it goes through float32.

    CPUs with float16 instructions (AVX512-FP16) round only once, which gives a different number only for ties.
    """
    return (_FLOAT32_ROW, target) if target in _HALVES else (target,)


def _int_fits(operand: Operand, row: Format) -> bool:
    value = operand.value
    return not operand.is_python_scalar or operand.category != "integer" or value is None or fits(value, row)


_DEFAULTS = weak_defaults("int64", "float64", "complex128")
_LIBRARY = "jax.numpy"
_CASTS = ArrayCasts(
    "JAX",
    "JAX 0.10 on x86-64",
    # XLA makes of the largest float4_e2m1fn the largest integer; to float8_e8m0fnu it flushes some subnormals only.
    named(
        "float4_e2m1fn", "float6_e2m3fn", "float6_e3m2fn", "float8_e8m0fnu", "int1", "uint1", "complex32", "bcomplex32"
    ),
    SATURATING,
    through=IN_FLOAT32,
    flushes=frozenset(("float32", "bfloat16")),
)
JAX_X64 = JaxRuleSet(
    name="jax-x64",
    summary="JAX with jax_enable_x64 on",
    source="JAX type promotion (JEP 9407); JAX 0.10",
    lattice=_with_small_formats(_X64_EDGES),
    defaults=_DEFAULTS,
    accepts=_ACCEPTS,
    computes=_COMPUTES,
    quotients=_quotients("float64"),
    reductions=_reductions("int64", "uint64", "float64"),
    measured=MEASURED,
    stands_in=LOSSES_AS_DIVISION,
    library=_LIBRARY,
    array_casts=_CASTS,
)
JAX_X32 = replace(
    JAX_X64,
    name="jax-x32",
    summary="JAX as it starts, with jax_enable_x64 off: 64-bit dtypes are held in 32 bits",
    # Narrower types never promote to 64 bits: uint32 and the signed integers promote to int32.
    lattice=_with_small_formats(_X64_EDGES | {"uint32": ("int32", "uint64")}),
    held_as=IN_32_BITS,
    held_because="these are the rules of JAX with x64 off",
    quotients=_quotients("float32"),
    reductions=_reductions("int32", "uint32", "float32"),
)
# A separate rule set: it has the lattice of x64 off, but keeps 64-bit dtypes.
JAX_EXPLICIT_X64 = replace(
    JAX_X64,
    name="jax-explicit-x64",
    summary="JAX with jax_enable_x64 off and jax_explicit_x64_dtypes='allow': 64 bits only where they are asked for",
    lattice=JAX_X32.lattice,
    held_as=weak_defaults("int32", "float32", "complex64"),
    reductions=_reductions("int32", "uint32", "float64"),
)


def _strict_twin(rules: JaxRuleSet, setup: str) -> JaxRuleSet:
    """The same rules under strict promotion."""
    return replace(
        rules,
        name=rules.name.replace("jax-", "jax-strict-", 1),
        summary=f"JAX with jax_numpy_dtype_promotion='strict' and {setup}: equal dtypes and Python numbers only",
        lattice=_STRICT,
        joins_defaults=False,
    )


_STRICT = _strict_lattice()
JAX_STRICT_X64 = _strict_twin(JAX_X64, "x64 on")
JAX_STRICT_X32 = _strict_twin(JAX_X32, "x64 off")
JAX_STRICT_EXPLICIT_X64 = _strict_twin(JAX_EXPLICIT_X64, "jax_explicit_x64_dtypes='allow'")


def held_dtype(dtype: DType) -> DType:
    """The dtype that JAX, with its current flags, gives an array for a dtype requested by name.

    Args:
        dtype: the requested dtype, which JAX may narrow from 64 to 32 bits.

    >>> import jax
    >>> with jax.enable_x64(False):
    ...     held_dtype(as_format("int64").dtype), held_dtype(as_format("int8").dtype)
    (dtype('int32'), dtype('int8'))
    """
    narrower = JAX_X32.held_as.get(as_format(dtype).name)
    return dtype if narrower is None or holds_64_bits() else as_format(narrower).dtype
