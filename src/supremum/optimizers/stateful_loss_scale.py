"""Loss scales with a state: a thin shell around the pure transition of `supremum.mixed_precision`.

spec/keras-rfc-293-mixed-precision.md, "The new LossScale class".
"""

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
    """A loss scale with its state; optimizers that are given the same one share it.

    The settings of the `LossScale` are attributes that are only read: `initial_loss_scale`, `increment_period`,
    `multiplier`, `minimum`, `maximum` and `hysteresis`, or `loss_scale_value` of a fixed one.

    Args:
        settings: a `LossScale`, `"dynamic"` or a number.

    Raises:
        OperandError: for None or what is no loss scale; a `TypeError`.

    spec/keras-rfc-293-mixed-precision.md, "The new LossScale class": the variables can be assigned, not replaced.

    >>> scale = StatefulLossScale("dynamic")
    >>> scale()
    Array(32768., dtype=float32)
    >>> _ = scale.loss_scale.assign(1024)
    >>> scale(), scale.num_good_steps, scale.multiplier
    (Array(1024., dtype=float32), Scalar('num_good_steps', 0, dtype=int32), 2.0)
    """

    def __init__(self, settings: LossScale | str | float = "dynamic") -> None:
        if isinstance(settings, StatefulLossScale):
            raise OperandError("this loss scale has a state already: pass it as it is to share it, or its copy()")
        made = as_loss_scale(settings)
        if made is None:
            raise OperandError("a loss scale has settings and was given None: give 'dynamic', or 1 to scale by nothing")
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
        """All that changes, as arrays; what a jitted step takes and gives back."""
        return current_state(self, self._state)

    @state.setter
    def state(self, state: LossScaleState) -> None:
        if not isinstance(state, LossScaleState):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise OperandError(f"the state of a loss scale must be a LossScaleState, got {shown(state)}")
        self._state = state

    @property
    def loss_scale(self) -> Scalar:
        """The factor for the next loss, float32, to read and to assign."""
        return Scalar("loss_scale", lambda: self.state.loss_scale, self._assign_scale)

    @property
    def num_good_steps(self) -> Scalar:
        """Steps in a row with finite gradients since the scale last changed, to read and to assign."""
        return Scalar("num_good_steps", lambda: self.state.num_good_steps, self._assign_good_steps)

    @property
    def num_skipped_steps(self) -> jax.Array:
        """How many steps were skipped in all."""
        return copied(self.state.num_skipped_steps)

    @property
    def num_retries(self) -> jax.Array:
        """How many times a step was computed again at a lower scale, in all."""
        return copied(self.state.num_retries)

    def _assign_scale(self, value: Any) -> None:
        number = real_number("loss_scale", value_of(value))
        floor, ceiling = self._settings.bounds
        if not 0 < number < math.inf:
            raise ArgumentError(f"loss_scale must be above 0 and finite, got {number}: assign 2.0**15, say")
        if not floor <= number <= ceiling:
            near = min(max(number, floor), ceiling)
            raise ArgumentError(
                f"loss_scale must be from {floor} to {ceiling}, the bounds of {self._settings}, got {number}: "
                f"assign {near}, or make the scale with other bounds"
            )
        self.state = self._state._replace(loss_scale=jnp.asarray(np.float32(number)))

    def _assign_good_steps(self, value: Any) -> None:
        dtype = self._state.num_good_steps.dtype
        number = whole_number("num_good_steps", value_of(value), 0, int(jnp.iinfo(dtype).max))
        self.state = self._state._replace(num_good_steps=jnp.asarray(np.asarray(number, dtype)))

    def load(self, saved: Mapping[str, Any]) -> None:
        """Take over a state that was saved by name.

        Args:
            saved: every field of `LossScaleState`; what is refused and what is brought into bounds `load_state_dict`
                of the settings says.
        """
        self.state = self._settings.load_state_dict(saved)

    def copy(self) -> StatefulLossScale:
        """Another loss scale with the same settings and a copy of the state."""
        made = StatefulLossScale(self._settings)
        # Buffers of its own: one that two states share cannot be donated.
        made.state = LossScaleState(*(jnp.array(leaf, copy=True) for leaf in as_state(self._state)))
        return made

    def get_config(self) -> dict[str, Any]:
        """The settings as data fit for JSON; the state is in checkpoints.

        >>> StatefulLossScale(8).get_config()
        {'class_name': 'FixedLossScale', 'config': {'loss_scale_value': 8.0}}
        """
        config = serialize_loss_scale(self._settings)
        assert config is not None
        return config

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> StatefulLossScale:
        """A fresh loss scale with the settings that `get_config` gave."""
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
            raise AttributeError(f"{name} is a variable and stays the one it is: use scale.{name}.assign(value)")
        if name in self._settings.get_config():
            made = f"StatefulLossScale({type(self._settings).__name__}({name}=...))"
            raise AttributeError(f"{name} is a setting and never changes: make another loss scale, {made}")
        raise AttributeError(
            f"a loss scale has no attribute {shown(name)} to set: loss_scale.assign and state change it"
        )

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._settings.get_config()})

    def __repr__(self) -> str:
        counts = ", ".join(f"{name}={getattr(self._state, name)}" for name in COUNTS)
        return f"StatefulLossScale({self._settings!r}, loss_scale={self._state.loss_scale}, {counts})"


def as_stateful(scale: StatefulLossScale | LossScale | str | float | None) -> StatefulLossScale:
    """The given loss scale if it has a state, to share it; otherwise a fresh one with these settings."""
    if isinstance(scale, StatefulLossScale):
        return scale
    if scale is None:
        raise OperandError(
            "a LossScaleOptimizer needs a loss scale and was given None: give 'dynamic' or a number, or use the "
            "optimizer as it is"
        )
    return StatefulLossScale(scale)
