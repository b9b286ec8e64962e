"""The part of a loss scale that changes from step to step."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from supremum.errors import OperandError, shown


class LossScaleState(NamedTuple):
    """What changes from step to step: strong float32 and integer scalars (int64 with JAX's x64 on, else int32).

    Counts stop at the largest integer instead of wrapping to negative ones.

    Args:
        loss_scale: the factor for the next loss, float32.
        num_good_steps: steps in a row with finite gradients since the scale last changed or gradients last overflowed.
        num_skipped_steps: how many steps were skipped in all.
        num_overflows: overflows since the scale last rose, counted up to the hysteresis.
        num_retries: how many times a step was computed again at a lower scale, in all.
    """

    loss_scale: jax.Array
    num_good_steps: jax.Array
    num_skipped_steps: jax.Array
    num_overflows: jax.Array
    num_retries: jax.Array


COUNTS = LossScaleState._fields[1:]
"""The names of the integer fields."""


def initial_state(scale: float, **counts: int) -> LossScaleState:
    """A state with a given scale and counts, zero where not given; no two fields share a buffer.

    >>> initial_state(8.0, num_retries=3)._asdict()["num_retries"]
    Array(3, dtype=int32)
    """
    # The default integer: int64 with x64 on, else int32. A buffer each: one shared by two fields cannot be donated.
    integers = [jnp.array(counts.get(name, 0), int) for name in COUNTS]
    return LossScaleState(jnp.array(scale, jnp.float32), *integers)


def as_state(state: Any) -> LossScaleState:
    """A state with strong leaves: float32 for the scale, integers for the counts.

    A state that was restored or made by hand may hold a float16 scale, NumPy scalars or Python numbers; those would
    be traced again on the second step, or fail to meet the float32 that comes out of the first.

    Raises:
        OperandError: for anything that is not a state.
    """
    if not isinstance(state, LossScaleState):
        raise OperandError(
            f"the state of a loss scale must be a LossScaleState, as its init() makes it, got {shown(state)}"
        )
    scale = jnp.asarray(state.loss_scale, jnp.float32)
    counts = [jnp.asarray(count) for count in state[1:]]
    return LossScaleState(scale, *(jnp.asarray(count, count.dtype) for count in counts))


def one_more(count: jax.Array) -> jax.Array:
    """A count plus one, or the largest integer."""
    return jnp.where(count < jnp.iinfo(count.dtype).max, count + 1, count)
