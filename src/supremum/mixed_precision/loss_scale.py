"""Loss scales: frozen settings, a small state, and one pure step from a state to the next.

The algorithm is that of spec/keras-rfc-293-mixed-precision.md, "The new LossScale class". Beyond it there is a finite
ceiling, so that a long run of good steps cannot carry the scale to infinity, where no step would ever be finite again.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from supremum.errors import UnknownNameError


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class LossScaleState:
    """What changes from step to step.

    Args:
        loss_scale: the factor for the next loss, a strong float32 scalar.
        num_good_steps: steps in a row with finite gradients since the scale last changed, an integer scalar (int64
            with JAX's x64 on, else int32).
        num_skipped_steps: how many steps were skipped in all, likewise.
    """

    loss_scale: jax.Array
    num_good_steps: jax.Array
    num_skipped_steps: jax.Array


class LossScale(ABC):
    """A factor for the loss that keeps small gradients from flushing to zero."""

    @property
    @abstractmethod
    def skips(self) -> bool:
        """Whether steps whose gradients are not finite are skipped; if not, no check is compiled."""

    @abstractmethod
    def init(self) -> LossScaleState:
        """The state before the first step."""

    @abstractmethod
    def update(self, state: LossScaleState, finite: jax.Array) -> LossScaleState:
        """The state after a step.

        Args:
            state: the state with which the step's loss was scaled.
            finite: bool scalar, whether the step's gradients were all finite.
        """


def _initial_state(scale: float) -> LossScaleState:
    def zero() -> jax.Array:  # a buffer each: one shared by two fields could not be donated
        return jnp.zeros((), int)  # the default integer: int64 with x64 on, else int32

    return LossScaleState(jnp.asarray(scale, jnp.float32), zero(), zero())


@dataclass(frozen=True)
class FixedLossScale(LossScale):
    """A loss scale that never changes; it applies every step and checks nothing.

    Args:
        loss_scale_value: the factor, at least 1 and finite.

    Raises:
        ValueError: for a factor below 1 or not finite: scaling exists to avoid underflow.

    >>> FixedLossScale(1024.0).init().loss_scale
    Array(1024., dtype=float32)
    """

    loss_scale_value: float

    def __post_init__(self) -> None:
        if not 1 <= self.loss_scale_value < math.inf:
            raise ValueError(f"a loss scale is finite and at least 1, not {self.loss_scale_value}")

    @property
    def skips(self) -> bool:
        """False: every step is applied."""
        return False

    def init(self) -> LossScaleState:
        """The state before the first step."""
        return _initial_state(self.loss_scale_value)

    def update(self, state: LossScaleState, finite: jax.Array) -> LossScaleState:  # noqa: ARG002
        """The same state."""
        return state


@dataclass(frozen=True)
class DynamicLossScale(LossScale):
    """A loss scale that halves when gradients overflow and doubles after a long run of steps that do not.

    Args:
        initial_loss_scale: the first scale. The RFC's `2**15` is about half the float16 maximum: too high is mended
            in a few steps, too low takes thousands.
        increment_period: good steps in a row after which the scale rises, at least 1.
        multiplier: the factor of every rise and fall, above 1; a power of two loses no precision.
        minimum: the floor. The RFC's is 1: below it scaling makes underflow worse.
        maximum: the ceiling, finite.

    Raises:
        ValueError: for settings outside these bounds; the message names the argument.

    >>> import jax.numpy as jnp
    >>> scale = DynamicLossScale(initial_loss_scale=8.0, increment_period=2)
    >>> state = scale.init()
    >>> for finite in (True, True, False):
    ...     state = scale.update(state, jnp.asarray(finite))
    ...     print(float(state.loss_scale), int(state.num_good_steps), int(state.num_skipped_steps))
    8.0 1 0
    16.0 0 0
    8.0 0 1
    """

    initial_loss_scale: float = 2.0**15
    increment_period: int = 2000
    multiplier: float = 2.0
    minimum: float = 1.0
    maximum: float = 2.0**127

    def __post_init__(self) -> None:
        largest = float(jnp.finfo(jnp.float32).max)
        # The bounds first: the initial scale is checked against them.
        rules = {
            "increment_period": (self.increment_period >= 1, "at least 1"),
            "multiplier": (1 < self.multiplier < math.inf, "above 1 and finite"),
            "minimum": (0 < self.minimum < math.inf, "above 0 and finite"),
            "maximum": (self.minimum <= self.maximum <= largest, f"from minimum, {self.minimum}, up to {largest:.4g}"),
            "initial_loss_scale": (
                self.minimum <= self.initial_loss_scale <= self.maximum,
                f"from minimum, {self.minimum}, up to maximum, {self.maximum}",
            ),
        }
        for name, (holds, bounds) in rules.items():
            if not holds:
                raise ValueError(f"{name} is {bounds}, not {getattr(self, name)}")

    @property
    def skips(self) -> bool:
        """True: a step whose gradients are not finite is skipped."""
        return True

    def init(self) -> LossScaleState:
        """The state before the first step."""
        return _initial_state(self.initial_loss_scale)

    def update(self, state: LossScaleState, finite: jax.Array) -> LossScaleState:
        """The state after a step with finite, or not finite, gradients."""
        due = state.num_good_steps >= self.increment_period - 1
        raised = jnp.where(due, self._clipped(state.loss_scale * self.multiplier), state.loss_scale)
        lowered = self._clipped(state.loss_scale / self.multiplier)
        return LossScaleState(
            loss_scale=jnp.where(finite, raised, lowered),
            num_good_steps=jnp.where(finite & ~due, state.num_good_steps + 1, 0),
            num_skipped_steps=state.num_skipped_steps + jnp.where(finite, 0, 1),
        )

    def _clipped(self, scale: jax.Array) -> jax.Array:
        # The product may be inf in float32 before it is clipped; it is finite after.
        return jnp.clip(scale, self.minimum, self.maximum)


def as_loss_scale(scale: LossScale | str | float | None) -> LossScale | None:
    """The loss scale that a short form stands for.

    Args:
        scale: a loss scale, `"dynamic"` for `DynamicLossScale()`, a number for `FixedLossScale`, or None for none.

    Raises:
        UnknownNameError: for any other string.
        TypeError: for anything else.

    >>> as_loss_scale(128)
    FixedLossScale(loss_scale_value=128.0)
    """
    if scale is None or isinstance(scale, LossScale):
        return scale
    if isinstance(scale, str):
        if scale != "dynamic":
            raise UnknownNameError("loss scale", scale, ["dynamic"])
        return DynamicLossScale()
    given: Any = scale
    if isinstance(given, bool) or not isinstance(given, (int, float)):
        raise TypeError(f"a loss scale is a LossScale, 'dynamic', a number or None, not {given!r}")
    return FixedLossScale(float(given))
