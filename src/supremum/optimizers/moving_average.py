"""A moving average of the weights."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from supremum.mixed_precision import widen
from supremum.nn import Variable
from supremum.optimizers import checkpoint_arrays
from supremum.optimizers.gradients import Variables
from supremum.optimizers.hyperparameters import DECAY, Hyper, as_number, shortest
from supremum.optimizers.optimizer import Optimizer
from supremum.optimizers.state import Scalar, Update, copied
from supremum.optimizers.wrapper import OptimizerWrapper

_PREFIX = "average/"


class AveragedState(NamedTuple):
    """The state of a `MovingAverage`.

    Args:
        inner: the state of the inner optimizer.
        averages: the averages by key, at least float32.
        decay: float32 scalar.
    """

    inner: Any
    averages: dict[str, jax.Array]
    decay: jax.Array


class MovingAverage(OptimizerWrapper):
    """An optimizer that keeps an exponential moving average of the trained variables (Polyak and Juditsky, 1992).

    The average starts from the values of the variables when the optimizer is built for them. After every applied step,
    `average = decay * average + (1 - decay) * variable`. A step that a `LossScaleOptimizer` inside skips does not
    change the average.

    Args:
        optimizer: an optimizer, or an optax transformation.
        decay: the weight of the old average, at least 0 and below 1; part of the state, and can be set in training.

    Raises:
        OperandError: for anything that is not an optimizer; a `TypeError`.
        ArgumentError: for a decay out of bounds.

    >>> from supremum import nn
    >>> from supremum.optimizers import SGD
    >>> w = nn.Variable([1.0], "w")
    >>> optimizer = MovingAverage(SGD(1.0), decay=0.5)
    >>> optimizer.build(w)
    >>> optimizer.apply_gradients([(w.value, w)])
    >>> with optimizer.averaged():
    ...     w.value
    Array([0.5], dtype=float32)
    >>> w.value
    Array([0.], dtype=float32)
    """

    def __init__(self, optimizer: Any, decay: Hyper = 0.999) -> None:
        super().__init__(optimizer)
        self._averages: dict[str, jax.Array] = {}
        self._key_of: dict[Variable, str] = {}
        self._assign_decay(decay)

    @property
    def decay(self) -> Scalar:
        """The weight of the old average; it can be assigned."""
        return Scalar("decay", lambda: self._decay, self._assign_decay)

    @decay.setter
    def decay(self, decay: Any) -> None:
        self._assign_decay(decay)

    def _assign_decay(self, decay: Any) -> None:
        self._decay = as_number(DECAY.check("decay", decay))

    @property
    def average_variables(self) -> dict[str, jax.Array]:
        """The averages by key, at least float32."""
        return copied(dict(self._averages))

    def assign_average_variables(self) -> None:
        """Assign the averages to the variables, rounded to their dtypes."""
        averages = self.average_variables
        for key, variable in self.built_for.items():
            variable.assign(averages[key].astype(variable.true_dtype))

    @contextmanager
    def averaged(self) -> Generator[None]:
        """Assign the averages to the variables within a block, and restore the values of the variables after it."""
        trained = {variable: variable.read_stored() for variable in self.built_for.values()}
        self.assign_average_variables()
        try:
            yield
        finally:
            for variable, value in trained.items():
                variable.assign(value)

    @property
    def state(self) -> AveragedState:
        """The state of the inner optimizer, the averages and their decay."""
        return AveragedState(self.inner_optimizer.state, self._averages, self._decay)

    @state.setter
    def state(self, state: AveragedState) -> None:
        self.inner_optimizer.state = state.inner
        self._averages, self._decay = state.averages, state.decay

    def inner_state(self, state: AveragedState) -> Any:
        """Return the inner optimizer's part of a state."""
        return state.inner

    def build(self, variables: Variables) -> None:
        """Make slots and averages for variables; existing ones are kept."""
        self.inner_optimizer.build(variables)
        averages: dict[str, jax.Array] = {}
        for key, variable in self.built_for.items():
            old_key = self._key_of.get(variable)
            averages[key] = _copy(variable.read_stored()) if old_key is None else self._averages[old_key]
        self._key_of = {variable: key for key, variable in self.built_for.items()}
        self._averages = averages

    def init(self, values: Mapping[str, jax.Array]) -> AveragedState:
        """Make a state for a step on these values, as `Optimizer.init` does; the averages start from the values."""
        averages = {key: _copy(value) for key, value in values.items()}
        return AveragedState(self.inner_optimizer.init(values), averages, jnp.copy(self._decay))

    def update(
        self, gradients: Mapping[str, Any], state: AveragedState, values: Mapping[str, jax.Array], **options: Any
    ) -> Update:
        """Take a step with the inner optimizer and update the averages, as `Optimizer.update` does."""
        made = self.inner_optimizer.update(gradients, state.inner, values, **options)

        def move(average: jax.Array, value: jax.Array) -> jax.Array:
            return average + (1 - state.decay) * (value.astype(average.dtype) - average)

        def moved() -> dict[str, jax.Array]:
            return {**state.averages, **{key: move(state.averages[key], value) for key, value in made.values.items()}}

        averages = jax.lax.cond(made.skipped, lambda: state.averages, moved) if self.skips else moved()
        return made._replace(state=AveragedState(made.state, averages, state.decay))

    @property
    def variables(self) -> dict[str, jax.Array]:
        """The variables of the inner optimizer, and `"average/..."`."""
        return {**self.inner_optimizer.variables, **self._named_averages()}

    def _named_averages(self) -> dict[str, jax.Array]:
        return {_PREFIX + key: average for key, average in sorted(self.average_variables.items())}

    def load_variables(self, saved: Mapping[str, Any]) -> None:
        """Load saved `variables`, all or none."""
        own = {name: each for name, each in saved.items() if name.startswith(_PREFIX)}
        averages = checkpoint_arrays.checked(own, self._named_averages())
        self.inner_optimizer.load_variables({name: each for name, each in saved.items() if name not in own})
        self._averages = {name.removeprefix(_PREFIX): each for name, each in averages.items()}

    # The averages are weights too; the inner optimizer's methods would omit them.
    get_weights = Optimizer.get_weights
    set_weights = Optimizer.set_weights

    def get_config(self) -> dict[str, Any]:
        """Return the constructor arguments."""
        return {**super().get_config(), "decay": shortest(self._decay)}


def _copy(value: jax.Array) -> jax.Array:
    # Steps donate the buffers of the variables, hence the copy.
    return jnp.array(widen(value), copy=True)
