"""Values that `with` blocks put in force, separately in each task and thread, whatever the order in which blocks end.

A context variable of Python restores the value from before the block, and so does JAX. That is wrong if blocks do not
nest: of two tasks that take turns, the one that began first may end first; a generator that is closed late ends its
block inside other blocks, perhaps in a different thread. Values in force are therefore a list; a block that ends
removes only its own entry, and then tells JAX the value in force.
"""

from __future__ import annotations

import importlib
import inspect
import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Generator, Hashable
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from copy import copy
from functools import partial, wraps
from types import coroutine
from typing import Any, ClassVar, Generic, ParamSpec, Self, TypeVar

from supremum.errors import OperandError, ScopeError

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


class Block:
    """An entry that one `with` block puts in force.

    Args:
        owner: the object that removes the entry; an owner that is entered twice has two entries.
        outer: the entry around it; None for the default.
        key: JAX's cache key for traced functions, if the entry changes them; None for the key outside all blocks.
    """

    __slots__ = ("key", "outer", "owner")

    def __init__(self, owner: object, outer: Block | None, key: Hashable) -> None:
        self.owner: object = owner
        self.outer: Any = outer
        self.key: Hashable = key

    def within(self, outer: Block) -> Self:
        """The block nested in another block."""
        block = copy(self)
        block.outer = outer
        return block


B = TypeVar("B", bound=Block)


def without(block: B, owner: object) -> B:
    """Return the entry in force after the innermost block of an owner ends.

    Args:
        block: the entry in force now.
        owner: the owner of the block that ends. If the owner has no block in this context, because the block began in a
            different one, nothing changes.
    """
    inner: list[B] = []
    ended = block
    while ended.owner is not owner:
        if ended.outer is None:
            return block
        inner.append(ended)
        ended = ended.outer
    left = ended.outer
    assert left is not None  # the default has no owner
    for each in reversed(inner):
        left = each.within(left)
    return left


class _Thread(threading.local, Generic[B]):
    """The entry in JAX's cache key in this thread, and the blocks that are still open in it."""

    def __init__(self, synced: B) -> None:
        self.synced = synced
        self.open: list[B] = []


class Blocks(Generic[B]):
    """Blocks of one kind, of which the innermost is in force; JAX is informed if they change what it traces.

    JAX stores its state per thread, not per task. A task that waits inside a block leaves that state in place, and JAX
    would cache what is traced meanwhile for the wrong block, so `current` raises then.

    Args:
        name: the name in a debugger.
        always: the entry in force outside all blocks.
        fix: how to trace a function for an entry, for the error; None if JAX need not know.
    """

    def __init__(self, name: str, always: B, fix: Callable[[B], str] | None = None) -> None:
        self.innermost: ContextVar[B] = ContextVar(name, default=always)
        """The entry in force, without the check, for fast reads outside of tracing."""
        self._always = always
        self.thread: _Thread[B] = _Thread(always)
        """The entry in the cache key of JAX in this thread."""
        self._fix = fix
        self._context: Any = None
        self._as_made: Any = None
        if fix is not None:
            self._found_jax()  # JAX would trace again what it traces before

    def current(self) -> B:
        """Return the entry in force.

        Raises:
            ScopeError: if JAX is tracing for a different one.
        """
        block = self.innermost.get()
        entry = self.thread.synced
        if entry is not block and entry.key != block.key and self._fix and self._context is not None and _is_tracing():
            raise ScopeError(self._fix(block))
        return block

    def enter_block(self, block: B) -> None:
        """Put a block in force."""
        self.innermost.set(block)
        self.thread.open.append(block)
        self.sync_jax_context(block)

    def leave(self, owner: object) -> None:
        """Remove the innermost block of an owner, and no other."""
        left = without(self.innermost.get(), owner)
        self.innermost.set(left)
        opened = self.thread.open
        for index in reversed(range(len(opened))):
            if opened[index].owner is owner:
                del opened[index]
                break
        # A task may have inherited a block that has ended since; nothing in this thread would remove it again.
        self.sync_jax_context(left if any(each.owner is left.owner for each in opened) else self._always)

    @coroutine
    def run_in_block(self, block: B, awaited: Coroutine[Any, Any, T]) -> Generator[Any, Any, T]:
        """Await a coroutine with a block in force while it runs, and the previous one while it waits.

        Args:
            block: the block; blocks that the coroutine enters inside it are suspended and resumed with it.
            awaited: the coroutine.
        """
        inside = block
        step: Callable[[], Any] = partial(awaited.send, None)
        while True:
            outside, synced = self.innermost.get(), self.thread.synced
            self.thread.open.append(block)
            self.innermost.set(inside)
            self.sync_jax_context(inside)
            try:
                wanted = step()
            except StopIteration as end:
                return end.value
            finally:
                self.thread.open.remove(block)
                inside = self.innermost.get()
                self.innermost.set(outside)
                self.sync_jax_context(synced)
            try:
                step = partial(awaited.send, (yield wanted))
            except BaseException as error:  # any error thrown in, also on cancel or close
                step = partial(awaited.throw, error)

    def sync_all_threads(self, key: Hashable) -> None:
        """Tell JAX the key outside all blocks, for all threads."""
        if self._found_jax():
            self._context.set_global(key)

    def sync_jax_context(self, block: B) -> None:
        """Set JAX's cache key in this thread to that of an entry."""
        if self._fix is None or not self._found_jax():
            return
        self.thread.synced = block
        if block.key is None or block.outer is None:
            self._as_made.__exit__(None, None, None)
        else:
            self._context(block.key).__enter__()

    def jax_context(self) -> Callable[[Hashable], AbstractContextManager[None]]:
        """The context manager of JAX that puts a value into its cache key in this thread; JAX must be loaded."""
        self._found_jax()
        return self._context

    def _found_jax(self) -> bool:
        """Whether JAX is loaded. What is traced in the block that loads it is traced again later."""
        if self._context is None and (jax := sys.modules.get("jax")) is not None and hasattr(jax, "make_user_context"):
            self._context = jax.make_user_context(default_value=None)
            # The state of a thread without an entry; exiting it restores that state.
            self._as_made = self._context(None)
            self._as_made.__enter__()
            self._as_made.__exit__(None, None, None)
            self._context.set_global(self._always.key)
        return self._context is not None


def _is_tracing() -> bool:
    extend = importlib.import_module("jax.extend.core")
    with importlib.import_module("jax.core").eval_context():
        outside = extend.get_opaque_trace_state()
    return not outside == extend.get_opaque_trace_state()  # noqa: SIM201 (it has no other comparison)


class BlockDecorator(ABC, Generic[B]):
    """The base of a context manager that puts a block in force, and decorates functions to run every call in one."""

    _blocks: ClassVar[Blocks[Any]]
    """The blocks of its kind."""

    @abstractmethod
    def _make_block(self, owner: object) -> B:
        """Make the block inside the one in force, which its owner removes."""

    def __exit__(self, *exception: object) -> None:
        """Restore what was in force without the block."""
        self._blocks.leave(self)

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        """Wrap a function to run every call in a block; for a coroutine function, its body whenever it is awaited.

        Raises:
            OperandError: if it is a generator function, whose body runs after the call.
        """
        if inspect.iscoroutinefunction(function):

            @wraps(function)
            async def run_awaited(*args: P.args, **kwargs: P.kwargs) -> Any:
                return await self._blocks.run_in_block(self._make_block(object()), function(*args, **kwargs))

            return run_awaited  # pyright: ignore[reportReturnType] (it is what R is for a coroutine function)

        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            name, scope = function.__qualname__, type(self).__name__
            raise OperandError(
                f"{scope} must decorate a function that is not a generator, got {name}; use `with {scope}(...):` "
                "inside it"
            )

        @wraps(function)
        def run(*args: P.args, **kwargs: P.kwargs) -> R:
            owner = object()
            self._blocks.enter_block(self._make_block(owner))
            try:
                return function(*args, **kwargs)
            finally:
                self._blocks.leave(owner)

        return run


class ValueBlock(Block, Generic[T]):
    """A block with a value; the other arguments are those of every block."""

    __slots__ = ("value",)

    def __init__(self, owner: object, outer: Block | None, key: Hashable, value: T) -> None:
        super().__init__(owner, outer, key)
        self.value: T = value


class BlockValue(Blocks[ValueBlock[T]], Generic[T]):
    """A value that blocks put in force.

    Args:
        name: the name in a debugger.
        default: the value outside all blocks.
        fix: as for `Blocks`, but called with the value.

    >>> color = BlockValue("color", "white")
    >>> color.enter("first", "red"), color.enter("second", "blue")
    (None, None)
    >>> color.leave("first"), color.value
    (None, 'blue')
    >>> color.leave("second"), color.value
    (None, 'white')
    """

    def __init__(self, name: str, default: T, fix: Callable[[T], str] | None = None) -> None:
        always: ValueBlock[T] = ValueBlock(None, None, None, default)
        super().__init__(name, always, None if fix is None else lambda block: fix(block.value))

    @property
    def value(self) -> T:
        """The value in force.

        Raises:
            ScopeError: if JAX is tracing for a different one.
        """
        return self.current().value

    @property
    def key(self) -> Hashable:
        """The key of the value in force, as JAX has it."""
        return self.innermost.get().key

    def enter(self, owner: object, value: T, key: Hashable = None) -> None:
        """Put a value in force until its owner leaves.

        Args:
            owner: the object that leaves.
            value: the value.
            key: as for `Block`.
        """
        self.enter_block(self.block(owner, value, key))

    def block(self, owner: object, value: T, key: Hashable = None) -> ValueBlock[T]:
        """Make the block of a value inside the one in force; the arguments are as for `enter`."""
        return ValueBlock(owner, self.innermost.get(), key, value)

    @contextmanager
    def holding(self, value: T, key: Hashable = None) -> Generator[None]:
        """Put a value in force for a `with` block; the arguments are as for `enter`."""
        owner = object()
        self.enter(owner, value, key)
        try:
            yield
        finally:
            self.leave(owner)
