"""Metrics: pure functions that accumulate on the device, and stateful methods around them.

A plain float32 sum of ones stops at 2**24. Here the error of each addition is known exactly (Knuth, "The Art of
Computer Programming", volume 2, 4.2.2, theorem B) and summed in a second number: counts are exact up to 2**48.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from supremum.argument_checks import instance
from supremum.errors import ArgumentError
from supremum.formats import as_format, at_least_float32
from supremum.nn import snake_case
from supremum.training.data import aligned_pair, as_inputs, as_weights, one_array
from supremum.training.losses import absolute_errors, apply_weights, spread_weights, squared_errors
from supremum.training.user_functions import note_place
from supremum.typing import ArrayLike, PyTree


class Sum(NamedTuple):
    """A sum in two parts, both float32 scalars.

    Args:
        value: the sum, rounded.
        error: what must be added to `value` for the exact sum.
    """

    value: jax.Array
    error: jax.Array


def zero() -> Sum:
    """Return an empty sum in new buffers, which may be donated."""
    return Sum(jnp.zeros((), "float32"), jnp.zeros((), "float32"))


def plus(total: Sum, value: jax.Array | float) -> Sum:
    """Add a number to a sum.

    Args:
        total: the sum before.
        value: a scalar.

    >>> total = plus(plus(zero(), 2.0**24), 1.0)
    >>> float(total.value), float(total.error)
    (16777216.0, 1.0)
    """
    value = jnp.asarray(value, "float32")
    new = total.value + value
    part = new - total.value
    lost = (total.value - (new - part)) + (value - part)
    nothing = jnp.zeros_like(lost)
    error = jnp.where(jnp.isfinite(new), total.error + lost, nothing)  # an infinite sum has no error
    # Move the error into the sum as far as the sum can hold it, so that the error stays small.
    whole = new + error
    return Sum(whole, jnp.where(jnp.isfinite(whole), error - (whole - new), nothing))


def plus_count(total: Sum, count: jax.Array | int) -> Sum:
    """Add a whole number to a sum; the number may have more digits than float32.

    Args:
        total: the sum before.
        count: a Python integer or a JAX integer scalar, at least 0.
    """
    if isinstance(count, int):
        low = count % 2**12
        return plus(plus(total, float(count - low)), float(low))
    count = jnp.asarray(count)
    low = count & (2**12 - 1)
    return plus(plus(total, (count - low).astype("float32")), low.astype("float32"))


def quotient(total: Sum, count: Sum) -> jax.Array:
    """Divide one sum by another; the result is a float32 scalar, 0 if the divisor is 0."""
    divisor = count.value + count.error
    is_empty = divisor == 0
    safe = jnp.where(is_empty, jnp.ones_like(divisor), divisor)
    return jnp.where(is_empty, jnp.zeros_like(safe), (total.value + total.error) / safe)


class MeanState(NamedTuple):
    """The accumulated state of a mean, four float32 scalars.

    Args:
        total: the weighted sum of the values.
        weight: the sum of the weights, or the number of values.
    """

    total: Sum
    weight: Sum


class Metric(ABC):
    """A quantity measured over an epoch.

    `init`, `update` and `result(state)` are pure and run in a jitted step; the state is a pytree of float32 arrays.
    `update_state`, `result()` and `reset_state` keep that state in the object.

    Args:
        name: the name of the metric; None to derive it from the class, as in `"mean_squared_error"`.

    >>> from supremum.training import as_metric
    >>> metric = as_metric(  # as a pure function of its state, for a step of your own
    ...     "mse"
    ... )
    >>> state = metric.update(
    ...     metric.init(), jnp.zeros((2, 1)), jnp.asarray([[1.0], [3.0]])
    ... )
    >>> metric.result(state)
    Array(5., dtype=float32)
    """

    def __init__(self, name: str | None = None) -> None:
        self.name: str = snake_case(type(self).__name__) if name is None else name
        self._state: Any = None

    @abstractmethod
    def init(self) -> Any:
        """The state before anything is measured, in new buffers."""

    @abstractmethod
    def update(self, state: PyTree, y_true: PyTree, y_pred: PyTree, sample_weight: ArrayLike | None = None) -> Any:
        """The state after one more batch.

        Args:
            state: the state before.
            y_true: labels.
            y_pred: outputs, in their own dtype: they are not rounded before they are compared.
            sample_weight: weights for the first axes of the measured values; None for 1.

        Returns:
            The next state.

        Raises:
            ArgumentError: if the shapes do not match; a `ValueError`.
            OperandError: if the inputs are not real numbers; a `TypeError`.
        """

    @abstractmethod
    def result_of(self, state: PyTree) -> jax.Array:
        """The value of the metric in a state, a float32 scalar; `result` returns it.

        Args:
            state: a result of `init` or `update`.
        """

    def result(self, state: PyTree = None) -> jax.Array:
        """The value of the metric, a float32 scalar; 0 if nothing was measured, as in Keras.

        Args:
            state: a result of `init` or `update`; None for the state in the object.
        """
        if state is not None:
            return self.result_of(state)
        return self.result_of(self.init() if self._state is None else self._state)

    def update_state(self, *inputs: PyTree, sample_weight: ArrayLike | None = None) -> None:
        """Add a batch to the state in the object, as `update` does.

        Args:
            inputs: `y_true` and `y_pred`; for `Mean`, only the values.
            sample_weight: as for `update`.
        """
        state = self.init() if self._state is None else self._state
        self._state = self.update(state, *inputs, sample_weight=sample_weight)

    def reset_state(self) -> None:
        """Reset the state in the object."""
        self._state = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}(name={self.name!r})"


class MeanMetric(Metric):
    """The mean over an epoch of a value that is measured for each example.

    Args:
        name: the name of the metric; None to derive it from the class.
    """

    @abstractmethod
    def values(self, y_true: PyTree, y_pred: PyTree) -> jax.Array:
        """The measured value of each example, shape (batch, ...).

        Args:
            y_true: labels.
            y_pred: outputs.
        """

    def init(self) -> MeanState:
        """The state before anything is measured."""
        return MeanState(zero(), zero())

    def update(
        self, state: PyTree, y_true: PyTree, y_pred: PyTree, sample_weight: ArrayLike | None = None
    ) -> MeanState:
        """The state after one more batch; see `Metric.update`."""
        values = self.values(as_inputs(y_true, None, "y_true"), as_inputs(y_pred, None, "y_pred"))
        return add_values(state, values, sample_weight)

    def result_of(self, state: PyTree) -> jax.Array:
        """The mean."""
        return quotient(*state)


def add_values(state: MeanState, values: jax.Array, sample_weight: ArrayLike | None = None) -> MeanState:
    """Add values to a mean.

    Args:
        state: the mean before.
        values: numbers, or bools, which are counted as integers.
        sample_weight: weights for the first axes of `values`; None for 1. A value with weight 0 does not count, even if
            it is not finite.

    Raises:
        ArgumentError: if the weights do not fit; a `ValueError`.
    """
    instance("state", state, MeanState, "what init() and update() of the metric give")
    if sample_weight is None:
        if as_format(values.dtype).category == "bool":
            total = plus_count(state.total, jnp.sum(values, dtype="int32"))
        else:
            total = plus(state.total, jnp.sum(values.astype("float32")))
        return MeanState(total, plus_count(state.weight, values.size))
    weights = as_weights("a metric", sample_weight, jnp.dtype("float32"))
    spread = jnp.broadcast_to(spread_weights(weights, values.shape), values.shape)
    total = plus(state.total, jnp.sum(apply_weights(values.astype("float32"), spread)))
    return MeanState(total, plus(state.weight, jnp.sum(spread)))


class Mean(MeanMetric):
    """The mean of values, such as losses.

    Args:
        name: the name of the metric.

    >>> mean = Mean()
    >>> mean.update_state(jnp.asarray([1.0, 3.0], "float16"))
    >>> mean.update_state(8.0)
    >>> mean.result()
    Array(4., dtype=float32)
    """

    def update(  # pyright: ignore[reportIncompatibleMethodOverride] (there is nothing to compare with)
        self, state: PyTree, values: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> MeanState:
        """The state with more values; see `Metric.update`.

        Args:
            state: the state before.
            values: numbers of any shape.
            sample_weight: weights for the first axes of the values; None for 1.
        """
        array = one_array(self.name, "values", as_inputs(values, None, "values"))
        return add_values(state, array, sample_weight)

    def values(self, y_true: PyTree, y_pred: PyTree) -> jax.Array:
        """Not used: `update` gets the values."""
        raise NotImplementedError


class FunctionMetric(MeanMetric):
    """The mean over an epoch of the results of a plain function of labels and outputs.

    Args:
        function: returns a value for each example, or their mean, which is then weighted by the number of examples. It
            gets labels and outputs as they are.
        name: the name of the metric; None for the function's name.

    >>> import numpy as np
    >>> metric = FunctionMetric(lambda y_true, y_pred: abs(y_true - y_pred), "error")
    >>> metric.update_state(np.array([1.0, 2.0]), np.array([1.5, 2.5]))
    >>> metric.name, float(metric.result())
    ('error', 0.5)
    """

    def __init__(self, function: Callable[[Any, Any], Any], name: str | None = None) -> None:
        super().__init__(getattr(function, "__name__", "metric") if name is None else name)
        self.function = function

    def update(
        self, state: PyTree, y_true: PyTree, y_pred: PyTree, sample_weight: ArrayLike | None = None
    ) -> MeanState:
        """The state after one more batch; see `Metric.update`."""
        values = self.values(y_true, y_pred)
        if values.ndim:
            return add_values(state, values, sample_weight)
        if sample_weight is not None:
            raise ArgumentError(
                f"{self.name} returns one number for a batch, to which sample_weight cannot apply; return one for "
                "each example"
            )
        shape = jnp.shape(jax.tree.leaves(y_pred)[0])
        count = shape[0] if shape else 1
        total = plus(state.total, values.astype("float32") * count)
        return MeanState(total, plus_count(state.weight, count))

    def values(self, y_true: PyTree, y_pred: PyTree) -> jax.Array:
        """The result of the function."""
        what = f"the result of {self.name}"
        with note_place(f"in the metric {self.name}", y_true=y_true, y_pred=y_pred):
            value = self.function(y_true, y_pred)
        return one_array(self.name, what, as_inputs(value, None, what))


def as_wide(x: jax.Array) -> jax.Array:
    """Cast an array to at least float32, also integers and bools."""
    return x.astype(at_least_float32(x.dtype))


class MeanSquaredError(MeanMetric):
    """The squared difference, averaged over the last axis of each example, in at least float32.

    Args:
        name: the name of the metric.
    """

    def values(self, y_true: PyTree, y_pred: PyTree) -> jax.Array:
        """The mean of each example."""
        return squared_errors(*map(as_wide, aligned_pair(self.name, y_true, y_pred)))


class MeanAbsoluteError(MeanMetric):
    """The absolute difference, averaged over the last axis of each example, in at least float32.

    Args:
        name: the name of the metric.
    """

    def values(self, y_true: PyTree, y_pred: PyTree) -> jax.Array:
        """The mean of each example."""
        return absolute_errors(*map(as_wide, aligned_pair(self.name, y_true, y_pred)))
