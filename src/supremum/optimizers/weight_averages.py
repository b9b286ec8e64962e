"""The moving average of the weights that `use_ema=True` keeps, as a part of an optax transformation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax  # pyright: ignore[reportMissingTypeStubs] (it ships no types)

from supremum.mixed_precision import one_more
from supremum.nn import Variable
from supremum.typing import PyTree


class AverageState(NamedTuple):
    """The average of the values after each step.

    Args:
        averaged_steps: how many steps it has, an integer scalar.
        average: the averages by key, at least float32.
    """

    averaged_steps: jax.Array
    average: Any


def with_average(
    transformation: optax.GradientTransformationExtraArgs, momentum: float, overwrite_every: int | None
) -> Any:
    """Return a transformation that also averages the values after its steps, as Keras does.

    The first average is the value after the first step; later ones are `momentum * average + (1 - momentum) * value`.

    Args:
        transformation: an optax transformation.
        momentum: the weight of the old average.
        overwrite_every: after how many steps each value is replaced by its average; None for never.
    """

    def init(params: Any) -> Any:
        return transformation.init(params), AverageState(jnp.zeros((), jnp.int32), jax.tree.map(jnp.zeros_like, params))

    def update(updates: Any, state: Any, params: Any = None, **others: Any) -> Any:
        inner_state, before = state
        updates, inner_state = transformation.update(updates, inner_state, params, **others)

        def mean(average: jax.Array, value: jax.Array, change: jax.Array) -> jax.Array:
            weight = jnp.where(before.averaged_steps == 0, 0.0, momentum).astype(average.dtype)
            return weight * average + (1 - weight) * (value + change)

        average = jax.tree.map(mean, before.average, params, updates)
        steps = one_more(before.averaged_steps)
        if overwrite_every is not None:
            is_due = steps % overwrite_every == 0

            def overwrite(average: jax.Array, value: jax.Array, change: jax.Array) -> jax.Array:
                return jnp.where(is_due, average - value, change)

            updates = jax.tree.map(overwrite, average, params, updates)
        return updates, (inner_state, AverageState(steps, average))

    return optax.GradientTransformationExtraArgs(init, update)


def assign_averages(slots: PyTree, variables: Mapping[str, Variable]) -> None:
    """Assign the averages in a state to variables, rounded to their dtypes; nothing if no step was averaged.

    Args:
        slots: the state of a transformation.
        variables: the variables by key.
    """
    leaves = jax.tree.leaves(slots, is_leaf=lambda node: isinstance(node, AverageState))
    for leaf in leaves:
        if isinstance(leaf, AverageState) and int(leaf.averaged_steps):
            for key, variable in variables.items():
                variable.assign(jnp.array(leaf.average[key], variable.true_dtype, copy=True))
