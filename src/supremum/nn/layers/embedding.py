"""Layers that look up rows of a table."""

from __future__ import annotations

from typing import Any, Unpack

import jax
from jax import lax

from supremum.errors import shown
from supremum.nn import functional
from supremum.nn.constraints import ConstraintFunction, as_constraint
from supremum.nn.functional.precision import as_precision
from supremum.nn.functional.shape_checks import positive_int
from supremum.nn.initializers import ROWS_OF_UNIT_NORM, Initializer, as_initializer
from supremum.nn.layer import Layer
from supremum.nn.layer_types import LayerOptions
from supremum.nn.regularizers import RegularizerFunction, as_regularizer
from supremum.nn.variables import UninitializedError


class Embedding(Layer):
    """Look up a row of a table for each index.

    The table is read as stored and the rows are cast, so gradients accumulate in the stored dtype however often a row
    is used. An index out of range raises if its value is known and gives a row of NaN in a traced function; see
    `supremum.nn.functional.embedding`.

    Args:
        num_embeddings: the number of rows.
        features: the length of a row.
        embedding_initializer: for the table, shape (num_embeddings, features).
        embedding_regularizer: a penalty on the table, such as `"l2"` or `nn.L2(1e-4)`.
        embedding_constraint: a function applied to the table after each step, such as `"unit_norm"`.
        precision: the precision of the products of `attend` on the device, such as `"highest"`, as in JAX; None for
            JAX's default.
        options: the options of every `Layer`, such as `dtype` for the policy, `param_dtype`, `strict` and `name`.

    Raises:
        ArgumentError: for sizes below 1, or indices out of range; a `ValueError`.
        OperandError: for indices that are not integers; a `TypeError`.

    >>> import jax.numpy as jnp
    >>> from supremum.nn import initialize
    >>> layer = Embedding(10, 4, dtype="mixed_bfloat16")
    >>> initialize(layer, jnp.array([3]))
    >>> (
    ...     layer(jnp.array([3, 7])).shape,
    ...     layer(jnp.array([3])).dtype,
    ...     layer.embedding.dtype,
    ... )
    ((2, 4), dtype(bfloat16), dtype('float32'))
    """

    def __init__(
        self,
        num_embeddings: int,
        features: int,
        *,
        embedding_initializer: Initializer | str = ROWS_OF_UNIT_NORM,
        embedding_regularizer: RegularizerFunction | str | None = None,
        embedding_constraint: ConstraintFunction | str | None = None,
        precision: lax.PrecisionLike = None,
        **options: Unpack[LayerOptions],
    ) -> None:
        super().__init__(**options)
        self.num_embeddings: int = positive_int("num_embeddings", num_embeddings)
        self.features: int = positive_int("features", features)
        self._embedding_initializer: Initializer = as_initializer(embedding_initializer)
        self._embedding_regularizer = as_regularizer(embedding_regularizer)
        self._embedding_constraint = as_constraint(embedding_constraint)
        self.precision: Any = as_precision(precision)

    def build(self, input_shape: tuple[int, ...]) -> None:  # noqa: ARG002 (the table does not depend on it)
        """Add the table."""
        shape = (self.num_embeddings, self.features)
        self.embedding: Any = self.add_weight(
            "embedding",
            shape,
            self._embedding_initializer,
            autocast=False,
            regularizer=self._embedding_regularizer,
            constraint=self._embedding_constraint,
        )

    def call(self, indices: jax.Array) -> jax.Array:
        """Look up rows, shape (*indices.shape, features), in the compute dtype."""
        return functional.embedding(indices, self.embedding.value, dtype=self.compute_dtype)

    def attend(self, x: jax.Array) -> jax.Array:
        """Multiply inputs by every row, for example for the logits of a language model with a shared table.

        Other layers may use this in their `call`.

        Args:
            x: inputs, shape (..., features).

        Returns:
            An array of shape (..., num_embeddings) in the compute dtype of this layer.

        Raises:
            UninitializedError: if the layer has no table yet, because it was never called.
        """
        if not self.built:
            raise UninitializedError(f"{shown(self)} has no table yet; call the layer on indices before attend(x)")
        return functional.attend(x, self.embedding.value, dtype=self.compute_dtype, precision=self.precision)
