"""The jitted functions that a program calls, watched while it runs."""

from __future__ import annotations

import functools
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import jax
from jax.extend.core import ClosedJaxpr

from supremum.jax_compat import type_text
from supremum.jaxprs import has_tracers

_SHOWN = 6


@dataclass(frozen=True, slots=True)
class JittedCall:
    """A call of a jitted function.

    Args:
        name: the name of the function.
        function: the function, as `jax.jit` returned it.
        args: the positional arguments.
        kwargs: the keyword arguments.
        program: the traced program.
        types: the types of its arrays, such as `"float32[8,128]"`.
    """

    name: str
    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    program: ClosedJaxpr
    types: tuple[str, ...]

    def __str__(self) -> str:
        return call_text(self.name, self.types)


def call_text(name: str, types: Sequence[str]) -> str:
    """A function and the types of its arguments, of which the first few are shown.

    >>> call_text("loss", ["float32[8]"] * 8)
    'loss(float32[8], float32[8], float32[8], float32[8], float32[8], float32[8], and 2 more)'
    """
    rest = len(types) - _SHOWN
    more = f", and {rest} more" if rest > 0 else ""
    return f"{name}({', '.join(types[:_SHOWN])}{more})"


@contextmanager
def watch_jitted(record: Callable[[JittedCall], None], *, every: bool = False) -> Generator[None]:
    """Record the functions that are jitted and called in a block.

    The block replaces `jax.jit`, so use it only to run a whole program that has not been imported before. A function
    that another jitted function calls is part of that function. Functions jitted before the block and code outside
    jitted functions are not watched.

    Args:
        record: gets the first call of each program, before it runs. Functions that it jits are not watched.
        every: whether it gets all calls.

    >>> import jax.numpy as jnp
    >>> found = []
    >>> with watch_jitted(lambda call: found.append(str(call))):
    ...     _ = jax.jit(lambda x: x * 2)(jnp.ones(3))
    >>> found
    ['<lambda>(float32[3])']
    """
    original = jax.jit

    def record_call(call: JittedCall) -> None:
        watching, jax.jit = jax.jit, original
        try:
            record(call)
        finally:
            jax.jit = watching

    def jit(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
        if function is None:  # @jax.jit(static_argnames="n")
            return functools.partial(jit, **options)
        return _Watched(original(function, **options), record_call, every)

    jax.jit = jit
    try:
        yield
    finally:
        jax.jit = original


class _Watched:
    """A jitted function that records each of its programs once, or each call, before it runs."""

    def __init__(self, function: Any, record: Callable[[JittedCall], None], every: bool) -> None:
        functools.update_wrapper(self, function)
        self._function = function
        self._record = record
        self._every = every
        self._seen: dict[int, Any] = {}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not has_tracers((args, kwargs)):
            program = self._function.trace(*args, **kwargs).jaxpr
            # JAX returns the same program for the same types. Keeping it alive keeps its id unique.
            if self._every or id(program) not in self._seen:
                self._seen[id(program)] = program
                name = getattr(self._function, "__name__", "function")
                types = tuple(type_text(var.aval) for var in program.jaxpr.invars)
                self._record(JittedCall(name, self._function, args, kwargs, program, types))
        return self._function(*args, **kwargs)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._function, name)
