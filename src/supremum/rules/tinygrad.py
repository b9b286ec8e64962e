"""tinygrad's rules: the joins of one lattice, and a row for each operation that does not return the join.

Source: tinygrad 0.14.0 itself, `promo_lattice` and `least_upper_dtype` in tinygrad/dtype.py, `_broadcasted` in
tinygrad/mixin/elementwise.py, and tinygrad/mixin/reduce.py. The conformance tests compare every cell with measurements.

Python numbers and tensors made of them, such as `Tensor(1)`, are weak: `weakint` and `weakfloat` are the nodes `int*`
and `float*` of the lattice. A weak result stays weak until it is stored, as in JAX.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from supremum.decisions import ResultType, Verdict
from supremum.formats import CATEGORIES, Format, as_format
from supremum.lattice import Lattice
from supremum.number_conversion import Steps
from supremum.operands import WEAK_NAMES, Operand, Operands, weak_name
from supremum.operations import OPERATIONS, Operation, Result
from supremum.rules.array_casts import (
    C_ROUTES,
    HALVES,
    ArrayCasts,
    packed_from_register,
    through_int32,
)
from supremum.rules.lattices import SIGNED, UNSIGNED, weak_defaults
from supremum.rules.reductions import BITS, IN_FLOAT32, TRUTH, Reduction, to
from supremum.rules.rule_set import LatticeRuleSet
from supremum.rules.verdicts import LOSSES_AS_DIVISION, MEASURED, Storing, with_result_of

_FLOAT8 = ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz")
_SIXTEEN_BITS = ("float16", "bfloat16")  # in the order in which tinygrad prefers them
_EDGES: dict[str, tuple[str, ...]] = {
    "bool": ("int*",),
    "int*": ("int8", "uint8"),
    **SIGNED,
    "int64": ("float*",),
    **UNSIGNED,
    "uint64": ("float*",),
    "float*": _FLOAT8,
    **to(_SIXTEEN_BITS, _FLOAT8),
    **to(("float32",), _SIXTEEN_BITS),
    "float32": ("float64",),
}


class _RankedLattice(Lattice):
    """An order in which the first of several smallest upper bounds, in the order of the edges, is the join."""

    def join(self, *nodes: str) -> str | None:
        smallest = self.minimal(self.upper_bounds(*nodes))
        return smallest[0] if smallest else None


_ORDER = _RankedLattice(_EDGES)
# What operations return instead of the join; "float*" is a weak float.
_TO_FLOAT32 = to("float32", BITS)
_TO_WEAK = to("float*", ("int*", *BITS))
_AS_A_FLOAT = {**_TO_FLOAT32, "int*": "float*"}
_GIVES: Mapping[str, Mapping[str, str]] = (
    to(_AS_A_FLOAT, "exp log log2 log10 sqrt reciprocal sin cos tan sinh cosh logaddexp")
    # tinygrad divides by float32, which is strong.
    | to({**_TO_FLOAT32, "int*": "float32"}, "divide atanh")
    # tinygrad composes these with Python floats, which are weak.
    | to(_TO_WEAK, "asin acos tanh round")
    # These add a Python int, which makes a bool a weak int.
    | to({**_AS_A_FLOAT, "bool": "float*"}, "atan asinh acosh")
    | to({"bool": "int*"}, "ceil floor")
    | to({"bool": "float32"}, "floor_divide remainder")
)
_STANDS_IN = (
    {"fmax": "maximum", "fmin": "minimum", "positive": "negative", "signbit": "isnan", "expm1": "exp", "log1p": "log"}
    | to("divide", "atan2 hypot nextafter")
    | {"tensordot": "matmul", "vecdot": "matmul", "outer": "multiply", "diff": "concat"}
    | LOSSES_AS_DIVISION
)
_REAL = CATEGORIES[:3]
_LACKS = "logical_and logical_or logical_xor conj real imag cross solve"
_OF_BITS = "bitwise_and bitwise_or bitwise_xor bitwise_invert bitwise_left_shift bitwise_right_shift"
_SUMS = {**to("int32", "bool int8 int16"), **to("uint32", "uint8 uint16")}
_ACCUMULATES = to("float32", (*_FLOAT8, *HALVES))
_KEPT = Reduction(_REAL, numbers=False)
_SUMMED = replace(_KEPT, gives=_SUMS, accumulates=_ACCUMULATES, source="`sum_acc_dtype` in tinygrad/dtype.py")
# The variance of integers loses the fractions of its squares: that of 1 and 2 is 0.
_AVERAGED = replace(_SUMMED, accepts=("float",), gives={}, keeps_weak=True)
_REDUCTIONS: Mapping[str, Reduction] = (
    to(_SUMMED, "sum cumulative_sum")
    | to(_KEPT, "prod cumulative_prod min max")
    | {
        "mean": replace(
            _AVERAGED, accepts=_REAL, gives=_TO_FLOAT32,
            accumulates={**_ACCUMULATES, **{name: _SUMS.get(name, name) for name in BITS}},
        ),
    }
    | to(_AVERAGED, "var std")
    | to(replace(_KEPT, gives=TRUTH), "any all")
)  # fmt: skip


@dataclass(frozen=True, eq=False, repr=False)
class TinygradRules(LatticeRuleSet):
    """Joins in tinygrad's lattice, and in it the first of two smallest upper bounds.

    Args:
        name, summary, source, lattice, defaults: as for every lattice.

    >>> from supremum import result_type, rules
    >>> [
    ...     str(result_type(*names, rules=rules.TINYGRAD))
    ...     for names in (
    ...         ("int8", 1.5, "float8_e5m2"),
    ...         ("float8_e4m3fn", "float8_e5m2"),
    ...     )
    ... ]
    ['float8_e5m2', 'float16']
    """

    def _meet(self, operation: Operation, operands: Operands) -> Verdict:
        names = dict.fromkeys(str(each.dtype) if each.dtype is not None else each.name for each in operands)
        if unknown := [name for name in names if name not in self.lattice.edges]:
            return Verdict.refuse(f"tinygrad has no {' and '.join(unknown)} tensors")
        met = super()._meet(operation, operands)
        assert met.result is not None  # float64 is above everything
        bounds = self.lattice.minimal(self.lattice.upper_bounds(*(path[0] for path in met.paths)))
        if len(bounds) == 1:
            return met
        why = f"{' and '.join(bounds)} are the smallest upper bounds, and tinygrad takes the first"
        return replace(met, reason=(why,))

    def _computed(self, operation: Operation, met: Verdict, common: ResultType) -> Verdict:
        node = weak_name(as_format(common.dtype).category) if common.weak else str(common.dtype)
        gives = _GIVES.get(operation.name, {}).get(node)
        if gives is None:
            return with_result_of(operation, met)
        dtype = as_format(self.defaults.get(gives, gives)).dtype
        why = f"{operation.name} converts {node} to {gives}"
        return Verdict.accept(dtype, len(met.compute), *met.reason, why, weak=gives in WEAK_NAMES)

    def _reduce(self, operation: Operation, operands: Operands) -> Verdict:
        # A reduction makes weak integers strong before it does anything else (`_reduce` in tinygrad/mixin/reduce.py).
        is_weak_integer = operands[0].weak and operands[0].dtype is not None and operands[0].category == CATEGORIES[1]
        return super()._reduce(operation, (replace(operands[0], weak=False),) if is_weak_integer else operands)

    def _assigned(self, value: Operand, into: Operand, how: Storing) -> Verdict:
        if not value.is_python_scalar and not value.weak and value.dtype != into.dtype:
            return Verdict.refuse(
                f"tinygrad assigns only tensors of the same dtype, got {value.dtype} for {into.dtype}"
            )
        return super()._assigned(value, into, how)

    def _number_steps(self, operation: Operation, operands: Operands, position: int, target: Format) -> Steps:
        # tinygrad compares integers with the number itself.
        if operation.result is Result.BOOL and {each.category for each in operands} == {CATEGORIES[1]}:
            return ()
        return super()._number_steps(operation, operands, position, target)


_CASTS = ArrayCasts(
    "tinygrad",
    "tinygrad 0.14.0 with Clang 22 on x86-64",
    # Not the formats of 8 bits, whose small numbers become zero on the CPU.
    frozenset(name for name in _ORDER.nodes if name not in (*WEAK_NAMES, *_FLOAT8)),
    # tinygrad compiles for the instructions of the processor at hand, and those for wider unsigned integers vary.
    {name: C_ROUTES[name] for name in ("int8", "uint8", "int32", "int64")}
    | {"int16": (through_int32, packed_from_register)},
    is_defined=False,
    through=IN_FLOAT32,
)
TINYGRAD = TinygradRules(
    name="tinygrad",
    summary="tinygrad: JAX's lattice with weak tensors, 8-bit floats below 16-bit ones, and sums of 32 bits",
    source="tinygrad 0.14.0, tinygrad/dtype.py and tinygrad/mixin",
    lattice=_ORDER,
    defaults=weak_defaults("int32", "float32", "complex64"),
    joins_defaults=False,
    accepts=to(_REAL, (name for name in OPERATIONS if name not in f"{_LACKS} {_OF_BITS}".split())),
    measured=MEASURED,
    stands_in=_STANDS_IN,
    reductions=_REDUCTIONS,
    library="tinygrad",
    spelling="tinygrad",
    array_casts=_CASTS,
)
