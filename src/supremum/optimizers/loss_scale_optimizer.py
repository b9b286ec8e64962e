"""Loss scales with a state, and the wrapper that adds one to an optimizer.

Keras RFC 293, mixed precision, "LossScaleOptimizer Overview" and "LossScaleOptimizer API".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, Self, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from supremum import mixed_precision
from supremum.argument_checks import flag, real_number, whole_number
from supremum.errors import ArgumentError, OperandError, shown
from supremum.formats import DType, as_format, at_least_float32
from supremum.mixed_precision import FixedLossScale, LossScale, LossScaleState, ScaledOptimizerState
from supremum.nn import Variable
from supremum.optimizers.checkpoint_arrays import SCALE_PREFIX, without_scale
from supremum.optimizers.gradients import Aggregate
from supremum.optimizers.serialization import OptimizerLike
from supremum.optimizers.state import Scalar, Update, copy_state, current_state, use_state, value_of
from supremum.optimizers.wrapper import OptimizerWrapper, optimizers_within
from supremum.typing import ArrayLike, PyTree

# The scale comes from the state, and `update` checks whether gradients are finite.
_UNCHECKED = FixedLossScale(1.0)
_FLOAT16 = as_format("float16").dtype


class StatefulLossScale:
    """A loss scale with its state; several optimizers can share it.

    Args:
        settings: a `LossScale`, `"dynamic"` or a number.

    Raises:
        OperandError: for None and for anything that is not a loss scale; a `TypeError`.

    The variables can be assigned, not replaced (Keras RFC 293, mixed precision, "The new LossScale class").

    >>> scale = StatefulLossScale("dynamic")
    >>> scale()
    Array(32768., dtype=float32)
    >>> _ = scale.loss_scale.assign(1024)
    >>> scale(), scale.num_good_steps, scale.settings.multiplier
    (Array(1024., dtype=float32), Scalar('num_good_steps', 0, dtype=int32), 2.0)
    """

    __slots__ = ("__weakref__", "_settings", "_state")

    def __init__(self, settings: LossScale | str | float = "dynamic") -> None:
        if isinstance(settings, StatefulLossScale):
            raise OperandError(
                "settings must not be a StatefulLossScale: pass it as it is to share it, or pass its copy()"
            )
        scale = mixed_precision.as_loss_scale(settings)
        if scale is None:
            raise OperandError("a loss scale needs settings, got None: pass 'dynamic', or 1 for no scaling")
        self._settings: LossScale = scale
        self._state: LossScaleState = scale.init()

    def __call__(self) -> jax.Array:
        """The factor for the next loss, a float32 scalar."""
        return copy_state(self.state.loss_scale)

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
        return copy_state(self.state.num_skipped_steps)

    def assign(self, value: ArrayLike) -> StatefulLossScale:
        """Assign the factor for the next loss, as `loss_scale.assign` does.

        Args:
            value: a real number within the bounds of the loss scale.
        """
        self.loss_scale.assign(value)
        return self

    def _assign_scale(self, value: ArrayLike) -> None:
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

    def _assign_good_steps(self, value: ArrayLike) -> None:
        dtype = self._state.num_good_steps.dtype
        number = whole_number("num_good_steps", value_of(value), 0, int(jnp.iinfo(dtype).max))
        self.state = self._state._replace(num_good_steps=jnp.asarray(np.asarray(number, dtype)))

    def copy(self) -> StatefulLossScale:
        """Make a separate loss scale with the same settings and a copy of the state."""
        copy = StatefulLossScale(self._settings)
        # A buffer that two states share cannot be donated.
        copy.state = LossScaleState(*(jnp.array(leaf, copy=True) for leaf in mixed_precision.as_state(self._state)))
        return copy

    def __repr__(self) -> str:
        counts = ", ".join(f"{name}={getattr(self._state, name)}" for name in mixed_precision.COUNTS)
        return f"StatefulLossScale({self._settings!r}, loss_scale={self._state.loss_scale}, {counts})"


def is_float16(asked: DType | None) -> bool:
    """Whether a policy with this reduction dtype needs `aggregate_in_float16`.

    Args:
        asked: the dtype in which gradients are summed across devices; None for at least float32.
    """
    return asked == _FLOAT16


class LossScaleOptimizer(OptimizerWrapper):
    """An optimizer that multiplies losses by a scale, divides gradients by it, and skips steps that overflow.

    Loss scaling has four steps: 1. scale the loss, 2. unscale the gradients, 3. update the scale, 4. skip the update of
    the variables if gradients are not finite. A fixed scale is never updated and skips nothing.

    | method | steps |
    |---|---|
    | `minimize`, `Model.fit` | 1, 2, 3, 4 |
    | `get_gradients`, `value_and_grad` | 1, 2 |
    | `apply_gradients`, `update` | 3, 4 |
    | `get_scaled_loss` | 1 |
    | `get_unscaled_gradients` | 2 |

    Args:
        optimizer: the optimizer to wrap, its name, such as `"sgd"`, or an optax transformation.
        loss_scale: a `LossScale`, `"dynamic"` or a number, for a new loss scale, or a `StatefulLossScale` to share.
        aggregate_in_float16: whether gradients are summed across devices in float16, scaled; it can be set later.

    Raises:
        OperandError: for None as optimizer or scale, and for an optimizer that already scales its loss; a `TypeError`.

    >>> from supremum import nn
    >>> from supremum.optimizers import SGD
    >>> w = nn.Variable([1.0], "w")
    >>> optimizer = LossScaleOptimizer(SGD(0.25))
    >>> (
    ...     float(optimizer.minimize(lambda: (w.value**2).sum(), w)),
    ...     w.value,
    ...     optimizer.loss_scale(),
    ... )
    (1.0, Array([0.5], dtype=float32), Array(32768., dtype=float32))
    """

    __slots__ = ("_aggregate_in_float16", "_loss_scale")

    def __init__(
        self,
        optimizer: OptimizerLike,
        loss_scale: StatefulLossScale | LossScale | str | float = "dynamic",
        aggregate_in_float16: bool = True,
    ) -> None:
        super().__init__(optimizer)
        if any(isinstance(each, LossScaleOptimizer) for each in optimizers_within(self.inner_optimizer)):
            raise OperandError(
                f"{shown(self.inner_optimizer)} already scales its loss: use it as it is, or wrap its inner optimizer, "
                "LossScaleOptimizer(optimizer.inner_optimizer)"
            )
        if cast("Any", loss_scale) is None:
            raise OperandError(
                "a LossScaleOptimizer needs a loss scale, got None: pass 'dynamic' or a number, or use the optimizer "
                "without the wrapper"
            )
        self._loss_scale = loss_scale if isinstance(loss_scale, StatefulLossScale) else StatefulLossScale(loss_scale)
        self.aggregate_in_float16 = aggregate_in_float16

    @property
    def loss_scale(self) -> StatefulLossScale:
        """The loss scale; a call of it returns the factor, and `loss_scale.assign` sets it."""
        return self._loss_scale

    @property
    def aggregate_in_float16(self) -> bool:
        """Whether gradients are summed across devices in float16, scaled."""
        return self._aggregate_in_float16

    @aggregate_in_float16.setter
    def aggregate_in_float16(self, aggregate: bool) -> None:
        self._aggregate_in_float16 = flag("aggregate_in_float16", aggregate)

    @property
    def trace_key(self) -> Any:
        """A hashable key that differs whenever something that is compiled into a step differs."""
        return (super().trace_key, self._aggregate_in_float16, self._loss_scale.settings)

    @property
    def state(self) -> ScaledOptimizerState:
        """The state of the inner optimizer and of the loss scale."""
        return ScaledOptimizerState(self.inner_optimizer.state, self._loss_scale.state)

    @state.setter
    def state(self, state: ScaledOptimizerState) -> None:
        self.inner_optimizer.state = state.inner
        self._loss_scale.state = state.scaling

    @property
    def skips(self) -> bool:
        """Whether steps may be skipped; a fixed scale skips none."""
        return self._loss_scale.settings.skips or self.inner_optimizer.skips

    def init(self, values: Mapping[str, jax.Array]) -> ScaledOptimizerState:
        """Make a state for a step on these values, as `Optimizer.init` does."""
        return ScaledOptimizerState(self.inner_optimizer.init(values), self._loss_scale.copy().state)

    def reduce_dtype(self, asked: DType | None) -> DType | None:
        """Return float16 with `aggregate_in_float16`, else the inner optimizer's dtype, but never float16.

        Keras RFC 293, mixed precision, "All-reducing in float16".
        """
        if self._aggregate_in_float16:
            return _FLOAT16
        inner = self.inner_optimizer.reduce_dtype(asked)
        return None if is_float16(inner) else inner

    def all_reduce(self, gradients: Mapping[str, Any], state: ScaledOptimizerState, axis_name: str) -> dict[str, Any]:
        """Average unscaled gradients over devices, as `Optimizer.all_reduce` does; the sum is scaled."""
        return mixed_precision.all_reduce_gradients(dict(gradients), axis_name, self.reduce_dtype(None), state.scaling)

    def value_and_grad(
        self, loss_fn: Callable[..., Any], *, has_aux: bool = False, aggregate: Aggregate | None = None
    ) -> Callable[..., Any]:
        """Differentiate a scaled loss, as `Optimizer.value_and_grad` does; gradients are unscaled, at least float32."""
        differentiate = mixed_precision.differentiate_scaled(loss_fn, _UNCHECKED, has_aux=has_aux, aggregate=aggregate)

        def value_and_grad(state: ScaledOptimizerState, values: Any, *args: Any) -> Any:
            with use_state(self._loss_scale, state.scaling), use_state(self.inner_optimizer, state.inner):
                result = differentiate(state.scaling, values, *args)
            return result.value, result.grads

        return value_and_grad

    def update(
        self,
        gradients: Mapping[str, Any],
        state: ScaledOptimizerState,
        values: Mapping[str, jax.Array],
        *,
        before: PyTree = None,
        **options: Any,
    ) -> Update:
        """Take a step, as `Optimizer.update` does; if gradients are not finite, only the scale changes."""

        def apply() -> Update:
            with use_state(self._loss_scale, state.scaling):
                return self.inner_optimizer.update(gradients, state.inner, values, before=before, **options)

        def skip() -> Update:
            return Update(dict(values), state.inner, before, jnp.asarray(True))

        updated, scaling = mixed_precision.apply_or_skip(
            self._loss_scale.settings, state.scaling, gradients, apply, skip
        )
        return updated._replace(state=ScaledOptimizerState(updated.state, scaling))

    def get_scaled_loss(self, loss: ArrayLike | Callable[..., Any]) -> Any:
        """Multiply a loss by the scale.

        Args:
            loss: a real floating array or scalar, or a function that returns one.

        Returns:
            The scaled loss in float32, whatever the dtype of the loss, or a function that returns it. That does not
            round gradients, because they start from the scale.

        Raises:
            OperandError: for anything else; a `TypeError`.
            ArgumentError: inside `jax.jit`, where a dynamic scale would become a constant.
        """
        loss = value_of(loss)
        if not callable(loss):
            return mixed_precision.as_loss(loss).astype(jnp.float32) * self._scale_here()

        @wraps(loss)
        def scaled(*args: Any, **kwargs: Any) -> Any:
            return self.get_scaled_loss(loss(*args, **kwargs))

        return scaled

    def get_unscaled_gradients(self, gradients: PyTree) -> Any:
        """Divide the gradients of a scaled loss by the scale.

        Args:
            gradients: a list, or any tree, of real floating arrays; None stays None.

        Returns:
            The same structure, in at least float32.

        Raises:
            OperandError: for anything that is not a real floating array; a `TypeError`.
            ArgumentError: inside `jax.jit`, where a dynamic scale would become a constant.
        """
        for leaf in jax.tree.leaves(gradients):
            if not mixed_precision.is_floating(leaf):
                raise OperandError(f"gradients must be real floating arrays or None, got {shown(leaf)}")
        return mixed_precision.unscale(gradients, self._scale_here())

    def _scale_here(self) -> jax.Array:
        scale = self._loss_scale()
        # Under jit even the product of two constants is traced, which shows that the scale would be a constant.
        if self._loss_scale.settings.skips and not isinstance(scale, Tracer) and isinstance(scale * 1, Tracer):
            raise ArgumentError(
                "inside jax.jit the loss scale would be a constant from the time of tracing: call jax.grad outside "
                "jax.jit, or jit optimizer.value_and_grad and optimizer.update, which take optimizer.state"
            )
        return scale

    def gradient_dtypes(self, variable: Variable) -> tuple[DType, ...]:
        """Return the dtypes of the inner optimizer and at least float32: unscaled gradients underflow in float16."""
        dtypes = self.inner_optimizer.gradient_dtypes(variable)
        wide = at_least_float32(variable.true_dtype)
        return dtypes if wide in dtypes else (*dtypes, wide)

    @property
    def variables(self) -> dict[str, jax.Array]:
        """The variables of the inner optimizer, and `"loss_scale/..."`."""
        scaling = {SCALE_PREFIX + name: leaf for name, leaf in copy_state(self._loss_scale.state)._asdict().items()}
        return {**self.inner_optimizer.variables, **scaling}

    def load_variables(self, saved: Mapping[str, Any]) -> None:
        """Load saved `variables`; the loss scale stays as it is if an optimizer without a scale saved them."""
        own = without_scale(saved)
        scaling = {name.removeprefix(SCALE_PREFIX): each for name, each in saved.items() if name not in own}
        state = self._loss_scale.settings.load_state_dict(scaling) if scaling else self._loss_scale.state
        self.inner_optimizer.load_variables(own)
        self._loss_scale.state = state

    def get_config(self) -> dict[str, Any]:
        """Return the constructor arguments, including the settings of the scale."""
        scale = mixed_precision.serialize_loss_scale(self._loss_scale.settings)
        own = {"loss_scale": scale, "aggregate_in_float16": self._aggregate_in_float16}
        return {**super().get_config(), **own}

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self:
        """Make a new optimizer with a new scale from the result of `get_config`."""
        return super().from_config(
            {**config, "loss_scale": mixed_precision.deserialize_loss_scale(config["loss_scale"])}
        )

    def __repr__(self) -> str:
        own = f"{self._loss_scale.settings!r}, aggregate_in_float16={self._aggregate_in_float16}"
        return f"{type(self).__name__}({self.inner_optimizer!r}, {own})"
