"""Optimizers in checkpoints and as configurations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Self

import jax
import numpy as np

from supremum.argument_checks import mapping, text
from supremum.optimizers import slots
from supremum.optimizers.checkpoints import checked_arrays, checked_weights, without_scale
from supremum.optimizers.hyperparameter_attributes import Attributes
from supremum.optimizers.hyperparameters import shortest
from supremum.optimizers.scopes import handed_out
from supremum.optimizers.state import OptimizerState


class Saved(Attributes):
    """What an optimizer is saved as: arrays by name, and the arguments that make one like it."""

    # The attributes that the constructor takes, and the attribute with the dtype that each field of slots is kept in.
    _settings: ClassVar[tuple[str, ...]] = ("gradient_transformers", "gradient_aggregator")
    _stored_dtypes: ClassVar[Mapping[str, str]] = {}
    transformation: Any

    @property
    def state(self) -> Any:
        """All that a step changes."""
        raise NotImplementedError

    @property
    def variables(self) -> dict[str, jax.Array]:
        """All that a checkpoint needs, by name: `"iterations"`, `"learning_rate"`, `"mu/dense/kernel"`, ..."""
        state = self.state
        # jit gives dicts back with their keys sorted; the order of names does not depend on that.
        numbers = {name: state.hyperparameters[name] for name in self.hyperparameters if name in state.hyperparameters}
        found = {"iterations": state.iterations, **numbers, **slots.by_name(state.slots)}
        copies = handed_out(found)
        return {name: copies[name] for name in found}

    def load_variables(self, saved: Mapping[str, Any]) -> None:
        """Take over what `variables` gave, all of it or nothing.

        Args:
            saved: arrays by name. Those of a loss scale, `"loss_scale/..."`, are passed over.

        Raises:
            UnknownNameError: for a name that is not known.
            ArgumentError: for one that is missing, or a value of another shape or dtype.
        """
        arrays = checked_arrays(without_scale(saved), self.variables)
        numbers = {name: arrays.pop(name) for name in self._state.hyperparameters}
        for name, number in numbers.items():
            self._hyper.rules[name].check(name, number)
        iterations = arrays.pop("iterations")
        self._state = OptimizerState(
            iterations, self._state.hyperparameters, slots.with_leaves(self._state.slots, arrays)
        )
        for name, number in numbers.items():
            self._set_hyperparameter(name, number)

    def get_weights(self) -> list[np.ndarray[Any, Any]]:
        """The values of `variables`, on the host, in their order."""
        return [np.asarray(each) for each in self.variables.values()]

    def set_weights(self, weights: Iterable[Any]) -> None:
        """Take over what `get_weights` gave, all of it or nothing.

        Raises:
            ArgumentError: for another number of arrays, or one of another shape or dtype.
        """
        self.load_variables(checked_weights(weights, self.variables))

    def get_config(self) -> dict[str, Any]:
        """The arguments that make an optimizer like this one; schedules and functions are there as they are."""
        config: dict[str, Any] = {name: self._config_of(name) for name in self.hyperparameters}
        config |= {name: getattr(self, name) for name in (*self._settings, *self._stored_dtypes.values())}
        if self.transformation is not None:
            config["transformation"] = self.transformation
        return config

    def _config_of(self, name: str) -> Any:
        found = getattr(self, name)
        if found is None:
            return None
        return shortest(found.value) if found.schedule is None else found.schedule

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self:
        """A fresh optimizer of the arguments that `get_config` gave."""
        for name in mapping("config", config, "optimizer.get_config()"):
            text("each name in config", name)
        return cls(**config)

    def __repr__(self) -> str:
        if "_hyper" not in vars(self):
            return object.__repr__(self)
        config = {name: value for name, value in self.get_config().items() if value not in (None, ())}
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in config.items())})"
