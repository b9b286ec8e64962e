"""The casts of every jitted function that a running program calls."""

from __future__ import annotations

import functools
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import jax
from jax.core import Tracer

from supremum.tracing.find_casts import casts_of
from supremum.tracing.report import CastReport

_SHOWN = 6


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
        rest = len(self.arguments) - _SHOWN
        more = f", and {rest} more" if rest > 0 else ""
        return f"{self.name}({', '.join(self.arguments[:_SHOWN])}{more})"


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
    original = jax.jit

    def jit(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
        if function is None:  # @jax.jit(static_argnames="n")
            return functools.partial(jit, **options)
        return _Watched(original(function, **options), recorded)

    jax.jit = jit
    try:
        yield recorded
    finally:
        jax.jit = original


class _Watched:
    """A jitted function that records the casts of each of its programs once, before it runs."""

    def __init__(self, function: Any, recorded: list[Recorded]) -> None:
        functools.update_wrapper(self, function)
        self._function = function
        self._recorded = recorded
        self._seen: dict[int, Any] = {}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        leaves = jax.tree.leaves((args, kwargs))
        if not any(isinstance(leaf, Tracer) for leaf in leaves):
            program = self._function.trace(*args, **kwargs).jaxpr
            # JAX returns the same program for the same types. Keeping it alive keeps its id unique.
            if id(program) not in self._seen:
                self._seen[id(program)] = program
                name = getattr(self._function, "__name__", "function")
                types = tuple(var.aval.str_short() for var in program.jaxpr.invars)
                self._recorded.append(Recorded(name, types, casts_of(program)))
        return self._function(*args, **kwargs)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._function, name)
