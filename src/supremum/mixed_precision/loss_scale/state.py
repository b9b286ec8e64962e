"""The state of a loss scale."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from supremum.errors import OperandError, shown


class LossScaleState(NamedTuple):
    """The state of a loss scale: strong float32 and integer scalars (int64 with JAX's x64 on, else int32).

    Counts stop at the largest integer and never wrap around to negative numbers.

    Args:
        loss_scale: the factor for the next loss, float32.
        num_good_steps: steps in a row with finite gradients since the last overflow or change of the scale.
        num_skipped_steps: the total number of skipped steps.
        num_overflows: overflows since the scale last rose, counted up to the hysteresis.
        num_retries: the total number of times that a step was computed again at a lower scale.
    """

    loss_scale: jax.Array
    num_good_steps: jax.Array
    num_skipped_steps: jax.Array
    num_overflows: jax.Array
    num_retries: jax.Array


COUNTS = LossScaleState._fields[1:]
"""The names of the integer fields."""


def initial_state(scale: float, **counts: int) -> LossScaleState:
    """Make a state from a scale and counts, which are zero by default; no two fields share a buffer.

    >>> initial_state(8.0, num_retries=3)._asdict()["num_retries"]
    Array(3, dtype=int32)
    """
    # `int` is int64 with x64 on, else int32. A buffer that two fields share cannot be donated.
    integers = [jnp.array(counts.get(name, 0), int) for name in COUNTS]
    return LossScaleState(jnp.array(scale, jnp.float32), *integers)


def as_state(state: Any) -> LossScaleState:
    """Convert the leaves of a state to strong arrays: float32 for the scale, integers for the counts.

    A restored or hand-made state may hold a float16 scale, NumPy scalars or Python numbers. Without the conversion
    the second step would be traced again, or fail because its dtypes differ from the dtypes of the first step.

    Raises:
        OperandError: for anything that is not a `LossScaleState`.
    """
    if not isinstance(state, LossScaleState):
        raise OperandError(
            f"the state of a loss scale must be a LossScaleState, got {shown(state)}: use loss_scale.init()"
        )
    counts = [jnp.asarray(count) for count in state[1:]]
    return LossScaleState(jnp.asarray(state.loss_scale, jnp.float32), *(jnp.asarray(n, n.dtype) for n in counts))


def one_more(count: jax.Array) -> jax.Array:
    """Add one to a count, which stops at the largest integer."""
    return jnp.where(count < jnp.iinfo(count.dtype).max, count + 1, count)
