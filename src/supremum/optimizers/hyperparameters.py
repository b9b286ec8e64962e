"""Hyperparameters: numbers that are inputs of the compiled step, or schedules of the step that are compiled in."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from supremum.argument_checks import real_number
from supremum.errors import ArgumentError, OperandError, shown
from supremum.formats import as_format
from supremum.mixed_precision import is_array, is_floating
from supremum.optimizers.scalar_variable import Scalar, value_of

Schedule: TypeAlias = Callable[[Any], Any]
"""A function of the number of steps taken so far, a traced integer scalar, that gives a number."""

Hyper: TypeAlias = float | jax.Array | Schedule
"""A value of a hyperparameter: a number, or a schedule."""

_LARGEST = float(as_format("float32").max)


class Rule(NamedTuple):
    """The range of a hyperparameter.

    Args:
        low: the smallest number.
        high: the largest one, finite in float32.
        below: whether `high` itself is excluded.
        optional: whether None, for not at all, is allowed.
        absent_at_zero: whether 0 means not at all: nothing is compiled for it and no slot kept.
    """

    low: float = 0.0
    high: float = _LARGEST
    below: bool = False
    optional: bool = False
    absent_at_zero: bool = False

    def check(self, name: str, value: Any) -> float:
        """A number of this range, as a float.

        Raises:
            TypeError: for anything that is not a number.
            ArgumentError: for one outside of the range.
        """
        number = real_number(name, value_of(value))
        if not self.low <= number <= self.high or (self.below and number == self.high):
            upper = "below" if self.below else "up to"
            raise ArgumentError(f"{name} must be from {self.low:g} {upper} {self.high:g}, got {number}")
        return number


NON_NEGATIVE = Rule()
DECAY = Rule(high=1.0, below=True)
MOMENTUM = Rule(high=1.0, absent_at_zero=True)
POSITIVE_OR_NONE = Rule(low=as_format("float32").smallest_normal, optional=True)
WEIGHT_DECAY = Rule(optional=True, absent_at_zero=True)


class Hyperparameter(Scalar):
    """A hyperparameter of an optimizer, float32: `float(optimizer.learning_rate)`.

    Args:
        name: its name.
        read: gives the number as an array.
        write: takes a new one.
        schedule: the schedule that gives the number; None where it was set to one.
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
            ArgumentError: where a schedule gives the number, or for one out of bounds.
            TypeError: for anything that is not a number.
        """
        if self.schedule is not None:
            raise ArgumentError(
                f"{self.name} follows the schedule {shown(self.schedule)}: write optimizer.{self.name} = "
                f"{shown(value)} to put "
                "the number in its place"
            )
        self._write(value)
        return self


def as_number(number: float) -> jax.Array:
    """A float32 scalar on the device."""
    return jnp.asarray(np.float32(number))


def shortest(number: Any) -> float:
    """The Python number with the fewest digits that is this one in float32.

    >>> shortest(np.float32(0.1))
    0.1
    """
    return float(str(np.float32(number)))


class Hyperparameters:
    """The hyperparameters of an optimizer and their schedules; their numbers are in the optimizer's state."""

    def __init__(self) -> None:
        self.rules: dict[str, Rule] = {}
        self.schedules: dict[str, Schedule] = {}
        self._absent: set[str] = set()

    def set(self, name: str, value: Any, numbers: Mapping[str, jax.Array]) -> dict[str, jax.Array]:
        """Set one.

        Args:
            name: which; its rule is known.
            value: a number, a schedule, or None where the rule allows it.
            numbers: the numbers in the optimizer's state.

        Returns:
            The numbers with this one changed.

        Raises:
            TypeError: for what is neither.
            ArgumentError: for a number out of bounds, or a function that takes no step.
        """
        rule, others = self.rules[name], {key: held for key, held in numbers.items() if key != name}
        if isinstance(value, Hyperparameter) and value.schedule is not None:
            value = value.schedule
        if value is None and rule.optional:
            self.schedules.pop(name, None)
            self._absent.add(name)
            return others
        if callable(value):
            _check_schedule(name, value)
            self.schedules[name] = value
            self._absent.discard(name)
            return others
        if isinstance(value_of(value), (str, bytes, type(None))):
            nothing = ", or None for none" if rule.optional else ""
            raise OperandError(f"{name} must be a number or a function of the step{nothing}, got {shown(value)}")
        number = rule.check(name, value)
        self.schedules.pop(name, None)
        (self._absent.add if rule.absent_at_zero and number == 0 else self._absent.discard)(name)
        return {**others, name: as_number(number)}

    def read(self, name: str, numbers: Mapping[str, jax.Array], step: jax.Array) -> jax.Array:
        """The value of one at a step."""
        schedule = self.schedules.get(name)
        return numbers[name] if schedule is None else _scheduled(name, schedule, step)

    def at(self, numbers: Mapping[str, jax.Array], step: jax.Array) -> dict[str, jax.Array | None]:
        """The value of each at a step; None for those that are absent."""
        return {name: None if name in self._absent else self.read(name, numbers, step) for name in self.rules}

    def variable(self, name: str, read: Callable[[], jax.Array], write: Callable[[Any], None]) -> Hyperparameter:
        """One as a variable; `read` and `write` are those of a `Scalar`."""
        return Hyperparameter(name, read, write, self.schedules.get(name))

    def config(self, numbers: Mapping[str, jax.Array]) -> dict[str, Any]:
        """The arguments that set all of them: numbers, schedules, or None."""
        values = {name: shortest(number) for name, number in numbers.items()}
        return {name: self.schedules.get(name, values.get(name)) for name in self.rules}

    def key(self) -> tuple[Any, ...]:
        """The part that is compiled into a step."""
        return tuple((name, self.schedules.get(name), name in self._absent) for name in self.rules)


def _check_schedule(name: str, schedule: Schedule) -> None:
    try:
        signature = inspect.signature(schedule)
    except (TypeError, ValueError):  # some callables of C have none
        return
    try:
        signature.bind(0)
    except TypeError as error:
        raise ArgumentError(
            f"a schedule of {name} is a function of the step, and {shown(schedule)} cannot be called with it "
            f"({error}): "
            f"write lambda step: ..."
        ) from None


def _scheduled(name: str, schedule: Schedule, step: jax.Array) -> jax.Array:
    value = value_of(schedule(step))
    if type(value) in (int, float):
        value = np.float32(value)
    if not is_floating(value) and not (is_array(value) and as_format(value.dtype).category == "integer"):
        given = value.dtype if hasattr(value, "dtype") else shown(value)
        raise OperandError(f"the schedule of {name} must give a real number, got {given}")
    if np.shape(value) != ():
        raise ArgumentError(f"the schedule of {name} must give a scalar, got shape {np.shape(value)}")
    return jnp.asarray(value, jnp.float32)
