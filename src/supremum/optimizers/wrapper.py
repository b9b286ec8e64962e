"""Optimizers around optimizers.

spec/keras-rfc-293-mixed-precision.md, "OptimizerWrapper" and "LossScaleOptimizer __getattribute__ and __setattr__
delegation".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import wraps
from typing import Any, NoReturn, Self, TypeVar, cast

import jax

from supremum.argument_checks import known_keys
from supremum.errors import OperandError, shown
from supremum.nn import Variable
from supremum.optimizers.eager_step import Stepper
from supremum.optimizers.gradients import Aggregate
from supremum.optimizers.optimizer import Optimizer
from supremum.optimizers.serialization import deserialize_optimizer, serialize_optimizer

M = TypeVar("M", bound=Callable[..., Any])


def _forwarded(method: M) -> M:
    """A method of `Optimizer` that is forwarded to the inner optimizer."""

    @wraps(method)
    def forward(self: OptimizerWrapper, *args: Any, **kwargs: Any) -> Any:
        return getattr(self.inner_optimizer, method.__name__)(*args, **kwargs)

    return cast("M", forward)


class OptimizerWrapper(Optimizer):
    """An optimizer that hands everything on to another one; subclasses change what they are about.

    The hyperparameters of the inner optimizer are read, set and listed on the wrapper. Its other attributes are not:
    a method that only the inner optimizer has would go past the wrapper, so reading one is an `AttributeError`, and so
    is setting an attribute that the wrapper does not have; `wrapper.inner_optimizer` has them.

    `minimize`, `get_gradients`, `apply_gradients` and `Model.fit` call `value_and_grad` and `update`: a subclass that
    changes these two changes them all.

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

    def __init__(self, optimizer: Any) -> None:
        # Optimizer.__init__ is not called: all that it would make belongs to the inner optimizer.
        if optimizer is None:
            raise OperandError(f"{type(self).__name__} wraps an optimizer and was given None: give it SGD(0.01), say")
        self._inner = optimizer if isinstance(optimizer, Optimizer) else Optimizer(optimizer)
        self._stepper = Stepper(self)

    @property
    def inner_optimizer(self) -> Optimizer:
        """The optimizer inside, with all of its own attributes."""
        return self._inner

    def inner_state(self, state: Any) -> Any:
        """The inner optimizer's part of a state; for subclasses whose state is more than that."""
        return state

    def own_key(self) -> Any:
        """The settings of the wrapper itself that are compiled into a step; for subclasses."""
        return ()

    @property
    def trace_key(self) -> Any:
        """A hashable key that differs whenever something that is compiled into a step differs."""
        return (type(self), self.own_key(), self._inner.trace_key)

    @property
    def hyperparameters(self) -> tuple[str, ...]:
        """The names of the hyperparameters of the inner optimizer."""
        return self._inner.hyperparameters

    @property
    def state(self) -> Any:
        """The state of the inner optimizer."""
        return self._inner.state

    @state.setter
    def state(self, state: Any) -> None:
        self._inner.state = state

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

    @property
    def variables(self) -> dict[str, jax.Array]:
        """All that a checkpoint needs, by the inner optimizer's names."""
        return self._inner.variables

    add_hyperparameter = _forwarded(Optimizer.add_hyperparameter)
    make_transformation = _forwarded(Optimizer.make_transformation)
    build = _forwarded(Optimizer.build)
    init = _forwarded(Optimizer.init)
    update = _forwarded(Optimizer.update)
    kept_alongside = _forwarded(Optimizer.kept_alongside)
    reduce_dtype = _forwarded(Optimizer.reduce_dtype)
    gradient_dtypes = _forwarded(Optimizer.gradient_dtypes)
    load_variables = _forwarded(Optimizer.load_variables)
    get_weights = _forwarded(Optimizer.get_weights)
    set_weights = _forwarded(Optimizer.set_weights)

    def value_and_grad(
        self, loss_fn: Callable[..., Any], *, has_aux: bool = False, aggregate: Aggregate | None = None
    ) -> Callable[..., Any]:
        """As the inner optimizer's."""
        differentiate = self._inner.value_and_grad(loss_fn, has_aux=has_aux, aggregate=aggregate)

        def value_and_grad(state: Any, values: Any, *args: Any) -> Any:
            return differentiate(self.inner_state(state), values, *args)

        return value_and_grad

    def all_reduce(self, gradients: Mapping[str, Any], state: Any, axis_name: str) -> dict[str, Any]:
        """As the inner optimizer's."""
        return self._inner.all_reduce(gradients, self.inner_state(state), axis_name)

    def get_config(self) -> dict[str, Any]:
        """The arguments that make a wrapper like this one, the inner optimizer as `serialize_optimizer` has it."""
        return {"optimizer": serialize_optimizer(self._inner)}

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self:
        """A fresh wrapper, around a fresh optimizer, of the arguments that `get_config` gave."""
        entries = known_keys(f"{cls.__name__}'s config", config, tuple(config), ("optimizer",))
        return cls(**{**entries, "optimizer": deserialize_optimizer(entries["optimizer"])})

    def __getattr__(self, name: str) -> Any:
        if "_inner" not in vars(self):
            raise AttributeError(f"{type(self).__name__}.__init__ must begin with super().__init__(optimizer)")
        return getattr(self._inner, name) if name in self.hyperparameters else self._refuse(name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith("_") or isinstance(getattr(type(self), name, None), property):
            object.__setattr__(self, name, value)
        elif name in self.hyperparameters:
            setattr(self._inner, name, value)
        else:
            self._refuse(name)

    def _refuse(self, name: str) -> NoReturn:
        kind, inner = type(self).__name__, type(self._inner).__name__
        where = f"set and read it on inner_optimizer, as in optimizer.inner_optimizer.{name}"
        has = "has it" if hasattr(self._inner, name) else "has none either"
        raise AttributeError(
            f"{kind} has no attribute {shown(name)}, and forwards only hyperparameters "
            f"({', '.join(self.hyperparameters)}); its inner optimizer, {inner}, {has}: {where}"
        )

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
