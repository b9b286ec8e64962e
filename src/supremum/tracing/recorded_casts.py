"""The casts of every jitted function that a program calls while it runs."""

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


@dataclass(frozen=True, slots=True)
class Recorded:
    """A jitted function and what it was called with.

    Args:
        name: the name of the function.
        arguments: the types of its arrays, such as `"float32[8,128]"`.
        report: its casts.
    """

    name: str
    arguments: tuple[str, ...]
    report: CastReport

    def __str__(self) -> str:
        return f"{self.name}({_shortened(self.arguments)})"


def _shortened(arguments: tuple[str, ...], shown: int = 6) -> str:
    rest = len(arguments) - shown
    return ", ".join(arguments[:shown]) + (f", and {rest} more" if rest > 0 else "")


@contextmanager
def record_jitted() -> Generator[list[Recorded]]:
    """Record what is jitted in a block: `jax.jit` there gives functions that are looked at when they are called.

    For the time of the block `jax.jit` is another function, which is why this is for running whole programs that have
    not been imported before, and for nothing else. Functions that are called by other jitted functions are part of
    those; functions that were jitted before are not seen, nor is what runs outside of any.

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
    """A jitted function that is looked at before it runs, once for each program; else it is the function itself."""

    def __init__(self, function: Any, recorded: list[Recorded]) -> None:
        functools.update_wrapper(self, function)
        self._function = function
        self._recorded = recorded
        self._seen = set[int]()
        self._programs: list[Any] = []

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        leaves = jax.tree.leaves((args, kwargs))
        if not any(isinstance(leaf, Tracer) for leaf in leaves):
            program = self._function.trace(*args, **kwargs).jaxpr
            # JAX gives the same program for the same types.
            if id(program) not in self._seen:
                self._seen.add(id(program))
                self._programs.append(program)
                name = getattr(self._function, "__name__", "function")
                types = tuple(var.aval.str_short() for var in program.jaxpr.invars)
                self._recorded.append(Recorded(name, types, casts_of(program)))
        return self._function(*args, **kwargs)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._function, name)
