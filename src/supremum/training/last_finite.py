"""The last finite state of a training and its batch, kept to find where the first NaN or infinity was made."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from supremum.mixed_precision import all_finite
from supremum.nn import Layer, copy_tree
from supremum.numerics import NonfiniteOrigins, first_nonfinite
from supremum.optimizers import Optimizer
from supremum.training.data import Batch
from supremum.training.step import BatchLoss, TrainState, backward_of, key_of_step, step_of


class FirstNonfinite(NamedTuple):
    """Where the first NaN or infinity was made.

    Args:
        step: the number of the step, from 0.
        origins: the operations of the step that made NaNs and infinities.
    """

    step: int
    origins: NonfiniteOrigins


class LastFinite:
    """A copy of the last state with finite values, and of the batch of the step that starts from it.

    Copies are made on the device, where a step that is not finite leaves them as they are, so Python waits for nothing.

    Args:
        model: a built model.
        loss: the loss of a batch.
        optimizer: the optimizer.
    """

    def __init__(self, model: Layer, loss: BatchLoss, optimizer: Optimizer) -> None:
        self._model, self._loss, self._optimizer = model, loss, optimizer
        self._state: Any = None
        # Batches of different shapes, such as the last one of an epoch, each with the number of its step.
        self._batches: dict[Hashable, Any] = {}

    def keep(self, state: TrainState, batch: Batch) -> None:
        """Copy the state before a step and its batch, if the state is finite.

        Args:
            state: the state, whose memory may be reused afterwards.
            batch: the batch.
        """
        shapes = jax.tree.structure(batch), *((leaf.shape, leaf.dtype) for leaf in jax.tree.leaves(batch))
        numbered = state.count, batch
        if self._state is None:
            self._state = copy_tree(state)
        if shapes not in self._batches:
            self._batches[shapes] = copy_tree((jnp.full_like(state.count, -1), batch))
        kept = self._state, self._batches[shapes]
        self._state, self._batches[shapes] = _newest(kept, (state, numbered))

    def explain(self) -> FirstNonfinite | None:
        """Find the operations that make NaNs and infinities in the step after the last finite state.

        Returns:
            None if that step makes none.
        """
        if self._state is None:
            return None
        step = int(self._state.count)
        batch = next((batch for number, batch in self._batches.values() if int(number) == step), None)
        if batch is None:
            return None
        for function in (self._gradients, self._whole_step):
            origins = first_nonfinite(function)(self._state, batch)
            if len(origins):
                return FirstNonfinite(step, origins)
        return None

    def _gradients(self, state: TrainState, batch: Batch) -> Any:
        backward = backward_of(self._model, self._loss, self._optimizer, None)
        losses, _, _, gradients = backward(state.optimizer, state.trainable, state.other, batch, key_of_step(state))
        return losses[0], gradients

    def _whole_step(self, state: TrainState, batch: Batch) -> Any:
        return step_of(self._model, self._loss, self._optimizer, {}, None)(state, batch).trainable


def _choose(kept: Any, candidate: Any) -> Any:
    state = candidate[0]
    return jax.lax.cond(all_finite((state.trainable, state.other)), lambda: candidate, lambda: kept)


_newest = jax.jit(_choose)  # without donation: an exception between its return and the next line would lose the state
