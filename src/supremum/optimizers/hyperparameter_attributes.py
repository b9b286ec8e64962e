"""Hyperparameters as attributes, and a note of whatever else is set."""

from __future__ import annotations

from typing import Any, ClassVar

import jax

from supremum.errors import shown
from supremum.optimizers.hash_key import frozen
from supremum.optimizers.hyperparameters import NON_NEGATIVE, Hyperparameter, Hyperparameters, Rule, scheduled
from supremum.optimizers.scopes import state_in_force
from supremum.optimizers.settings import CHECKS
from supremum.optimizers.state import OptimizerState


class Attributes:
    """What an optimizer is set to: numbers that are in its state, and all else, which is compiled in."""

    _INTERNAL: ClassVar[frozenset[str]] = frozenset({"_hyper", "_state", "_registry", "_stepper", "_key", "_is_stale"})
    _hyper: Hyperparameters
    _state: OptimizerState
    _key: Any
    _is_stale: bool

    def add_hyperparameter(self, name: str, value: Any, rule: Rule = NON_NEGATIVE) -> None:
        """Make an attribute a hyperparameter; for the constructors of subclasses.

        Args:
            name: the attribute.
            value: a number, a schedule, or None where the rule allows it.
            rule: what it may be.
        """
        self._hyper.rules[name] = rule
        self._set_hyperparameter(name, value)

    @property
    def hyperparameters(self) -> tuple[str, ...]:
        """The names of the hyperparameters."""
        return tuple(self._hyper.rules)

    @property
    def trace_key(self) -> Any:
        """Hashable; differs whenever something differs that is compiled into a step."""
        if self._key is None:
            settings = {name: value for name, value in vars(self).items() if name not in self._INTERNAL}
            self._key = (type(self), frozen(settings), frozen(self._hyper.key()))
        return self._key

    def _set_hyperparameter(self, name: str, value: Any) -> None:
        before = self._hyper.key()
        numbers = self._hyper.set(name, value, self._state.hyperparameters)
        self._state = self._state._replace(hyperparameters=numbers)
        if self._hyper.key() != before:
            self._change()

    def _read_hyperparameter(self, name: str) -> jax.Array:
        state = state_in_force(self, self._state)
        if name in self._hyper.schedules:
            return scheduled(name, self._hyper.schedules[name], state.iterations)
        return state.hyperparameters[name]

    def _change(self) -> None:
        self._key, self._is_stale = None, True

    def __getattr__(self, name: str) -> Any:
        self._check_made()
        if name not in self._hyper.rules:
            raise AttributeError(f"{shown(type(self).__name__)} object has no attribute {shown(name)}")
        schedule = self._hyper.schedules.get(name)
        if schedule is None and name not in self._state.hyperparameters:
            return None
        return Hyperparameter(
            name,
            lambda: self._read_hyperparameter(name),
            lambda value: self._set_hyperparameter(name, value),
            schedule,
        )

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self._INTERNAL or isinstance(getattr(type(self), name, None), property):
            object.__setattr__(self, name, value)
            return
        self._check_made()
        if name in self._hyper.rules:
            self._set_hyperparameter(name, value)
            return
        object.__setattr__(self, name, CHECKS[name](value) if name in CHECKS else value)
        self._change()

    def _check_made(self) -> None:
        if "_hyper" not in vars(self):
            raise AttributeError(f"{type(self).__name__}.__init__ has to begin with super().__init__()")

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self.hyperparameters})
