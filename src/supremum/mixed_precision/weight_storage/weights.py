"""The ways to store a weight in few bits so that small updates are not lost."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from supremum.argument_checks import chosen, pytree
from supremum.errors import ArgumentError, OperandError, shown
from supremum.formats import DType, Format, as_format
from supremum.mixed_precision.pytrees import described, is_floating, is_inexact, native, path_text, widen
from supremum.mixed_precision.weight_storage.counter_hash import StepKey, key_of_one, random_bits, step_key
from supremum.mixed_precision.weight_storage.rounding import (
    has_bits_of_float32,
    is_roundable,
    round_to_format,
    split,
    to_float32,
    with_rest,
)
from supremum.typing import ArrayLike, PyTree


class ExtraWeights(NamedTuple):
    """What is stored beside the weights, each a tree like the parameters; None for a weight that is not narrow.

    Args:
        compensation: what rounding took from each weight; None except with `weights="kahan"`. Beside bfloat16 it is
            int16, in units of float32's last place, and the two together are a float32 number. In other formats it is
            in the weight's dtype.
        master: the weights in float32; None except with `weights="master"`.

    >>> import optax
    >>> from supremum.mixed_precision import narrow_weights
    >>> params = {"kernel": jnp.ones(2, "bfloat16"), "scale": jnp.ones(2)}
    >>> narrow_weights(optax.sgd(0.1), "kahan").init(params).extra
    ExtraWeights(compensation={'kernel': Array([0, 0], dtype=int16), 'scale': None}, master=None)
    """

    compensation: Any = None
    master: Any = None


class WeightStorage(NamedTuple):
    """A way to store weights.

    Args:
        field: the field of `ExtraWeights` that it uses; None for none.
        first: the first array beside a weight.
        wide: the float32 value of a weight and the array beside it.
        narrowed: the weight and the array beside it for a new float32 value.
    """

    field: str | None
    first: Callable[[jax.Array], Any]
    wide: Callable[[jax.Array, Any], jax.Array]
    narrowed: Callable[[jax.Array, Format, StepKey], tuple[jax.Array, Any]]


def _nothing(_: jax.Array) -> None:
    return None


def _weight_alone(weight: jax.Array, _: Any) -> jax.Array:
    return to_float32(weight)


def _round_at_random(value: jax.Array, row: Format, key: StepKey) -> tuple[jax.Array, None]:
    return round_to_format(value, row, random_bits(key_of_one(key, value), value.shape)), None


def _first_rest(weight: jax.Array) -> jax.Array:
    return jnp.zeros(weight.shape, "int16" if has_bits_of_float32(as_format(weight.dtype)) else weight.dtype)


def _add_rest(weight: jax.Array, rest: jax.Array) -> jax.Array:
    return with_rest(weight, rest) if rest.dtype != weight.dtype else to_float32(weight) + to_float32(rest)


def _split_rest(value: jax.Array, row: Format, _: StepKey) -> tuple[jax.Array, jax.Array]:
    """Round to nearest, and keep the rest for the next step (Kahan, 1965)."""
    if has_bits_of_float32(row):
        return split(value, row)
    weight = round_to_format(value, row)
    rest = value - to_float32(weight)  # exact
    return weight, round_to_format(jnp.where(jnp.isfinite(rest), rest, 0.0), row)  # an infinite weight has no rest


def _newest_master(weight: jax.Array, master: jax.Array) -> jax.Array:
    # A weight that was assigned since the last step, by a constraint or a checkpoint, replaces its master.
    return jnp.where(round_to_format(master, as_format(weight.dtype)) == weight, master, to_float32(weight))


def _keep_master(value: jax.Array, row: Format, _: StepKey) -> tuple[jax.Array, jax.Array]:
    return round_to_format(value, row), value


WEIGHT_STORAGES: dict[str, WeightStorage] = {
    "stochastic": WeightStorage(None, _nothing, _weight_alone, _round_at_random),
    "kahan": WeightStorage("compensation", _first_rest, _add_rest, _split_rest),
    "master": WeightStorage("master", to_float32, _newest_master, _keep_master),
}
"""The values of `weights=`."""


def storage_of_weights(name: object) -> WeightStorage:
    """Look up a way to store weights.

    Raises:
        UnknownNameError: for an unknown name.
    """
    return WEIGHT_STORAGES[chosen("weights", name, WEIGHT_STORAGES)]


def is_narrow_weight(leaf: Any, path: str) -> bool:
    """Whether a leaf is a weight narrower than float32.

    Raises:
        OperandError: for a narrow dtype that weights cannot be rounded to.
    """
    if not is_floating(leaf):
        return False
    row = as_format(leaf.dtype)
    if row.bits >= as_format("float32").bits:
        return False
    if not is_roundable(row):
        raise OperandError(
            f"narrow weights must be in a format with zero, a sign and NaN, of at least 8 bits, got {row} at "
            f"{shown(path)}: use {shown(path)} in bfloat16"
        )
    return True


class StoredWeights:
    """The leaves of parameters, and how those narrower than float32 are stored.

    Args:
        params: any pytree of arrays.
        weights: a value of `weights=` of `narrow_weights`; None to round to nearest, and store nothing beside.
        seed: the seed of stochastic rounding, an integer scalar; None for `default`, which only one member may have.
        default: the seed if none is given.

    Attributes:
        leaves: the leaves, in order.
        paths: the path of each leaf.
        is_narrow: whether each leaf is stored in this way.
    """

    def __init__(self, params: PyTree, weights: str | None, seed: ArrayLike | None = None, default: int = 0) -> None:
        entries, self._structure = jax.tree_util.tree_flatten_with_path(pytree("params", params))
        self.leaves: list[Any] = [native(leaf) for _, leaf in entries]
        self.paths: list[str] = [path_text(path) for path, _ in entries]
        pairs = zip(self.leaves, self.paths, strict=True)
        self.is_narrow: list[bool] = [weights is not None and is_narrow_weight(*pair) for pair in pairs]
        self._storage = storage_of_weights("stochastic" if weights is None else weights)
        self._seed, self._default = seed, default

    def tree(self, leaves: Iterable[Any]) -> PyTree:
        """Make a tree like the parameters."""
        return self._structure.unflatten(leaves)

    def leaves_of(self, tree: PyTree, what: str) -> list[Any]:
        """The leaves of a tree of the same structure, in which None stands for a missing leaf; all None for None."""
        if tree is None:
            return [None] * len(self.leaves)
        try:
            return self._structure.flatten_up_to(tree)
        except ValueError as error:
            raise ArgumentError(f"{what} must have the structure of params: {error}") from None

    def initial_extra(self) -> ExtraWeights:
        """Return the arrays beside the weights before the first step."""
        first, pairs = self._storage.first, zip(self.leaves, self.is_narrow, strict=True)
        return self._extra([first(jnp.asarray(leaf)) if narrow else None for leaf, narrow in pairs])

    def wide(self, extra: ExtraWeights) -> PyTree:
        """Return the weights in at least float32; None for leaves that are not floating."""
        read = self._storage.wide
        return self.tree(
            read(jnp.asarray(leaf), beside) if narrow else widen(leaf) if is_inexact(leaf) else None
            for leaf, beside, narrow in zip(self.leaves, self._beside(extra), self.is_narrow, strict=True)
        )

    def store(self, wide: PyTree, extra: ExtraWeights, step: jax.Array) -> tuple[PyTree, ExtraWeights]:
        """Store new values.

        Args:
            wide: the new values of the weights, at least float32; None for leaves that stay as they are.
            extra: the arrays beside the weights before the step.
            step: the number of the step, which chooses random bits.

        Returns:
            The parameters in their own dtypes, and the arrays beside them.
        """
        leaves, beside = [*self.leaves], self._beside(extra)
        for place, value in enumerate(self.leaves_of(wide, "the updates")):
            dtype = None if value is None else leaves[place].dtype
            if self.is_narrow[place] and value is not None:
                key = step_key(self._seed, self.paths[place], step, self._default)
                leaves[place], beside[place] = self._storage.narrowed(value, as_format(dtype), key)
            elif value is not None:
                leaves[place] = jnp.asarray(value).astype(dtype)
        return self.tree(leaves), self._extra(beside)

    def _beside(self, extra: ExtraWeights) -> list[Any]:
        """The array beside each leaf; None if there is none."""
        field = self._storage.field
        beside = self.leaves_of(None if field is None else getattr(extra, field), "the state")
        for leaf, path, narrow, each in zip(self.leaves, self.paths, self.is_narrow, beside, strict=True):
            if getattr(each, "dtype", None) != (_extra_dtype(self._storage, leaf.dtype) if narrow else None):
                raise ArgumentError(
                    f"{shown(path)} is {described(leaf)}, but init() made the state for another dtype: keep the dtypes "
                    "of params, or call init(params) again"
                )
        return beside

    def _extra(self, beside: Iterable[Any]) -> ExtraWeights:
        return (
            ExtraWeights() if self._storage.field is None else ExtraWeights(**{self._storage.field: self.tree(beside)})
        )


@lru_cache(maxsize=64)
def _extra_dtype(storage: WeightStorage, dtype: DType) -> DType | None:
    """The dtype of the array beside a weight; None if there is none."""
    return getattr(jax.eval_shape(storage.first, jax.ShapeDtypeStruct((), dtype)), "dtype", None)
