"""Optimizers that wrap an optimizer.

Keras RFC 293, mixed precision, "OptimizerWrapper" and "LossScaleOptimizer `__getattribute__` and `__setattr__`
delegation".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import wraps
from typing import Any, NoReturn, Self, TypeVar, cast

import jax

from supremum.argument_checks import known_keys
from supremum.errors import OperandError
from supremum.nn import Variable
from supremum.optimizers.eager_step import Stepper
from supremum.optimizers.hyperparameters import Hyperparameter
from supremum.optimizers.optimizer import Optimizer
from supremum.optimizers.serialization import OptimizerLike, as_optimizer, deserialize_optimizer, serialize_optimizer
from supremum.typing import PyTree

M = TypeVar("M", bound=Callable[..., Any])


def _forward(method: M) -> M:
    """Forward a method of `Optimizer` to the inner optimizer."""

    @wraps(method)
    def forward(self: OptimizerWrapper, *args: Any, **kwargs: Any) -> Any:
        return getattr(self.inner_optimizer, method.__name__)(*args, **kwargs)

    return cast("M", forward)


class OptimizerWrapper(Optimizer):
    """An optimizer that forwards everything to an inner optimizer; subclasses override some of it.

    The hyperparameters of the inner optimizer can be read, set and listed on the wrapper. Its other attributes are only
    on `wrapper.inner_optimizer`, because a method of the inner optimizer would bypass the wrapper: reading or setting
    such an attribute raises an `AttributeError`.

    `minimize`, `get_gradients`, `apply_gradients` and `Model.fit` call `value_and_grad` and `update`: a subclass that
    overrides these two changes all of them.

    Args:
        optimizer: an optimizer, its name, such as `"sgd"`, or an optax transformation.

    Raises:
        UnknownNameError: for an unknown name; a `ValueError`.
        OperandError: for anything else; a `TypeError`.

    >>> from supremum.optimizers import SGD
    >>> wrapper = OptimizerWrapper(SGD(0.5))
    >>> wrapper.learning_rate = 0.25
    >>> wrapper
    OptimizerWrapper(SGD(learning_rate=0.25, momentum=0.0))
    """

    __slots__ = ("_inner",)

    def __init__(self, optimizer: OptimizerLike) -> None:
        # Optimizer.__init__ is not called: its attributes belong to the inner optimizer.
        if optimizer is None:  # pyright: ignore[reportUnnecessaryComparison]
            raise OperandError(f"{type(self).__name__} needs an optimizer, got None: pass SGD(0.01), for example")
        self._inner = as_optimizer(optimizer)
        self._stepper = Stepper(self)

    @property
    def inner_optimizer(self) -> Optimizer:
        """The inner optimizer, with all of its attributes."""
        return self._inner

    @property
    def trace_key(self) -> Any:
        """A hashable key that differs whenever something that is compiled into a step differs; subclasses add to it."""
        return (type(self), self._inner.trace_key)

    @property
    def hyperparameters(self) -> dict[str, Hyperparameter | None]:
        """The hyperparameters of the inner optimizer, by name."""
        return self._inner.hyperparameters

    @property
    def settings(self) -> NoReturn:
        """The settings of an inner optimizer are only on `inner_optimizer`: reading them here raises."""
        raise AttributeError(
            f"{type(self).__name__} has only the hyperparameters of its inner optimizer: use "
            "optimizer.inner_optimizer for its other attributes"
        )

    @property
    def state(self) -> Any:
        """The state of the inner optimizer."""
        return self._inner.state

    @state.setter
    def state(self, state: PyTree) -> None:
        self._inner.state = state

    @property
    def iterations(self) -> jax.Array:
        """The number of applied steps."""
        return self._inner.iterations

    @property
    def skips(self) -> bool:
        """Whether steps may be skipped."""
        return self._inner.skips

    @property
    def built_for(self) -> dict[str, Variable]:
        """The variables that have slots, by key."""
        return self._inner.built_for

    @property
    def variables(self) -> dict[str, jax.Array]:
        """The arrays of a checkpoint, by the inner optimizer's names."""
        return self._inner.variables

    set_hyperparameter = _forward(Optimizer.set_hyperparameter)
    add_hyperparameter = _forward(Optimizer.add_hyperparameter)
    make_transformation = _forward(Optimizer.make_transformation)
    build = _forward(Optimizer.build)
    init = _forward(Optimizer.init)
    value_and_grad = _forward(Optimizer.value_and_grad)
    all_reduce = _forward(Optimizer.all_reduce)
    update = _forward(Optimizer.update)
    finalize_variable_values = _forward(Optimizer.finalize_variable_values)
    reduce_dtype = _forward(Optimizer.reduce_dtype)
    gradient_dtypes = _forward(Optimizer.gradient_dtypes)
    load_variables = _forward(Optimizer.load_variables)
    get_weights = _forward(Optimizer.get_weights)
    set_weights = _forward(Optimizer.set_weights)

    def get_config(self) -> dict[str, Any]:
        """Return the constructor arguments, with the inner optimizer as `serialize_optimizer` returns it."""
        return {"optimizer": serialize_optimizer(self._inner)}

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self:
        """Make a new wrapper around a new optimizer from the result of `get_config`."""
        entries = known_keys(f"{cls.__name__}'s config", config, tuple(config), ("optimizer",))
        return cls(**{**entries, "optimizer": deserialize_optimizer(entries["optimizer"])})

    def __repr__(self) -> str:
        own = {name: value for name, value in self.get_config().items() if name != "optimizer"}
        return f"{type(self).__name__}({', '.join([repr(self._inner), *(f'{k}={v!r}' for k, v in own.items())])})"


def optimizers_within(optimizer: Optimizer) -> Iterator[Optimizer]:
    """Iterate over an optimizer and the optimizers that it wraps, from the outside in.

    >>> from supremum.optimizers import SGD, LossScaleOptimizer
    >>> [type(each).__name__ for each in optimizers_within(LossScaleOptimizer(SGD()))]
    ['LossScaleOptimizer', 'SGD']
    """
    yield optimizer
    if isinstance(optimizer, OptimizerWrapper):
        yield from optimizers_within(optimizer.inner_optimizer)
