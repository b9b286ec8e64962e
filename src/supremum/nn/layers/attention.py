"""Multi-head attention with learned projections, and the cache of keys and values for decoding."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Unpack

import jax
import jax.numpy as jnp
from jax import lax

from supremum.argument_checks import whole_number
from supremum.errors import ArgumentError, OperandError
from supremum.formats import DType, argument_dtype, as_format
from supremum.nn import functional
from supremum.nn.functional.dropout import rate_below_one
from supremum.nn.functional.dtype_promotion import as_array, new_array, refuse_complex, refuse_none
from supremum.nn.functional.masks import split_additive
from supremum.nn.functional.precision import as_precision
from supremum.nn.functional.shape_checks import MOST, positive_int
from supremum.nn.initializers import LECUN_NORMAL, ZEROS, Initializer
from supremum.nn.inputs import InputSpec, InputSpecs
from supremum.nn.layer import Layer
from supremum.nn.layer_types import LayerOptions
from supremum.nn.layers.products import DenseGeneral
from supremum.nn.scopes import next_random_key
from supremum.typing import DTypeLike


@partial(jax.tree_util.register_dataclass, data_fields=["keys", "values", "length"], meta_fields=[])
@dataclass(frozen=True)
class KeyValueCache:
    """Keys and values of the positions so far, in arrays with room for more.

    The cache keeps the dtype it was made with and stores everything in it, whatever layers compute in. Policies do not
    cast it (Flax FLIP, default dtypes, "Autoregressive decoding cache"). `MultiHeadAttention.init_cache` uses the dtype
    of the keys, so nothing is rounded, unless it is given a different dtype.

    Attributes:
        keys: shape (batch, max_length, heads, head_dim).
        values: shape (batch, max_length, heads, value_dim).
        length: the number of positions in use, int32; a scalar, or shape (batch,) if sequences differ.

    >>> cache = KeyValueCache.empty(
    ...     batch=2, max_length=16, heads=4, head_dim=8, dtype="bfloat16"
    ... )
    >>> cache.keys.shape, cache.keys.dtype, int(cache.length)
    ((2, 16, 4, 8), dtype(bfloat16), 0)
    """

    keys: jax.Array
    values: jax.Array
    length: jax.Array

    keeps_dtype: ClassVar[bool] = True

    @classmethod
    def empty(
        cls, batch: int, max_length: int, heads: int, head_dim: int, *, dtype: DTypeLike, value_dim: int | None = None
    ) -> KeyValueCache:
        """Make an empty cache.

        Args:
            batch: the number of sequences.
            max_length: the number of positions that fit.
            heads: the number of heads of keys and values.
            head_dim: the dimension of keys.
            dtype: the floating dtype of keys and values.
            value_dim: the dimension of values; None for `head_dim`.

        Raises:
            ArgumentError: for a dtype that is not floating, or a size that an array cannot have; a `ValueError`.
            OperandError: for a `batch` that is not an integer; a `TypeError`.

        >>> cache = KeyValueCache.empty(2, 16, 4, 8, dtype="bfloat16")
        >>> cache.keys.shape, cache.keys.dtype, int(cache.length)
        ((2, 16, 4, 8), dtype(bfloat16), 0)
        """
        row = as_format(argument_dtype(dtype))
        if row.category != "float":
            raise ArgumentError(f"the dtype of a cache must be floating-point, got {row}; use dtype='float32'")
        shape = whole_number("batch", batch, 0, MOST), positive_int("max_length", max_length), heads
        value_dim = head_dim if value_dim is None else value_dim
        return cls(
            keys=new_array("a cache", jnp.zeros, (*shape, head_dim), dtype=row.dtype),
            values=new_array("a cache", jnp.zeros, (*shape, value_dim), dtype=row.dtype),
            length=jnp.zeros((), "int32"),
        )

    @property
    def max_length(self) -> int:
        """The number of positions that fit."""
        return self.keys.shape[1]

    @property
    def is_overfull(self) -> jax.Array:
        """Whether more positions were appended than fit, a boolean of the shape of `length`.

        The content of an overfull cache is wrong, and layers return NaN for it.
        """
        return self.length > self.max_length

    def append(self, keys: jax.Array, values: jax.Array) -> KeyValueCache:
        """Append positions at the end.

        Args:
            keys: shape (batch, n, heads, head_dim), of any floating dtype; they are stored in the cache's dtype.
            values: shape (batch, n, heads, value_dim).

        Returns:
            A new cache. Under `jax.jit` the length is not known, and the result `is_overfull` if positions did not fit.

        Raises:
            ArgumentError: for shapes that do not match, or more positions than fit if the length is known; a
                `ValueError`.
            OperandError: for keys or values that are not floating; a `TypeError`.
        """
        keys, values = as_array("keys", keys), as_array("values", values)
        for name, array, stored in (("keys", keys, self.keys), ("values", values, self.values)):
            if array.ndim != 4 or (array.shape[0], *array.shape[2:]) != (stored.shape[0], *stored.shape[2:]):
                raise ArgumentError(
                    f"{name} of shape {array.shape} do not fit a cache with {name} of shape {stored.shape}"
                )
            if as_format(array.dtype).category != "float":
                raise OperandError(f"{name} must be floating-point, got {array.dtype}; use {name}.astype('float32')")
        if keys.shape[1] != values.shape[1]:
            raise ArgumentError(
                f"keys and values must have the same length, got {keys.shape[1]} keys and {values.shape[1]} values"
            )
        length = self.length + keys.shape[1]
        _check_room(length, keys.shape[1], self.max_length)
        return KeyValueCache(_written(self.keys, keys, self.length), _written(self.values, values, self.length), length)

    def mask(self, queries: int) -> jax.Array:
        """The mask that lets the last positions attend to themselves and all earlier ones.

        Args:
            queries: the number of last positions in the cache.

        Raises:
            OperandError: for anything but an integer; a `TypeError`.
            ArgumentError: for more queries than positions; a `ValueError`.

        Returns:
            Booleans of shape (queries, max_length), or (batch, 1, queries, max_length) if lengths differ.
        """
        queries = whole_number("queries", queries, 0, self.max_length)
        ends = self.length[..., None, None, None] if self.length.ndim else self.length
        last = ends - queries + jnp.arange(queries)[:, None]
        return jnp.arange(self.max_length) <= last


def _written(stored: jax.Array, new: jax.Array, begin: jax.Array) -> jax.Array:
    new = new.astype(stored.dtype)
    if begin.ndim == 0:
        return lax.dynamic_update_slice_in_dim(stored, new, begin, axis=1)
    return jax.vmap(partial(lax.dynamic_update_slice_in_dim, axis=0))(stored, new, begin)


def _check_room(length: jax.Array, added: int, max_length: int) -> None:
    longest = added
    with suppress(jax.errors.ConcretizationTypeError):
        longest = int(jnp.max(length, initial=added))
    if longest > max_length:
        raise ArgumentError(
            f"{added} more positions make {longest}, but the cache has room for {max_length}; "
            "make a cache with a larger max_length"
        )


class MultiHeadAttention(Layer):
    """Project the inputs, apply attention in several heads, and project the result.

    Vaswani et al. 2017, "Attention Is All You Need" (arXiv:1706.03762), section 3.2.2. As in
    `functional.dot_product_attention`, scores and softmax are in at least float32.

    Args:
        num_heads: the number of query heads.
        head_dim: the dimension of queries and keys in each head; None for the features of the query input divided by
            `num_heads`.
        num_key_value_heads: the number of heads of keys and values, a divisor of `num_heads`; None for `num_heads`.
            With fewer heads, each serves several query heads.
        value_dim: the dimension of values in each head; None for `head_dim`.
        output_dim: the features of the result; None for those of the query input.
        use_bias: whether the four projections add a bias.
        dropout_rate: the share of probabilities to drop in training.
        kernel_initializer: for the four kernels; it gets the shape of a matrix, all inputs by all outputs.
        bias_initializer: for the biases.
        precision: the precision of products on the device, such as `"highest"`, as in JAX; None for JAX's default.
        options: the options of every `Layer`, such as `dtype` for the policy, `param_dtype`, `strict` and `name`.

    Raises:
        ArgumentError: for numbers of heads that do not divide, or a rate out of range; a `ValueError`.

    >>> from supremum import nn
    >>> layer = MultiHeadAttention(2, dtype="mixed_bfloat16")
    >>> x = jnp.ones((1, 5, 8))
    >>> nn.initialize(layer, x)
    >>> layer(x, is_causal=True).dtype, layer.variables["query/kernel"].shape
    (dtype(bfloat16), (8, 2, 4))
    """

    def __init__(
        self,
        num_heads: int,
        head_dim: int | None = None,
        *,
        num_key_value_heads: int | None = None,
        value_dim: int | None = None,
        output_dim: int | None = None,
        use_bias: bool = True,
        dropout_rate: float = 0.0,
        kernel_initializer: Initializer = LECUN_NORMAL,
        bias_initializer: Initializer = ZEROS,
        precision: lax.PrecisionLike = None,
        **options: Unpack[LayerOptions],
    ) -> None:
        # The projections cast their inputs, masks are added to float32 scores, and caches keep their dtype.
        super().__init__(**options)
        self.input_spec: InputSpecs | None = InputSpec()
        self.autocast = False
        groups = num_heads if num_key_value_heads is None else num_key_value_heads
        sizes = {"num_heads": num_heads, "num_key_value_heads": groups}
        sizes |= {"head_dim": head_dim, "value_dim": value_dim, "output_dim": output_dim}
        for size, number in sizes.items():
            if number is not None or size == "num_heads":
                positive_int(size, number)
        if num_heads % groups:
            raise ArgumentError(f"num_key_value_heads must divide num_heads={num_heads}, got {groups}")
        rate_below_one("dropout_rate", dropout_rate)
        self.num_heads = num_heads
        self.num_key_value_heads = groups
        self.head_dim = head_dim
        self.value_dim = value_dim
        self.output_dim = output_dim
        self.use_bias = use_bias
        self.dropout_rate = dropout_rate
        self._kernel_initializer = kernel_initializer
        self._bias_initializer = bias_initializer
        self.precision: Any = as_precision(precision)

    def build(self, input_shape: tuple[int, ...]) -> None:
        """Make the projections, each of which builds its own weights."""
        refuse_none(query=input_shape)
        if len(input_shape) < 2:
            raise ArgumentError(f"the query must have shape (batch..., length, features), got {input_shape}")
        features = input_shape[-1]
        if self.head_dim is None and features % self.num_heads:
            raise ArgumentError(
                f"num_heads must divide the {features} features of the query, got {self.num_heads}; give head_dim="
            )
        self.head_dim = head_dim = features // self.num_heads if self.head_dim is None else self.head_dim
        self.value_dim = value_dim = head_dim if self.value_dim is None else self.value_dim
        self.output_dim = features if self.output_dim is None else self.output_dim
        projection = partial(
            DenseGeneral,
            use_bias=self.use_bias,
            kernel_initializer=self._kernel_initializer,
            bias_initializer=self._bias_initializer,
            precision=self.precision,
            dtype=self.dtype_policy,
            param_dtype=self.param_dtype,
        )
        self.query: DenseGeneral = projection((self.num_heads, head_dim), name="query")
        self.key: DenseGeneral = projection((self.num_key_value_heads, head_dim), name="key")
        self.value: DenseGeneral = projection((self.num_key_value_heads, value_dim), name="value")
        self.output: DenseGeneral = projection((self.output_dim,), axis=(-2, -1), name="output")
        self.input_spec = InputSpec(min_ndim=2, axes={-1: features})
        self._input_dtypes: list[DType] = [
            leaf.dtype if hasattr(leaf, "dtype") else as_array("an input of attention", leaf).dtype
            for leaf in jax.tree.leaves(self.build_inputs)
        ]

    def call(
        self,
        query: jax.Array,
        key: jax.Array | None = None,
        value: jax.Array | None = None,
        *,
        mask: jax.Array | None = None,
        is_causal: bool = False,
        cache: KeyValueCache | None = None,
        training: bool = False,
    ) -> Any:
        """Attend from each position of the query to all positions of the key.

        Args:
            query: shape (batch..., length, features).
            key: shape (batch..., keys, any number of features); None to use the query, for self-attention.
            value: shape (batch..., keys, any number of features); None to use the key.
            mask: an array that broadcasts to (batch..., heads, length, keys); boolean, True attends, or floating to be
                added, as in `functional.dot_product_attention`. With a cache, `keys` is its `max_length`.
            is_causal: whether position i ignores all positions after i. With a cache this is always so.
            cache: the keys and values of earlier positions, for decoding; the query, of shape (batch, length,
                features), has the next positions.
            training: whether to apply dropout.

        Returns:
            Shape (batch..., length, output_dim). With a cache, a pair of that and the new cache; the output is NaN if a
            traced cache had no room for the query.

        Raises:
            OperandError: for complex inputs, which have no attention; a `TypeError`.
            ArgumentError: for shapes that do not match, or a full cache; a `ValueError`.
        """
        refuse_complex("attention", query=query, key=key, value=value)
        if key is None and value is not None:
            raise ArgumentError("value needs a key; give key= too")
        if cache is not None and (key is not None or query.ndim != 3):
            raise ArgumentError(
                "cache= needs self-attention, without key=, and a query of shape (batch, length, features), got query "
                f"of shape {query.shape}"
            )
        key = query if key is None else key
        heads = self.query(query), self.key(key), self.value(key if value is None else value)
        options: dict[str, Any] = {"dtype": self.compute_dtype, "precision": self.precision}
        if training and self.dropout_rate:
            options |= {"dropout_rate": self.dropout_rate, "dropout_key": next_random_key()}
        if cache is None:
            return self.output(functional.dot_product_attention(*heads, mask=mask, is_causal=is_causal, **options))
        cache = cache.append(*heads[1:])
        bias = None
        if mask is not None and as_format(jnp.asarray(mask).dtype).category == "float":
            mask, bias = split_additive(jnp.asarray(mask))
        mask = functional.combine_masks(mask, cache.mask(query.shape[1]))
        attended = functional.dot_product_attention(heads[0], cache.keys, cache.values, mask=mask, bias=bias, **options)
        overfull = cache.is_overfull[..., None, None, None] if cache.length.ndim else cache.is_overfull
        return self.output(jnp.where(overfull, jnp.nan, attended)), cache

    def init_cache(self, batch: int, max_length: int, dtype: DTypeLike | None = None) -> KeyValueCache:
        """Make an empty cache for decoding.

        Args:
            batch: the number of sequences.
            max_length: the number of positions that fit.
            dtype: the floating dtype of keys and values; None for the dtype in which this layer computes them.

        Raises:
            ArgumentError: before the layer is built; a `ValueError`.
        """
        if self.head_dim is None or self.value_dim is None or not self.built:
            raise ArgumentError(
                "the layer does not know its inputs yet; call nn.initialize(layer, x) before init_cache"
            )
        if dtype is None:
            dtype = self.compute_dtype or functional.common_dtype(*self._input_dtypes[-1:], self.variable_dtype)
        return KeyValueCache.empty(
            batch, max_length, self.num_key_value_heads, self.head_dim, value_dim=self.value_dim, dtype=dtype
        )
