"""Layers that normalize: each example by itself, or over batches."""

from __future__ import annotations

import math
from functools import partial
from typing import Any, Unpack, cast

import jax
import jax.numpy as jnp

from supremum.argument_checks import real_within
from supremum.errors import ArgumentError, OperandError, shown
from supremum.formats import as_format
from supremum.nn import functional
from supremum.nn.call_stack import is_frozen
from supremum.nn.functional import (
    Ints,
    as_axes,
    at_least_float32,
    axis_numbers,
    batch_norm,
    common_dtype,
    group_norm,
    has_axis,
    instance_norm,
    joint_moments,
    layer_norm,
    moments,
    promote_dtype,
    rms_norm,
)
from supremum.nn.initializers import ONES, ZEROS, Initializer
from supremum.nn.input_spec import InputSpec
from supremum.nn.layer import Layer, LayerOptions
from supremum.nn.variables import Variable


class NormOptions(LayerOptions, total=False):
    """The keyword arguments of every norm, documented in `Normalization`."""

    use_scale: bool
    use_offset: bool
    scale_initializer: Initializer
    offset_initializer: Initializer


class Normalization(Layer):
    """What all norms share: a scale and an offset, which are applied in the dtype of the statistics.

    They are stored in at least float32 whatever the policy, unless `param_dtype` says otherwise.

    Args:
        epsilon: added to the variance.
        use_scale: whether to multiply by a weight, `gamma`, after normalizing.
        use_offset: whether to add a weight, `beta`, after that.
        scale_initializer: for the scale.
        offset_initializer: for the offset.
        options: those of every `Layer`: `dtype` for the policy, `param_dtype`, `strict`, `name`.
    """

    def __init__(
        self,
        *,
        epsilon: float = 1e-6,
        use_scale: bool = True,
        use_offset: bool = True,
        scale_initializer: Initializer = ONES,
        offset_initializer: Initializer = ZEROS,
        **options: Unpack[LayerOptions],
    ) -> None:
        super().__init__(**options)
        self.epsilon = epsilon
        self.use_scale = use_scale
        self.use_offset = use_offset
        self._scale_initializer = scale_initializer
        self._offset_initializer = offset_initializer

    def add_scale_and_offset(self, shape: tuple[int, ...]) -> None:
        """Add the weights `gamma` and `beta`, as far as they are used.

        Args:
            shape: their shape.
        """
        dtype = functional.at_least_float32(self.variable_dtype) if self.param_dtype is None else self.param_dtype

        weight = partial(self.add_weight, shape=shape, dtype=dtype, autocast=False)
        self.gamma = weight("gamma", initializer=self._scale_initializer) if self.use_scale else None
        self.beta = weight("beta", initializer=self._offset_initializer) if self.use_offset else None

    @property
    def scale(self) -> jax.Array | None:
        """What the layer multiplies by, as it is stored."""
        return None if self.gamma is None else self.gamma.value

    @property
    def offset(self) -> jax.Array | None:
        """What the layer adds after that, as it is stored."""
        return None if self.beta is None else self.beta.value


class _AxisNorm(Normalization):
    """What the norms over given axes share."""

    def __init__(self, *, axes: Ints = (-1,), epsilon: float = 1e-6, **options: Unpack[NormOptions]) -> None:
        super().__init__(epsilon=epsilon, **options)
        self.axes = axis_numbers("axes", axes)
        self.input_spec = InputSpec()

    def build(self, input_shape: tuple[int, ...]) -> None:
        """Add scale and offset."""
        axes = sorted(as_axes("axes", self.axes, len(input_shape)))
        self.add_scale_and_offset(tuple(input_shape[axis] for axis in axes))
        self.input_spec = InputSpec(axes={axis: input_shape[axis] for axis in self.axes})


class LayerNorm(_AxisNorm):
    """Normalize each example by its own mean and variance (Ba, Kiros and Hinton, 2016).

    Statistics are at least float32 whatever the compute dtype; only the result is rounded to it.

    Args:
        axes: the axes to normalize over; scale and offset have the shape that inputs have over them.
        epsilon: added to the variance.
        options: those of every norm, `use_scale`, `use_offset` and their initializers, and of every `Layer`.

    >>> from supremum.nn import initialize
    >>> layer = LayerNorm(dtype="mixed_float16")
    >>> x = jax.numpy.asarray([[6e4, -6e4]], "float16")
    >>> initialize(layer, x)
    >>> layer(x)
    Array([[ 1., -1.]], dtype=float16)
    """

    def call(self, x: jax.Array) -> jax.Array:
        """The normalized values, in the compute dtype."""
        return layer_norm(x, self.scale, self.offset, axes=self.axes, epsilon=self.epsilon, dtype=self.compute_dtype)


class RMSNorm(_AxisNorm):
    """Divide each example by its root mean square (Zhang and Sennrich, 2019).

    Args:
        axes: the axes to normalize over; the scale has the shape that inputs have over them.
        epsilon: added to the mean square.
        use_scale: whether to multiply by a weight, `gamma`, after normalizing.
        scale_initializer: for the scale.
        options: those of every `Layer`: `dtype` for the policy, `param_dtype`, `strict`, `name`.
    """

    def __init__(
        self,
        *,
        axes: Ints = (-1,),
        epsilon: float = 1e-6,
        use_scale: bool = True,
        scale_initializer: Initializer = ONES,
        **options: Unpack[LayerOptions],
    ) -> None:
        scaling = {"use_scale": use_scale, "use_offset": False, "scale_initializer": scale_initializer}
        super().__init__(axes=axes, epsilon=epsilon, **cast("NormOptions", {**scaling, **options}))

    def call(self, x: jax.Array) -> jax.Array:
        """The normalized values, in the compute dtype."""
        return rms_norm(x, self.scale, axes=self.axes, epsilon=self.epsilon, dtype=self.compute_dtype)


class GroupNorm(Normalization):
    """Normalize groups of neighboring channels, each by its mean and variance over space (Wu and He, 2018).

    Args:
        groups: into how many groups the channels, the last axis of inputs (batch, *space, channels), fall.
        epsilon: added to the variance.
        options: those of every norm, `use_scale`, `use_offset` and their initializers, and of every `Layer`.

    Raises:
        ArgumentError: at the first call, for groups that do not divide the channels.
    """

    def __init__(self, groups: int = 32, *, epsilon: float = 1e-6, **options: Unpack[NormOptions]) -> None:
        super().__init__(epsilon=epsilon, **options)
        self.groups = groups
        self.input_spec = InputSpec(min_ndim=2)

    def build(self, input_shape: tuple[int, ...]) -> None:
        """Add scale and offset, one number per channel."""
        channels = input_shape[-1]
        if self.groups < 1 or channels % self.groups:
            raise ArgumentError(
                f"{self.groups} groups do not divide {channels} channels: give groups= a divisor of {channels}"
            )
        self.add_scale_and_offset((channels,))
        self.input_spec = InputSpec(min_ndim=2, axes={-1: channels})

    def call(self, x: jax.Array) -> jax.Array:
        """The normalized values, in the compute dtype."""
        return group_norm(
            x, self.scale, self.offset, groups=self.groups, epsilon=self.epsilon, dtype=self.compute_dtype
        )


class InstanceNorm(Normalization):
    """Normalize each channel of each example by its mean and variance over space (Ulyanov and others, 2016).

    Inputs have the shape (batch, *space, channels).

    Args:
        epsilon: added to the variance.
        options: those of every norm, `use_scale`, `use_offset` and their initializers, and of every `Layer`.
    """

    def __init__(self, *, epsilon: float = 1e-6, **options: Unpack[NormOptions]) -> None:
        super().__init__(epsilon=epsilon, **options)
        self.input_spec = InputSpec(min_ndim=3)

    def build(self, input_shape: tuple[int, ...]) -> None:
        """Add scale and offset, one number per channel."""
        self.add_scale_and_offset(input_shape[-1:])
        self.input_spec = InputSpec(min_ndim=3, axes={-1: input_shape[-1]})

    def call(self, x: jax.Array) -> jax.Array:
        """The normalized values, in the compute dtype."""
        return instance_norm(x, self.scale, self.offset, epsilon=self.epsilon, dtype=self.compute_dtype)


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
        self.moving_mean = self._add_running_average("moving_mean", channels, ZEROS, mean.dtype)
        self.moving_variance = self._add_running_average("moving_variance", channels, ONES, mean.component.dtype)
        self.input_spec = InputSpec(min_ndim=2, axes={self.axis: channels[0]})

    def call(self, x: jax.Array, *, mask: jax.Array | None = None, training: bool = False) -> jax.Array:
        """Normalize; in training also move the running statistics towards the batch's.

        Args:
            x: values.
            mask: bool, which positions count in the statistics of the batch: of the shape of `x`, or without its axis
                of channels. All are normalized.
            training: whether this is a training step; it is not one for a layer that is not trainable.
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
        self._update_average(self.moving_mean, mean, counts)
        self._update_average(self.moving_variance, variance, counts)
        return mean, variance

    def _add_running_average(self, name: str, shape: tuple[int, ...], initializer: Initializer, dtype: Any) -> Any:
        return self.add_weight(name, shape, initializer, dtype=dtype, trainable=False, autocast=False)

    def _update_average(self, average: Variable, batch: jax.Array, counts: Any) -> None:
        is_complex = [as_format(each.dtype).category == "complex" for each in (average, batch)]
        if is_complex == [False, True]:
            raise OperandError(
                f"{average.name} is {average.dtype}, since the layer was built for real inputs, and cannot follow the "
                f"{batch.dtype} mean of complex ones: build another layer with those"
            )
        moved = average.value * self.momentum + batch.astype(average.dtype) * (1 - self.momentum)
        average.assign(jnp.where(counts, moved, average.value))  # a batch of nothing says nothing about the average
