"""The values of narrow variables during a step, and the slots for what is stored beside them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import jax

from supremum.formats import as_format
from supremum.mixed_precision import ExtraWeights, is_narrow_weight, step_key, storage_of_weights, widen
from supremum.optimizers.state import OptimizerState

Constrain: TypeAlias = Callable[[dict[str, jax.Array]], dict[str, jax.Array]]
"""A function that applies the constraints of variables to values by key."""


class NarrowValues:
    """How an optimizer stores the values of variables narrower than float32.

    Args:
        weights: a value of `weights=` of `narrow_weights`; None to round to nearest and store nothing beside.
        values: the values of the variables, by key.
        seed: the seed of stochastic rounding, an integer scalar; None for 0, which only one member may have.
    """

    def __init__(self, weights: str | None, values: Mapping[str, jax.Array], seed: Any = None) -> None:
        self._values, self._seed = values, seed
        self._storage = storage_of_weights(weights or "stochastic")
        self._narrow = frozenset(key for key, value in values.items() if weights and is_narrow_weight(value, key))

    def first_slots(self, slots: Any) -> Any:
        """Return the slots of a transformation together with the arrays beside the variables."""
        first = {
            key: self._storage.first(value) if key in self._narrow else None for key, value in self._values.items()
        }
        return slots, self._extra(ExtraWeights(), first)

    def take_step(
        self, step: Callable[..., tuple[dict[str, jax.Array], Any]], state: OptimizerState, constrain: Constrain
    ) -> tuple[dict[str, jax.Array], Any]:
        """Take a step.

        Args:
            step: a function of the slots and the wide values that returns new wide values of some of the variables, and
                the new slots.
            state: the state of the optimizer; its number of steps chooses random bits.
            constrain: the constraints; they get the wide values of variables that are stored specially, and the stored
                values of others.

        Returns:
            The values of all variables in their own dtypes, and the slots.
        """
        slots, extra = state.slots
        beside = dict(getattr(extra, self._storage.field) if self._storage.field else {})
        wide = {
            key: self._storage.wide(value, beside.get(key)) if key in self._narrow else widen(value)
            for key, value in self._values.items()
        }
        wide, slots = step(slots=slots, wide=wide)
        narrow = {key: value for key, value in wide.items() if key in self._narrow}
        others = {key: value.astype(self._values[key].dtype) for key, value in wide.items() if key not in narrow}
        made = {**self._values, **constrain(others)}
        for key, value in constrain(narrow).items():
            row, key_of_step = as_format(self._values[key].dtype), step_key(self._seed, key, state.iterations)
            made[key], beside[key] = self._storage.narrowed(value, row, key_of_step)
        return made, (slots, self._extra(extra, beside))

    def _extra(self, extra: ExtraWeights, beside: Mapping[str, Any]) -> ExtraWeights:
        field = self._storage.field
        return extra if field is None else extra._replace(**{field: beside})
