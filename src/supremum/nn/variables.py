"""Variables: JAX arrays that layers own, with a path, and the wrapper that casts on reading."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.core import Tracer

from supremum.arrays import ELEMENTWISE_OPERATIONS, accepted_value, asarray, check_fits, refused_in_place, stored, wrap
from supremum.arrays import Variable as EagerVariable
from supremum.errors import ArgumentError, OperandError, SupremumError, shown
from supremum.formats import DType, Kind, as_format
from supremum.mixed_precision import PolicyWarning
from supremum.nn.functional import check_held
from supremum.nn.initializers import Initializer
from supremum.nn.regularizers import RegularizerFunction
from supremum.nn.scopes import current_autocast_dtype, current_overlay, is_declaring
from supremum.nn.sharded_values import Shard
from supremum.nn.variable_operators import VariableOperators
from supremum.rules import Storing
from supremum.user_frame import warn_user


class UninitializedError(SupremumError, RuntimeError):
    """A variable is read, or a layer called, before there are weights."""


class Variable(VariableOperators):
    """A JAX array with a name, a shape and a dtype that never change.

    In an operation it is the array it holds, from both sides: `x @ variable`, `variable[0]`, `variable < 0`. JAX's own
    functions take `variable.value`. Inside a `functional_call` it is read from, and written to, that call's values.

    Args:
        value: the first value: anything that `supremum.asarray` takes.
        name: its name within its layer.
        trainable: whether optimizers change it; running statistics are not.
        dtype: its dtype; None for that of the value.

    >>> variable = Variable([1.0, 2.0], "scale")
    >>> variable.assign_add(1)
    Variable('scale', shape=(2,), dtype=float32)
    >>> 2 * variable
    Array([4., 6.], dtype=float32)
    """

    def __init__(self, value: Any, name: str = "variable", *, trainable: bool = True, dtype: Any = None) -> None:
        array = asarray(value, dtype, library="jax", copy=True)
        stored = array.astype(array.dtype).unwrap() if array.weak_type else array.unwrap()
        self._hold(jax.ShapeDtypeStruct(stored.shape, stored.dtype), name, trainable)
        self._stored: jax.Array | None = stored

    def _hold(self, spec: jax.ShapeDtypeStruct, name: str, trainable: bool) -> None:
        self._spec = spec
        self._initializer: Initializer | None = None
        self._stored = None
        self._lender: Callable[[], jax.Array | None] | None = None
        self.name = name
        self.trainable = trainable
        self.is_of_layer = False
        self.regularizer: RegularizerFunction | None = None

    @classmethod
    def declared(
        cls, shape: tuple[int, ...], dtype: DType, initializer: Initializer, name: str, *, trainable: bool
    ) -> Any:
        """A variable whose value `initialize` makes.

        Args:
            shape: its shape.
            dtype: its dtype.
            initializer: a function of key, shape and dtype.
            name: its name within its layer.
            trainable: whether optimizers change it.
        """
        check_held(
            dtype, f"variable {shown(name)} is to be stored in {dtype}", "give the layer another policy or param_dtype"
        )
        variable = cls.__new__(cls)
        variable._hold(jax.ShapeDtypeStruct(tuple(shape), dtype), name, trainable)
        variable._initializer = initializer
        return variable

    def __getstate__(self) -> dict[str, Any]:
        # A copy has a value of its own, whoever this one is lent to; what made it is no longer needed then.
        state = dict(vars(self))
        if self.is_initialized:
            state |= {"_stored": self.read_stored(), "_lender": None, "_initializer": None}
        return state

    @property
    def is_initialized(self) -> bool:
        """Whether it has a value of its own."""
        # The first once more: another thread may take it back between the two.
        return self._stored is not None or self._lender is not None or self._stored is not None

    def initialize(self, key: jax.Array) -> None:
        """Make the first value, unless there is one.

        Args:
            key: a key of `jax.random`.

        Raises:
            ArgumentError: if the initializer gives a different shape or dtype.
        """
        if self.is_initialized or self._initializer is None:
            return
        with jax.ensure_compile_time_eval():  # a real array also while the model is being traced
            try:
                made = self._initializer(key, self.shape, self._spec.dtype)
                # Told by name JAX keeps 64 bits also where they are not its default.
                is_made = getattr(made, "dtype", None) == self._spec.dtype
                value = jnp.asarray(made, self._spec.dtype if is_made else None)
            except (ValueError, TypeError) as error:
                raise ArgumentError(
                    f"the initializer of variable {shown(self.name)} cannot make {self._spec.dtype}{list(self.shape)}: "
                    f"{error}"
                ) from error
        if (value.shape, value.dtype) != (self.shape, self._spec.dtype):
            raise ArgumentError(
                f"the initializer of variable {shown(self.name)} gave {value.dtype}{list(value.shape)}, and "
                f"{self._spec.dtype}{list(self.shape)} was asked for"
            )
        self._stored = value

    def forget(self) -> None:
        """Have no value, as before `initialize`."""
        self._stored = None

    @property
    def dtype(self) -> DType:
        """The dtype that reading it gives here."""
        return self._spec.dtype

    @property
    def true_dtype(self) -> DType:
        """The dtype it is stored in."""
        return self._spec.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """Its shape."""
        return self._spec.shape

    @property
    def ndim(self) -> int:
        """How many axes it has."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """How many elements it has."""
        return self._spec.size

    @property
    def nbytes(self) -> int:
        """Bytes of storage."""
        return self.size * self._spec.dtype.itemsize

    @property
    def value(self) -> jax.Array:
        """The value as computations see it."""
        return self.read_stored()

    def read_value(self) -> jax.Array:
        """The value as computations see it, as `value`."""
        return self.value

    def sparse_read(self, indices: Any) -> jax.Array:
        """Some rows of it, which alone are cast.

        Args:
            indices: along the first axis, integers of any shape. Where there is no such row, below 0 as well, floats
                are NaN and integers the smallest there is, as `mode="fill"` of `jax.numpy.ndarray.at` has it.
        """
        return self._taken(jnp.asarray(indices))

    def gather_nd(self, indices: Any) -> jax.Array:
        """Some elements or slices of it, which alone are cast.

        Args:
            indices: integers of shape (..., n), each an index into the first n axes; as for `sparse_read`.
        """
        return self._taken(tuple(jnp.moveaxis(jnp.asarray(indices), -1, 0)))

    def _taken(self, place: Any) -> jax.Array:
        found = self.read_stored().at[place].get(mode="fill", wrap_negative_indices=False)
        return self._read_as_seen(found)

    def _read_as_seen(self, array: jax.Array) -> jax.Array:
        return array

    def read_stored(self) -> jax.Array:
        """The value in the dtype it is stored in, whatever surrounds the call.

        Raises:
            UninitializedError: if there is none yet.
        """
        held = self._held()
        return held.whole(self.true_dtype) if isinstance(held, Shard) else held

    def _held(self) -> jax.Array | Shard:
        values = current_overlay()
        if values is not None and self in values:
            return values[self]
        # Another thread may lend the variable, or take it back, between any two lines.
        lender, stored = self._lender, self._stored
        if stored is None and lender is not None:
            stored = lender()
        if stored is None:
            stored = self._stored
        if stored is not None:
            return stored
        if is_declaring():
            return jnp.zeros(self.shape, self._spec.dtype)
        raise UninitializedError(
            f"variable {shown(self.name)} has no value yet: nn.initialize(model, *inputs, seed=0) makes it"
        )

    def assign(self, value: Any) -> Any:
        """Replace the value; what is assigned is brought to the stored dtype by the rules in force, or refused.

        Args:
            value: an array of JAX or NumPy, a Python number, or a variable, whose stored value is taken; its shape has
                to be the variable's own.

        Returns:
            The variable.

        Raises:
            InPlaceError: if the rules refuse or lead to a dtype that differs from the stored one: nothing is truncated.
            ArgumentError: for a different shape, or a value that is traced outside of `functional_call`.
        """
        given = value.read_stored() if isinstance(value, Variable) else value
        if not isinstance(given, jax.Array) or given.dtype != self.true_dtype or given.weak_type:
            # Whether there are dimensions matters to some rules, how many elements along them to none.
            like = wrap(jnp.zeros((1,) * self.ndim, self.true_dtype))
            given = accepted_value(like, given, Storing.KEPT)
        if given.shape != self.shape:
            raise ArgumentError(
                f"cannot assign shape {given.shape} to variable {shown(self.name)} of shape {self.shape}"
            )
        return self._put(given)

    def assign_add(self, value: Any) -> Any:
        """Add to the stored value, as `assign` takes one."""
        return self._assign("add", value)

    def assign_sub(self, value: Any) -> Any:
        """Subtract from the stored value, as `assign` takes one."""
        return self._assign("subtract", value)

    def assign_mul(self, value: Any) -> Any:
        """Multiply the stored value, as `assign` takes one."""
        return self._assign("multiply", value)

    def _assign(self, name: str, value: Any) -> Any:
        given = value.read_stored() if isinstance(value, Variable) else value
        held = wrap(self.read_stored())
        with refused_in_place(held, name, (held, given), Storing.KEPT):
            result = ELEMENTWISE_OPERATIONS[name].apply((held, given))
        if result is NotImplemented:
            raise OperandError(f"a {type(value).__name__} cannot be assigned: give an array or a Python number")
        raw = stored(held, result, name, (held, given), Storing.KEPT)
        check_fits(held, name, given)
        return self._put(raw)

    __iadd__, __isub__, __imul__ = assign_add, assign_sub, assign_mul

    def _put(self, array: jax.Array) -> Any:
        values = current_overlay()
        if values is not None:
            values[self] = array
        elif isinstance(array, Tracer):
            raise ArgumentError(
                f"a value that JAX is tracing cannot be assigned to variable {shown(self.name)}, where it would "
                "outlive the "
                "trace: nn.functional_call(model, variables, x) takes values and gives them back"
            )
        else:
            if self._lender is not None:
                self._lender()
            self._stored = array
        return self

    def lend(self, lender: Callable[[], jax.Array | None]) -> None:
        """Hold no value for a time; `Donation` does this.

        Args:
            lender: gives the value, and gives it back by `take_back`, as soon as somebody asks for it.
        """
        self._lender = lender
        self._stored = None

    def take_back(self, array: jax.Array) -> None:
        """Hold a value again.

        Args:
            array: the value, in shape and dtype of the variable.
        """
        self._stored = array
        self._lender = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, shape={self.shape}, dtype={as_format(self.true_dtype)})"


class AutoCastVariable(Variable):
    """A variable that is read in the compute dtype inside a layer's `call`, and as it is stored elsewhere.

    `dtype`, `value`, `read_value`, `sparse_read`, `gather_nd`, operators, indexing, comparisons and conversions cast
    there; `true_dtype` is what it is stored in, and assigning never casts to anything else. Layers make them, in
    `add_weight`. In a checkpoint it is what any other variable is.

    spec/keras-rfc-293-mixed-precision.md, "AutoCastVariable API".
    """

    @property
    def dtype(self) -> DType:
        """The dtype that reading it gives here."""
        return current_autocast_dtype() or self.true_dtype

    @property
    def value(self) -> jax.Array:
        """The value, in the compute dtype of the layer whose `call` is running."""
        held = self._held()
        return held.whole(self.dtype) if isinstance(held, Shard) else self._read_as_seen(held)

    def _read_as_seen(self, array: jax.Array) -> jax.Array:
        dtype = self.dtype
        return array if array.dtype == dtype else array.astype(dtype)


def has_value(variable: Variable) -> bool:
    """Whether a variable can be read here: it has a value of its own, or one is laid over it."""
    values = current_overlay()
    return variable.is_initialized or (values is not None and variable in values)


def warn_if_not_cast(layer: str, name: str, variable: Variable | EagerVariable, compute_dtype: DType | None) -> None:
    """Warn of a floating variable in an attribute of a layer that casts others.

    Args:
        layer: what the layer is called.
        name: the attribute.
        variable: the variable, which `add_weight` did not make.
        compute_dtype: the dtype that the layer casts variables to; None if it casts none.
    """
    row = as_format(variable.dtype)
    if compute_dtype is not None and row.kind is Kind.FLOAT:
        warn_user(
            f"{layer}.{name} is a variable of {row} that is not cast to {as_format(compute_dtype)} in `call`, which "
            f"will then compute in {row}: make it with self.add_weight({shown(name)}, {tuple(variable.shape)}), or "
            f"cast it there, as in self.{name}.value.astype(self.compute_dtype)",
            PolicyWarning,
        )
