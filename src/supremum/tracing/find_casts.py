"""Every cast in a JAX program, and what caused it."""

from __future__ import annotations

import inspect
import math
from collections import Counter
from collections.abc import Callable, Generator, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
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
from supremum.promotion import explain
from supremum.tracing.cast import OR, Cast, ErrorChange, HiddenPromotion
from supremum.tracing.classify import CastClassifier, as_method, promotion_of_caller
from supremum.tracing.expressions import known_dtype
from supremum.tracing.jitted_calls import JittedCall, described, watch_jitted
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
        call = _Call(function, args, kwargs)
        return find_widened(call.trace(), cost=cost, call=call).report

    return report


class _Call:
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
            given = list(leaves)
            for index, value in zip(self._traced, values, strict=True):
                given[index] = value
            args, kwargs = self._tree.unflatten(given)
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


def find_widened(program: ClosedJaxpr | Jaxpr, *, cost: bool, call: _Call | None = None) -> WidenedProgram:
    """Find the casts of a traced program.

    Args:
        program: the program.
        cost: whether to find the equations that are wider because of them, and by how many bytes.
        call: the call that was traced, to try fixes; None if it is unknown.
    """
    classifier = CastClassifier()
    flow = WideningFlow(classifier.origin_of)
    found: list[Cast] = []
    hidden: dict[int, dict[HiddenPromotion, None]] = {}
    extra: Counter[int] = Counter()
    widened: dict[int, int] = {}
    met: dict[int, tuple[int, ...]] = {}
    for place, site in enumerate(walk(program)):
        times = site.trips if site.used else 0
        here = [classifier.classify(site, operand, target, times) for operand, target in _conversions(site.equation)]
        found += here
        first = flow.visit(site, here)
        for number, aval in flow.widened_results(site) if cost and times != 0 else ():
            widened[place], met[place] = number, flow.met
            wider = found[number].target.itemsize - found[number].source.itemsize
            extra[number] += math.prod(aval.shape) * wider * (1 if times is None else times)
        if first is not None and times != 0 and _same_category(found[first]):
            promotion = classifier.hidden(site, flow.is_widened, found[first].source)
            if promotion is not None:
                hidden.setdefault(first, {})[promotion] = None
    trials = None if call is None else _FixTrials(call, program, classifier)
    for number, sources in flow.handed.items():
        if flow.cause(number) == number:
            fix = "" if trials is None else trials.fix(found[number], sources)
            found[number] = replace(promotion_of_caller(found[number]), fix=fix)
    if not cost:
        return WidenedProgram(CastReport(_in_order(found, flow, _roots(found, flow, hidden, None))), {}, frozenset())
    of_roots: Counter[int] = Counter()
    for number, count in extra.items():
        of_roots[flow.cause(number)] += count
    roots = _roots(found, flow, hidden, of_roots)
    return WidenedProgram(
        CastReport(_in_order(found, flow, roots)),
        {place: roots[flow.cause(number)] for place, number in widened.items()},
        frozenset(place for place, numbers in met.items() if any(flow.cause(number) == number for number in numbers)),
    )


class _FixTrials:
    """Casts of arguments that undo promotions, each shown only if the program traced again with it has none.

    Args:
        call: the call that was traced.
        program: the traced program.
        classifier: the classifier of its casts.
    """

    def __init__(self, call: _Call, program: ClosedJaxpr | Jaxpr, classifier: CastClassifier) -> None:
        self._call = call
        self._inputs = call.inputs(program)
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
            f"{self._tried(cast, narrow, cast.target)} to compute in {cast.target}",
            f"{self._tried(cast, wide, cast.source)} to stay in {cast.source}",
        ]
        return OR.join(choice for choice in choices if not choice.startswith(" "))

    def _tried(self, cast: Cast, source: Hashable, dtype: DType) -> str:
        number = self._inputs.get(source)
        if number is None:
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


def _roots(
    found: Sequence[Cast],
    flow: WideningFlow,
    hidden: Mapping[int, Iterable[HiddenPromotion]],
    extra: Mapping[int, int] | None,
) -> dict[int, Cast]:
    """The casts that follow from no other, by their numbers, with what is known about them at the end."""
    causes = [flow.cause(number) for number in range(len(found))]
    asked = {number: found[by] for number, by in flow.asked_for.items()}
    elsewhere = {cause for number, cause in enumerate(causes) if found[number].place != found[cause].place}
    roots: dict[int, Cast] = {}
    for number in {*causes}:
        cast = found[number]
        fix = cast.fix
        if not fix and cast.kind != "promotion" and number in elsewhere and cast.expression and _same_category(cast):
            fix = f"{as_method(cast.expression, cast.source)} to go on in {cast.source}"
        roots[number] = replace(
            cast,
            fix=fix,
            asked_for=asked.get(number),
            hides=tuple(hidden.get(number, ())),
            extra_bytes=None if extra is None else extra.get(number, 0),
        )
    return roots


def _in_order(found: Sequence[Cast], flow: WideningFlow, roots: Mapping[int, Cast]) -> tuple[Cast, ...]:
    """The casts, those that move the most bytes first, each with the cast that it follows from."""
    causes = [flow.cause(number) for number in range(len(found))]
    casts = [
        roots[number] if number == cause else replace(found[number], cause=roots[cause])
        for number, cause in enumerate(causes)
    ]
    # The sort is stable: casts that move as many bytes stay in program order.
    return tuple(sorted(casts, key=lambda cast: largest_first(cast.total_bytes)))


def _conversions(equation: JaxprEqn) -> Iterator[tuple[Any, DType]]:
    """The operands that an equation converts, each with its dtype afterwards."""
    operands = [aval_of(atom) for atom in equation.invars]
    if equation.primitive is p.convert_element_type_p:
        wanted = [(operands[0], aval_of(equation.outvars[0]).dtype)]
    elif equation.primitive is p.pow_p:
        # A power accepts an integer exponent and casts it.
        wanted = [(operands[1], operands[0].dtype)]
    elif equation.primitive is p.dot_general_p:
        # A product accepts two dtypes and casts the operands, unless it names the format to read them in.
        left, right = operands
        if isinstance(parameter(equation, "precision"), (jax.lax.DotAlgorithm, jax.lax.DotAlgorithmPreset)):
            return
        met = explain(left, right, rules="jax")
        target = met.dtype if met else aval_of(equation.outvars[0]).dtype
        wanted = [(left, target), (right, target)]
    else:
        return
    for operand, target in wanted:
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
        return described(self.name, self.arguments)


@contextmanager
def record_jitted() -> Generator[list[Recorded]]:
    """Record the functions that are jitted and called in a block.

    The block replaces `jax.jit`, so use it only to run a whole program that has not been imported before. A function
    that another jitted function calls is part of that function. Functions jitted before the block and code outside
    jitted functions are not recorded.

    >>> import jax.numpy as jnp
    >>> with record_jitted() as recorded:
    ...     _ = jax.jit(lambda x, y: x + y)(jnp.ones(2, "bfloat16"), jnp.ones(2))
    >>> [(each.arguments, len(each.report)) for each in recorded]
    [(('bfloat16[2]', 'float32[2]'), 1)]
    """
    recorded: list[Recorded] = []

    def record(call: JittedCall) -> None:
        report = find_widened(call.program, cost=False, call=_Call(call.function, call.args, call.kwargs)).report
        recorded.append(Recorded(call.name, call.types, report))

    with watch_jitted(record):
        yield recorded
