"""Batch normalization."""

from __future__ import annotations

import math
from typing import Any, Unpack

import jax
import jax.numpy as jnp

from supremum.argument_checks import real_within
from supremum.errors import ArgumentError, OperandError, shown
from supremum.formats import as_format
from supremum.nn.call_stack import is_frozen
from supremum.nn.functional import at_least_float32, common_dtype, promote_dtype
from supremum.nn.functional.moments import has_axis, joint_moments, moments
from supremum.nn.functional.normalization import batch_norm
from supremum.nn.functional.shape_checks import as_axes
from supremum.nn.initializers import ONES, ZEROS, Initializer
from supremum.nn.input_spec import InputSpec
from supremum.nn.layers.normalization import Normalization, NormOptions
from supremum.nn.variables import Variable


class BatchNorm(Normalization):
    """Normalize each channel by the statistics of the batch, or by their running averages outside training.

    Statistics are computed, averaged and stored in at least float32, whatever the compute dtype; only the result is
    rounded to it. Averages are stored in what float32 and the dtype of the inputs meet in (spec/flax-flip-default-
    dtypes.md, "Batch statistics"): float64 or complex under a policy that lets such inputs through; a variance is real.

    Args:
        axis: the axis of the channels.
        momentum: weight of the old running average at each training step.
        epsilon: added to the variance.
        axis_name: the axis of the devices to have common statistics, `"data"` under `training.DataParallel`, each with
            a part of the batch; None for statistics of the parts. Where there is no such axis, on one device, it says
            nothing.
        options: those of every norm, `use_scale`, `use_offset` and their initializers, and of every `Layer`.

    Raises:
        ArgumentError: for several axes, or a momentum that is not between 0 and 1.
    """

    def __init__(
        self,
        *,
        axis: int = -1,
        momentum: float = 0.99,
        epsilon: float = 1e-3,
        axis_name: str | None = None,
        **options: Unpack[NormOptions],
    ) -> None:
        super().__init__(epsilon=epsilon, **options)
        if not isinstance(axis, int):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ArgumentError(f"axis is that of the channels, one number, not {shown(axis)}: give axis=-1")
        real_within("momentum", momentum, 0, 1)
        self.axis = axis
        self.momentum = momentum
        self.axis_name = axis_name
        self.input_spec = InputSpec(min_ndim=2)

    def build(self, input_shape: tuple[int, ...]) -> None:
        """Add scale, offset and the running statistics, one number per channel."""
        (axis,) = as_axes("axis", self.axis, len(input_shape))
        channels = input_shape[axis : axis + 1]
        if not self.build_inputs:
            raise ArgumentError("the first call of a BatchNorm takes its input by position: layer(x), not layer(x=x)")
        mean = as_format(at_least_float32(common_dtype(self.build_inputs[0], dtype=self.compute_dtype)))
        self.add_scale_and_offset(channels)
        self.moving_mean = self._add_average("moving_mean", channels, ZEROS, mean.dtype)
        self.moving_variance = self._add_average("moving_variance", channels, ONES, mean.component.dtype)
        self.input_spec = InputSpec(min_ndim=2, axes={self.axis: channels[0]})

    def call(self, x: jax.Array, *, mask: jax.Array | None = None, training: bool = False) -> jax.Array:
        """Normalize; in training also move the running statistics towards the batch's.

        Args:
            x: values.
            mask: bool, which positions count in the statistics of the batch: of the shape of `x`, or without its axis
                of channels. All are normalized.
            training: whether this is a training step; of a layer that is not trainable it is none.
        """
        if training and not is_frozen():
            mean, variance = self._batch_moments(x, mask)
        else:
            mean, variance = self.moving_mean.value, self.moving_variance.value
        return batch_norm(
            x, mean, variance, self.scale, self.offset, axis=self.axis, epsilon=self.epsilon, dtype=self.compute_dtype
        )

    def _batch_moments(self, x: jax.Array, mask: jax.Array | None) -> tuple[jax.Array, jax.Array]:
        (channels,) = as_axes("axis", self.axis, x.ndim)
        axes = tuple(axis for axis in range(x.ndim) if axis != channels)
        if mask is not None and jnp.ndim(mask) == x.ndim - 1:
            mask = jnp.expand_dims(mask, channels)
        (x,) = promote_dtype(x, dtype=at_least_float32(common_dtype(x, dtype=self.compute_dtype)))
        mean, variance = moments(x, axes, mask=mask)
        if mask is None:
            count: Any = math.prod(x.shape[axis] for axis in axes)
        else:
            count = jnp.sum(jnp.broadcast_to(mask, x.shape), axes, dtype=variance.dtype)
        if self.axis_name is not None and has_axis(self.axis_name):
            mean, variance, count = joint_moments(mean, variance, count, self.axis_name)
        counts = count > 0
        self._move(self.moving_mean, mean, counts)
        self._move(self.moving_variance, variance, counts)
        return mean, variance

    def _add_average(self, name: str, shape: tuple[int, ...], initializer: Initializer, dtype: Any) -> Any:
        return self.add_weight(name, shape, initializer, dtype=dtype, trainable=False, autocast=False)

    def _move(self, average: Variable, batch: jax.Array, counts: Any) -> None:
        is_complex = [as_format(each.dtype).category == "complex" for each in (average, batch)]
        if is_complex == [False, True]:
            raise OperandError(
                f"{average.name} is {average.dtype}, since the layer was built for real inputs, and cannot follow the "
                f"{batch.dtype} mean of complex ones: build another layer with those"
            )
        moved = average.value * self.momentum + batch.astype(average.dtype) * (1 - self.momentum)
        average.assign(jnp.where(counts, moved, average.value))  # a batch of nothing says nothing about the average
