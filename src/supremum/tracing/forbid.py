"""`forbid_casts`, which refuses casts in a function or in a block."""

from __future__ import annotations

import functools
import os
from collections import ChainMap
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from fnmatch import fnmatch
from types import FrameType, TracebackType
from typing import Any, ParamSpec, TypeAlias, TypeVar

import jax

from supremum.argument_checks import chosen, iterable, text
from supremum.bounded_cache import Bounded
from supremum.decisions import Decision
from supremum.errors import ArgumentError, OperandError, SupremumError, UnknownDtypeError, UnknownNameError
from supremum.jaxprs import BETWEEN, USER, Position, call_key, position_of
from supremum.operands import as_operand
from supremum.reports import plural
from supremum.rules import RuleSet, RulesLike, get_rules, rule_names
from supremum.tracing.baseline import Baseline
from supremum.tracing.cast import CLASSES, Cast
from supremum.tracing.classify import fix_of, has_cast
from supremum.tracing.expressions import UNRESOLVED, Sources, operand_nodes, value_of
from supremum.tracing.find_casts import casts

P = ParamSpec("P")
R = TypeVar("R")

_SHOWN = 20
Allowed: TypeAlias = RulesLike
"""A rule set or its name, a class of casts, or a pattern of file names."""


class ForbiddenCastError(SupremumError, TypeError):
    """A program has forbidden casts.

    Args:
        casts: the casts.
        message: the message; None for a description of each cast.

    Attributes:
        casts: as given.

    >>> import jax.numpy as jnp
    >>> try:
    ...     forbid_casts()(lambda x, w: x * w)(jnp.ones(4, "bfloat16"), jnp.ones(4))
    ... except ForbiddenCastError as error:
    ...     print(*(cast.expression for cast in error.casts))
    x * w
    """

    def __init__(self, casts: tuple[Cast, ...], message: str | None = None) -> None:
        self.casts = casts
        super().__init__(_message(casts) if message is None else message)

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (self.casts, str(self)))


def forbid_casts(
    *kinds: str, allow: Allowed | Iterable[Allowed] = (), baseline: Baseline | str | os.PathLike[str] | None = None
) -> Forbidding:
    """Raise if a program casts; the error shows the lines that cast and what to write instead.

    As a decorator it checks the program of a function before the function runs, once for each combination of shapes
    and dtypes. As a context manager it turns on JAX's strict promotion in the block. That applies to everything that
    runs there, libraries included, and can only forbid all promotions.

    Args:
        kinds: the classes of casts to forbid: `"promotion"`, `"conversion"`, `"explicit"`, `"library"`, `"autocast"`,
            `"unknown"`, or `"all"`. Without any, promotions are forbidden.
        allow: exceptions: a rule set or its name, to allow its promotions; classes; file name patterns.
        baseline: the casts that are known already, or the file with them; only others are refused.

    Raises:
        UnknownNameError: for any other name.
        FileError: if the file of the baseline is missing or is not a baseline.

    >>> import jax.numpy as jnp
    >>> @forbid_casts()
    ... def scale(x, w):
    ...     return x * w
    >>> scale(jnp.ones(3), jnp.ones(3)).dtype
    dtype('float32')
    >>> scale(jnp.ones(3), jnp.ones(3, "bfloat16"))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    supremum.tracing.forbid.ForbiddenCastError: 1 forbidden cast:
      ...
    """
    return Forbidding(Forbidden.of(kinds or ("promotion",), allow, baseline))


@dataclass(frozen=True, slots=True)
class Forbidden:
    """The casts that are forbidden.

    Args:
        kinds: the forbidden classes.
        rules: rule sets; a promotion or a conversion is allowed if one of them makes the same one.
        files: shell patterns; casts in matching files are allowed.
        baseline: the casts that are known already and allowed.
        undecided: whether casts that may be promotions are forbidden where promotions are.
    """

    kinds: frozenset[str]
    rules: tuple[RuleSet, ...] = ()
    files: tuple[str, ...] = ()
    baseline: Baseline | None = None
    undecided: bool = True

    @classmethod
    def of(
        cls,
        kinds: Iterable[str],
        allow: Allowed | Iterable[Allowed],
        baseline: Baseline | str | os.PathLike[str] | None = None,
    ) -> Forbidden:
        """Parse the arguments of `forbid_casts`.

        Args:
            kinds: classes, or `"all"`.
            allow: exceptions: rule sets, classes, and file name patterns, which contain a dot, a slash or a star.
            baseline: the casts that are known already, or the file with them.

        Raises:
            UnknownNameError: for any other name.
            FileError: if the file of the baseline is missing or is not a baseline.

        >>> sorted(Forbidden.of(["all"], ["explicit", "*/layers/*.py"]).kinds)
        ['autocast', 'conversion', 'library', 'promotion', 'unknown']
        """
        forbidden = set[str]()
        for kind in kinds:
            chosen("class of casts", kind, (*CLASSES, "all"))
            forbidden |= set(CLASSES) if kind == "all" else {kind}
        rules: list[RuleSet] = []
        files: list[str] = []
        undecided = True
        allowed: Any = (allow,) if isinstance(allow, (str, RuleSet)) else allow
        for each in iterable("allow", allowed, "classes of casts, rule sets and file patterns"):
            if isinstance(each, RuleSet) or text("what is allowed", each) in rule_names():
                rules.append(get_rules(each))
            elif each in CLASSES:
                forbidden.discard(each)
                undecided = undecided and each != "unknown"
            elif any(mark in each for mark in "./*\\"):
                files.append(each)
            else:
                raise UnknownNameError("class, rule set or file pattern", each, (*CLASSES, *rule_names()))
        known_casts = baseline if baseline is None or isinstance(baseline, Baseline) else Baseline.read(baseline)
        return cls(frozenset(forbidden), tuple(rules), tuple(files), known_casts, undecided)

    def among(self, report: Iterable[Cast]) -> tuple[Cast, ...]:
        """The forbidden casts of a program, roots before the casts that follow from them.

        Args:
            report: the casts of the program.
        """
        return tuple(cast for cast in self.new(report) if cast in self)

    def new(self, report: Iterable[Cast]) -> tuple[Cast, ...]:
        """The casts of a program that the baseline does not have, roots before the casts that follow from them.

        Args:
            report: the casts of the program.
        """
        casts = sorted(report, key=lambda cast: cast.cause is not None)
        return tuple(casts) if self.baseline is None else self.baseline.new(casts)

    def __contains__(self, cast: Cast) -> bool:
        """Whether a cast is forbidden unless the baseline knows it."""
        # What may be a promotion counts as one: a check that could not look fails.
        is_undecided = self.undecided and cast.may_be_promotion and cast.kind not in self.kinds
        kind = "promotion" if is_undecided else cast.kind
        if kind not in self.kinds or cast.times == 0:
            return False
        if any(fnmatch(cast.file, pattern) for pattern in self.files):
            return False
        if kind not in ("promotion", "conversion") or cast.decision is None:
            return True
        asked = cast.decision.operation, cast.decision.operands
        return not any(has_cast(rules.decide(*asked), cast.source, cast.target) for rules in self.rules)


class Forbidding(AbstractContextManager["Forbidding"]):
    """The decorator and context manager that `forbid_casts` returns.

    Args:
        forbidden: the casts to refuse.
    """

    def __init__(self, forbidden: Forbidden) -> None:
        self._forbidden = forbidden
        self._strict: list[Any] = []

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        """Wrap a function to raise before it runs if its program has forbidden casts."""
        seen: Bounded[Any, None] = Bounded(4096)

        @functools.wraps(function)
        def checked(*args: P.args, **kwargs: P.kwargs) -> R:
            key = call_key((args, kwargs))
            if key is None or key not in seen:
                if forbidden := self._forbidden.among(casts(function)(*args, **kwargs)):
                    raise ForbiddenCastError(forbidden)
                seen[key] = None
            return function(*args, **kwargs)

        return checked

    def __enter__(self) -> Forbidding:
        if self._forbidden != Forbidden(frozenset({"promotion"})):
            raise ArgumentError(
                "As a context manager, forbid_casts() takes no arguments and refuses all promotions; to use other "
                "classes, allow= or baseline=, decorate the function: forbid_casts(...)(function)"
            )
        strict = jax.numpy_dtype_promotion("strict")
        strict.__enter__()
        self._strict.append(strict)
        return self

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        self._strict.pop().__exit__(kind, error, traceback)
        message = None if error is None else _promotion_in(error)
        if message is not None:
            raise ForbiddenCastError((), message) from error


def _message(casts: tuple[Cast, ...]) -> str:
    lines = [f"{plural(len(casts), 'forbidden cast')}:"]
    for cast in casts[:_SHOWN]:
        lines.append(f"  {cast.where}: {cast.expression}")
        lines.append(f"    {cast.kind}: {cast.source} -> {cast.target}, {cast.reason}")
        if cast.operands:
            lines.append(f"    operands: {', '.join(cast.operands)}")
        lines += [f"    called from {at} ({at.function}): {text}" for at, text in reversed(cast.path[:-1])]
        if cast.cause is not None:
            lines.append(f"    follows from {cast.cause.where}: {cast.cause.expression}")
        if cast.fix:
            lines.append(f"    fix: {cast.fix}")
        if cast.may_be_promotion:
            lines.append('    fix: cast in the function that calls it, or accept such casts with allow="unknown"')
    if len(casts) > _SHOWN:
        lines.append(f"  ... and {len(casts) - _SHOWN} more; the .casts of this error has all of them")
    return "\n".join(lines)


def _promotion_in(error: BaseException) -> str | None:
    """The message for a promotion that JAX refused; None for any other error.

    Args:
        error: the error, with its traceback.
    """
    if not isinstance(error, jax.dtypes.TypePromotionError):
        return None
    frames = _frames(error.__traceback__)
    positions = [position for position, _ in frames]
    sources = Sources()
    lines = ["a forbidden promotion:"]
    if not positions:
        return f"{lines[0]} {error}"
    of_user = [position for position in positions if position.owner == USER] or positions
    lines.append(f"  {of_user[-1]}: {sources.text(of_user[-1])}")
    if positions[-1] not in of_user:
        lines.append(f"    in {positions[-1].owner}, at {positions[-1]}: {sources.text(positions[-1])}")
    lines += [f"    called from {at} ({at.function}): {sources.text(at)}" for at in reversed(of_user[:-1])]
    texts, decision = _decision(sources, *frames[-1])
    if decision is None:
        return "\n".join([*lines, f"    {error}"])
    operands = [
        text if operand.value is not None and text == str(operand.value) else f"{text}: {operand}"
        for text, operand in zip(texts, decision.operands, strict=True)
    ]
    lines.append(f"    operands: {', '.join(operands)}")
    cast = next((each for each in decision.casts if each.changes and each.source is not None), None)
    if cast is not None and cast.source is not None:
        in_place = sources.intent(positions[-1]).in_place
        lines.append(f"    fix: {fix_of(decision, texts, cast.source, cast.target, in_place=in_place)}")
    return "\n".join(lines)


def _decision(sources: Sources, position: Position, frame: FrameType) -> tuple[tuple[str, ...], Decision | None]:
    """The source texts of the operands, and what JAX decides about them without strict promotion.

    Args:
        sources: the source files.
        position: the position of the expression.
        frame: the frame that raised there.

    Returns:
        The texts and the decision. There is no decision if the operands cannot be read or were not what JAX refused.
    """
    node, source = sources.node(position), sources.source(position.file)
    operation = sources.intent(position).operation
    nodes = operand_nodes(node)[1 if operation == "where" else 0 :]  # the condition is not promoted
    names: Any = ChainMap(frame.f_locals, frame.f_globals, frame.f_builtins)
    values = [value_of(each, names, in_objects=True) for each in nodes]
    if not nodes or any(value is UNRESOLVED for value in values):
        return (), None
    try:
        operands = tuple(map(as_operand, values))
        refused = get_rules("jax-strict").decide(operation, operands)
        decision = get_rules("jax").decide(operation, operands)
    except (OperandError, UnknownDtypeError, ArgumentError):
        return (), None
    return tuple(map(source.text, nodes)), decision if decision and not refused else None


def _frames(traceback: TracebackType | None) -> list[tuple[Position, FrameType]]:
    """The calls in users' and libraries' code that led to an error, outermost first."""
    frames: list[tuple[Position, FrameType]] = []
    while traceback is not None:
        position = position_of(traceback.tb_frame.f_code, traceback.tb_lasti)
        if position.owner != BETWEEN:
            frames.append((position, traceback.tb_frame))
        traceback = traceback.tb_next
    return frames
