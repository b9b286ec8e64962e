"""The values of narrow variables during a step, and the arrays that are stored beside them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import jax

from supremum.formats import as_format
from supremum.mixed_precision import ExtraWeights, is_narrow_weight, step_key, storage_of_weights, widen
from supremum.typing import ArrayLike

Constrain: TypeAlias = Callable[[dict[str, jax.Array]], dict[str, jax.Array]]
"""A function that applies the constraints of variables to values by key."""


class NarrowValues:
    """How an optimizer stores the values of variables narrower than float32.

    Args:
        weights: a value of `weights=` of `narrow_weights`; None to round to nearest and store nothing beside.
        values: the values of the variables, by key.
        seed: the seed of stochastic rounding, an integer scalar; None for 0, which only one member may have.
    """

    def __init__(self, weights: str | None, values: Mapping[str, jax.Array], seed: ArrayLike | None = None) -> None:
        self._values, self._seed = values, seed
        self._storage = storage_of_weights(weights or "stochastic")
        self._narrow = frozenset(key for key, value in values.items() if weights and is_narrow_weight(value, key))

    def initial_extra(self) -> ExtraWeights:
        """Return the arrays beside the variables before the first step."""
        first = self._storage.first
        return self._extra({key: first(value) if key in self._narrow else None for key, value in self._values.items()})

    def wide_values(self, extra: ExtraWeights) -> dict[str, Any]:
        """Return the values in at least float32, with what is stored beside them."""
        beside = self._beside(extra)
        return {
            key: self._storage.wide(value, beside.get(key)) if key in self._narrow else widen(value)
            for key, value in self._values.items()
        }

    def stored_values(
        self, wide: Mapping[str, jax.Array], extra: ExtraWeights, constrain: Constrain, iterations: jax.Array
    ) -> tuple[dict[str, jax.Array], ExtraWeights]:
        """Return the values of all variables in their own dtypes, and the arrays beside them.

        Args:
            wide: the new values of some of the variables, at least float32.
            extra: the arrays beside the variables before the step.
            constrain: the constraints; they get the wide values of variables that are stored specially, and the stored
                values of others.
            iterations: the number of steps, which chooses random bits.
        """
        beside = self._beside(extra)
        narrow = {key: value for key, value in wide.items() if key in self._narrow}
        others = {key: value.astype(self._values[key].dtype) for key, value in wide.items() if key not in narrow}
        stored = {**self._values, **constrain(others)}
        for key, value in constrain(narrow).items():
            row, random_key = as_format(self._values[key].dtype), step_key(self._seed, key, iterations)
            stored[key], beside[key] = self._storage.narrowed(value, row, random_key)
        return stored, self._extra(beside)

    def _beside(self, extra: ExtraWeights) -> dict[str, Any]:
        return dict(getattr(extra, self._storage.field)) if self._storage.field else {}

    def _extra(self, beside: Mapping[str, Any]) -> ExtraWeights:
        return ExtraWeights(**{self._storage.field: beside}) if self._storage.field else ExtraWeights()
