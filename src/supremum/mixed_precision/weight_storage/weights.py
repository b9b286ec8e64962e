"""The ways to store a weight in few bits so that small updates are not lost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from supremum.argument_checks import chosen
from supremum.errors import OperandError, shown
from supremum.formats import DType, Format, as_format
from supremum.mixed_precision.pytrees import is_floating
from supremum.mixed_precision.weight_storage.counter_hash import StepKey, key_of_one, random_bits
from supremum.mixed_precision.weight_storage.rounding import (
    has_bits_of_float32,
    is_roundable,
    rounded,
    split,
    widened,
    with_rest,
)


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
        dtype: the dtype of the array beside a weight, from the dtype of the weight.
        first: the first array beside a weight.
        wide: the float32 value of a weight and the array beside it.
        narrowed: the weight and the array beside it for a new float32 value.
    """

    field: str | None
    dtype: Callable[[DType], DType]
    first: Callable[[jax.Array], Any]
    wide: Callable[[jax.Array, Any], jax.Array]
    narrowed: Callable[[jax.Array, Format, StepKey], tuple[jax.Array, Any]]


def _same_dtype(dtype: DType) -> DType:
    return dtype


def _no_first(_: jax.Array) -> None:
    return None


def _wide_alone(weight: jax.Array, _: Any) -> jax.Array:
    return widened(weight)


def _narrowed_stochastic(value: jax.Array, row: Format, key: StepKey) -> tuple[jax.Array, None]:
    return rounded(value, row, random_bits(key_of_one(key, value), value.shape)), None


def _rest_dtype(dtype: DType) -> DType:
    return as_format("int16").dtype if has_bits_of_float32(as_format(dtype)) else dtype


def _first_rest(weight: jax.Array) -> jax.Array:
    return jnp.zeros(weight.shape, _rest_dtype(weight.dtype))


def _wide_kahan(weight: jax.Array, rest: jax.Array) -> jax.Array:
    return with_rest(weight, rest) if rest.dtype != weight.dtype else widened(weight) + widened(rest)


def _narrowed_kahan(value: jax.Array, row: Format, _: StepKey) -> tuple[jax.Array, jax.Array]:
    """Round to nearest, and keep the rest for the next step (Kahan, 1965)."""
    if has_bits_of_float32(row):
        return split(value, row)
    weight = rounded(value, row)
    rest = value - widened(weight)  # exact
    return weight, rounded(jnp.where(jnp.isfinite(rest), rest, 0.0), row)  # an infinite weight has no rest


def _float32_dtype(_: DType) -> DType:
    return as_format("float32").dtype


def _wide_master(weight: jax.Array, master: jax.Array) -> jax.Array:
    # A weight that was assigned since the last step, by a constraint or a checkpoint, replaces its master.
    return jnp.where(rounded(master, as_format(weight.dtype)) == weight, master, widened(weight))


def _narrowed_master(value: jax.Array, row: Format, _: StepKey) -> tuple[jax.Array, jax.Array]:
    return rounded(value, row), value


WEIGHT_STORAGES: dict[str, WeightStorage] = {
    "stochastic": WeightStorage(None, _same_dtype, _no_first, _wide_alone, _narrowed_stochastic),
    "kahan": WeightStorage("compensation", _rest_dtype, _first_rest, _wide_kahan, _narrowed_kahan),
    "master": WeightStorage("master", _float32_dtype, widened, _wide_master, _narrowed_master),
}
"""The values of `weights=`."""


def storage_of_weights(name: Any) -> WeightStorage:
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
