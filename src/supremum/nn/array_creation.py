"""Making arrays inside a layer's `call`, in its compute dtype unless asked otherwise.

spec/keras-rfc-293-mixed-precision.md, "TypeErrors": functions that make arrays give float32 wherever they are called,
and on JAX the layer is then silently float32.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from supremum.formats import DType
from supremum.nn.scopes import next_random_key


class Creation:
    """What makes arrays. Under the policy `"infer"` those of one number are weak, and follow what they meet."""

    @property
    def compute_dtype(self) -> DType | None:
        """The dtype they are made in."""
        raise NotImplementedError

    def full(self, shape: Any, fill_value: Any, dtype: Any = None) -> jax.Array:
        """An array of one number.

        Args:
            shape: its shape.
            fill_value: the number.
            dtype: its dtype; None for the compute dtype.
        """
        return jnp.full(shape, fill_value, self._made_in(dtype))

    def zeros(self, shape: Any, dtype: Any = None) -> jax.Array:
        """Zeros, as `full` makes them."""
        return self.full(shape, 0.0, dtype)

    def ones(self, shape: Any, dtype: Any = None) -> jax.Array:
        """Ones, as `full` makes them."""
        return self.full(shape, 1.0, dtype)

    def constant(self, value: Any, dtype: Any = None) -> jax.Array:
        """An array of a number, nested lists, or an array.

        Args:
            value: what to make it of.
            dtype: its dtype; None for the compute dtype.
        """
        return jnp.asarray(value, self._made_in(dtype))

    def arange(self, start: Any, stop: Any = None, step: Any = None, dtype: Any = None) -> jax.Array:
        """Evenly spaced numbers, as `jax.numpy.arange`; counted in float32 at least, and rounded once."""
        counted = jnp.arange(start, stop, step)
        made_in = self._made_in(dtype)
        return counted if made_in is None else counted.astype(made_in)

    def eye(self, rows: int, columns: int | None = None, dtype: Any = None) -> jax.Array:
        """A matrix with ones on its diagonal."""
        return jnp.eye(rows, columns, dtype=self._made_in(dtype))

    def random_normal(self, shape: Any, dtype: Any = None) -> jax.Array:
        """Normal numbers, from the key of the running call (`functional_call(..., random_key=)`)."""
        return jax.random.normal(next_random_key(), shape, self._made_in(dtype))

    def random_uniform(self, shape: Any, minval: float = 0.0, maxval: float = 1.0, dtype: Any = None) -> jax.Array:
        """Uniform numbers, from the same key."""
        return jax.random.uniform(next_random_key(), shape, self._made_in(dtype), minval, maxval)

    def _made_in(self, dtype: Any) -> Any:
        return self.compute_dtype if dtype is None else dtype
