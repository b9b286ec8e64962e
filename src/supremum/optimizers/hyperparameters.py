"""Hyperparameters: numbers that are inputs of the compiled step, or schedules that are compiled into it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from supremum.argument_checks import real_number
from supremum.errors import ArgumentError, OperandError, shown
from supremum.formats import as_format, at_least_float32
from supremum.mixed_precision import is_array, is_floating
from supremum.optimizers.state import OptimizerState, Scalar, value_of

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

    def check(self, name: str, value: Any) -> float:
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

    Args:
        name: the name.
        read: a function that returns the number as an array.
        write: a function that sets a new number.
        schedule: the schedule that gives the number; None if there is no schedule.

    >>> from supremum.optimizers import SGD
    >>> optimizer = SGD(0.1)
    >>> optimizer.learning_rate.assign(0.25)
    Hyperparameter('learning_rate', 0.25, dtype=float32)
    >>> float(optimizer.learning_rate)
    0.25
    """

    def __init__(
        self, name: str, read: Callable[[], jax.Array], write: Callable[[Any], None], schedule: Schedule | None
    ) -> None:
        super().__init__(name, read, write)
        self.schedule = schedule

    def assign(self, value: Any) -> Hyperparameter:
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


def as_number(number: float) -> jax.Array:
    """Convert a number to a float32 scalar on the device."""
    return jnp.asarray(np.float32(number))


def shortest(number: Any) -> float:
    """Return the Python number with the fewest digits that is equal to a number in float32.

    >>> shortest(np.float32(0.1))
    0.1
    """
    return float(str(np.float32(number)))


class Hyperparameters:
    """The rules and schedules of an optimizer's hyperparameters; the numbers are in the optimizer's state."""

    def __init__(self) -> None:
        self.rules: dict[str, Rule] = {}
        self.schedules: dict[str, Schedule] = {}
        self._absent: set[str] = set()

    def set(self, name: str, value: Any, numbers: Mapping[str, jax.Array]) -> dict[str, jax.Array]:
        """Set a hyperparameter.

        Args:
            name: its name, which must have a rule.
            value: a number, a schedule, or None if the rule allows it.
            numbers: the numbers in the optimizer's state.

        Returns:
            The numbers with the new one.

        Raises:
            TypeError: for a value of another type.
            ArgumentError: for a number out of bounds, or a function that cannot be called with the step.
        """
        rule, others = self.rules[name], {key: held for key, held in numbers.items() if key != name}
        if isinstance(value, Hyperparameter) and value.schedule is not None:
            value = value.schedule
        number = None
        if callable(value):
            _check_schedule(name, value)
        elif isinstance(value_of(value), (str, bytes)) or (value is None and not rule.optional):
            choices = (
                "a number, a function of the step or None" if rule.optional else "a number or a function of the step"
            )
            raise OperandError(f"{name} must be {choices}, got {shown(value)}")
        elif value is not None:
            number = rule.check(name, value)
        self.schedules.pop(name, None)
        self._absent.discard(name)
        if callable(value):
            self.schedules[name] = value
        elif number is None or (rule.absent_at_zero and number == 0):
            self._absent.add(name)
        return others if number is None else {**others, name: as_number(number)}

    def read(self, name: str, numbers: Mapping[str, jax.Array], step: jax.Array) -> jax.Array:
        """Return the value of a hyperparameter at a step."""
        schedule = self.schedules.get(name)
        return numbers[name] if schedule is None else _scheduled(name, schedule, step)

    def at(self, numbers: Mapping[str, jax.Array], step: jax.Array) -> dict[str, jax.Array | None]:
        """Return the values of all hyperparameters at a step; None for absent ones."""
        return {name: None if name in self._absent else self.read(name, numbers, step) for name in self.rules}

    def in_step(self, state: OptimizerState, values: Mapping[str, jax.Array]) -> dict[str, jax.Array | None]:
        """Return the values of all hyperparameters for a step, in the widest dtype of its computation.

        Args:
            state: the state of the optimizer.
            values: the values of the variables, by key.
        """
        dtypes = (at_least_float32(each.dtype) for each in values.values())
        dtype = max(dtypes, key=lambda dtype: dtype.itemsize, default=jnp.float32)
        numbers = self.at(state.hyperparameters, state.iterations)
        return {name: None if number is None else number.astype(dtype) for name, number in numbers.items()}

    def check(self, numbers: Mapping[str, Any]) -> None:
        """Raise if a number is out of its range."""
        for name, number in numbers.items():
            self.rules[name].check(name, number)

    def variable(self, name: str, read: Callable[[], jax.Array], write: Callable[[Any], None]) -> Hyperparameter:
        """Make the variable of a hyperparameter; `read` and `write` are as for `Scalar`."""
        return Hyperparameter(name, read, write, self.schedules.get(name))

    def config(self, numbers: Mapping[str, jax.Array]) -> dict[str, Any]:
        """Return the constructor arguments for all hyperparameters: numbers, schedules or None."""
        values = {name: shortest(number) for name, number in numbers.items()}
        return {name: self.schedules.get(name, values.get(name)) for name in self.rules}

    def key(self) -> tuple[Any, ...]:
        """Return the part that is compiled into a step."""
        return tuple((name, self.schedules.get(name), name in self._absent) for name in self.rules)


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


def _scheduled(name: str, schedule: Schedule, step: jax.Array) -> jax.Array:
    value = value_of(schedule(step))
    if type(value) in (int, float):
        value = np.float32(value)
    if not is_floating(value) and not (is_array(value) and as_format(value.dtype).category == "integer"):
        given = value.dtype if hasattr(value, "dtype") else shown(value)
        raise OperandError(f"the schedule of {name} must return a real number, got {given}")
    if np.shape(value) != ():
        raise ArgumentError(f"the schedule of {name} must return a scalar, got shape {np.shape(value)}")
    return jnp.asarray(value, jnp.float32)
