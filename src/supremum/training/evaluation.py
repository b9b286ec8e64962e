"""Evaluation and prediction over batches."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import itemgetter
from typing import Any

import jax
import numpy as np

from supremum.argument_checks import whole_number
from supremum.errors import ArgumentError
from supremum.nn import Layer, functional_call, has_weights, initialize, split_variables
from supremum.training.callbacks import CallbackList
from supremum.training.data import Batch, Data
from supremum.training.distributed import DataParallel
from supremum.training.losses import replace_left_out
from supremum.training.metrics import Metric
from supremum.training.step import BatchLoss, initial_means, loss_of_batch, results_of_means, update_means
from supremum.training.step_execution import Execution, KeptCarry
from supremum.typing import PyTree, SupportsArray


class Evaluator:
    """Evaluate a model and predict with it.

    Args:
        model: the model.
        loss: the loss of a batch.
        metrics: the metrics to compute over all batches.
        seed: the seed for weights and for random numbers in layers.
        distribution: how to use several devices; None for one.

    Attributes:
        model: the given model.
        loss: the given loss.
        metrics: the metrics by name.
        seed: the given seed.
        distribution: the given distribution.
    """

    def __init__(
        self, model: Layer, loss: BatchLoss, metrics: Sequence[Metric], seed: int, distribution: DataParallel | None
    ) -> None:
        self.model: Layer = model
        self.loss: BatchLoss = loss
        self.distribution: DataParallel | None = distribution
        self.seed: int = whole_number("seed", seed, -(2**63), 2**63 - 1)
        self.metrics: dict[str, Metric] = {metric.name: metric for metric in metrics}
        self._compile()

    def _compile(self) -> None:
        self._evaluation = Execution(self._evaluate_batch, 1, distribution=self.distribution)
        self._prediction = Execution(self._predict_batch, 1, distribution=self.distribution)
        # Jitted per evaluator, because a cache of the class would keep the evaluator and its model alive.
        self.initial_means: Callable[[], Any] = jax.jit(partial(initial_means, self.metrics))
        self._results: Callable[[Any], Any] = jax.jit(partial(results_of_means, self.metrics))
        self._passes = 0

    def __getstate__(self) -> dict[str, Any]:
        names = ("model", "loss", "seed", "distribution", "metrics")
        return {name: getattr(self, name) for name in names}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._compile()

    def initialize(self, data: Data) -> None:
        """Create the model's weights if there are none.

        Args:
            data: the data; its first batch determines the shapes and dtypes of the inputs.
        """
        if not has_weights(self.model):
            initialize(self.model, jax.tree.map(_spec, data.first.x), seed=self.seed)

    def evaluate(self, data: Data, callbacks: CallbackList) -> dict[str, float]:
        """Compute the loss and the metrics over all batches of one epoch.

        Args:
            data: the batches.
            callbacks: called at each stage.
        """
        self.initialize(data)
        callbacks.call("on_test_begin")
        carry = KeptCarry((self.initial_means(), self._next_key()))
        batches = 0

        def begin(*_: Any) -> None:
            callbacks.call("on_test_batch_begin", batches)

        for _ in self._evaluation.over(data, carry, self._values(), begin, None):
            callbacks.call_after_batch("on_test_batch_end", batches, lambda: self.fetch(carry.value[0]))
            batches += 1
        if not batches:
            raise ArgumentError("the data has no batches to evaluate")
        numbers = self.fetch(carry.value[0])
        callbacks.call("on_test_end", numbers)
        return numbers

    def as_list(self, numbers: Mapping[str, float]) -> float | list[float]:
        """Return the loss and the metrics as a list, or the loss alone if it is the only number."""
        values = [numbers[name] for name in ("loss", *self.metrics)]
        return values if len(values) > 1 else values[0]

    def predict(self, data: Data, callbacks: CallbackList) -> Any:
        """Compute the outputs for all batches, concatenated, as NumPy arrays.

        Args:
            data: the batches; labels are ignored.
            callbacks: called at each stage.
        """
        self.initialize(data)
        callbacks.call("on_predict_begin")
        dispatches: list[Any] = []

        def begin(*_: Any) -> None:
            callbacks.call("on_predict_batch_begin", len(dispatches))

        for _, outputs in self._prediction.over(data, KeptCarry(self._next_key()), self._values(), begin, None):
            dispatches.append(outputs)
            callbacks.call("on_predict_batch_end", len(dispatches) - 1)
        if not dispatches:
            raise ArgumentError("the data has no batches to predict")
        callbacks.call("on_predict_end")
        # Each dispatch stacked its outputs along a new axis.
        parts = [jax.tree.map(itemgetter(0), each) for each in jax.device_get(dispatches)]
        return jax.tree.map(lambda *leaves: np.concatenate(leaves), *parts)

    def _next_key(self) -> jax.Array:
        """Return the key data for layers that draw random numbers in the next evaluation or prediction.

        The key of training is unchanged, so training continues as if there had been no evaluation.
        """
        self._passes += 1
        return _key_of_pass(np.uint32(self.seed % 2**32), np.uint32(self._passes))

    def _values(self) -> dict[str, jax.Array]:
        if self.distribution is not None:
            return self.distribution.place_variables(self.model)
        trainable, other = split_variables(self.model)
        return trainable | other

    def _evaluate_batch(self, carry: Any, values: dict[str, jax.Array], batch: Batch) -> tuple[Any, None]:
        means, key_data = carry
        key_data, key = _split_key(key_data)
        batch = replace_left_out(batch)
        losses, outputs, _ = loss_of_batch(self.model, self.loss, values, batch, key, training=False)
        return (update_means(self.metrics, means, batch, outputs, losses), key_data), None

    def _predict_batch(self, carry: jax.Array, values: dict[str, jax.Array], batch: Batch) -> tuple[jax.Array, Any]:
        key_data, key = _split_key(carry)
        outputs = functional_call(self.model, values, batch.x, training=False, random_key=key)[0]
        # Every process needs all outputs.
        return key_data, outputs if self.distribution is None else self.distribution.replicate(outputs)

    def fetch(self, means: PyTree) -> dict[str, float]:
        """Fetch the loss and the metrics by name from their states."""
        results = jax.device_get(self._results(means))
        return dict(zip(("loss", *self.metrics), map(float, results), strict=True))


@jax.jit
def _key_of_pass(seed: jax.Array, number: jax.Array) -> jax.Array:
    key = jax.random.fold_in(jax.random.key(seed), number)
    # Keys of steps are folded in once, so this key differs from all of them.
    return jax.random.key_data(jax.random.fold_in(key, 0x6C6F6F6B))


def _split_key(data: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return the data of the next key, and a key for one batch."""
    after, key = jax.random.split(jax.random.wrap_key_data(data))
    return jax.random.key_data(after), key


def _spec(leaf: SupportsArray) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype)
