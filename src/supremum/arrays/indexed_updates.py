"""`At` and `Changes`: updated copies of an array of JAX, as `array.at[index].set(value)`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from supremum.arrays.assignment import accepted_value, changed
from supremum.arrays.backend_errors import computation_errors
from supremum.arrays.backends import Raw
from supremum.arrays.wrapped import WrappedArray, new_array, unwrapped_index


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class At:
    """The `at` of an array of JAX: an index selects the elements to update.

    Args:
        array: the array.
    """

    array: WrappedArray

    def __getitem__(self, index: Any) -> Changes:
        return Changes(self.array, unwrapped_index(index))


def _update(name: str, operation: str, what: str) -> Callable[..., Any]:
    """The method of an operation on the elements and a value.

    Args:
        name: the name of JAX's method.
        operation: its name in the table of operations.
        what: its docstring.
    """

    def method(self: Changes, value: Any, **options: Any) -> Any:
        update = partial(self._updated, name, options=options)  # pyright: ignore[reportPrivateUsage]
        return self._changed(name, (value,), options, lambda: changed(self.array, operation, value, update))  # pyright: ignore[reportPrivateUsage]

    method.__name__, method.__doc__ = name, what
    return method


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Changes:
    """Updated copies of an array of JAX, which keep its dtype: the rules decide as for assignment and `+=`.

    Args:
        array: the array.
        index: the elements to update.
    """

    array: WrappedArray
    index: Any

    def get(self, **options: Any) -> Any:
        """The elements; options as for JAX's own method."""
        return self._changed("get", (), options, lambda: self.array.unwrap().at[self.index].get(**options))

    def set(self, value: Any, **options: Any) -> Any:
        """A copy with other elements."""
        accepted = accepted_value(self.array, value)
        update = partial(self._updated, "set", self.array.unwrap(), accepted, options)
        return self._changed("set", (value,), options, update)

    add = _update("add", "add", "A copy with a value added.")
    subtract = _update("subtract", "subtract", "A copy with a value subtracted.")
    multiply = _update("multiply", "multiply", "A copy with the elements multiplied by a value.")
    min = _update("min", "minimum", "A copy with the smaller of element and value.")
    max = _update("max", "maximum", "A copy with the larger of element and value.")

    def _updated(self, name: str, raw: Raw, value: Raw, options: dict[str, Any]) -> Raw:
        backend: Any = self.array.backend
        return backend.updated(raw, self.index, name, value, options)

    def _changed(self, name: str, values: tuple[Any, ...], options: dict[str, Any], change: Callable[[], Raw]) -> Any:
        """The copy that a function makes with JAX's own `at`; JAX's errors become `ComputationError`."""
        array = self.array
        with computation_errors(f"at[...].{name}", array.backend, array, self.index, *values, **options):
            raw = change()
        return new_array(*array.backend.keyed(raw, array.weak_type))
