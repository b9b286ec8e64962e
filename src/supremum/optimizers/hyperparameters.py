"""Hyperparameters: numbers that are inputs of the compiled step, or schedules that are compiled into it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from supremum.argument_checks import real_number
from supremum.errors import ArgumentError, OperandError, shown
from supremum.formats import as_format, at_least_float32
from supremum.mixed_precision import is_array, is_floating
from supremum.optimizers.state import OptimizerState, Scalar, value_of
from supremum.typing import ArrayLike

Schedule: TypeAlias = Callable[[Any], Any]
"""A function from the number of steps taken, a traced integer scalar, to a number."""

Hyper: TypeAlias = float | jax.Array | Schedule
"""A value of a hyperparameter: a number, or a schedule."""

_LARGEST = float(as_format("float32").max)


class Rule(NamedTuple):
    """The range of a hyperparameter.

    Args:
        low: the smallest number.
        high: the largest number, finite in float32.
        below: whether `high` itself is excluded.
        optional: whether None, which turns it off, is allowed.
        absent_at_zero: whether 0 turns it off: nothing is compiled for it, and it has no slot.
    """

    low: float = 0.0
    high: float = _LARGEST
    below: bool = False
    optional: bool = False
    absent_at_zero: bool = False

    def check(self, name: str, value: object) -> float:
        """Convert a number of this range to a float.

        Raises:
            TypeError: for anything that is not a number.
            ArgumentError: for a number outside the range.
        """
        number = real_number(name, value_of(value))
        if not self.low <= number <= self.high or (self.below and number == self.high):
            bounds = f"at least {self.low:g} and below" if self.below else f"from {self.low:g} to"
            raise ArgumentError(f"{name} must be {bounds} {self.high:g}, got {number}")
        return number


NON_NEGATIVE = Rule()
DECAY = Rule(high=1.0, below=True)
MOMENTUM = Rule(high=1.0, absent_at_zero=True)
POSITIVE_OR_NONE = Rule(low=as_format("float32").smallest_normal, optional=True)
WEIGHT_DECAY = Rule(optional=True, absent_at_zero=True)


class Hyperparameter(Scalar):
    """A float32 hyperparameter of an optimizer; `float(optimizer.learning_rate)` reads it.

    The number is in the state of the optimizer, where a step takes it from.

    Args:
        name: the name.
        rule: the range of the number.
        read: a function that returns the state of the optimizer.
        write: a function of the name and a number that puts it into that state, or removes it for None.

    Attributes:
        schedule: the schedule that gives the number; None if there is no schedule.
        is_absent: whether nothing is compiled for it.

    >>> from supremum.optimizers import SGD
    >>> optimizer = SGD(0.1)
    >>> optimizer.learning_rate.assign(0.25)
    Hyperparameter('learning_rate', 0.25, dtype=float32)
    >>> float(optimizer.learning_rate)
    0.25
    """

    def __init__(
        self, name: str, rule: Rule, read: Callable[[], Any], write: Callable[[str, jax.Array | None], None]
    ) -> None:
        super().__init__(name, self._number, self.set)
        self.rule = rule
        self.schedule: Schedule | None = None
        self.is_absent: bool = True
        self._read_state = read
        self._put = write

    def _number(self) -> jax.Array:
        return self.at(self._read_state())

    def at(self, state: OptimizerState) -> jax.Array:
        """Return the number for the next step of a state."""
        if self.schedule is None:
            return state.hyperparameters[self.name]
        return _scheduled_number(self.name, self.schedule, state.iterations)

    def set(self, value: Hyper | None) -> None:
        """Set the hyperparameter.

        Args:
            value: a number, a schedule, or None if the rule allows it.

        Raises:
            TypeError: for a value of another type.
            ArgumentError: for a number out of bounds, or a function that cannot be called with the step.
        """
        if isinstance(value, Hyperparameter) and value.schedule is not None:
            value = value.schedule
        number = None
        if callable(value):
            _check_schedule(self.name, value)
        elif isinstance(value_of(value), (str, bytes)) or (value is None and not self.rule.optional):
            or_none = ", a function of the step or None" if self.rule.optional else " or a function of the step"
            raise OperandError(f"{self.name} must be a number{or_none}, got {shown(value)}")
        elif value is not None:
            number = self.rule.check(self.name, value)
        self.schedule = value if callable(value) else None
        self.is_absent = self.schedule is None and (number is None or (self.rule.absent_at_zero and number == 0))
        self._put(self.name, None if number is None else jnp.asarray(np.float32(number)))

    def assign(self, value: ArrayLike) -> Hyperparameter:
        """Set the hyperparameter to another number.

        Args:
            value: a real number.

        Raises:
            ArgumentError: if a schedule gives the number, or for a number out of bounds.
            TypeError: for anything that is not a number.
        """
        if self.schedule is not None:
            raise ArgumentError(
                f"{self.name} follows the schedule {shown(self.schedule)}: to replace the schedule, write "
                f"optimizer.{self.name} = {shown(value)}"
            )
        self._write(value)
        return self


def shortest(number: jax.Array | np.float32) -> float:
    """Return the Python number with the fewest digits that is equal to a number in float32.

    >>> shortest(np.float32(0.1))
    0.1
    """
    return float(str(np.float32(number)))


class HyperparameterAttribute:
    """The attribute of an optimizer for the hyperparameter of the same name."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, optimizer: Any, owner: type | None = None) -> Any:
        if optimizer is None:
            return self
        by_name = optimizer.hyperparameters
        if self._name not in by_name:
            raise AttributeError(f"{type(optimizer).__name__} has no hyperparameter {shown(self._name)}")
        return by_name[self._name]

    def __set__(self, optimizer: Any, value: Hyper | None) -> None:
        optimizer.set_hyperparameter(self._name, value)


def numbers_of_step(
    hyperparameters: Iterable[Hyperparameter], state: OptimizerState, values: Mapping[str, jax.Array]
) -> dict[str, jax.Array | None]:
    """Return the numbers of a step by name, in the widest dtype of its computation; None for absent ones.

    Args:
        hyperparameters: the hyperparameters.
        state: the state of the optimizer.
        values: the values of the variables, by key.
    """
    dtypes = (at_least_float32(each.dtype) for each in values.values())
    dtype = max(dtypes, key=lambda dtype: dtype.itemsize, default=jnp.float32)
    return {each.name: None if each.is_absent else each.at(state).astype(dtype) for each in hyperparameters}


def _check_schedule(name: str, schedule: Schedule) -> None:
    try:
        signature = inspect.signature(schedule)
    except (TypeError, ValueError):  # some C functions have no signature
        return
    try:
        signature.bind(0)
    except TypeError as error:
        raise ArgumentError(
            f"the schedule of {name} must be a function of the step, got {shown(schedule)} ({error}): write "
            "lambda step: ..."
        ) from None


def _scheduled_number(name: str, schedule: Schedule, step: jax.Array) -> jax.Array:
    value = value_of(schedule(step))
    if type(value) in (int, float):
        value = np.float32(value)
    if not is_floating(value) and not (is_array(value) and as_format(value.dtype).category == "integer"):
        got = value.dtype if hasattr(value, "dtype") else shown(value)
        raise OperandError(f"the schedule of {name} must return a real number, got {got}")
    if np.shape(value) != ():
        raise ArgumentError(f"the schedule of {name} must return a scalar, got shape {np.shape(value)}")
    return jnp.asarray(value, jnp.float32)
