"""Which rules are in force: an argument, else the innermost scope, else the default of the process."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Generator, Hashable, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, ParamSpec, Protocol, TypeVar

from supremum.rules.registry import FOLLOWS_JAX, canonical_name, find_rules
from supremum.rules.rule_set import RuleSet

P = ParamSpec("P")
R = TypeVar("R")


class Watcher(Protocol):
    """Who wants to know of every decision that is carried out, such as a counter of conversions."""

    def note(self, plan: Any, raws: Sequence[Any]) -> None:
        """A plan is about to be carried out on these operands."""
        ...


class Scope:
    """The rules of a `with` block, and the block around it; the outermost one holds the default of the process.

    Args:
        rules: the rules.
        outer: the block around it.
        watcher: who watches it; None for who watches the block around it.
    """

    __slots__ = ("key", "outer", "rules", "watcher")

    def __init__(self, rules: str | RuleSet, outer: Scope | None, watcher: Watcher | None = None) -> None:
        self.rules = rules
        self.outer = outer
        self.watcher = outer.watcher if watcher is None and outer is not None else watcher
        # What prepared operations are kept by: nothing that is prepared is found while somebody watches.
        self.key: Hashable = rules if self.watcher is None else self


_PROCESS = Scope(FOLLOWS_JAX, None)
# A context variable: asyncio tasks inherit it and keep theirs apart, new threads start with the default.
SCOPE: ContextVar[Scope] = ContextVar("rules", default=_PROCESS)
_jax_contexts: list[Any] = []


def get_rules(rules: str | RuleSet | None = None) -> RuleSet:
    """The rule set of a name, or the one in force.

    Args:
        rules: a name, a rule set (returned as it is), or None for the rules in force: those of the innermost
            `use_rules`, else those of `set_default_rules`, else `"jax"`. `"jax"` stands for `jax-x64` or `jax-x32`,
            whichever JAX's own flag says now; where JAX has not been imported, for `jax-x64`.

    Raises:
        UnknownNameError: for an unknown name; the message has the near ones.

    >>> with use_rules("tf-rfc-safe"):
    ...     get_rules().name, get_rules("paddle").name
    ('tf-rfc-safe', 'paddle')
    """
    asked = SCOPE.get().rules if rules is None else rules
    return asked if isinstance(asked, RuleSet) else find_rules(asked)


def set_default_rules(rules: str | RuleSet) -> None:
    """Set the rules of the whole process, for wherever no scope and no argument says otherwise.

    Args:
        rules: a rule set or its name.

    Raises:
        UnknownNameError: for an unknown name; the default stays what it was.
    """
    if not isinstance(rules, RuleSet):
        canonical_name(rules)
    _PROCESS.rules = _PROCESS.key = rules
    context = _jax_context()
    if context is not None:
        context.set_global(rules)


class use_rules:  # noqa: N801 (a context manager, named like the verb it is)
    """Put rules in force for the time of a block, or of every call of a function.

    Args:
        rules: a rule set or its name.

    Raises:
        UnknownNameError: for an unknown name.

    Asyncio tasks inherit the scope they are started in; new threads start from the default. Where JAX is loaded the
    scope is part of its cache key, so that a function jitted under one rule set is traced again under another. (JAX
    keeps its key per thread: do not hold a scope open across an `await` while other tasks call jitted functions.)

    >>> import supremum
    >>> with use_rules("numpy"):
    ...     supremum.result_type("int32", "float32")
    dtype('float64')
    >>> @use_rules("torch")
    ... def f():
    ...     return supremum.result_type("int64", "float16")
    >>> f()
    dtype('float16')
    """

    def __init__(self, rules: str | RuleSet) -> None:
        if not isinstance(rules, RuleSet):
            canonical_name(rules)
        self.rules = rules
        self._entered: list[Any] = []

    def __enter__(self) -> RuleSet:
        """Put the rules in force, and return them."""
        self._entered.append(_enter(Scope(self.rules, SCOPE.get())))
        return get_rules(self.rules)

    def __exit__(self, *exception: object) -> None:
        """Put the outer rules in force again."""
        _leave(self._entered.pop())

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        """A function that runs under these rules; of a coroutine function, one whose awaited body does."""
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def awaited(*args: P.args, **kwargs: P.kwargs) -> Any:
                with use_rules(self.rules):
                    return await function(*args, **kwargs)

            return awaited  # pyright: ignore[reportReturnType] (it is what R is for a coroutine function)

        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            name = function.__qualname__
            raise TypeError(f"use_rules cannot decorate the generator {name}: write `with use_rules(...):` inside it")

        @functools.wraps(function)
        def called(*args: P.args, **kwargs: P.kwargs) -> R:
            with use_rules(self.rules):
                return function(*args, **kwargs)

        return called


@contextmanager
def watching(watcher: Watcher) -> Generator[None]:
    """Let somebody know of every decision that is carried out in a block, under the rules that are in force around it.

    Functions that JAX has compiled before are traced again in it.

    Args:
        watcher: who.
    """
    outer = SCOPE.get()
    entered = _enter(Scope(outer.rules, outer, watcher))
    try:
        yield
    finally:
        _leave(entered)


def _enter(scope: Scope) -> Any:
    """Put a scope in force; what it gives is for leaving."""
    SCOPE.set(scope)
    context = _jax_context()
    manager = None if context is None else context(scope.key)
    if manager is not None:
        manager.__enter__()
    return manager


def _leave(entered: Any) -> None:
    outer = SCOPE.get().outer
    assert outer is not None  # it was entered
    SCOPE.set(outer)
    if entered is not None:
        entered.__exit__(None, None, None)
    else:
        _jax_context()  # JAX may have been loaded inside: what it traced there must not be found out here


def _jax_context() -> Any:
    """JAX's side of the scope, made when JAX is first seen to be loaded; None before."""
    if not _jax_contexts and (jax := sys.modules.get("jax")) is not None and hasattr(jax, "make_user_context"):
        context: Any = jax.make_user_context(default_value=None)
        if _PROCESS.rules != FOLLOWS_JAX:
            context.set_global(_PROCESS.rules)
        _jax_contexts.append(context)
    return _jax_contexts[0] if _jax_contexts else None
