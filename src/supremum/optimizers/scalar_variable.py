"""A scalar of an optimizer or a loss scale, which is read and assigned like a variable."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
from jax.core import Tracer

from supremum.formats import DType, as_format
from supremum.nn import VariableOperators
from supremum.optimizers.traced_state import copied


class Scalar(VariableOperators):
    """A scalar in the state of another object, which is read and assigned there.

    In operations it acts as its array; `float(scalar)` reads it.

    Args:
        name: the name.
        read: a function that returns the array.
        write: a function that checks and sets a new value.

    >>> import jax.numpy as jnp
    >>> rate = Scalar("rate", lambda: jnp.float32(0.5), lambda value: None)
    >>> rate, float(rate) * 2
    (Scalar('rate', 0.5, dtype=float32), 1.0)
    """

    def __init__(self, name: str, read: Callable[[], jax.Array], write: Callable[[Any], None]) -> None:
        self.name = name
        self._read = read
        self._write = write

    @property
    def value(self) -> jax.Array:
        """The current array."""
        return copied(self._read())

    def read_value(self) -> jax.Array:
        """Return the current array, as `value` does."""
        return self.value

    @property
    def dtype(self) -> DType:
        """The dtype, which never changes."""
        return self.value.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of a scalar."""
        return ()

    def assign(self, value: Any) -> Scalar:
        """Assign a number.

        Args:
            value: a real number, or a 0-d array or scalar of one.

        Returns:
            The scalar.

        Raises:
            TypeError: for anything that is not a number, and for a traced number.
            ArgumentError: for a number out of bounds.
        """
        self._write(value)
        return self

    def __repr__(self) -> str:
        value = self.value
        shown = value if isinstance(value, Tracer) else value.item()
        return f"{type(self).__name__}({self.name!r}, {shown}, dtype={as_format(value.dtype)})"


def value_of(value: Any) -> Any:
    """Return the array of a scalar or variable, and anything else as it is."""
    return value.value if isinstance(value, VariableOperators) else value
