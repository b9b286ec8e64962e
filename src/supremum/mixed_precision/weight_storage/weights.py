"""The ways to store a weight in few bits so that small updates are not lost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from supremum.argument_checks import chosen
from supremum.errors import OperandError, shown
from supremum.formats import Format, as_format
from supremum.mixed_precision.pytrees import is_floating
from supremum.mixed_precision.weight_storage.counter_hash import StepKey, key_of_one, random_bits
from supremum.mixed_precision.weight_storage.rounding import (
    has_bits_of_float32,
    is_roundable,
    round_to_format,
    split,
    to_float32,
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
