"""`At` and `Changes`: changed copies of an array of JAX, as `array.at[index].set(value)`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from supremum.arrays.assignment import accepted_value, changed
from supremum.arrays.backend_errors import computation_errors
from supremum.arrays.backends import Key, Raw
from supremum.arrays.wrapped import WrappedArray, keyed, unwrapped_index

A = TypeVar("A")


class At(Generic[A]):
    """Where a changed copy of an array differs from it.

    Args:
        array: an array of JAX.
        wrap: makes the copies, of an array of JAX and its key.
    """

    __slots__ = ("_wrap", "array")

    def __init__(self, array: WrappedArray, wrap: Callable[[Raw, Key], A]) -> None:
        self.array = array
        self._wrap = wrap

    def __getitem__(self, index: Any) -> Changes[A]:
        return Changes(self.array, unwrapped_index(index), self._wrap)


class Changes(Generic[A]):
    """Changed copies of an array of JAX, which keep its dtype: the rules decide as for assignment and `+=`.

    Args:
        array: the array.
        index: where it is changed.
        wrap: makes the copies, of an array of JAX and its key.
    """

    __slots__ = ("_wrap", "array", "index")

    def __init__(self, array: WrappedArray, index: Any, wrap: Callable[[Raw, Key], A]) -> None:
        self.array = array
        self.index = index
        self._wrap = wrap

    def get(self, **options: Any) -> A:
        """The elements; options as of JAX's own."""
        return self._changed("get", (), options, lambda: self._place.get(**options))

    def set(self, value: Any, **options: Any) -> A:
        """With other elements."""
        accepted = accepted_value(self.array, value)
        return self._changed("set", (value,), options, lambda: self._place.set(accepted, **options))

    def add(self, value: Any, **options: Any) -> A:
        """With a value added."""
        return self._computed("add", "add", value, options)

    def subtract(self, value: Any, **options: Any) -> A:
        """With a value subtracted."""
        return self._computed("subtract", "subtract", value, options)

    def multiply(self, value: Any, **options: Any) -> A:
        """Multiplied by a value."""
        return self._computed("multiply", "multiply", value, options)

    def min(self, value: Any, **options: Any) -> A:
        """With the lesser of both."""
        return self._computed("minimum", "min", value, options)

    def max(self, value: Any, **options: Any) -> A:
        """With the greater of both."""
        return self._computed("maximum", "max", value, options)

    def _computed(self, operation: str, name: str, value: Any, options: dict[str, Any]) -> A:
        """The copy with the result of an operation on its elements and a value.

        Args:
            operation: its name in the table of operations.
            name: what JAX calls it.
            value: the other operand.
            options: as of JAX's own.
        """

        def change(raw: Raw, given: Raw) -> Raw:
            return getattr(raw.at[self.index], name)(given, **options)

        return self._changed(name, (value,), options, lambda: changed(self.array, operation, value, change))

    @property
    def _place(self) -> Any:
        return self.array.unwrap().at[self.index]

    def _changed(self, name: str, values: tuple[Any, ...], options: dict[str, Any], change: Callable[[], Raw]) -> A:
        """The copy that a function makes with JAX's own `at`; JAX's errors become ours."""
        array = self.array
        with computation_errors(f"at[...].{name}", array.backend, array, self.index, *values, **options):
            raw = change()
        return self._wrap(*keyed(array.backend, raw, array.weak_type))
