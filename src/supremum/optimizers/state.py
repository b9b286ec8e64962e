"""The state of an optimizer: its arrays and scalars, and the state that replaces it while a step is traced."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

import jax
from jax.core import Tracer

from supremum.formats import DType, as_format
from supremum.nn import Variable, VariableOperators, copy_tree
from supremum.typing import ArrayLike

S = TypeVar("S")
T = TypeVar("T")

_states: ContextVar[Mapping[object, object]] = ContextVar("states", default=MappingProxyType({}))


def current_state(owner: object, own: S) -> S:
    """Return the state that `use_state` set for an object, else `own`."""
    return _states.get().get(owner, own)  # pyright: ignore[reportReturnType] (what `use_state` put there)


def copy_state(tree: T) -> T:
    """Copy the arrays of a state, because the next step reuses the memory of the state itself.

    Arrays that a failed step has deleted are returned as they are; their shapes and dtypes are still known.
    """
    for leaf in jax.tree.leaves(tree):
        if isinstance(leaf, Tracer) or (isinstance(leaf, jax.Array) and leaf.is_deleted()):
            return tree
    with jax.ensure_compile_time_eval():  # concrete arrays, even while JAX is tracing
        return copy_tree(tree)


@contextmanager
def use_state(owner: object, state: object) -> Generator[None]:
    """Replace an object's state by `state` within a block."""
    token = _states.set({**_states.get(), owner: state})
    try:
        yield
    finally:
        _states.reset(token)


class OptimizerState(NamedTuple):
    """The arrays that an optimizer changes, all strong.

    Args:
        iterations: the number of applied steps, an integer scalar.
        hyperparameters: the numbers by name, float32 scalars; without schedules.
        slots: the state of the optax transformation; None before the optimizer has variables.

    >>> from supremum.optimizers import SGD
    >>> optimizer = SGD(0.5)
    >>> state = optimizer.init({"w": jax.numpy.ones(1)})
    >>> state.iterations, state.hyperparameters
    (Array(0, dtype=int32), {'learning_rate': Array(0.5, dtype=float32), 'momentum': Array(0., dtype=float32)})
    """

    iterations: jax.Array
    hyperparameters: dict[str, jax.Array]
    slots: Any


class BuiltState(NamedTuple):
    """All that an optimizer keeps, in one attribute: an exception between two assignments cannot leave half of it.

    Args:
        arrays: the state of the optimizer.
        key_of: the keys of the variables that have slots.
        trace_key: the `trace_key` that the slots were made for.
    """

    arrays: OptimizerState
    key_of: dict[Variable, str]
    trace_key: Any


class Update(NamedTuple):
    """The result of a step.

    Args:
        values: the new values of the variables, by key.
        state: the new state of the optimizer.
        alongside: the new values that belong to the step, such as running statistics; the old values in a skipped step.
        skipped: bool scalar, whether the step was skipped.

    >>> from supremum.optimizers import SGD
    >>> optimizer, values = SGD(0.5), {"w": jax.numpy.ones(1)}
    >>> made = optimizer.update(
    ...     {"w": jax.numpy.ones(1)}, optimizer.init(values), values
    ... )
    >>> made.values, made.state.iterations, made.skipped
    ({'w': Array([0.5], dtype=float32)}, Array(1, dtype=int32), Array(False, dtype=bool))
    """

    values: dict[str, jax.Array]
    state: Any
    alongside: Any
    skipped: jax.Array


class Scalar(VariableOperators):
    """A scalar in the state of another object, which is read and assigned there.

    In operations it acts as its array; `float(scalar)` reads it.

    Args:
        name: the name.
        read: a function that returns the array.
        write: a function that checks and sets a new value.

    >>> import jax.numpy as jnp
    >>> rate = Scalar("rate", lambda: jnp.float32(0.5), lambda value: None)
    >>> rate, float(rate) * 2
    (Scalar('rate', 0.5, dtype=float32), 1.0)
    """

    def __init__(self, name: str, read: Callable[[], jax.Array], write: Callable[[Any], None]) -> None:
        self.name = name
        self._read = read
        self._write = write

    @property
    def value(self) -> jax.Array:
        """The current array."""
        return copy_state(self._read())

    def read_value(self) -> jax.Array:
        """Return the current array, as `value` does."""
        return self.value

    @property
    def dtype(self) -> DType:
        """The dtype, which never changes."""
        return self.value.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of a scalar."""
        return ()

    def assign(self, value: ArrayLike) -> Scalar:
        """Assign a number.

        Args:
            value: a real number, or a 0-d array or scalar of one.

        Returns:
            The scalar.

        Raises:
            TypeError: for anything that is not a number, and for a traced number.
            ArgumentError: for a number out of bounds.
        """
        self._write(value)
        return self

    def __repr__(self) -> str:
        value = self.value
        shown = value if isinstance(value, Tracer) else value.item()
        return f"{type(self).__name__}({self.name!r}, {shown}, dtype={as_format(value.dtype)})"


def value_of(value: object) -> Any:
    """Return the array of a scalar or variable, and anything else as it is."""
    return value.value if isinstance(value, VariableOperators) else value
