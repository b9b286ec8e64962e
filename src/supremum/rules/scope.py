"""Rule sets by name, and the rules in force: those of an argument, of the innermost scope, or of the process.

The module of a rule set is imported on first use of its name.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any, ClassVar, Protocol, TypeAlias

from supremum.rules.names import FOLLOWS_JAX, HOMES, JAX_ALIASES, RuleName, canonical_name
from supremum.rules.rule_set import RuleSet
from supremum.rules.shared_cache import Memory
from supremum.scoped_values import Block, BlockDecorator, Blocks

RulesLike: TypeAlias = RuleName | str | RuleSet
"""A rule set or its name. Editors complete the names; a name may also be any str, such as one read from a file."""
_MEMORIES: dict[str, Memory] = {name: Memory(name) for name in (*JAX_ALIASES, *HOMES)}


def memory_of(rules: RulesLike) -> Memory:
    """The caches of a rule set, or of a name, which may stand for several rule sets.

    Args:
        rules: the rule set or its name.

    Raises:
        KeyError: for an unknown name.
    """
    return _MEMORIES[rules] if isinstance(rules, str) else rules.memory


def find_rules(name: str, *, in_jax: bool = True) -> RuleSet:
    """Find a rule set by name.

    Args:
        name: the name.
        in_jax: as for `canonical_name`.

    Raises:
        UnknownNameError: for an unknown name; the message suggests similar ones.

    >>> find_rules("jax-x32").summary
    'JAX as it starts, with jax_enable_x64 off: 64-bit dtypes are held in 32 bits'
    >>> find_rules("jax-64")
    Traceback (most recent call last):
        ...
    supremum.errors.UnknownNameError: unknown rule set 'jax-64': did you mean 'jax-x64'?
    """
    return _load(canonical_name(name, in_jax=in_jax))


@cache
def _load(name: str) -> RuleSet:
    module, attribute = HOMES[name]
    return getattr(importlib.import_module(f"supremum.rules.{module}"), attribute)


def _is_named(rules: RulesLike) -> bool:
    """Whether rules are a name, or the rule set of one."""
    return isinstance(rules, str) or (rules.name in HOMES and find_rules(rules.name) is rules)


class Watcher(Protocol):
    """An observer of every decision that is carried out, such as a counter of conversions."""

    def note(self, plan: Any, raws: Sequence[Any]) -> None:
        """Record a plan that is about to be carried out on these operands."""
        ...


class Scope(Block):
    """The rules of a `with` block, and the block around it; the outermost one holds the default of the process.

    Args:
        rules: the rules.
        outer: the block around it.
        watcher: the object that watches it; None for the watcher of the block around it.
        owner: the object that removes it again.

    Attributes:
        is_named: whether the rules have a name, so that there are few such scopes, and nothing watches it.
    """

    __slots__ = ("_own_watcher", "is_named", "memory", "rules", "watcher")

    def __init__(
        self, rules: RulesLike, outer: Scope | None, watcher: Watcher | None = None, owner: object = None
    ) -> None:
        self.rules: RulesLike = rules
        self._own_watcher = watcher
        self.watcher: Watcher | None = outer.watcher if watcher is None and outer is not None else watcher
        # With a watcher, the caches of prepared operations start empty, and functions are traced again.
        self.memory: Memory = memory_of(rules) if self.watcher is None else Memory(self)
        self.is_named: bool = self.watcher is None and _is_named(rules)
        super().__init__(owner, outer, self.memory.key)

    def within(self, outer: Any) -> Scope:
        """The block nested in another block."""
        return Scope(self.rules, outer, self._own_watcher, self.owner)


def _fix(scope: Scope) -> str:
    rules = repr(scope.rules if isinstance(scope.rules, str) else scope.rules.name)
    return f"the rules {rules} are in force in this task; decorate its coroutine function with @use_rules({rules})"


_PROCESS = Scope(FOLLOWS_JAX, None)
# Asyncio tasks inherit the scope in force and keep separate scopes from then on; new threads start with the default.
_scopes = Blocks("rules", _PROCESS, _fix)
SCOPE: ContextVar[Scope] = _scopes.innermost
"""The scope in force, for code that JAX does not trace."""
IN_JAX = _scopes.thread
"""Its `synced` is the scope in the cache key of JAX in this thread; if it is the scope in force, no check is needed."""
jax_context, sync_jax_context = _scopes.jax_context, _scopes.sync_jax_context
scope_in_force: Callable[[], Scope] = _scopes.current


def get_rules(rules: RulesLike | None = None, *, in_jax: bool = True) -> RuleSet:
    """Find a rule set by name, or the one in force.

    Args:
        rules: a name, a rule set (returned as it is), or None for the rules in force: those of the innermost
            `use_rules`, else those of `set_default_rules`, else `"jax"`. `"jax"` and `"jax-strict"` stand for the rule
            set that JAX's flags select now, or will select once JAX is loaded.
        in_jax: True if JAX holds the arrays, or if there are none; it matters for these two names only. For arrays of
            other libraries they stand for `jax-x64` and `jax-strict-x64`.

    Raises:
        UnknownNameError: for an unknown name; the message suggests similar ones.
        ScopeError: if JAX is tracing under rules that differ from those in force.

    >>> with use_rules("tf-rfc-safe"):
    ...     get_rules().name, get_rules("paddle").name
    ('tf-rfc-safe', 'paddle')
    """
    asked = scope_in_force().rules if rules is None else rules
    return asked if isinstance(asked, RuleSet) else find_rules(asked, in_jax=in_jax)


def set_default_rules(rules: RulesLike) -> None:
    """Set the default rules of the process, which apply without a scope or an argument.

    Args:
        rules: a rule set or its name.

    Raises:
        UnknownNameError: for an unknown name; the default does not change.

    >>> import supremum
    >>> set_default_rules("torch")
    >>> supremum.result_type("int64", "float16")
    dtype('float16')
    >>> set_default_rules("jax")
    """
    if not isinstance(rules, RuleSet):
        canonical_name(rules)
    _PROCESS.rules, _PROCESS.memory, _PROCESS.is_named = rules, memory_of(rules), _is_named(rules)
    _PROCESS.key = _PROCESS.memory.key
    _scopes.sync_all_threads(_PROCESS.key)


class use_rules(BlockDecorator[Scope]):  # noqa: N801 (a context manager that reads as a verb)
    """Apply rules inside a `with` block, or in every call of a decorated function.

    Args:
        rules: a rule set or its name.

    Raises:
        UnknownNameError: for an unknown name.

    Asyncio tasks inherit the scope they are started in; new threads start from the default. Scopes may end in any
    order. Once JAX is loaded, the scope is part of its cache key: a function jitted under one rule set is traced again
    under another.

    JAX keeps what it traces and compiles under a rule set until `jax.clear_caches()`, also once that is dropped.
    An operation on an `Array` is compiled once for all rule sets that decide it alike. Functions of `jax.numpy` and
    functions that you jit are compiled for each; make a rule set once, and not at every call.

    JAX keeps that key per thread and does not know when asyncio switches tasks. So decorate a coroutine function that
    awaits under rules and calls jitted functions. Its rules and inner scopes then apply whenever its body runs, and not
    while it waits. With a bare `with` block around an `await`, tracing a function under rules that differ from those of
    its task raises a `ScopeError`; a call of a function that was traced before goes unnoticed.

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

    _blocks: ClassVar[Blocks[Scope]] = _scopes

    def __init__(self, rules: RulesLike) -> None:
        if not isinstance(rules, RuleSet):
            canonical_name(rules)
        self.rules = rules

    def _make_block(self, owner: object) -> Scope:
        """Make the scope of the rules inside the one in force."""
        return Scope(self.rules, SCOPE.get(), owner=owner)

    def __enter__(self) -> RuleSet:
        """Apply the rules, and return them."""
        self._blocks.enter_block(self._make_block(self))
        return get_rules(self.rules)

    def __repr__(self) -> str:
        return f"use_rules({self.rules if isinstance(self.rules, RuleSet) else repr(self.rules)})"


@contextmanager
def watching(watcher: Watcher) -> Generator[None]:
    """Notify a watcher of every decision in a block, under the rules in force around it.

    JAX traces functions again in the block, even those that it compiled before.

    Args:
        watcher: the object to notify.
    """
    outer, owner = SCOPE.get(), object()
    _scopes.enter_block(Scope(outer.rules, outer, watcher, owner))
    try:
        yield
    finally:
        _scopes.leave(owner)
