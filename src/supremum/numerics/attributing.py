"""The error of a program's result, and the shares of its operations in it, from one run narrow and in float64."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from supremum.bounded_cache import Bounded
from supremum.errors import ArgumentError, OperandError, UnknownNameError, shown
from supremum.jaxprs import Plan, TracedCall, has_tracers, interpret
from supremum.numerics.calls import trace_to_run
from supremum.numerics.error_flow import ErrorFlow
from supremum.numerics.error_tallies import probes_of
from supremum.numerics.paired_values import Pair, full
from supremum.numerics.plain_runs import Chosen, PlainRun, in_float64
from supremum.numerics.widening import FLOAT64, in_dtype, is_floating
from supremum.typing import PyTree

Output: TypeAlias = "int | str | Callable[[PyTree], PyTree] | None"
"""A part of the result: its index, its path, a function of the result that returns it, or None for the whole result."""
Select: TypeAlias = Callable[[Sequence[Any]], list[Any]]
"""Selects or computes the values whose error is explained, from the results of the program in float64."""

_CHANGES = 32
"""How many changes of one program are kept compiled."""


@dataclass(frozen=True, slots=True)
class Reference:
    """What the program gives in float64.

    Args:
        values: the values whose error is measured.
        size: the magnitude of the value if it is one number, and the norm of the finite ones if there are several.
    """

    values: list[Any]
    size: float

    @property
    def is_number(self) -> bool:
        """Whether there is one number."""
        return _is_number(self.values)

    def relative(self, error: float) -> float:
        """An error relative to the reference, which that of several numbers is already; infinite if that is zero."""
        if not self.is_number or error == 0:
            return abs(error)
        with np.errstate(all="ignore"):
            return abs(float(np.divide(error, self.size)))


@dataclass(frozen=True, slots=True)
class ErrorShares:
    """The error of a result, and the shares of the steps in it.

    Args:
        outputs: the results of the narrow run.
        reference: the values whose error is explained, in float64.
        error: the narrow result less the reference for one number; for several the norm of the difference, divided by
            the norm of the reference.
        shares: the shares of each step in it, by its number.
        facts: the facts of each step.
    """

    outputs: list[Any]
    reference: Reference
    error: float
    shares: Mapping[int, np.ndarray]
    facts: Mapping[int, np.ndarray]


def checked_output(output: object) -> None:
    """Raise if an argument does not select a part of the result.

    Raises:
        OperandError: for anything but an index, a path, a function or None.
    """
    if isinstance(output, bool) or not (output is None or isinstance(output, (int, str)) or callable(output)):
        raise OperandError(f"output must be an index, a path or a function of the result, got {shown(output)}")


def trace_untransformed(
    fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], under: str
) -> TracedCall:
    """Trace a call of a function that will run, outside of all transformations.

    Args:
        fn: the function.
        args: the positional arguments.
        kwargs: the keyword arguments.
        under: the name of what runs it, for messages.

    Raises:
        OperandError: for arguments without an array.
        ArgumentError: for a function with side effects, and in a transformation.
    """
    if has_tracers((args, kwargs)):
        raise ArgumentError(f"{under} runs a whole program and cannot be transformed; call it outside of jax.jit")
    return trace_to_run(fn, args, kwargs, under)


def selection(call: TracedCall, output: Output, under: str) -> Select:
    """What to explain of the result of a call.

    Args:
        call: the call, which is not kept.
        output: an index of the result, a path, a function, or None for all.
        under: the name of what runs it, for messages.

    Raises:
        ArgumentError: if the output selects no floating-point values.
        UnknownNameError: for a path that the result does not have.
    """
    avals, result_of = call.program.out_avals, call.result_of
    if callable(output):
        return lambda values: [
            in_dtype(jnp.asarray(leaf), FLOAT64) for leaf in jax.tree.leaves(output(result_of(values)))
        ]
    paths = {place: path for place, path in enumerate(call.result_paths) if path is not None}
    if output is not None:
        selected = str(output)
        parts = {place for place, path in paths.items() if path == selected or path.startswith(f"{selected}/")}
        if not parts and "" in paths.values():
            raise ArgumentError(
                f"output={shown(output)} selects a part of the result, which is one array; leave it out"
            )
        if not parts:
            raise UnknownNameError("output", selected, sorted(set(paths.values())))
        paths = {place: paths[place] for place in parts}
    places = [place for place in paths if is_floating(avals[place])]
    if not places:
        types = ", ".join(str(avals[place]) for place in paths) or "only Python numbers"
        raise ArgumentError(f"{under} needs a floating-point result to explain, got {types}")
    return lambda values: [values[place] for place in places]


class ErrorPrograms:
    """What runs to explain the error of a program's result; each is compiled when it first runs.

    Args:
        plan: the program.
        select: selects the values to explain.
    """

    def __init__(self, plan: Plan, select: Select) -> None:
        self.plan = plan
        self._select = select
        self._with_errors = _compiled(jax.grad(self._run_with_errors, has_aux=True))
        self._in_float64 = _compiled(self._run_in_float64)
        self._changed: Bounded[Hashable, Callable[..., Any]] = Bounded(_CHANGES)

    def find_shares(self, arrays: Sequence[Any]) -> ErrorShares:
        """Run the program narrow and in float64, and attribute the error of its result.

        Args:
            arrays: its operands.
        """
        shares, (outputs, wide, error, size, facts) = _run(self._with_errors, probes_of(self.plan), list(arrays))
        shares, facts = jax.tree.map(np.asarray, (shares, facts))
        return ErrorShares(outputs, Reference(wide, float(size)), float(error), shares, facts)

    def find_reference(self, arrays: Sequence[Any]) -> Reference:
        """Run the program in float64.

        Args:
            arrays: its operands.
        """
        values, size = _run(self._in_float64, list(arrays))
        return Reference(values, float(size))

    def measure_change(self, arrays: Sequence[Any], reference: Reference, chosen: Mapping[int, Chosen]) -> float:
        """Measure the error, as in `ErrorShares`, with some operations in another dtype.

        Args:
            arrays: the operands of the program.
            reference: what the program gives in float64.
            chosen: the dtypes, by the number of the step.
        """
        key = frozenset(chosen.items())
        run = self._changed.setdefault(key, _compiled(partial(self._run_changed, dict(chosen))))
        return float(_run(run, list(arrays), reference.values, reference.size or 1.0))

    def _run_with_errors(self, probes: Mapping[int, Any], operands: Sequence[Any]) -> Any:
        results, facts = interpret(self.plan, list(map(Pair, operands)), ErrorFlow(probes))
        pairs = list(map(full, results))
        narrow = self._select([in_dtype(each.narrow, FLOAT64) for each in pairs])
        wide = self._select([each.reference for each in pairs])
        errors = _errors(pairs, self._select)
        differences = [left - right for left, right in zip(narrow, wide, strict=True)]
        size = _size(wide)
        if _is_number(wide):
            total, error = jnp.real(errors[0]).reshape(()), jnp.real(differences[0]).reshape(())
        else:
            total, error = _norm(errors, differences, size)
        return total, ([each.narrow for each in results], wide, error, size, facts)

    def _run_in_float64(self, operands: Sequence[Any]) -> Any:
        wide = [in_dtype(each, FLOAT64) for each in operands]
        results, _ = interpret(self.plan, wide, PlainRun(in_float64))
        values = self._select([in_dtype(each, FLOAT64) for each in results])
        return values, _size(values)

    def _run_changed(
        self, chosen: Mapping[int, Chosen], operands: Sequence[Any], references: Sequence[Any], size: Any
    ) -> Any:
        results, _ = interpret(self.plan, operands, PlainRun(lambda step: chosen.get(step.number)))
        changed = self._select([in_dtype(each, FLOAT64) for each in results])
        differences = [left - right for left, right in zip(changed, references, strict=True)]
        if _is_number(references):
            return jnp.real(differences[0]).reshape(())
        return jnp.sqrt(_square(differences)) / size


def _compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function, on CPUs without LLVM's optimizations, which take most of the time of a few runs."""
    is_cpu = jax.default_backend() == "cpu"
    return jax.jit(function, compiler_options={"xla_backend_optimization_level": 0} if is_cpu else None)


def _run(function: Callable[..., Any], *operands: Any) -> Any:
    """Run a compiled function with 64 bits, and without the flags that would stop at the first NaN."""
    with jax.enable_x64(True), jax.debug_nans(False), jax.debug_infs(False):
        return jax.block_until_ready(function(*operands))


def _is_number(values: Sequence[Any]) -> bool:
    return len(values) == 1 and values[0].size == 1


def _errors(pairs: Sequence[Pair], select: Select) -> list[Any]:
    """The errors of the selected values, through the derivative of the selection at the midpoint of both runs."""
    floats = [index for index, each in enumerate(pairs) if is_floating(each.narrow)]

    def of_floats(*values: Any) -> list[Any]:
        results = [each.narrow for each in pairs]
        for index, value in zip(floats, values, strict=True):
            results[index] = value
        return select(results)

    points, errors = [pairs[index].middle for index in floats], [pairs[index].error for index in floats]
    return jax.jvp(of_floats, tuple(points), tuple(errors))[1]


def _square(values: Sequence[Any]) -> Any:
    return sum((jnp.sum(jnp.real(each * jnp.conj(each))) for each in values), jnp.zeros((), FLOAT64))


def _size(values: Sequence[Any]) -> Any:
    """The magnitude of one number, or the norm of the finite ones among several."""
    if _is_number(values):
        return jnp.abs(values[0]).reshape(())
    return jnp.sqrt(_square([jnp.where(jnp.isfinite(each), each, 0) for each in values]))


def _norm(errors: Sequence[Any], differences: Sequence[Any], size: Any) -> tuple[Any, Any]:
    """The part of the first-order error in the direction of the measured one, and the measured one."""
    known = [jnp.where(jnp.isfinite(each), each, 0) for each in differences]
    length = jnp.sqrt(_square(known))
    unit = jnp.where(size == 0, 1, size) * jnp.where(length == 0, 1, length)
    directions = [jax.lax.stop_gradient(jnp.conj(each) / unit) for each in known]
    total = sum(
        (jnp.sum(jnp.real(each * way)) for each, way in zip(errors, directions, strict=True)), jnp.zeros((), FLOAT64)
    )
    return total, jnp.sqrt(_square(differences)) / jnp.where(size == 0, 1, size)
