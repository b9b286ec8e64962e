"""Random programs with one planted line that loses the digits, which a comment marks as the culprit.

A program is a short chain of harmless operations in bfloat16 or float16, the planted operation somewhere in it, and
more harmless operations after it, sometimes inside of `jit`, `scan`, `remat` or `vmap`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

KINDS = "cancellation", "overflow", "absorbed addition"
SIZE = 8


@dataclass(frozen=True)
class Planted:
    """A program with a planted line.

    Args:
        function: takes the argument.
        argument: an array.
        kind: one of `KINDS`.
    """

    function: Callable[..., Any]
    argument: Any
    kind: str


def cancellation(x, distance):
    y = x + distance
    squares, mean = jnp.mean(y * y), jnp.mean(y)
    return (squares - mean * mean) * x  # culprit


def overflow(x, distance):
    return (x * x + distance) * distance  # culprit


def absorbed_addition(x, distance):
    far = x + distance  # culprit
    return far - distance


HARMLESS = (
    jnp.tanh, jax.nn.sigmoid, jnp.negative, lambda x: x * 0.75, lambda x: x + x, lambda x: 1.5 - x * 0.25,
    lambda x: jnp.sqrt(jnp.abs(x) + 1), lambda x: x / (1 + x * x), lambda x: jnp.where(x > 0, x, 0.5 * x), jnp.flip,
    lambda x: jnp.cumsum(x) / SIZE, lambda x: 2 * x - 1,
)  # fmt: skip


def planted(seed):
    """Make the program of a seed."""
    rng = np.random.default_rng([5, seed])
    kind = KINDS[seed % len(KINDS)]
    dtype = "float16" if kind == "overflow" else "bfloat16"
    before, after = (tuple(rng.integers(len(HARMLESS), size=int(rng.integers(1, 5)))) for _ in range(2))
    wrapper = WRAPPERS[int(rng.integers(len(WRAPPERS)))]
    distance = number(rng, kind)
    argument = jnp.asarray(rng.uniform(0.5, 2, size=SIZE) * rng.choice([-1, 1], size=SIZE), dtype)
    plant = {"cancellation": cancellation, "overflow": overflow, "absorbed addition": absorbed_addition}[kind]

    def function(x):
        for index in before:
            x = HARMLESS[index](x)
        x = wrapper(lambda value: plant(value, jnp.asarray(distance, dtype)))(x)
        total = jnp.sum(x)
        for index in after:
            x = HARMLESS[index](x)
        return jnp.sum(x) + total

    return Planted(function, argument, kind)


def number(rng, kind):
    """How far from zero the planted numbers are."""
    if kind == "cancellation":
        return 2.0 ** int(rng.integers(3, 6))
    if kind == "overflow":
        return 2.0 ** int(rng.integers(9, 15)) * 16 / 15
    return 2.0 ** int(rng.integers(9, 13))


def _plain(function):
    return function


def _in_vmap(function):
    return lambda x: jax.vmap(function)(x.reshape(2, -1)).reshape(-1)


def _in_scan(function):
    return lambda x: lax.scan(lambda carry, row: (carry, function(row)), 0, x.reshape(2, -1))[1].reshape(-1)


WRAPPERS = _plain, jax.jit, jax.checkpoint, _in_vmap, _in_scan
