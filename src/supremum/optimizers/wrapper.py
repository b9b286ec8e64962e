"""Optimizers around optimizers.

spec/keras-rfc-293-mixed-precision.md, "OptimizerWrapper" and "LossScaleOptimizer __getattribute__ and __setattr__
delegation".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NoReturn, Self

import jax
import numpy as np

from supremum.argument_checks import known_keys
from supremum.errors import OperandError, shown
from supremum.formats import DType
from supremum.nn import Variable
from supremum.optimizers.eager_step import Stepper
from supremum.optimizers.gradients import Aggregate
from supremum.optimizers.hyperparameters import NON_NEGATIVE, Rule
from supremum.optimizers.optimizer import Optimizer
from supremum.optimizers.serialization import deserialize_optimizer, serialize_optimizer
from supremum.optimizers.state import Update
from supremum.optimizers.variable_registry import Variables


class OptimizerWrapper(Optimizer):
    """An optimizer that hands everything on to another one; subclasses change what they are about.

    The hyperparameters of the inner optimizer are read, set and listed on the wrapper. Its other attributes are not:
    a method that only the inner optimizer has would go past the wrapper, so reading one is an `AttributeError`, and so
    is setting an attribute that the wrapper does not have; `wrapper.inner_optimizer` has them.

    `minimize`, `get_gradients` and `apply_gradients` are those of every optimizer, on `value_and_grad` and `update`, so
    a subclass that changes these two has changed them all, in `fit` as well.

    Args:
        optimizer: an optimizer, or an optax transformation.

    Raises:
        OperandError: for what is neither; a `TypeError`.

    >>> from supremum.optimizers import SGD
    >>> wrapper = OptimizerWrapper(SGD(0.5))
    >>> wrapper.learning_rate = 0.25
    >>> wrapper
    OptimizerWrapper(SGD(learning_rate=0.25, momentum=0.0, nesterov=False))
    """

    _inner: Optimizer
    _own_stepper: Stepper

    def __init__(self, optimizer: Any) -> None:  # the inner one has all that the base would make
        if optimizer is None:
            raise OperandError(f"{type(self).__name__} wraps an optimizer and was given None: give it SGD(0.01), say")
        inner = optimizer if isinstance(optimizer, Optimizer) else Optimizer(optimizer)
        object.__setattr__(self, "_inner", inner)
        object.__setattr__(self, "_own_stepper", Stepper(self))

    @property
    def inner_optimizer(self) -> Optimizer:
        """The optimizer inside, with all of its own attributes."""
        return self._inner

    @property
    def hyperparameters(self) -> tuple[str, ...]:
        """The names of the hyperparameters."""
        return self._inner.hyperparameters

    def add_hyperparameter(self, name: str, value: Any, rule: Rule = NON_NEGATIVE) -> None:
        """Make an attribute of the inner optimizer a hyperparameter."""
        self._inner.add_hyperparameter(name, value, rule)

    def make_transformation(self, **hyperparameters: Any) -> Any:
        """The optax transformation of the inner optimizer."""
        return self._inner.make_transformation(**hyperparameters)

    @property
    def trace_key(self) -> Any:
        """Hashable; differs whenever something differs that is compiled into a step."""
        return (type(self), self.own_key(), self._inner.trace_key)

    def own_key(self) -> Any:
        """What of the wrapper itself is compiled into a step; for subclasses."""
        return ()

    @property
    def state(self) -> Any:
        """The state of the inner optimizer."""
        return self._inner.state

    @state.setter
    def state(self, state: Any) -> None:
        self._inner.state = state

    def inner_state(self, state: Any) -> Any:
        """The inner optimizer's part of a state; for subclasses whose state is more than that."""
        return state

    @property
    def iterations(self) -> jax.Array:
        """How many steps were applied."""
        return self._inner.iterations

    @property
    def skips(self) -> bool:
        """Whether steps may be skipped."""
        return self._inner.skips

    @property
    def built_for(self) -> dict[str, Variable]:
        """The variables that there are slots for, by key."""
        return self._inner.built_for

    def build(self, variables: Variables) -> None:
        """Make the slots for variables."""
        self._inner.build(variables)

    def init(self, values: Mapping[str, jax.Array]) -> Any:
        """As the inner optimizer's."""
        return self._inner.init(values)

    def value_and_grad(
        self, loss_fn: Callable[..., Any], *, has_aux: bool = False, aggregate: Aggregate | None = None
    ) -> Callable[..., Any]:
        """As the inner optimizer's."""
        differentiate = self._inner.value_and_grad(loss_fn, has_aux=has_aux, aggregate=aggregate)

        def value_and_grad(state: Any, values: Any, *args: Any) -> Any:
            return differentiate(self.inner_state(state), values, *args)

        return value_and_grad

    def reduce_dtype(self, asked: DType | None) -> DType | None:
        """As the inner optimizer's."""
        return self._inner.reduce_dtype(asked)

    def all_reduce(self, gradients: Mapping[str, Any], state: Any, axis_name: str) -> dict[str, Any]:
        """As the inner optimizer's."""
        return self._inner.all_reduce(gradients, self.inner_state(state), axis_name)

    def update(
        self,
        gradients: Mapping[str, Any],
        state: Any,
        values: Mapping[str, jax.Array],
        *,
        after: Any = None,
        before: Any = None,
        aggregate_gradients: bool = True,
    ) -> Update:
        """As the inner optimizer's."""
        return self._inner.update(
            gradients, state, values, after=after, before=before, aggregate_gradients=aggregate_gradients
        )

    def kept_alongside(self, gradients: Any, after: Any, before: Any) -> Any:
        """As the inner optimizer's."""
        return self._inner.kept_alongside(gradients, after, before)

    def minimize(self, loss_fn: Callable[..., Any], variables: Variables, *args: Any) -> jax.Array:
        """Take a step, as `Optimizer.minimize`."""
        return self._own_stepper.minimize(loss_fn, variables, args)

    def get_gradients(self, loss_fn: Callable[..., Any], variables: Variables, *args: Any) -> list[jax.Array]:
        """The gradients of a loss, unscaled, as `Optimizer.get_gradients`."""
        return self._own_stepper.get_gradients(loss_fn, variables, args)

    def apply_gradients(self, pairs: Iterable[tuple[Any, Variable]], *, aggregate_gradients: bool = True) -> None:
        """Change variables by gradients, as `Optimizer.apply_gradients`."""
        self._own_stepper.apply_gradients(pairs, aggregate_gradients)

    def gradient_dtypes(self, variable: Variable) -> tuple[DType, ...]:
        """The dtypes that `apply_gradients` takes for a variable, the usual one first."""
        return self._inner.gradient_dtypes(variable)

    @property
    def variables(self) -> dict[str, jax.Array]:
        """All that a checkpoint needs, by the inner optimizer's names."""
        return self._inner.variables

    def load_variables(self, saved: Mapping[str, Any]) -> None:
        """Take over what `variables` gave, all of it or nothing."""
        self._inner.load_variables(saved)

    def get_weights(self) -> list[np.ndarray[Any, Any]]:
        """The inner optimizer's."""
        return self._inner.get_weights()

    def set_weights(self, weights: Iterable[Any]) -> None:
        """Take over what `get_weights` gave."""
        self._inner.set_weights(weights)

    def get_config(self) -> dict[str, Any]:
        """The arguments that make a wrapper like this one, the inner optimizer as `serialize_optimizer` has it."""
        return {"optimizer": serialize_optimizer(self._inner)}

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self:
        """A fresh wrapper, around a fresh optimizer, of the arguments that `get_config` gave."""
        entries = known_keys(f"{cls.__name__}'s config", config, tuple(config), ("optimizer",))
        return cls(**{**entries, "optimizer": deserialize_optimizer(entries["optimizer"])})

    def __getattr__(self, name: str) -> Any:
        inner = vars(self).get("_inner")
        if inner is None:
            raise AttributeError(f"{type(self).__name__}.__init__ has to begin with super().__init__(optimizer)")
        if name in inner.hyperparameters:
            return getattr(inner, name)
        return self._refuse(name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith("_") or isinstance(getattr(type(self), name, None), property):
            object.__setattr__(self, name, value)
        elif name in self._inner.hyperparameters:
            setattr(self._inner, name, value)
        else:
            self._refuse(name)

    def _refuse(self, name: str) -> NoReturn:
        kind, inner = type(self).__name__, type(self._inner).__name__
        where = f"set and read it on inner_optimizer, as in optimizer.inner_optimizer.{name}"
        has = "has it" if hasattr(self._inner, name) else "has none either"
        raise AttributeError(
            f"{kind} has no attribute {shown(name)}, and hands on only hyperparameters "
            f"({', '.join(self.hyperparameters)}); its inner optimizer, {inner}, {has}: {where}"
        )

    def __dir__(self) -> list[str]:
        return sorted({*object.__dir__(self), *self.hyperparameters})

    def __repr__(self) -> str:
        if "_inner" not in vars(self):
            return object.__repr__(self)
        own = {name: value for name, value in self.get_config().items() if name != "optimizer"}
        return f"{type(self).__name__}({', '.join([repr(self._inner), *(f'{k}={v!r}' for k, v in own.items())])})"


def optimizers_within(optimizer: Optimizer) -> Iterator[Optimizer]:
    """An optimizer, the one inside it where it is a wrapper, and so on.

    >>> from supremum.optimizers import SGD, LossScaleOptimizer
    >>> [type(each).__name__ for each in optimizers_within(LossScaleOptimizer(SGD()))]
    ['LossScaleOptimizer', 'SGD']
    """
    while True:
        yield optimizer
        if not isinstance(optimizer, OptimizerWrapper):
            return
        optimizer = optimizer.inner_optimizer
