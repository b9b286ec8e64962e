"""`At` and `Changes`: updated copies of an array of JAX, as `array.at[index].set(value)`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

from supremum.arrays.assignment import accepted_value, changed
from supremum.arrays.backend_errors import computation_errors
from supremum.arrays.backends import Raw
from supremum.arrays.wrapped import WrappedArray, new_array, unwrapped_index

A = TypeVar("A")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class At(Generic[A]):
    """The `at` of an array: an index selects the elements to update.

    Args:
        array: an array of JAX.
    """

    array: WrappedArray

    def __getitem__(self, index: Any) -> Changes[A]:
        return Changes(self.array, unwrapped_index(index))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Changes(Generic[A]):
    """Updated copies of an array of JAX, which keep its dtype: the rules decide as for assignment and `+=`.

    Args:
        array: the array.
        index: the elements to update.
    """

    array: WrappedArray
    index: Any

    def get(self, **options: Any) -> A:
        """The elements; options as for JAX's own method."""
        return self._changed("get", (), options, lambda: self.array.unwrap().at[self.index].get(**options))

    def set(self, value: Any, **options: Any) -> A:
        """A copy with other elements."""
        accepted = accepted_value(self.array, value)
        return self._changed(
            "set", (value,), options, lambda: self._updated("set", self.array.unwrap(), accepted, options)
        )

    def add(self, value: Any, **options: Any) -> A:
        """A copy with a value added."""
        return self._computed("add", "add", value, options)

    def subtract(self, value: Any, **options: Any) -> A:
        """A copy with a value subtracted."""
        return self._computed("subtract", "subtract", value, options)

    def multiply(self, value: Any, **options: Any) -> A:
        """A copy with the elements multiplied by a value."""
        return self._computed("multiply", "multiply", value, options)

    def min(self, value: Any, **options: Any) -> A:
        """A copy with the smaller of element and value."""
        return self._computed("minimum", "min", value, options)

    def max(self, value: Any, **options: Any) -> A:
        """A copy with the larger of element and value."""
        return self._computed("maximum", "max", value, options)

    def _computed(self, operation: str, name: str, value: Any, options: dict[str, Any]) -> A:
        """The copy with the result of an operation on its elements and a value.

        Args:
            operation: its name in the table of operations.
            name: the name of JAX's method.
            value: the other operand.
            options: as for JAX's own method.
        """
        change = partial(self._updated, name, options=options)
        return self._changed(name, (value,), options, lambda: changed(self.array, operation, value, change))

    def _updated(self, name: str, raw: Raw, value: Raw, options: dict[str, Any]) -> Raw:
        backend: Any = self.array.backend
        return backend.updated(raw, self.index, name, value, options)

    def _changed(self, name: str, values: tuple[Any, ...], options: dict[str, Any], change: Callable[[], Raw]) -> A:
        """The copy that a function makes with JAX's own `at`; JAX's errors become `ComputationError`."""
        array = self.array
        with computation_errors(f"at[...].{name}", array.backend, array, self.index, *values, **options):
            raw = change()
        return new_array(*array.backend.keyed(raw, array.weak_type))
