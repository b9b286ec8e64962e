"""`At` and `Changes`: updated copies of an array of JAX, as `array.at[index].set(value)`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Final

from supremum.arrays.assignment import change_elements, stored, value_to_store
from supremum.arrays.backend_errors import computation_errors
from supremum.arrays.backends import Raw
from supremum.arrays.conversion import convert
from supremum.arrays.wrapped import NUMBERS, WrappedArray, new_array, unwrapped
from supremum.errors import hide_frames
from supremum.typing import ArrayLike


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class At:
    """The `at` of an array of JAX: an index selects the elements to update.

    Args:
        array: the array.
    """

    array: WrappedArray

    def __getitem__(self, index: Any) -> Changes:
        return Changes(self.array, unwrapped(index))


UPDATES: Final = {
    "add": "add", "subtract": "subtract", "multiply": "multiply", "divide": "divide", "pow": "power",
    "minimum": "min", "maximum": "max",
}  # fmt: skip
"""JAX's names of the methods that update elements by an operation with a value."""


def _update(operation: str, what: str) -> Callable[..., Any]:
    """The method of an operation on the elements and a value.

    Args:
        operation: its name in the table of operations.
        what: its docstring.
    """
    name = UPDATES[operation]

    def method(self: Changes, value: ArrayLike, **options: object) -> Any:
        update = partial(self._update_raw, name, options=options)  # pyright: ignore[reportPrivateUsage]
        try:
            return self._change(name, (value,), options, lambda: change_elements(self.array, operation, value, update))  # pyright: ignore[reportPrivateUsage]
        except Exception as error:
            hide_frames(error)
            raise

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

    def get(self, **options: object) -> Any:
        """The elements; options as for JAX's own method."""
        return self._change("get", (), options, lambda: self.array.unwrap().at[self.index].get(**options))

    def set(self, value: ArrayLike, **options: object) -> Any:
        """A copy with other elements."""
        accepted = value_to_store(self.array, value)
        update = partial(self._update_raw, "set", self.array.unwrap(), accepted, options)
        return self._change("set", (value,), options, update)

    add: ClassVar[Callable[..., Any]] = _update("add", "A copy with a value added.")
    subtract: ClassVar[Callable[..., Any]] = _update("subtract", "A copy with a value subtracted.")
    multiply: ClassVar[Callable[..., Any]] = _update("multiply", "A copy with the elements multiplied by a value.")
    divide: ClassVar[Callable[..., Any]] = _update("divide", "A copy with the elements divided by a value.")
    power: ClassVar[Callable[..., Any]] = _update("pow", "A copy with the elements raised to the power of a value.")
    min: ClassVar[Callable[..., Any]] = _update("minimum", "A copy with the smaller of element and value.")
    max: ClassVar[Callable[..., Any]] = _update("maximum", "A copy with the larger of element and value.")

    def apply(self, function: Callable[[Any], Any], **options: object) -> Any:
        """A copy with the results of a function of the elements.

        Args:
            function: takes an `Array` of one element, traced by JAX, and returns an array or a number: a function of
                `supremum.ops`, or of `jax.numpy` as `lambda x: jnp.sin(x.unwrap())`.
            options: as for JAX's own method.

        Raises:
            InPlaceError: if the rules do not store the result in the dtype of the array.

        >>> import supremum
        >>> x = supremum.asarray([1.0, 4.0], dtype="float32", library="jax")
        >>> x.at[1].apply(supremum.ops.sqrt)
        Array([1., 2.], dtype=float32)
        """
        array, backend = self.array, self.array.backend

        def apply_to_element(raw: Raw) -> Raw:
            element = new_array(*backend.with_key(raw))
            result = function(element)
            if type(result) in NUMBERS:
                return value_to_store(element, result)
            return stored(element, convert(result, library=backend), "apply", ())

        return self._change(
            "apply", (), options, lambda: array.unwrap().at[self.index].apply(apply_to_element, **options)
        )

    def _update_raw(self, name: str, raw: Raw, value: Raw, options: dict[str, object]) -> Raw:
        backend: Any = self.array.backend
        return backend.update(raw, self.index, name, value, options)

    def _change(self, name: str, values: tuple[Any, ...], options: dict[str, object], change: Callable[[], Raw]) -> Any:
        """The copy that a function makes with JAX's own `at`; JAX's errors become `ComputationError`."""
        array = self.array
        with computation_errors(f"at[...].{name}", array.backend, array, self.index, *values, **options):
            raw = change()
        return new_array(*array.backend.with_key(raw, array.weak_type))
