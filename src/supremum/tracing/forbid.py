"""`forbid_casts`, which refuses casts in a function or in a block."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from fnmatch import fnmatch
from types import TracebackType
from typing import Any, ParamSpec, TypeAlias, TypeVar

import jax

from supremum.argument_checks import chosen, iterable, text
from supremum.bounded_cache import Bounded
from supremum.errors import ArgumentError, SupremumError, UnknownNameError
from supremum.rules import RuleSet, get_rules, rule_names
from supremum.tracing.cast import CLASSES, Cast
from supremum.tracing.find_casts import casts
from supremum.tracing.report import CastReport
from supremum.tracing.strict_promotion_errors import promotion_in

P = ParamSpec("P")
R = TypeVar("R")

_SHOWN = 20
Allowed: TypeAlias = "str | RuleSet"
"""A rule set or its name, a class of casts, or a pattern of file names."""


class ForbiddenCastError(SupremumError, TypeError):
    """A program has forbidden casts.

    Args:
        casts: the casts.
        message: the message; None for a description of each cast.

    Attributes:
        casts: as given.
    """

    def __init__(self, casts: tuple[Cast, ...], message: str | None = None) -> None:
        self.casts = casts
        super().__init__(_message(casts) if message is None else message)

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (self.casts, str(self)))


def forbid_casts(*kinds: str, allow: Allowed | Iterable[Allowed] = ()) -> Forbidding:
    """Raise if a program casts; the error shows the lines that cast and what to write instead.

    As a decorator it checks the program of a function before the function runs, once for each combination of shapes
    and dtypes. As a context manager it turns on JAX's strict promotion in the block. That applies to everything that
    runs there, libraries included, and can only forbid all promotions.

    Args:
        kinds: the classes of casts to forbid: `"promotion"`, `"explicit"`, `"library"`, `"autocast"`, `"unknown"`, or
            `"all"`. Without any, promotions are forbidden.
        allow: exceptions: a rule set or its name, to allow its promotions; classes; file name patterns.

    Raises:
        UnknownNameError: for any other name.

    >>> import jax.numpy as jnp
    >>> @forbid_casts()
    ... def scale(x, w):
    ...     return x * w
    >>> scale(jnp.ones(3), jnp.ones(3)).dtype
    dtype('float32')
    >>> scale(jnp.ones(3), jnp.ones(3, "bfloat16"))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    supremum.tracing.forbid.ForbiddenCastError: 1 cast that is forbidden here:
      ...
    """
    return Forbidding(Forbidden.of(kinds or ("promotion",), allow))


@dataclass(frozen=True, slots=True)
class Forbidden:
    """The casts that are forbidden; `cast in forbidden` tests one.

    Args:
        kinds: the forbidden classes.
        rules: rule sets; a promotion is allowed if one of them makes the same one.
        files: shell patterns; casts in matching files are allowed.
    """

    kinds: frozenset[str]
    rules: tuple[RuleSet, ...] = ()
    files: tuple[str, ...] = ()

    @classmethod
    def of(cls, kinds: Iterable[str], allow: Allowed | Iterable[Allowed]) -> Forbidden:
        """Parse the arguments of `forbid_casts`.

        Args:
            kinds: classes, or `"all"`.
            allow: exceptions: rule sets, classes, and file name patterns, which contain a dot, a slash or a star.

        Raises:
            UnknownNameError: for any other name.

        >>> sorted(Forbidden.of(["all"], ["explicit", "*/layers/*.py"]).kinds)
        ['autocast', 'library', 'promotion', 'unknown']
        """
        wanted = set[str]()
        for kind in kinds:
            chosen("class of casts", kind, (*CLASSES, "all"))
            wanted |= set(CLASSES) if kind == "all" else {kind}
        rules: list[RuleSet] = []
        files: list[str] = []
        allowed: Any = (allow,) if isinstance(allow, (str, RuleSet)) else allow
        for each in iterable("allow", allowed, "classes of casts, rule sets and file patterns"):
            if isinstance(each, RuleSet) or text("what is allowed", each) in rule_names():
                rules.append(get_rules(each))
            elif each in CLASSES:
                wanted.discard(each)
            elif any(mark in each for mark in "./*\\"):
                files.append(each)
            else:
                raise UnknownNameError("class, rule set or file pattern", each, (*CLASSES, *rule_names()))
        return cls(frozenset(wanted), tuple(rules), tuple(files))

    def __contains__(self, cast: Cast) -> bool:
        if cast.kind not in self.kinds or cast.times == 0:
            return False
        if any(fnmatch(cast.file, pattern) for pattern in self.files):
            return False
        return cast.kind != "promotion" or not any(_makes_promotion(rules, cast) for rules in self.rules)


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
            key = _key(args, kwargs)
            if key is None or key not in seen:
                self.check(casts(function)(*args, **kwargs))
                seen[key] = None
            return function(*args, **kwargs)

        return checked

    def check(self, report: CastReport) -> None:
        """Check a report.

        Raises:
            ForbiddenCastError: if it has forbidden casts.
        """
        found = tuple(cast for cast in report if cast in self._forbidden)
        if found:
            raise ForbiddenCastError(found)

    def __enter__(self) -> Forbidding:
        if self._forbidden != Forbidden(frozenset({"promotion"})):
            raise ArgumentError(
                "As a context manager, forbid_casts() takes no arguments and refuses all promotions; to use other "
                "classes or allow=, decorate the function: forbid_casts(...)(function)"
            )
        strict = jax.numpy_dtype_promotion("strict")
        strict.__enter__()
        self._strict.append(strict)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._strict.pop().__exit__(kind, error, traceback)
        message = None if error is None else promotion_in(error)
        if message is not None:
            raise ForbiddenCastError((), message) from error


def _makes_promotion(rules: RuleSet, cast: Cast) -> bool:
    if cast.decision is None:
        return False
    decision = rules.decide(cast.decision.operation, cast.decision.operands)
    return any(each.source == cast.source and each.target == cast.target for each in decision.casts)


def _key(args: Any, kwargs: Any) -> Any:
    """A hashable key of everything that the program depends on; None if an argument is not hashable."""
    leaves, tree = jax.tree.flatten((args, kwargs))
    types = (
        (leaf.shape, leaf.dtype, getattr(leaf, "weak_type", False)) if hasattr(leaf, "dtype") else leaf
        for leaf in leaves
    )
    key = (tree, *types)
    try:
        hash(key)
    except TypeError:
        return None
    return key


def _message(casts: tuple[Cast, ...]) -> str:
    lines = [f"{len(casts)} {'cast that is' if len(casts) == 1 else 'casts that are'} forbidden here:"]
    for cast in casts[:_SHOWN]:
        lines.append(f"  {cast.where}: {cast.expression}")
        lines.append(f"    {cast.kind}: {cast.source} -> {cast.target}, {cast.reason}")
        if cast.operands:
            lines.append(f"    operands: {', '.join(cast.operands)}")
        lines += [f"    called from {at} ({at.function}): {text}" for at, text in reversed(cast.path[:-1])]
        if cast.fix:
            lines.append(f"    fix: {cast.fix}")
    if len(casts) > _SHOWN:
        lines.append(f"  ... and {len(casts) - _SHOWN} more; the .casts of this error has all of them")
    return "\n".join(lines)
