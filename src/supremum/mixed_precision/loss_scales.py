"""Loss scales: frozen settings, a small state, and one pure step from a state to the next.

The algorithm follows Keras RFC 293, mixed precision, "The new LossScale class". Two things are added. A finite ceiling
keeps a long run of good steps from raising the scale to infinity, where no step would ever be finite again. Hysteresis
tolerates some overflows before the scale falls, as in Megatron-LM's `DynamicGradScaler`.
"""

from __future__ import annotations

import dataclasses
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self, cast

import jax
import jax.numpy as jnp
import numpy as np

from supremum.argument_checks import chosen, instance, known_keys, real_number, real_within, whole_number
from supremum.errors import ArgumentError, OperandError, shown
from supremum.formats import as_format
from supremum.mixed_precision.pytrees import is_array

_FLOAT32 = as_format("float32")
_LARGEST_COUNT = as_format("int32").max  # counts are int32 with JAX's x64 off


class LossScaleState(NamedTuple):
    """The state of a loss scale: strong float32 and integer scalars (int64 with JAX's x64 on, else int32).

    Counts stop at the largest integer and never wrap around to negative numbers.

    Args:
        loss_scale: the factor for the next loss, float32.
        num_good_steps: steps in a row with finite gradients since the last overflow or change of the scale.
        num_skipped_steps: the total number of skipped steps.
        num_overflows: overflows since the scale last rose, counted up to the hysteresis.
        num_retries: the total number of times that a step was computed again at a lower scale.

    >>> import jax.numpy as jnp
    >>> state = DynamicLossScale(initial_loss_scale=1024.0).init()
    >>> state = DynamicLossScale(initial_loss_scale=1024.0).update(
    ...     state, jnp.asarray(False)
    ... )
    >>> float(state.loss_scale), int(state.num_skipped_steps), int(state.num_good_steps)
    (512.0, 1, 0)
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


def as_state(state: object) -> LossScaleState:
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


class LossScale(ABC):
    """A factor for the loss that keeps small gradients from flushing to zero.

    A subclass is a frozen dataclass of its settings with the methods below. A `LossScaleState` holds what changes from
    step to step.

    >>> import jax.numpy as jnp
    >>> settings: LossScale = DynamicLossScale(initial_loss_scale=1024.0)
    >>> settings.update(  # after an overflow
    ...     settings.init(), jnp.asarray(False)
    ... ).loss_scale
    Array(512., dtype=float32)
    >>> settings.skips, settings.bounds, FixedLossScale(8.0).bounds
    (True, (1.0, 1.7014118346046923e+38), (8.0, 8.0))
    """

    skips: ClassVar[bool]
    """Whether steps with non-finite gradients are skipped; if not, no check is compiled."""

    def __call__(self) -> jax.Array:
        """The factor for the first loss, a float32 scalar."""
        return self.init().loss_scale

    @property
    @abstractmethod
    def bounds(self) -> tuple[float, float]:
        """The floor and the ceiling of the scale."""

    @abstractmethod
    def init(self) -> LossScaleState:
        """The state before the first step."""

    @abstractmethod
    def update(self, state: LossScaleState, finite: jax.Array) -> LossScaleState:
        """Return the state after a step.

        Args:
            state: the state before the step, whose scale was applied to the loss.
            finite: bool scalar, whether all gradients of the step were finite.
        """

    @abstractmethod
    def back_off(self, state: LossScaleState) -> LossScaleState:
        """Return the state for computing a step again after an overflow.

        Args:
            state: the state of the attempt that overflowed.
        """

    def state_dict(self, state: LossScaleState) -> dict[str, float | int]:
        """Convert a state to Python numbers by name, for JSON; `load_state_dict` reads it back.

        >>> DynamicLossScale().state_dict(DynamicLossScale().init())["loss_scale"]
        32768.0
        """
        return {name: np.asarray(leaf).item() for name, leaf in as_state(state)._asdict().items()}

    def load_state_dict(self, saved: Mapping[str, Any]) -> LossScaleState:
        """Make the state that `state_dict` saved.

        A scale outside the floor and ceiling moves to the nearer bound, because the settings may have changed. A count
        too large for JAX's integers becomes the largest integer.

        Args:
            saved: every field of the state by name.

        Raises:
            UnknownNameError: for an unknown field.
            ArgumentError: for a missing field, a scale that is not positive and finite, or a negative count.
            OperandError: for anything that is not a number.
        """
        fields = known_keys("loss scale's state", saved, LossScaleState._fields)
        scale = real_number("loss_scale", fields.pop("loss_scale"))
        if not 0 < scale < math.inf:
            raise ArgumentError(f"loss_scale must be positive and finite, got {scale}")
        floor, ceiling = self.bounds
        largest = jnp.iinfo(jnp.array(0, int).dtype).max
        counts = {name: min(whole_number(name, fields[name], 0, 2**63 - 1), largest) for name in COUNTS}
        return initial_state(min(max(scale, floor), ceiling), **counts)

    def get_config(self) -> dict[str, float | int]:
        """Return the settings by name, for JSON; `from_config` reads them back."""
        return dataclasses.asdict(cast("Any", self))

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self:
        """Make a loss scale from settings; missing settings take their defaults.

        Raises:
            ValueError: for an unknown setting, a missing setting without a default, or a value out of bounds.

        >>> DynamicLossScale.from_config({"increment_period": 1000}).increment_period
        1000
        """
        fields = dataclasses.fields(cast("Any", cls))
        required = [field.name for field in fields if field.default is dataclasses.MISSING]
        return cls(**known_keys(f"{cls.__name__}'s config", config, [field.name for field in fields], required))


@dataclass(frozen=True)
class FixedLossScale(LossScale):
    """A loss scale that never changes, applies every step and checks nothing.

    Args:
        loss_scale_value: the factor, at least 1 and finite in float32.

    Raises:
        ArgumentError: for a factor below 1, which makes underflow worse, or a factor that is not finite; a
            `ValueError`.
        OperandError: for anything that is not a number.

    >>> FixedLossScale(1024).init().loss_scale
    Array(1024., dtype=float32)
    """

    skips = False
    loss_scale_value: float

    def __post_init__(self) -> None:
        value = real_number("loss_scale_value", self.loss_scale_value)
        if not 1 <= value <= _FLOAT32.max:
            raise ArgumentError(f"loss_scale_value must be finite and at least 1, got {value}")
        object.__setattr__(self, "loss_scale_value", value)

    @property
    def bounds(self) -> tuple[float, float]:
        """The value, twice."""
        return self.loss_scale_value, self.loss_scale_value

    def init(self) -> LossScaleState:
        """The state before the first step."""
        return initial_state(self.loss_scale_value)

    def update(self, state: LossScaleState, finite: jax.Array) -> LossScaleState:  # noqa: ARG002 (this scale is fixed)
        """The same state."""
        return as_state(state)

    def back_off(self, state: LossScaleState) -> LossScaleState:
        """The same state: a fixed scale has no lower value to try."""
        return as_state(state)


@dataclass(frozen=True)
class DynamicLossScale(LossScale):
    """A loss scale that halves when gradients overflow and doubles after a long run of steps without overflow.

    Args:
        initial_loss_scale: the first scale. The RFC's `2**15` is about half the float16 maximum. A scale that is too
            high falls within a few steps; one that is too low needs thousands of steps to rise.
        increment_period: the number of good steps in a row after which the scale rises, at least 1.
        multiplier: the factor of every rise and fall, above 1; a power of two loses no precision.
        minimum: the floor, 1 as in the RFC by default: a smaller scale makes underflow worse.
        maximum: the ceiling, finite.
        hysteresis: how many overflows since the last rise it takes to lower the scale. Earlier overflows only skip
            their steps; later ones lower the scale each. The RFC's value is 1.

    Raises:
        ArgumentError: for settings outside these bounds; a `ValueError` that names the argument.
        OperandError: for anything that is not a number, or not a whole number where one is needed.

    >>> import jax.numpy as jnp
    >>> scale = DynamicLossScale(initial_loss_scale=8.0, increment_period=2)
    >>> state = scale.init()
    >>> for finite in (True, True, False):
    ...     state = scale.update(state, jnp.asarray(finite))
    ...     print(
    ...         float(state.loss_scale),
    ...         int(state.num_good_steps),
    ...         int(state.num_skipped_steps),
    ...     )
    8.0 1 0
    16.0 0 0
    8.0 0 1
    """

    skips = True
    initial_loss_scale: float = 2.0**15
    increment_period: int = 2000
    multiplier: float = 2.0
    minimum: float = 1.0
    maximum: float = 2.0**127
    hysteresis: int = 1

    def __post_init__(self) -> None:
        for name in ("increment_period", "hysteresis"):
            object.__setattr__(self, name, whole_number(name, getattr(self, name), 1, int(_LARGEST_COUNT)))
        smallest, largest = _FLOAT32.smallest_normal, float(_FLOAT32.max)
        self._check("multiplier", 1 + _FLOAT32.eps, largest, "above 1 and finite, in float32")
        # The initial scale is checked against the bounds, which must be valid before.
        self._check("minimum", smallest, largest, f"a normal float32, from {smallest:.4g} to {largest:.4g}")
        self._check("maximum", self.minimum, largest, f"from minimum, {self.minimum}, up to {largest:.4g}")
        bounds = f"from minimum, {self.minimum}, up to maximum, {self.maximum}"
        self._check("initial_loss_scale", *self.bounds, bounds)

    def _check(self, name: str, low: float, high: float, bounds: str) -> None:
        object.__setattr__(self, name, real_within(name, getattr(self, name), low, high, bounds))

    @property
    def bounds(self) -> tuple[float, float]:
        """Minimum and maximum."""
        return self.minimum, self.maximum

    def init(self) -> LossScaleState:
        """The state before the first step."""
        return initial_state(self.initial_loss_scale)

    def update(self, state: LossScaleState, finite: jax.Array) -> LossScaleState:
        """Return the state after a step: raise or keep the scale if `finite`, else lower it."""
        scale, good, skipped, overflows, retries = as_state(state)
        if not (isinstance(cast("Any", finite), bool) or (is_array(finite) and finite.dtype == np.bool_)):
            raise OperandError(f"finite must be a bool, got {shown(finite)}: pass all_finite(gradients)")
        due = good >= self.increment_period - 1
        counted = jnp.minimum(one_more(overflows), self.hysteresis)
        raised = jnp.where(due, scale * self.multiplier, scale)
        lowered = jnp.where(counted >= self.hysteresis, scale / self._divisor, scale)
        return LossScaleState(
            loss_scale=self._clipped(jnp.where(finite, raised, lowered)),
            num_good_steps=jnp.where(finite & ~due, one_more(good), 0),
            num_skipped_steps=jnp.where(finite, skipped, one_more(skipped)),
            num_overflows=jnp.where(finite, jnp.where(due, 0, overflows), counted),
            num_retries=retries,
        )

    def back_off(self, state: LossScaleState) -> LossScaleState:
        """Return the state with the scale lowered, but not below the floor, no good steps, and one more retry.

        Hysteresis does not apply: it counts skipped steps, and the step would overflow again at the same scale.
        """
        state = as_state(state)
        return state._replace(
            loss_scale=self._clipped(state.loss_scale / self._divisor),
            num_good_steps=jnp.zeros_like(state.num_good_steps),
            num_retries=one_more(state.num_retries),
        )

    @property
    def _divisor(self) -> jax.Array:
        # XLA replaces division by a constant with multiplication by the reciprocal, which is an ulp off for 3.
        return jax.lax.optimization_barrier(jnp.float32(self.multiplier))

    def _clipped(self, scale: jax.Array) -> jax.Array:
        # The product may be inf in float32; clipping makes it finite.
        return jnp.clip(scale, self.minimum, self.maximum)


def as_loss_scale(scale: LossScale | str | float | None) -> LossScale | None:
    """Convert a short form to a loss scale.

    Args:
        scale: a loss scale, `"dynamic"` for `DynamicLossScale()`, a number for `FixedLossScale`, or None for no scale.

    Raises:
        UnknownNameError: for any other string.
        OperandError: for anything else.

    >>> as_loss_scale(128)
    FixedLossScale(loss_scale_value=128.0)
    """
    if scale is None or isinstance(scale, LossScale):
        return scale
    if isinstance(scale, str):
        chosen("loss scale", scale, ["dynamic"])
        return DynamicLossScale()
    try:
        return FixedLossScale(real_number("loss scale", scale))
    except TypeError:
        raise OperandError(
            f"a loss scale must be a LossScale, 'dynamic', a number or None, got {shown(scale)}"
        ) from None


def serialize_loss_scale(scale: LossScale | None) -> dict[str, Any] | None:
    """Convert a loss scale to data for JSON: the name of its class and its settings.

    >>> serialize_loss_scale(FixedLossScale(8.0))
    {'class_name': 'FixedLossScale', 'config': {'loss_scale_value': 8.0}}
    """
    if scale is None:
        return None
    instance("scale", scale, LossScale, "a loss scale, such as DynamicLossScale()")
    return {"class_name": type(scale).__name__, "config": scale.get_config()}


def deserialize_loss_scale(data: Mapping[str, Any] | None) -> LossScale | None:
    """Make the loss scale that `serialize_loss_scale` wrote.

    Raises:
        UnknownNameError: for an unknown class or setting, with the choices; a `ValueError`.
        ArgumentError: for a missing key or a setting out of bounds; a `ValueError`.

    >>> deserialize_loss_scale(
    ...     {"class_name": "DynamicLossScale", "config": {}}
    ... ) == DynamicLossScale()
    True
    """
    if data is None:
        return None
    entries = known_keys("serialized loss scale", data, ("class_name", "config"))
    classes: dict[Any, type[LossScale]] = {cls.__name__: cls for cls in (FixedLossScale, DynamicLossScale)}
    kind = chosen("class of loss scale", entries["class_name"], classes)
    return classes[kind].from_config(entries["config"])
