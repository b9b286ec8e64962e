"""The inputs of losses and metrics: arrays of any library and Python numbers, checked and converted."""

from __future__ import annotations

from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np

from supremum.argument_checks import pytree
from supremum.arrays import Array, narrowed
from supremum.errors import ArgumentError, OperandError
from supremum.formats import DType, as_format
from supremum.mixed_precision import is_array, is_floating, keep_64_bits
from supremum.nn import Variable, cast_inputs
from supremum.rules import held_dtype
from supremum.typing import ArrayLike, PyTree


def as_inputs(tree: PyTree, dtype: DType | None, what: str) -> Any:
    """Convert inputs to JAX arrays and cast real floating ones to a dtype; other dtypes are not cast.

    A cast array is still known to come from a softmax or sigmoid: `supremum.nn.logits_registry`.

    Args:
        tree: an array, a Python number, lists of numbers, or a container of arrays, which keeps its structure.
        dtype: the dtype; None for the dtypes that JAX gives them.
        what: the name of the input in error messages.

    Raises:
        OperandError: if a leaf does not hold numbers.
        NarrowingError: if NumPy integers do not fit the integers that JAX holds.

    >>> (
    ...     as_inputs([0.5, 1.0], jnp.dtype("float16"), "y_pred").dtype,
    ...     as_inputs(np.arange(2), None, "y_true").dtype,
    ... )
    (dtype('float16'), dtype('int32'))
    """
    pytree(what, tree)
    of_numbers = isinstance(tree, (list, tuple)) and _is_of_numbers(tree)
    if of_numbers:
        tree = _from_python(tree, what)

    def as_input(leaf: Any) -> jax.Array:
        array = _as_array(leaf, what)
        if dtype is not None:
            return cast_inputs(array, dtype)
        # Python numbers have JAX's default dtypes, arrays their own.
        return jnp.asarray(array if of_numbers or isinstance(leaf, float) else keep_64_bits(array))

    return jax.tree.map(as_input, tree, is_leaf=_is_leaf)


def _as_array(value: Any, what: str) -> Any:
    """Convert a value to a JAX array; floats of NumPy stay NumPy arrays, still to be cast to a dtype of JAX.

    Args:
        value: an array of any library, or a Python number.
        what: its name in error messages.

    Raises:
        OperandError: if a leaf does not hold numbers.
        NarrowingError: if NumPy integers do not fit the integers that JAX holds.
    """
    if isinstance(value, Variable):
        return value.value
    array = value.unwrap() if isinstance(value, Array) else value
    refuse_masked(what, array)
    if isinstance(array, jax.Array):
        if jnp.issubdtype(array.dtype, jax.dtypes.prng_key):
            raise OperandError(f"{what} must be made of numbers, got keys of jax.random")
        return array
    if isinstance(array, (bool, int, float, complex)):
        return _from_python(array, what)
    if not hasattr(array, "__array__"):
        raise OperandError(f"{what} must be made of numbers, got {type(value).__name__}; use an array")
    array = np.asarray(array)
    if not is_array(array):
        raise OperandError(f"{what} must be made of numbers, got {array.dtype}; use an array of numbers")
    return array if is_floating(array) else _as_held(array)


def _as_held(array: np.ndarray) -> jax.Array:
    dtype = held_dtype(array.dtype)
    return jnp.asarray(narrowed(dtype, array), dtype)


def refuse_masked(what: str, value: object) -> None:
    """Raise if a value is a NumPy masked array, or a list that contains one: its mask would be lost.

    Args:
        what: the name of the value in error messages.
        value: anything.

    Raises:
        OperandError: if the value is masked; a `TypeError`.

    >>> refuse_masked("x", np.ma.masked_invalid([1.0, np.nan]))
    Traceback (most recent call last):
        ...
    supremum.errors.OperandError: x is a masked array, whose mask would be lost: give x.filled(0), and \
sample_weight=~np.ma.getmaskarray(x) if masked values must not count
    """
    if isinstance(value, (list, tuple)):
        for each in cast("list[Any]", value):
            refuse_masked(what, each)
    elif isinstance(value, np.ma.MaskedArray):
        raise OperandError(
            f"{what} is a masked array, whose mask would be lost: give {what}.filled(0), and "
            f"sample_weight=~np.ma.getmaskarray({what}) if masked values must not count"
        )


def _is_leaf(value: object) -> bool:
    return value is None or isinstance(value, (Array, Variable))


def _is_of_numbers(value: object) -> bool:
    """Whether a value is a Python number, or nested lists of Python numbers."""
    if isinstance(value, (list, tuple)):
        return all(map(_is_of_numbers, cast("list[Any]", value)))
    return isinstance(value, (bool, int, float, complex))


def _from_python(values: Any, what: str) -> Any:
    """Convert Python numbers to an array: floats to float64, integers to the widest dtype that JAX holds."""
    try:
        array = np.asarray(values)
    except ValueError:
        raise OperandError(f"{what} must not be lists of unequal lengths; use an array") from None
    if is_floating(array):
        return array
    if array.dtype == object:
        raise OperandError(f"{what} has an integer that is too large for every format; use floats")
    return _as_held(array)


def one_array(name: str, what: str, value: object) -> jax.Array:
    """Check that a loss or metric got one real array.

    Args:
        name: the name of the loss or metric.
        what: the name of the argument, such as `"y_true"` or `"y_pred"`.
        value: the argument.

    Raises:
        OperandError: if it is several arrays, or complex.
    """
    if not isinstance(value, jax.Array):
        raise OperandError(
            f"{name} takes one array as {what}, got a {type(value).__name__} of arrays: add up a loss for each, or "
            "write a function of y_true and y_pred"
        )
    row = as_format(value.dtype)
    if row.category == "complex":
        raise OperandError(f"{name} takes real numbers, but {what} is {row}: give {what}.real or abs({what})")
    return value


def array_pair(name: str, y_true: PyTree, y_pred: PyTree) -> tuple[jax.Array, jax.Array]:
    """Check labels and outputs with `one_array`."""
    return one_array(name, "y_true", y_true), one_array(name, "y_pred", y_pred)


def same_shaped_pair(name: str, y_true: PyTree, y_pred: PyTree) -> tuple[jax.Array, jax.Array]:
    """Check labels and outputs with `one_array`, and that their shapes are the same.

    Broadcasting them would give a wrong number.

    Args:
        name: the name of the loss or metric.
        y_true: the labels.
        y_pred: the outputs.

    Raises:
        OperandError: as for `one_array`.
        ArgumentError: if the shapes differ; a `ValueError`.

    >>> same_shaped_pair("mse", jnp.ones(3), jnp.ones((3, 3)))
    Traceback (most recent call last):
        ...
    supremum.errors.ArgumentError: mse needs y_true and y_pred of the same shape, got (3,) and (3, 3): give both the \
shape of y_pred, or one loss for each output
    """
    y_true, y_pred = array_pair(name, y_true, y_pred)
    true, pred = y_true.shape, y_pred.shape
    if true == pred:
        return y_true, y_pred
    why, fix = "", "give both the shape of y_pred, or one loss for each output"
    if (*true, 1) == pred or true == (*pred, 1):
        why = ", which would broadcast to every example against every other"
        fix = "give y_true[..., None]" if (*true, 1) == pred else "give y_true[..., 0]"
    elif true == pred[:-1] and as_format(y_true.dtype).category == "integer":
        fix = f"for labels that are class numbers give jax.nn.one_hot(y_true, {pred[-1]}), or the sparse kind"
    raise ArgumentError(f"{name} needs y_true and y_pred of the same shape, got {true} and {pred}{why}: {fix}")


def aligned_pair(name: str, y_true: PyTree, y_pred: PyTree) -> tuple[jax.Array, jax.Array]:
    """Check labels and outputs with `same_shaped_pair`; a last axis of length 1 that one of them lacks is added.

    Args:
        name: the name of the loss or metric.
        y_true: the labels, which get the shape of the outputs.
        y_pred: the outputs.

    >>> [array.shape for array in aligned_pair("mse", jnp.ones(3), jnp.ones((3, 1)))]
    [(3, 1), (3, 1)]
    """
    y_true, y_pred = array_pair(name, y_true, y_pred)
    if (*y_true.shape, 1) == y_pred.shape or y_true.shape == (*y_pred.shape, 1):
        y_true = y_true.reshape(y_pred.shape)
    return same_shaped_pair(name, y_true, y_pred)


def as_weights(name: str, weights: ArrayLike, dtype: DType) -> jax.Array:
    """Convert sample weights to a dtype, also from integers and bools.

    Args:
        name: the name of the loss or metric.
        weights: an array, or Python numbers.
        dtype: the dtype.

    Raises:
        OperandError: if the weights are not one array of real numbers.
    """
    return one_array(name, "sample_weight", as_inputs(weights, dtype, "sample_weight")).astype(dtype)


def check_has_axes(name: str, y_pred: jax.Array) -> None:
    """Raise if the outputs are a single number, which has no axis to sum over.

    Args:
        name: the name of the loss or metric.
        y_pred: the outputs.

    Raises:
        ArgumentError: if they have no axis; a `ValueError`.
    """
    if y_pred.ndim < 1:
        raise ArgumentError(f"{name} takes arrays of shape (..., n), got numbers: give y_true[None] and y_pred[None]")


def without_label_axis(y_true: jax.Array, y_pred: jax.Array) -> jax.Array:
    """Remove the last axis of labels of shape (..., 1), next to outputs of shape (..., several classes)."""
    return y_true[..., 0] if y_true.shape == (*y_pred.shape[:-1], 1) != y_pred.shape else y_true


def class_numbers(name: str, y_true: jax.Array, y_pred: jax.Array) -> jax.Array:
    """Check that labels are class numbers, one for each row of outputs, and return them in the shape (...).

    Args:
        name: the name of the loss or metric.
        y_true: labels, shape (...) or (..., 1).
        y_pred: outputs, shape (..., classes).

    Raises:
        OperandError: if the labels are not integers.
        ArgumentError: if the shapes do not match.
    """
    row = as_format(y_true.dtype)
    if row.category != "integer":
        raise OperandError(f"{name} takes class numbers as y_true, got {row}: give y_true.astype('int32')")
    y_true = without_label_axis(y_true, y_pred)
    true, pred = y_true.shape, y_pred.shape
    if pred and true == pred[:-1]:
        return y_true
    fix = "give y_true one axis less than y_pred"
    if true == pred:
        fix = "for one-hot labels take the kind that is not sparse, or give y_true.argmax(-1)"
    raise ArgumentError(
        f"{name} needs y_true of shape (...) and y_pred of shape (..., classes), got {true} and {pred}: {fix}"
    )


def at_labels(values: jax.Array, labels: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Take the value at the label of each row, and find out which labels are numbers of classes.

    Args:
        values: shape (..., classes).
        labels: integers, shape (...).

    Returns:
        The values, of which those at other labels have no meaning; and bools; both have the shape of the labels.
    """
    is_class = (labels >= 0) & (labels < values.shape[-1])
    place = jnp.where(is_class, labels, jnp.zeros_like(labels))
    return jnp.take_along_axis(values, place[..., None], -1)[..., 0], is_class
