"""Running a program in other dtypes than those that it declares.

The reference of an attribution is such a run in float64; a change that is tried is one with some operations in float32.
The program is not traced again: a new trace under 64 bits would draw other random numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeAlias

import jax
import numpy as np
from jax import lax
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal

from supremum.formats import DType, as_format
from supremum.jax_compat import open_jaxpr, with_constants
from supremum.jax_compat import primitives as p
from supremum.jaxprs import Instrument, Step, aval_of, interpret, plan_of
from supremum.numerics.widening import (
    FLOAT64,
    KERNELS,
    READS_BITS,
    component,
    in_dtype,
    is_floating,
    literal_value,
    widest,
    widest_of,
)

_CASTS: Final = frozenset({p.convert_element_type_p.name, p.reduce_precision_p.name})
_ROUNDINGS: Final = frozenset({p.reduce_precision_p.name, "stop_gradient"})
"""Primitives that return their operand in a dtype that is wide enough."""


@dataclass(frozen=True, slots=True)
class RoundedTo:
    """An equation runs on operands rounded to a narrower dtype, in the dtypes that it declares, and rounds its results.

    Args:
        dtype: the real dtype.
    """

    dtype: DType


Chosen: TypeAlias = DType | RoundedTo
"""The dtype that an equation runs in at least, or the one that it rounds to."""
Choice: TypeAlias = Callable[[Step], Chosen | None]
"""What an equation runs in; None for the widest dtype of its operands, and at least the one that it declares."""


def in_float64(_: Step) -> DType:
    """The choice of float64 for every equation."""
    return FLOAT64


@dataclass(frozen=True, eq=False)
class PlainRun(Instrument[Any]):
    """Runs a program. An equation whose operands are wider than it declares runs in their dtype, except for casts.

    Narrower operands, which are results of equations that round, are cast to what an equation declares.

    Args:
        choose: the dtypes.
    """

    choose: Choice

    def literal(self, literal: Literal) -> Any:
        """The value of a literal, in its dtype."""
        return literal_value(literal)

    def compute(self, step: Step, operands: Sequence[Any]) -> list[Any]:
        """Compute an equation in the dtype that is chosen for it."""
        dtype = self.choose(step)
        if isinstance(dtype, RoundedTo):
            rounded = [_rounded(in_dtype(value, dtype.dtype)) for value in operands]
            results = evaluate_as_declared(step, rounded)
            return [_rounded(in_dtype(value, dtype.dtype)) for value in results]
        if dtype is None and step.name in _CASTS:
            return list(map(_rounded, step.evaluate(operands)))
        if dtype is None:
            actual, declared = widest(operands), widest([aval_of(atom) for atom in step.equation.invars])
            if actual is None or declared is None or widest_of({actual, declared}) == declared:
                return list(map(_rounded, evaluate_as_declared(step, operands)))
            dtype = actual
        return evaluate_in(step, operands, dtype)

    def carry_form(self, start: list[Any], following: Callable[[list[Any]], list[Any]]) -> Callable[..., list[Any]]:
        """Cast what a loop carries to the dtypes that it has after every iteration."""
        types = _types(start)
        while True:
            wider = _widest_of([types, _types(following(_cast_all(start, types)))])
            if wider == types:
                return partial(_cast_all, dtypes=types)
            types = wider

    def branch_form(self, branches: Sequence[Callable[[], list[Any]]]) -> Callable[..., list[Any]]:
        """Cast the results of branches to the widest dtypes among them."""
        return partial(_cast_all, dtypes=_widest_of([_types(branch()) for branch in branches]))


def _rounded(value: Any) -> Any:
    """A result as its format holds it; see `operation_errors`."""
    return lax.optimization_barrier(value) if is_floating(value) else value


def _types(values: Sequence[Any]) -> list[DType | None]:
    return [component(value.dtype) if is_floating(value) else None for value in values]


def _widest_of(types: Sequence[Sequence[DType | None]]) -> list[DType | None]:
    """The widest dtype of each place."""
    return [
        None if group[0] is None else widest_of({each for each in group if each is not None})
        for group in zip(*types, strict=True)
    ]


def _cast_all(values: Sequence[Any], dtypes: Sequence[DType | None]) -> list[Any]:
    """Values in these dtypes; None leaves one as it is."""
    return [value if dtype is None else in_dtype(value, dtype) for value, dtype in zip(values, dtypes, strict=True)]


def evaluate_as_declared(step: Step, operands: Sequence[Any]) -> list[Any]:
    """Run an equation in the dtypes that it declares.

    Args:
        step: the equation.
        operands: the values of its operands, literals included; floating ones are cast to the declared dtypes.
    """
    declared = [
        in_dtype(value, component(aval_of(atom).dtype)) if is_floating(aval_of(atom)) else value
        for value, atom in zip(operands, step.equation.invars, strict=True)
    ]
    return step.evaluate(declared)


def evaluate_in(step: Step, operands: Sequence[Any], dtype: DType) -> list[Any]:
    """Run an equation in a dtype that is at least as wide as those that it declares.

    Roundings to a narrower dtype (casts, `reduce_precision`) round to this dtype only. What reads the bits of its
    operands, and what runs code that expects its dtypes, runs as declared; its results are then cast.

    Args:
        step: the equation.
        operands: the values of its operands, literals included.
        dtype: the real floating dtype.
    """
    if step.name in READS_BITS or step.name in KERNELS:
        return [in_dtype(value, dtype) for value in evaluate_as_declared(step, operands)]
    values = [in_dtype(value, dtype) for value in operands]
    if step.name in _ROUNDINGS:
        return values[:1]
    return step.evaluate(values, {name: _param_in(value, dtype) for name, value in step.equation.params.items()})


def _param_in(value: Any, dtype: DType) -> Any:
    if isinstance(value, (Jaxpr, ClosedJaxpr)):
        return _function_in(value, dtype)
    if isinstance(value, tuple) and any(isinstance(each, (Jaxpr, ClosedJaxpr)) for each in value):
        parts = [_param_in(each, dtype) for each in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    if isinstance(value, (jax.lax.DotAlgorithm, jax.lax.DotAlgorithmPreset)):
        return None
    if isinstance(value, np.dtype) and as_format(value).is_inexact:
        wide = widest_of({component(value), dtype})
        return np.result_type(wide, np.complex64) if value.kind == "c" else wide
    return value


def _function_in(function: Jaxpr | ClosedJaxpr, dtype: DType) -> Any:
    """A function that an equation passes to its primitive, with its floating values in a dtype."""
    plan = plan_of(function)

    def run(*operands: Any) -> list[Any]:
        results, _ = interpret(plan, operands, PlainRun(lambda _: dtype))
        return [in_dtype(each, dtype) for each in results]

    def type_of(var: Any) -> Any:
        aval = aval_of(var)
        if not is_floating(aval):
            return aval
        target = np.result_type(dtype, np.complex64) if aval.dtype.kind == "c" else dtype
        return jax.ShapeDtypeStruct(aval.shape, target)

    program = jax.make_jaxpr(run)(*map(type_of, plan.operands))
    if isinstance(function, ClosedJaxpr):
        return with_constants(open_jaxpr(program), program.consts)
    return open_jaxpr(program)
