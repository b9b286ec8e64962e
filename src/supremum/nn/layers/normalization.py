"""Layers that normalize each example separately, or over batches."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar, Unpack

import jax
import jax.numpy as jnp

from supremum.argument_checks import real_within
from supremum.errors import ArgumentError, OperandError, shown
from supremum.formats import as_format, at_least_float32
from supremum.nn import functional
from supremum.nn.call_stack import is_frozen
from supremum.nn.functional.dtype_promotion import promote_and_widen
from supremum.nn.functional.normalization import has_axis, joint_moments
from supremum.nn.functional.shape_checks import Ints, as_axes, axis_numbers
from supremum.nn.initializers import ONES, ZEROS, Initializer
from supremum.nn.inputs import InputSpec, InputSpecs
from supremum.nn.layer import Layer
from supremum.nn.layer_types import LayerOptions
from supremum.nn.variables import Variable


class NormOptions(LayerOptions, total=False):
    """The keyword arguments of every norm, documented in `Normalization`."""

    epsilon: float
    use_scale: bool
    use_offset: bool
    scale_initializer: Initializer
    offset_initializer: Initializer


class Normalization(Layer):
    """The common base of norms: a scale and an offset, which are applied in the dtype of the statistics.

    Both are stored in at least float32 under every policy, unless `param_dtype` is given.

    Args:
        epsilon: added to the variance.
        use_scale: whether to multiply by a weight, `gamma`, after normalizing.
        use_offset: whether to add a weight, `beta`, after scaling.
        scale_initializer: for the scale.
        offset_initializer: for the offset.
        options: the options of every `Layer`, such as `dtype` for the policy, `param_dtype`, `strict` and `name`.
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
        """Add the weights `gamma` and `beta` if they are used.

        Args:
            shape: their shape.
        """
        dtype = at_least_float32(self.variable_dtype) if self.param_dtype is None else self.param_dtype
        weight = partial(self.add_weight, shape=shape, dtype=dtype, autocast=False)
        self.gamma: Any = weight("gamma", initializer=self._scale_initializer) if self.use_scale else None
        self.beta: Any = weight("beta", initializer=self._offset_initializer) if self.use_offset else None

    def scale_and_offset(self) -> tuple[jax.Array | None, jax.Array | None]:
        """The stored values of the scale and the offset, or None."""
        gamma, beta = self.gamma, self.beta
        return None if gamma is None else gamma.value, None if beta is None else beta.value


class _AxisNorm(Normalization):
    """The common base of norms over given axes."""

    _norm: ClassVar[Callable[..., jax.Array]]

    def __init__(self, *, axes: Ints = (-1,), **options: Unpack[NormOptions]) -> None:
        super().__init__(**options)
        self.axes: tuple[int, ...] = axis_numbers("axes", axes)
        self.input_spec: InputSpecs | None = InputSpec()

    def build(self, input_shape: tuple[int, ...]) -> None:
        """Add scale and offset."""
        axes = sorted(as_axes("axes", self.axes, len(input_shape)))
        self.add_scale_and_offset(tuple(input_shape[axis] for axis in axes))
        self.input_spec = InputSpec(axes={axis: input_shape[axis] for axis in self.axes})

    def call(self, x: jax.Array) -> jax.Array:
        """Normalize, with a result in the compute dtype."""
        options = {"axes": self.axes, "epsilon": self.epsilon, "dtype": self.compute_dtype}
        return type(self)._norm(x, *self.scale_and_offset(), **options)


class _ChannelNorm(Normalization):
    """The common base of norms with one scale and one offset per channel, the last axis."""

    _min_ndim: ClassVar[int]

    def __init__(self, **options: Unpack[NormOptions]) -> None:
        super().__init__(**options)
        self.input_spec: InputSpecs | None = InputSpec(min_ndim=self._min_ndim)

    def build(self, input_shape: tuple[int, ...]) -> None:
        """Add scale and offset, one number per channel."""
        self.add_scale_and_offset(input_shape[-1:])
        self.input_spec = InputSpec(min_ndim=self._min_ndim, axes={-1: input_shape[-1]})


class LayerNorm(_AxisNorm):
    """Normalize each example by its own mean and variance (Ba, Kiros and Hinton, 2016).

    Statistics are in at least float32 for every compute dtype; only the result is rounded to the compute dtype.

    Args:
        axes: the axes to normalize over; scale and offset have the shape of inputs over these axes.
        epsilon: added to the variance.
        options: the options of every norm, `use_scale`, `use_offset` and their initializers, and of every `Layer`.

    >>> from supremum.nn import initialize
    >>> layer = LayerNorm(dtype="mixed_float16")
    >>> x = jax.numpy.asarray([[6e4, -6e4]], "float16")
    >>> initialize(layer, x)
    >>> layer(x)
    Array([[ 1., -1.]], dtype=float16)
    """

    _norm = staticmethod(functional.layer_norm)


class RMSNorm(_AxisNorm):
    """Divide each example by its root mean square (Zhang and Sennrich, 2019).

    Args:
        axes: the axes to normalize over; scale and offset have the shape of inputs over these axes.
        epsilon: added to the mean square.
        use_offset: whether to add a weight, `beta`, after scaling; the other norms have one.
        options: the options of every norm, `use_scale` and the initializers, and of every `Layer`.

    >>> from supremum.nn import initialize
    >>> layer = RMSNorm(dtype="mixed_float16")
    >>> x = jnp.asarray([[6e4, -6e4]], "float16")  # the squares are beyond float16
    >>> initialize(layer, x)
    >>> layer(x)
    Array([[ 1., -1.]], dtype=float16)
    """

    _norm = staticmethod(functional.rms_norm)

    def __init__(self, *, use_offset: bool = False, **options: Any) -> None:
        super().__init__(use_offset=use_offset, **options)


class GroupNorm(_ChannelNorm):
    """Normalize groups of neighboring channels, each by its mean and variance over space (Wu and He, 2018).

    Args:
        groups: the number of groups of channels, the last axis of inputs (batch, *space, channels).
        epsilon: added to the variance.
        options: the options of every norm, `use_scale`, `use_offset` and their initializers, and of every `Layer`.

    Raises:
        ArgumentError: at the first call, if `groups` does not divide the channels.

    >>> from supremum.nn import initialize
    >>> layer = GroupNorm(2)
    >>> initialize(layer, jnp.ones((1, 8, 8, 4)))
    >>> layer(jnp.ones((1, 8, 8, 4))).shape, layer.gamma.shape
    ((1, 8, 8, 4), (4,))
    """

    _min_ndim = 2

    def __init__(self, groups: int = 32, **options: Unpack[NormOptions]) -> None:
        super().__init__(**options)
        self.groups = groups

    def call(self, x: jax.Array) -> jax.Array:
        """Normalize, with a result in the compute dtype."""
        options: dict[str, Any] = {"epsilon": self.epsilon, "dtype": self.compute_dtype}
        return functional.group_norm(x, *self.scale_and_offset(), groups=self.groups, **options)


class InstanceNorm(_ChannelNorm):
    """Normalize each channel of each example by its mean and variance over space (Ulyanov and others, 2016).

    Inputs have the shape (batch, *space, channels).

    Args:
        epsilon: added to the variance.
        options: the options of every norm, `use_scale`, `use_offset` and their initializers, and of every `Layer`.

    >>> from supremum.nn import initialize
    >>> layer = InstanceNorm()
    >>> initialize(layer, jnp.ones((1, 8, 8, 4)))
    >>> layer(jnp.ones((1, 8, 8, 4))).shape, layer.gamma.shape
    ((1, 8, 8, 4), (4,))
    """

    _min_ndim = 3

    def call(self, x: jax.Array) -> jax.Array:
        """Normalize, with a result in the compute dtype."""
        return functional.instance_norm(x, *self.scale_and_offset(), epsilon=self.epsilon, dtype=self.compute_dtype)


class BatchNorm(Normalization):
    """Normalize each channel by the statistics of the batch in training, and by running averages otherwise.

    Statistics are computed, averaged and stored in at least float32 for every compute dtype; only the result is rounded
    to the compute dtype. Averages are stored in the result type of float32 and the inputs (Flax FLIP, default dtypes,
    "Batch statistics"), which is float64 or complex under a policy that does not cast such inputs. The variance is
    real.

    Args:
        axis: the axis of the channels.
        momentum: the weight of the old running average at each training step.
        epsilon: added to the variance.
        axis_name: the axis of devices that share statistics, `"data"` under `training.DataParallel`, where each device
            has a part of the batch; None for separate statistics on each device. It has no effect if there is no such
            axis, as on one device.
        options: the options of every norm, `use_scale`, `use_offset` and their initializers, and of every `Layer`.

    Raises:
        ArgumentError: for several axes, or a momentum that is not from 0 to 1.

    >>> from supremum.nn import initialize
    >>> layer = BatchNorm(dtype="mixed_float16")
    >>> x = jnp.asarray([[1.0], [3.0]], "float16")
    >>> initialize(layer, x)
    >>> outputs = layer(x, training=True)
    >>> outputs.dtype, layer.moving_mean.dtype, layer.moving_mean.value
    (dtype('float16'), dtype('float32'), Array([0.02], dtype=float32))
    """

    def __init__(
        self,
        *,
        axis: int = -1,
        momentum: float = 0.99,
        epsilon: float = 1e-3,
        axis_name: str | None = None,
        **options: Any,
    ) -> None:
        super().__init__(epsilon=epsilon, **options)
        if not isinstance(axis, int):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ArgumentError(f"axis must be one number, the axis of the channels, got {shown(axis)}; use axis=-1")
        real_within("momentum", momentum, 0, 1)
        self.axis = axis
        self.momentum = momentum
        self.axis_name = axis_name
        self.input_spec: InputSpecs | None = InputSpec(min_ndim=2)

    def build(self, input_shape: tuple[int, ...]) -> None:
        """Add scale, offset and the running statistics, one number per channel."""
        (axis,) = as_axes("axis", self.axis, len(input_shape))
        channels = input_shape[axis : axis + 1]
        if not self.build_inputs:
            raise ArgumentError(
                "the first call of a BatchNorm must pass its input by position; use layer(x) instead of layer(x=x)"
            )
        mean = as_format(at_least_float32(functional.common_dtype(self.build_inputs[0], dtype=self.compute_dtype)))
        self.add_scale_and_offset(channels)
        average = partial(self.add_weight, shape=channels, trainable=False, autocast=False)
        self.moving_mean: Any = average("moving_mean", initializer=ZEROS, dtype=mean.dtype)
        self.moving_variance: Any = average("moving_variance", initializer=ONES, dtype=mean.component.dtype)
        self.input_spec = InputSpec(min_ndim=2, axes={self.axis: channels[0]})

    def call(self, x: jax.Array, *, mask: jax.Array | None = None, training: bool = False) -> jax.Array:
        """Normalize; in training, also update the running averages.

        Args:
            x: values.
            mask: booleans of the shape of `x`, with or without the axis of channels: the positions that count in the
                statistics of the batch. All positions are normalized.
            training: whether this is a training step; it has no effect if the layer is not trainable.
        """
        if training and not is_frozen():
            mean, variance = self._batch_moments(x, mask)
        else:
            mean, variance = self.moving_mean.value, self.moving_variance.value
        options: dict[str, Any] = {"epsilon": self.epsilon, "dtype": self.compute_dtype}
        return functional.batch_norm(x, mean, variance, *self.scale_and_offset(), axis=self.axis, **options)

    def _batch_moments(self, x: jax.Array, mask: jax.Array | None) -> tuple[jax.Array, jax.Array]:
        (channels,) = as_axes("axis", self.axis, x.ndim)
        axes = tuple(axis for axis in range(x.ndim) if axis != channels)
        if mask is not None and jnp.ndim(mask) == x.ndim - 1:
            mask = jnp.expand_dims(mask, channels)
        _, (x,) = promote_and_widen(x, dtype=self.compute_dtype)
        mean, variance = functional.moments(x, axes, mask=mask)
        if mask is None:
            count: Any = math.prod(x.shape[axis] for axis in axes)
        else:
            count = jnp.sum(jnp.broadcast_to(mask, x.shape), axes, dtype=variance.dtype)
        if self.axis_name is not None and has_axis(self.axis_name):
            mean, variance, count = joint_moments(mean, variance, count, self.axis_name)
        self._update_average(self.moving_mean, mean, count > 0)
        self._update_average(self.moving_variance, variance, count > 0)
        return mean, variance

    def _update_average(self, average: Variable, batch: jax.Array, is_counted: Any) -> None:
        is_complex = [as_format(each.dtype).category == "complex" for each in (average, batch)]
        if is_complex == [False, True]:
            raise OperandError(
                f"inputs must be real for a layer that was built for real inputs, got a {batch.dtype} mean for the "
                f"{average.dtype} {average.name}; build a new layer with complex inputs"
            )
        moved = average.value * self.momentum + batch.astype(average.dtype) * (1 - self.momentum)
        average.assign(jnp.where(is_counted, moved, average.value))  # an empty batch has no statistics
