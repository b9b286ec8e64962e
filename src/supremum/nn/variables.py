"""Variables: JAX arrays that layers own, with a path, and the wrapper that casts on reading."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from supremum.formats import DType
from supremum.nn.scopes import current_autocast_dtype, current_overlay


class Variable:
    """A JAX array with a name and a dtype that never changes.

    Args:
        value: the initial value.
        name: its name within its layer.
        trainable: whether optimizers change it; running statistics are not.

    Inside a `functional_call` it is read from, and written to, the values of that call.
    """

    def __init__(self, value: jax.Array, name: str, *, trainable: bool = True) -> None:
        self._stored = value
        self.name = name
        self.trainable = trainable

    @property
    def dtype(self) -> DType:
        """The dtype it is stored in."""
        return self._stored.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """Its shape."""
        return self._stored.shape

    @property
    def nbytes(self) -> int:
        """Bytes of storage."""
        return self._stored.nbytes

    @property
    def value(self) -> jax.Array:
        """The value as computations see it."""
        return self.read_stored()

    def read_stored(self) -> jax.Array:
        """The value in the dtype it is stored in, whatever surrounds the call."""
        values = current_overlay()
        return self._stored if values is None else values.get(self, self._stored)

    def assign(self, value: Any) -> None:
        """Replace the value; never casts.

        Raises:
            TypeError: if the dtype is not the variable's own.
            ValueError: if the shape is not.
        """
        array = jnp.asarray(value)
        stored = self._stored.dtype
        if array.dtype != stored:
            raise TypeError(f"cannot assign {array.dtype} to variable {self.name!r} of {stored}: cast it first")
        if array.shape != self.shape:
            raise ValueError(f"cannot assign shape {array.shape} to variable {self.name!r} of shape {self.shape}")
        values = current_overlay()
        if values is None:
            self._stored = array
        else:
            values[self] = array

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, shape={self.shape}, dtype={self.dtype})"


class AutoCastVariable(Variable):
    """A variable that is read in the compute dtype inside a layer's `call`, and as it is stored elsewhere.

    spec/keras-rfc-293-mixed-precision.md, "AutoCastVariable API". Assigning never casts.
    """

    @property
    def dtype(self) -> DType:
        """The dtype that reading it gives here."""
        return current_autocast_dtype() or self.true_dtype

    @property
    def true_dtype(self) -> DType:
        """The dtype it is stored in."""
        return self._stored.dtype

    @property
    def value(self) -> jax.Array:
        """The value, in the compute dtype of the layer whose `call` is running."""
        return self.read_stored().astype(self.dtype)
