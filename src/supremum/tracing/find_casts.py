"""Every cast in a JAX program, and what caused it."""

from __future__ import annotations

import inspect
import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn
from jax.tree_util import keystr

from supremum.argument_checks import flag
from supremum.formats import DType, as_format
from supremum.jax_compat import open_jaxpr, parameter
from supremum.jax_compat import primitives as p
from supremum.jaxprs import aval_of, lift_objects, walk
from supremum.operands import as_operand
from supremum.rules import get_rules
from supremum.tracing.cast import OR, Cast, ErrorChange, HiddenPromotion
from supremum.tracing.classify import CastClassifier, as_method, promotion_of_caller
from supremum.tracing.expressions import known_dtype
from supremum.tracing.jitted_calls import call_text
from supremum.tracing.report import CastReport
from supremum.tracing.sizes import largest_first
from supremum.tracing.widening import WideningFlow

_TRIALS = 4
"""The number of fixes of one program that are tried; each traces the program again."""


def casts(function: Callable[..., Any], *, cost: bool = False) -> Callable[..., CastReport]:
    """Find every cast that a function makes, and what caused it. Nothing is compiled or run.

    Casts inside `scan`, `while_loop`, `cond`, `checkpoint`, `vmap`, `shard_map`, nested `jit` and functions with custom
    derivatives are found too; docs/casts.md describes the limits.

    Args:
        function: any function that JAX can trace, jitted or not.
        cost: whether to find what each cast that widened first costs: `extra_bytes`, which the report prints beside it.

    Returns:
        A function that takes the same arguments and returns the report. A `jax.ShapeDtypeStruct` can replace an array.

    Raises:
        OperandError: if `cost` is not a bool; a `TypeError`.

    >>> import jax.numpy as jnp
    >>> report = casts(lambda x, w: jnp.sum(x * w))(
    ...     jnp.ones(4, "bfloat16"), jnp.ones(4)
    ... )
    >>> [
    ...     (cast.kind, str(cast.source), str(cast.target), cast.expression)
    ...     for cast in report
    ... ]
    [('promotion', 'bfloat16', 'float32', 'x * w')]
    >>> report = casts(lambda x, w: jnp.tanh(x * w), cost=True)(
    ...     jnp.ones(1000, "bfloat16"), jnp.ones(1000)
    ... )
    >>> report[0].extra_bytes  # of the cast, the product and the tanh
    6000
    """
    flag("cost", cost)

    def report(*args: Any, **kwargs: Any) -> CastReport:
        call = _TraceableCall(function, args, kwargs)
        return find_widened(call.trace(), cost=cost, call=call).report

    return report


class _TraceableCall:
    """A call to trace, also again with an argument of a different dtype.

    Arguments other than arrays and numbers, such as strings, functions and layers that are not pytrees, are passed on
    unchanged; results other than arrays and numbers are dropped. A function made by `jax.jit` is traced as it would be
    called, with its static arguments.

    Args:
        function: any function that JAX can trace.
        args: the positional arguments; a `jax.ShapeDtypeStruct` can replace an array.
        kwargs: the keyword arguments.
    """

    def __init__(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        self._user_function = function
        lift = lift_objects(function, args, dict(kwargs))
        self._states = 0 if lift is None else len(lift.args) - len(args)
        self._function = function if lift is None else lift.function
        self._arguments: Any = (args, dict(kwargs)) if lift is None else (lift.args, lift.kwargs)
        paths, self._tree = jax.tree.flatten_with_path(self._arguments)
        self._leaves = [leaf for _, leaf in paths]
        self._traced = [index for index, leaf in enumerate(self._leaves) if _is_value(leaf)]
        self._paths = [path for path, _ in paths]

    def trace(self, changed: Mapping[int, DType] | None = None) -> ClosedJaxpr:
        """Trace the call.

        Args:
            changed: inputs of the program to trace with a different dtype, by their numbers.

        Raises:
            Exception: any error that the function raises.
        """
        leaves = list(self._leaves)
        for number, dtype in (changed or {}).items():
            place = self._traced[number]
            leaves[place] = jax.ShapeDtypeStruct(np.shape(leaves[place]), dtype)
        trace: Any = getattr(self._function, "trace", None)
        if trace is not None and hasattr(self._function, "lower"):
            args, kwargs = self._tree.unflatten(leaves) if changed else self._arguments
            return trace(*args, **kwargs).jaxpr

        def call(*values: Any) -> Any:
            with_values = list(leaves)
            for index, value in zip(self._traced, values, strict=True):
                with_values[index] = value
            args, kwargs = self._tree.unflatten(with_values)
            return [leaf for leaf in jax.tree.leaves(self._function(*args, **kwargs)) if _is_value(leaf)]

        return jax.make_jaxpr(call)(*(leaves[index] for index in self._traced))

    def inputs(self, program: ClosedJaxpr | Jaxpr) -> dict[Any, int]:
        """The inputs of the traced program with their numbers; empty if the function has static arguments."""
        inputs = open_jaxpr(program).invars
        return {var: number for number, var in enumerate(inputs)} if len(inputs) == len(self._traced) else {}

    def argument(self, number: int) -> tuple[str, bool]:
        """An input of the program as Python would write it, and whether it is an argument by itself."""
        part, key, *rest = self._paths[self._traced[number]]
        name = ""
        if getattr(part, "idx", None) == 1:
            name = str(getattr(key, "key", ""))
        else:
            with suppress(TypeError, ValueError):
                names = list(inspect.signature(self._user_function).parameters)
                place = getattr(key, "idx", 0) - self._states
                name = names[place] if 0 <= place < len(names) else ""
        return f"{name}{keystr(tuple(rest))}", not rest


def _is_value(leaf: Any) -> bool:
    """Whether a leaf is an array or a number."""
    is_number = isinstance(leaf, (bool, int, float, complex, np.generic))
    return is_number or (hasattr(leaf, "shape") and hasattr(leaf, "dtype"))


def casts_of(program: ClosedJaxpr | Jaxpr, *, cost: bool = False) -> CastReport:
    """Find every cast in a traced program.

    Args:
        program: the result of `jax.make_jaxpr`.
        cost: as for `casts`.

    >>> import jax, jax.numpy as jnp
    >>> len(casts_of(jax.make_jaxpr(lambda x: x.astype("float16"))(1.0)))
    1
    """
    flag("cost", cost)
    return find_widened(program, cost=cost).report


@dataclass(frozen=True, slots=True)
class WidenedProgram:
    """The casts of a program, and the equations whose results are wider because of them.

    Args:
        report: the casts.
        widened: for each equation with such a result, by its number in `walk`: the cast that widened first.
        first: those of these equations that belong to the expressions which widened first.
    """

    report: CastReport
    widened: Mapping[int, Cast]
    first: frozenset[int]

    def with_errors(self, errors: Mapping[int, ErrorChange]) -> CastReport:
        """The report with the error of undoing promotions.

        Args:
            errors: the error for each cast that widened first, by its `id`.
        """
        roots = {
            id(cast): replace(cast, narrow_error=errors[id(cast)])
            for cast in self.report
            if cast.cause is None and id(cast) in errors
        }
        return CastReport(tuple(
            roots.get(id(cast), cast) if cast.cause is None
            else replace(cast, cause=roots.get(id(cast.cause), cast.cause))
            for cast in self.report
        ))  # fmt: skip


def find_widened(program: ClosedJaxpr | Jaxpr, *, cost: bool, call: _TraceableCall | None = None) -> WidenedProgram:
    """Find the casts of a traced program.

    Args:
        program: the program.
        cost: whether to find the equations that are wider because of them, and by how many bytes.
        call: the call that was traced, to try fixes; None if it is unknown.
    """
    classifier = CastClassifier()
    flow = WideningFlow(classifier.origin_of)
    unlinked: list[Cast] = []
    hidden: dict[int, dict[HiddenPromotion, None]] = {}
    extra: Counter[int] = Counter()
    widened: dict[int, int] = {}
    combined: dict[int, tuple[int, ...]] = {}
    for site in walk(program):
        times = site.trips if site.used else 0
        new = [classifier.classify(site, operand, target, times) for operand, target in _conversions(site.equation)]
        unlinked += new
        first = flow.visit(site, new)
        for number, aval in flow.widened_results(site) if cost and times != 0 else ():
            widened[site.number], combined[site.number] = number, flow.met
            wider = unlinked[number].target.itemsize - unlinked[number].source.itemsize
            extra[number] += math.prod(aval.shape) * wider * (1 if times is None else times)
        if first is not None and times != 0 and _same_category(unlinked[first]):
            promotion = classifier.hidden(site, flow.is_widened, unlinked[first].source)
            if promotion is not None:
                hidden.setdefault(first, {})[promotion] = None
    trials = _FixTrials(call, program, classifier)
    _promote_handed(unlinked, flow, trials)
    causes = [flow.cause(number) for number in range(len(unlinked))]
    roots = _roots(unlinked, causes, flow, hidden, extra if cost else None)
    casts = [roots.get(number) or replace(unlinked[number], cause=roots[cause]) for number, cause in enumerate(causes)]
    # The sort is stable: casts that move as many bytes stay in program order.
    casts.sort(key=lambda cast: largest_first(cast.total_bytes))
    return WidenedProgram(
        CastReport(tuple(casts)),
        {place: roots[causes[number]] for place, number in widened.items()},
        frozenset(place for place, numbers in combined.items() if any(number in roots for number in numbers)),
    )


def _promote_handed(unlinked: list[Cast], flow: WideningFlow, trials: _FixTrials) -> None:
    """Turn casts of libraries to which the user hands floats of two dtypes into promotions of the user."""
    for number, sources in flow.handed.items():
        if flow.cause(number) == number:
            unlinked[number] = replace(promotion_of_caller(unlinked[number]), fix=trials.fix(unlinked[number], sources))


def _roots(
    unlinked: Sequence[Cast],
    causes: Sequence[int],
    flow: WideningFlow,
    hidden: Mapping[int, Iterable[HiddenPromotion]],
    extra: Mapping[int, int] | None,
) -> dict[int, Cast]:
    """The casts that follow from no other, by their numbers, with what is known about them at the end."""
    elsewhere = {cause for cast, cause in zip(unlinked, causes, strict=True) if cast.place != unlinked[cause].place}
    extra_bytes: Counter[int] = Counter()
    for number, count in (extra or {}).items():
        extra_bytes[causes[number]] += count
    roots: dict[int, Cast] = {}
    for number in {*causes}:
        cast = unlinked[number]
        fix = cast.fix
        if not fix and cast.kind != "promotion" and number in elsewhere and cast.expression and _same_category(cast):
            fix = f"{as_method(cast.expression, cast.source)} to go on in {cast.source}"
        roots[number] = replace(
            cast,
            fix=fix,
            asked_for=unlinked[flow.asked_for[number]] if number in flow.asked_for else None,
            hides=tuple(hidden.get(number, ())),
            extra_bytes=None if extra is None else extra_bytes[number],
        )
    return roots


class _FixTrials:
    """Casts of arguments that undo promotions, each shown only if the program traced again with it has none.

    Args:
        call: the call that was traced; None if it is unknown, so that nothing can be tried.
        program: the traced program.
        classifier: the classifier of its casts.
    """

    def __init__(self, call: _TraceableCall | None, program: ClosedJaxpr | Jaxpr, classifier: CastClassifier) -> None:
        self._call = call
        self._inputs = {} if call is None else call.inputs(program)
        self._classifier = classifier
        self._reports: dict[tuple[int, DType], CastReport | None] = {}

    def fix(self, cast: Cast, sources: tuple[Hashable, Hashable]) -> str:
        """What to write instead of a call that hands a library floats of two dtypes; empty if nothing helps.

        Args:
            cast: the cast of the library.
            sources: where its operand and the wider value come from.
        """
        narrow, wide = sources
        choices = [
            f"{self._try_fix(cast, narrow, cast.target)} to compute in {cast.target}",
            f"{self._try_fix(cast, wide, cast.source)} to stay in {cast.source}",
        ]
        return OR.join(choice for choice in choices if not choice.startswith(" "))

    def _try_fix(self, cast: Cast, source: Hashable, dtype: DType) -> str:
        number = self._inputs.get(source)
        if self._call is None or number is None:
            return ""
        value, is_array = self._call.argument(number)
        text = self._classifier.argument(cast.path[-1][0], value, is_array=is_array)
        key = number, dtype
        if not text or (key not in self._reports and len(self._reports) == _TRIALS):
            return ""
        if key not in self._reports:
            self._reports[key] = None
            with suppress(Exception):  # the function may check its arguments
                self._reports[key] = find_widened(self._call.trace({number: dtype}), cost=False).report
        report = self._reports[key]
        return "" if report is None or _has_promotion(report, cast) else as_method(text, dtype)


def _has_promotion(report: CastReport, cast: Cast) -> bool:
    """Whether a report has promotions in the expression of a cast, or the same step of the library."""
    here = [each for each in report if each.place == cast.place]
    same = [each for each in here if (each.source, each.target, each.reason) == (cast.source, cast.target, cast.reason)]
    return bool(same) or any(each.kind == "promotion" for each in here)


def _same_category(cast: Cast) -> bool:
    return as_format(cast.source).category == as_format(cast.target).category


def _conversions(equation: JaxprEqn) -> Iterator[tuple[Any, DType]]:
    """The operands that an equation converts, each with its dtype afterwards."""
    operands = [aval_of(atom) for atom in equation.invars]
    if equation.primitive is p.convert_element_type_p:
        conversions = [(operands[0], aval_of(equation.outvars[0]).dtype)]
    elif equation.primitive is p.pow_p:
        # A power accepts an integer exponent and casts it.
        conversions = [(operands[1], operands[0].dtype)]
    elif equation.primitive is p.dot_general_p:
        # A product accepts two dtypes and casts the operands, unless it names the format to read them in.
        left, right = operands
        if isinstance(parameter(equation, "precision"), (jax.lax.DotAlgorithm, jax.lax.DotAlgorithmPreset)):
            return
        decision = get_rules("jax").decide("multiply", (as_operand(left), as_operand(right)))
        target = decision.dtype if decision else aval_of(equation.outvars[0]).dtype
        conversions = [(left, target), (right, target)]
    else:
        return
    for operand, target in conversions:
        # A random key and the tangent of an integer have no format. (NumPy says that float64 == None.)
        if operand.dtype != target and all(known_dtype(dtype) is not None for dtype in (operand.dtype, target)):
            yield operand, target


@dataclass(frozen=True, slots=True)
class Recorded:
    """A jitted function with the types of its arguments.

    Args:
        name: the name of the function.
        arguments: the types of the arrays, such as `"float32[8,128]"`.
        report: the casts of the function.
    """

    name: str
    arguments: tuple[str, ...]
    report: CastReport

    def __str__(self) -> str:
        return call_text(self.name, self.arguments)
