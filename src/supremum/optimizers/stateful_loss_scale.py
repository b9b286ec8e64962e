"""Loss scales with a state, around the pure functions of `supremum.mixed_precision`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NoReturn

import jax
import jax.numpy as jnp
import numpy as np

from supremum.argument_checks import real_number, whole_number
from supremum.errors import ArgumentError, OperandError, shown
from supremum.mixed_precision import (
    COUNTS,
    LossScale,
    LossScaleState,
    as_loss_scale,
    as_state,
    deserialize_loss_scale,
    serialize_loss_scale,
)
from supremum.optimizers.scalar_variable import Scalar, value_of
from supremum.optimizers.traced_state import copied, current_state


class StatefulLossScale:
    """A loss scale with its state; several optimizers can share it.

    The settings of the `LossScale` are read-only attributes: `initial_loss_scale`, `increment_period`, `multiplier`,
    `minimum`, `maximum` and `hysteresis`, or `loss_scale_value` of a fixed scale.

    Args:
        settings: a `LossScale`, `"dynamic"` or a number.

    Raises:
        OperandError: for None and for anything that is not a loss scale; a `TypeError`.

    The variables can be assigned, not replaced (Keras RFC 293, mixed precision, "The new LossScale class").

    >>> scale = StatefulLossScale("dynamic")
    >>> scale()
    Array(32768., dtype=float32)
    >>> _ = scale.loss_scale.assign(1024)
    >>> scale(), scale.num_good_steps, scale.multiplier
    (Array(1024., dtype=float32), Scalar('num_good_steps', 0, dtype=int32), 2.0)
    """

    def __init__(self, settings: LossScale | str | float = "dynamic") -> None:
        if isinstance(settings, StatefulLossScale):
            raise OperandError(
                "settings must not be a StatefulLossScale: pass it as it is to share it, or pass its copy()"
            )
        made = as_loss_scale(settings)
        if made is None:
            raise OperandError("a loss scale needs settings, got None: pass 'dynamic', or 1 for no scaling")
        self._settings: LossScale = made
        self._state: LossScaleState = made.init()

    def __call__(self) -> jax.Array:
        """The factor for the next loss, a float32 scalar."""
        return copied(self.state.loss_scale)

    @property
    def settings(self) -> LossScale:
        """The frozen settings."""
        return self._settings

    @property
    def state(self) -> LossScaleState:
        """The arrays that change; a jitted step takes and returns them."""
        return current_state(self, self._state)

    @state.setter
    def state(self, state: LossScaleState) -> None:
        if not isinstance(state, LossScaleState):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise OperandError(f"the state of a loss scale must be a LossScaleState, got {shown(state)}")
        self._state = state

    @property
    def loss_scale(self) -> Scalar:
        """The factor for the next loss, float32; it can be assigned."""
        return Scalar("loss_scale", lambda: self.state.loss_scale, self._assign_scale)

    @property
    def num_good_steps(self) -> Scalar:
        """The steps in a row with finite gradients since the scale last changed; it can be assigned."""
        return Scalar("num_good_steps", lambda: self.state.num_good_steps, self._assign_good_steps)

    @property
    def num_skipped_steps(self) -> jax.Array:
        """The total number of skipped steps."""
        return copied(self.state.num_skipped_steps)

    @property
    def num_retries(self) -> jax.Array:
        """The total number of times that a step was computed again at a lower scale."""
        return copied(self.state.num_retries)

    def _assign_scale(self, value: Any) -> None:
        number = real_number("loss_scale", value_of(value))
        floor, ceiling = self._settings.bounds
        if not 0 < number < math.inf:
            raise ArgumentError(f"loss_scale must be positive and finite, got {number}: assign 2.0**15, for example")
        if not floor <= number <= ceiling:
            raise ArgumentError(
                f"loss_scale must be from {floor} to {ceiling}, the bounds of {self._settings}, got {number}: "
                f"assign {min(max(number, floor), ceiling)}, or make a loss scale with other bounds"
            )
        self.state = self._state._replace(loss_scale=jnp.asarray(np.float32(number)))

    def _assign_good_steps(self, value: Any) -> None:
        dtype = self._state.num_good_steps.dtype
        number = whole_number("num_good_steps", value_of(value), 0, int(jnp.iinfo(dtype).max))
        self.state = self._state._replace(num_good_steps=jnp.asarray(np.asarray(number, dtype)))

    def load(self, saved: Mapping[str, Any]) -> None:
        """Load a state that was saved by name.

        Args:
            saved: every field of `LossScaleState`, checked and limited as in `LossScale.load_state_dict`.
        """
        self.state = self._settings.load_state_dict(saved)

    def copy(self) -> StatefulLossScale:
        """Make a separate loss scale with the same settings and a copy of the state."""
        made = StatefulLossScale(self._settings)
        # A buffer that two states share cannot be donated.
        made.state = LossScaleState(*(jnp.array(leaf, copy=True) for leaf in as_state(self._state)))
        return made

    def get_config(self) -> dict[str, Any]:
        """Return the settings as data for JSON, without the state, which belongs in checkpoints.

        >>> StatefulLossScale(8).get_config()
        {'class_name': 'FixedLossScale', 'config': {'loss_scale_value': 8.0}}
        """
        config = serialize_loss_scale(self._settings)
        assert config is not None
        return config

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> StatefulLossScale:
        """Make a loss scale with a new state from the result of `get_config`."""
        settings = deserialize_loss_scale(config)
        assert settings is not None
        return cls(settings)

    def __getattr__(self, name: str) -> Any:
        settings = vars(self).get("_settings")
        if settings is not None and name in settings.get_config():
            return getattr(settings, name)
        raise AttributeError(f"{shown(type(self).__name__)} object has no attribute {shown(name)}")

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in ("state", "_state", "_settings"):
            self._refuse(name)
        object.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        self._refuse(name)

    def _refuse(self, name: str) -> NoReturn:
        if name in ("loss_scale", "num_good_steps"):
            raise AttributeError(f"{name} is a variable, which cannot be replaced: use scale.{name}.assign(value)")
        if name in self._settings.get_config():
            made = f"StatefulLossScale({type(self._settings).__name__}({name}=...))"
            raise AttributeError(f"{name} is a setting, which cannot change: make a new loss scale, {made}")
        raise AttributeError(
            f"a loss scale has no settable attribute {shown(name)}: use loss_scale.assign, or set state"
        )

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._settings.get_config()})

    def __repr__(self) -> str:
        counts = ", ".join(f"{name}={getattr(self._state, name)}" for name in COUNTS)
        return f"StatefulLossScale({self._settings!r}, loss_scale={self._state.loss_scale}, {counts})"


def as_stateful(scale: StatefulLossScale | LossScale | str | float | None) -> StatefulLossScale:
    """Return a loss scale that has a state as it is, to share it; else make one with these settings."""
    if isinstance(scale, StatefulLossScale):
        return scale
    if scale is None:
        raise OperandError(
            "a LossScaleOptimizer needs a loss scale, got None: pass 'dynamic' or a number, or use the optimizer "
            "without the wrapper"
        )
    return StatefulLossScale(scale)
