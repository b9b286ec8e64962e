"""Variables: JAX arrays that layers own, and the subclass that casts on reading."""

# pyright: reportPrivateUsage=false
# The functions below the classes are what layers and the training loop do with variables. Users should not do it, so
# they are not methods.

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Self

import jax
import jax.numpy as jnp
from jax.core import Tracer

from supremum.argument_checks import flag
from supremum.arrays import ELEMENTWISE_OPERATIONS, asarray, check_fits, kept_value, refused_in_place, stored, wrap
from supremum.errors import ArgumentError, OperandError, SupremumError, shown
from supremum.formats import DType, as_format
from supremum.nn.constraints import ConstraintFunction, as_constraint
from supremum.nn.functional import check_held
from supremum.nn.functional.dtype_promotion import as_array
from supremum.nn.initializers import Initializer
from supremum.nn.regularizers import RegularizerFunction
from supremum.nn.scopes import current_autocast_dtype, current_overlay, is_declaring
from supremum.nn.variable_operators import VariableOperators
from supremum.rules import Storing
from supremum.typing import ArrayLike, DTypeLike


class Shard(NamedTuple):
    """One device's piece of a variable's value, which replaces the whole value in a `functional_call`.

    Reading the variable gathers the pieces. Each piece is cast first, so the transfer has only the bytes of the dtype
    that is read.

    Args:
        local: the piece.
        shape: the shape of the whole value.
        gather: a function of the piece and a dtype that returns the whole value; it runs in `jax.shard_map`.
    """

    local: jax.Array
    shape: tuple[int, ...]
    gather: Callable[[jax.Array, DType], jax.Array]

    @property
    def dtype(self) -> DType:
        """The stored dtype."""
        return self.local.dtype

    def whole(self, dtype: DType) -> jax.Array:
        """Gather the whole value.

        Args:
            dtype: the dtype that the pieces are cast to first.
        """
        return self.gather(self.local, dtype)


class UninitializedError(SupremumError, RuntimeError):
    """A variable is read, or a layer is called, before the weights have values.

    >>> from supremum import nn
    >>> try:
    ...     nn.Embedding(10, 4).attend(jax.numpy.ones(4))
    ... except UninitializedError as error:
    ...     print(error)
    Embedding(dtype='float32') has no table yet; call the layer on indices before attend(x)
    """


class Variable(VariableOperators):
    """A JAX array with a name, a shape and a dtype that never change, except by `nn.cast_variables`.

    Operators, on both sides, use its array: `x @ variable`, `variable[0]`, `variable < 0`. So do functions of
    `jax.numpy` and `jax.nn`, with JAX's promotion; functions of `jax.lax` take `variable.value`. Inside a
    `functional_call` the variable reads and writes the values of that call.

    Args:
        value: the first value, anything that `supremum.asarray` takes.
        name: its name within its layer; None for the name of the attribute that holds it there.
        trainable: whether optimizers change it; they do not change running statistics.
        dtype: its dtype; None for the dtype of the value.
        constraint: a function, or a name such as `"non_neg"`, that optimizers apply to its value after each step.

    Attributes:
        name: its name; `"variable"` if it was given none and is not in a layer.
        has_name: whether it was given a name, or took that of an attribute.
        trainable: as given.
        is_of_layer: whether `add_weight` made it.
        follows_policy: whether `add_weight` stores it in the variable dtype of the layer, and was given no other dtype.
        regularizer: a penalty on its value; None for none.
        constraint: the function that optimizers apply to its value after each step; None for none.

    >>> variable = Variable([1.0, 2.0], "scale")
    >>> variable.assign_add(1)
    Variable('scale', shape=(2,), dtype=float32)
    >>> 2 * variable, jnp.sum(variable)
    (Array([4., 6.], dtype=float32), Array(5., dtype=float32))
    """

    def __init__(
        self,
        value: ArrayLike,
        name: str | None = None,
        *,
        trainable: bool = True,
        dtype: DTypeLike | None = None,
        constraint: ConstraintFunction | str | None = None,
    ) -> None:
        array = asarray(value, dtype, library="jax", copy=True)
        stored = array.astype(array.dtype).unwrap() if array.weak_type else array.unwrap()
        self._hold(jax.ShapeDtypeStruct(stored.shape, stored.dtype), name, trainable)
        self._stored: jax.Array | None = stored
        self.constraint = as_constraint(constraint)

    def _hold(self, spec: jax.ShapeDtypeStruct, name: str | None, trainable: bool) -> None:
        self._spec = spec
        self._initializer: Initializer | None = None
        self._stored = None
        self._lender: Callable[[], jax.Array | None] | None = None
        self.has_name: bool = name is not None
        self.name: str = checked_name(name) or "variable"
        self.trainable: bool = flag("trainable", trainable)
        self.is_of_layer = False
        self.follows_policy = False
        self.regularizer: RegularizerFunction | None = None
        self.constraint: ConstraintFunction | None = None

    def __getstate__(self) -> dict[str, Any]:
        # A copy has its own value, even if this one is lent, and no longer needs the initializer.
        state = dict(vars(self))
        if self.is_initialized:
            state |= {"_stored": self.read_stored(), "_lender": None, "_initializer": None}
        return state

    @property
    def is_initialized(self) -> bool:
        """Whether it has its own value."""
        # The first check is repeated, since another thread may take the value back between the two.
        return self._stored is not None or self._lender is not None or self._stored is not None

    @property
    def dtype(self) -> DType:
        """The dtype that reading it returns here."""
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
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return self._spec.size

    @property
    def nbytes(self) -> int:
        """The bytes of storage."""
        return self.size * self._spec.dtype.itemsize

    @property
    def value(self) -> jax.Array:
        """The value in `dtype`, as computations see it."""
        current = self._held()
        return current.whole(self.dtype) if isinstance(current, Shard) else self._as_read(current)

    def read_value(self) -> jax.Array:
        """The same as `value`."""
        return self.value

    def sparse_read(self, indices: ArrayLike) -> jax.Array:
        """Read some rows, and cast only those.

        Args:
            indices: indices along the first axis, integers of any shape. An index out of range, below 0 too, gives NaN
                for floats and the smallest number for integers, as `mode="fill"` of `jax.numpy.ndarray.at` does.
        """
        return self._read_at(self._indices(indices))

    def gather_nd(self, indices: ArrayLike) -> jax.Array:
        """Read some elements or slices, and cast only those.

        Args:
            indices: integers of shape (..., n), each an index into the first n axes; out of range as in `sparse_read`.
        """
        return self._read_at(tuple(jnp.moveaxis(jnp.atleast_1d(self._indices(indices)), -1, 0)))

    def _indices(self, indices: ArrayLike) -> jax.Array:
        array = as_array("indices", indices)
        if self.ndim == 0 or as_format(array.dtype).category != "integer":
            raise OperandError(
                f"indices of variable {shown(self.name)} of shape {self.shape} must be integers, got {shown(indices)}"
            )
        return array

    def _read_at(self, place: Any) -> jax.Array:
        return self._as_read(self.read_stored().at[place].get(mode="fill", wrap_negative_indices=False))

    def _as_read(self, array: jax.Array) -> jax.Array:
        dtype = self.dtype
        return array if array.dtype == dtype else array.astype(dtype)

    def read_stored(self) -> jax.Array:
        """The value in its stored dtype, whatever surrounds the call.

        Raises:
            UninitializedError: if there is no value yet.
        """
        current = self._held()
        return current.whole(self.true_dtype) if isinstance(current, Shard) else current

    def _held(self) -> jax.Array | Shard:
        values = current_overlay()
        if values is not None:
            try:
                return values[self]
            except KeyError:  # it is not among the values that are replaced
                pass
        # Another thread may lend the variable, or take it back, between any two lines.
        lender, stored = self._lender, self._stored
        if stored is None and lender is not None:
            stored = lender()
        if stored is None:
            stored = self._stored
        if stored is not None:
            return stored
        if is_declaring():
            return jax.lax.empty(self.shape, self._spec.dtype)
        raise UninitializedError(
            f"variable {shown(self.name)} has no value yet; call nn.initialize(model, *inputs, seed=0)"
        )

    def assign(self, value: ArrayLike) -> Self:
        """Replace the value; the rules in force convert the new value to the stored dtype or refuse it.

        Args:
            value: an array of JAX or NumPy, a Python number, or a variable, of which the stored value is used; it must
                have the shape of this variable.

        Returns:
            The variable.

        Raises:
            InPlaceError: if the rules refuse or lead to a dtype that differs from the stored one: nothing is truncated.
            ArgumentError: for a different shape, or a value that is traced outside of `functional_call`.
        """
        return self._put(array_to_assign(self, value))

    def assign_add(self, value: ArrayLike) -> Self:
        """Add a value, of the kinds that `assign` takes, to the stored value."""
        return self._assign("add", value)

    def assign_sub(self, value: ArrayLike) -> Self:
        """Subtract a value, of the kinds that `assign` takes, from the stored value."""
        return self._assign("subtract", value)

    def assign_mul(self, value: ArrayLike) -> Self:
        """Multiply the stored value by a value of the kinds that `assign` takes."""
        return self._assign("multiply", value)

    def _assign(self, name: str, value: Any) -> Self:
        new_value = value.read_stored() if isinstance(value, Variable) else value
        current = wrap(self.read_stored())
        with refused_in_place(current, name, (current, new_value), Storing.KEPT):
            result = ELEMENTWISE_OPERATIONS[name].operator(current, new_value)
        if result is NotImplemented:
            raise OperandError(f"the assigned value must be an array or a Python number, got {type(value).__name__}")
        raw = stored(current, result, name, (current, new_value), Storing.KEPT)
        check_fits(current, name, new_value)
        return self._put(raw)

    def __iadd__(self, value: Any) -> Self:
        return self.assign_add(value)

    def __isub__(self, value: Any) -> Self:
        return self.assign_sub(value)

    def __imul__(self, value: Any) -> Self:
        return self.assign_mul(value)

    def _put(self, array: jax.Array) -> Self:
        values = current_overlay()
        if values is not None:
            values[self] = array
        elif isinstance(array, Tracer):
            raise ArgumentError(
                f"variable {shown(self.name)} must get a concrete value, got a tracer, which would outlive its trace; "
                "use nn.functional_call(model, variables, x), which takes values and returns new ones"
            )
        else:
            if self._lender is not None:
                self._lender()
            self._stored = array
        return self

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, shape={self.shape}, dtype={as_format(self.true_dtype)})"


class AutoCastVariable(Variable):
    """A variable that is read in the compute dtype inside a layer's `call`, and as it is stored elsewhere.

    Inside `call`, reading it casts: `value`, `read_value`, `sparse_read`, `gather_nd`, operators, indexing,
    comparisons, conversions and functions of `jax.numpy`, and `dtype` is the compute dtype. `true_dtype` is the stored
    dtype, and assigning always keeps it. `Layer.add_weight` makes these variables. Checkpoints store them like any
    other variable.

    Keras RFC 293, mixed precision, "AutoCastVariable API".

    >>> import jax.numpy as jnp
    >>> from supremum import nn
    >>> class Scaled(nn.Layer):
    ...     def build(self, input_shape):
    ...         self.scale = self.add_weight("scale", (), jax.nn.initializers.ones)
    ...
    ...     def call(self, x):
    ...         self.scale.assign_add(1e-4)  # never rounded
    ...         return x * self.scale
    >>> layer = Scaled(dtype="mixed_float16")
    >>> layer(jnp.ones(1)).dtype, layer.scale.dtype, f"{float(layer.scale.value):.4f}"
    (dtype('float16'), dtype('float32'), '1.0001')
    """

    @property
    def dtype(self) -> DType:
        """The dtype that reading it returns here."""
        return current_autocast_dtype() or self.true_dtype


def declare_variable(
    kind: type[Variable],
    shape: tuple[int, ...],
    dtype: DType,
    initializer: Initializer,
    name: str | None,
    *,
    trainable: bool,
) -> Variable:
    """Make a variable without a value; `initialize_variable` makes the value.

    Args:
        kind: its class.
        shape: its shape.
        dtype: its dtype.
        initializer: a function of key, shape and dtype.
        name: its name within its layer; None for that of the attribute that holds it.
        trainable: whether optimizers change it.
    """
    check_held(dtype, f"variable {name!r} is stored in {dtype}", "give the layer a different policy or param_dtype")
    variable = kind.__new__(kind)
    variable._hold(jax.ShapeDtypeStruct(tuple(shape), dtype), name, trainable)
    variable._initializer = initializer
    return variable


def initialize_variable(variable: Variable, key: jax.Array) -> None:
    """Make the first value of a variable, unless there is one.

    Args:
        variable: the variable.
        key: a key of `jax.random`.

    Raises:
        ArgumentError: if the initializer returns a different shape or dtype.
    """
    if variable.is_initialized or variable._initializer is None:
        return
    shape, dtype = variable.shape, variable._spec.dtype
    what, wanted = f"the initializer of variable {variable.name!r}", f"{dtype}{list(shape)}"
    try:
        value = variable._initializer(key, shape, dtype)
        # JAX keeps 64 bits that are not its default only if they are given by name.
        array = jnp.asarray(value, dtype if getattr(value, "dtype", None) == dtype else None)
    except (ValueError, TypeError) as error:
        raise ArgumentError(f"{what} failed for {wanted}: {error}") from error
    if (array.shape, array.dtype) != (shape, dtype):
        raise ArgumentError(f"{what} must return {wanted}, got {array.dtype}{list(array.shape)}")
    variable._stored = array


def forget_value(variable: Variable) -> None:
    """Drop the value of a variable, as before `initialize_variable`."""
    variable._stored = None


def array_to_assign(variable: Variable, value: ArrayLike) -> jax.Array:
    """The array that `variable.assign(value)` stores; arguments and errors are the same."""
    new_value = value.read_stored() if isinstance(value, Variable) else value
    if not isinstance(new_value, jax.Array) or new_value.dtype != variable.true_dtype or new_value.weak_type:
        # Some rules depend on the number of dimensions, none on their lengths.
        like = wrap(jnp.zeros((1,) * variable.ndim, variable.true_dtype))
        new_value = kept_value(like, new_value)
    if new_value.shape != variable.shape:
        raise ArgumentError(
            f"the new value of variable {shown(variable.name)} must have shape {variable.shape}, got {new_value.shape}"
        )
    return new_value


def replace_value(variable: Variable, value: jax.Array) -> None:
    """Replace the value and the stored dtype of a variable, as `nn.cast_variables` does.

    Args:
        variable: the variable.
        value: an array of the same shape.
    """
    variable._spec = jax.ShapeDtypeStruct(value.shape, value.dtype)
    variable._put(value)


def lend_value(variable: Variable, lender: Callable[[], jax.Array | None]) -> None:
    """Lend the value of a variable, as `Donation` does; the variable then holds none.

    Args:
        variable: the variable.
        lender: returns the value when the variable is read, and calls `take_back` for all lent variables.
    """
    variable._lender = lender
    variable._stored = None


def take_back(variable: Variable, array: jax.Array, lender: Callable[[], jax.Array | None]) -> None:
    """Give a lent value back to a variable, unless it has another lender, or another value was assigned to it.

    Args:
        variable: the variable.
        array: the value, in the shape and dtype of the variable.
        lender: as `lend_value` got it.
    """
    if variable._lender is lender:
        if variable._stored is None:
            variable._stored = array
        variable._lender = None


def checked_name(name: str | None) -> str | None:
    """Return the name of a variable, or None if it was given none.

    Raises:
        OperandError: for anything but a string; a `TypeError`.
    """
    if name is None or isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        return name
    raise OperandError(f"the name of a variable must be a str, got {shown(name)}; for a shape, use shape={shown(name)}")


def has_value(variable: Variable) -> bool:
    """Whether a variable can be read here, because it has a value or a `functional_call` gives it one."""
    values = current_overlay()
    return variable.is_initialized or (values is not None and variable in values)
