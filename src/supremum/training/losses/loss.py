"""The base class of losses: the dtype, the casts, the sample weights and the reduction.

Keras RFC 293, mixed precision, "Loss dtype": a loss has one dtype, not a policy, and ignores the global policy.

In examples of weight 0, inf and NaN are replaced: they would make every gradient NaN. A gradient of 0 is not enough:
the backward pass multiplies it by computed values, and 0 times NaN is NaN.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Final, TypedDict

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from supremum.errors import ArgumentError, OperandError, SupremumError, UnknownDtypeError, UnknownNameError, shown
from supremum.formats import DType, Kind, as_format
from supremum.mixed_precision import Policy, PolicyMap, is_array, is_inexact
from supremum.nn import Configurable, origin_of, record, snake_case
from supremum.nn.functional import check_held
from supremum.training.data import Batch, as_inputs, as_weights
from supremum.typing import ArrayLike, DTypeLike, PyTree

replicas: Any = jax.make_user_context(default_value=None)
"""A context in which losses are reduced as losses of one replica's part of a batch.

Its value is the mesh axis of the replicas, or a tuple of several. The mean of the reduced losses over the replicas is
the loss of the whole batch. It is part of JAX's cache key: a loss that a user jitted is traced again inside a replica.
"""

REDUCTIONS: Final[dict[str | None, str | None]] = {
    "mean": "mean",
    "sum_over_batch_size": "mean",
    "sum": "sum",
    "none": None,
    None: None,
}
"""The reductions by name; Keras' names are included."""

# All are between 0 and 1, and the first two differ: logarithms and roots of them and of their difference have a slope.
_IN_Y_TRUE, IN_Y_PRED, _IN_X = 0.5, 0.25, 0.5


class LossOptions(TypedDict, total=False):
    """The keyword arguments of every loss; see `Loss`."""

    reduction: str | None
    dtype: DTypeLike
    name: str | None


class Loss(Configurable, ABC):
    """A number that training minimizes.

    Subclasses compute the loss of each example in `call`. Floating inputs, also from Python and NumPy, are cast to
    `dtype` first; integers, such as labels, and bools never are. For models in float64 use `dtype="float64"`.

    Args:
        reduction: `"mean"` over all losses that `call` returns (also by Keras' name, `"sum_over_batch_size"`), `"sum"`,
            or None to return them unreduced.
        dtype: one real floating dtype, which is also the dtype of the result. It cannot be a policy: a loss has no
            variables to store in another dtype, and sums over a batch overflow in float16, in which a policy may
            compute.
        name: the name of the loss; None to derive it from the class, as in `"mean_squared_error"`.

    Raises:
        ArgumentError: if `dtype` is a policy, or not real floating; a `ValueError`.
        UnknownNameError: if the reduction or dtype is unknown; a `ValueError`.

    >>> import jax.numpy as jnp
    >>> class MeanFourthPower(Loss):
    ...     def call(self, y_true, y_pred):
    ...         return ((y_pred - y_true) ** 4).mean(-1)
    >>> loss = MeanFourthPower()(jnp.zeros((2, 3)), jnp.full((2, 3), 20.0, "float16"))
    >>> loss.dtype, float(loss)
    (dtype('float32'), 160000.0)
    """

    def __init__(
        self, *, reduction: str | None = "mean", dtype: DTypeLike = "float32", name: str | None = None
    ) -> None:
        self._dtype = _one_floating_dtype(dtype)
        self._reduction = as_reduction(reduction)
        self.name: str = snake_case(type(self).__name__) if name is None else name

    @property
    def dtype(self) -> DType:
        """The dtype that the loss is computed in; it never changes."""
        return self._dtype

    @property
    def reduction(self) -> str | None:
        """`"mean"`, `"sum"` or None."""
        return self._reduction

    @abstractmethod
    def call(self, y_true: PyTree, y_pred: PyTree) -> jax.Array:
        """Compute the loss of each example, shape (batch, ...).

        Args:
            y_true: labels, in the loss's dtype if they are floating.
            y_pred: outputs, in the loss's dtype if they are floating.
        """

    def counts(self, y_true: PyTree) -> jax.Array | None:  # noqa: ARG002 (for overrides)
        """Return which losses count in a mean, one bool for each result of `call`, in order; None if all do."""
        return None

    def reduced_axes(self, ndim: int) -> tuple[int, ...]:  # noqa: ARG002
        """Return the axes of an input that `call` reduces and that weights therefore lack; none by default.

        Args:
            ndim: the number of axes of the input.
        """
        return ()

    def __call__(self, y_true: PyTree, y_pred: PyTree, sample_weight: ArrayLike | None = None) -> jax.Array:
        """Compute the loss, in the loss's dtype.

        Args:
            y_true: labels.
            y_pred: outputs.
            sample_weight: a weight for each example, shape (batch,) or (batch, 1), or for each loss that `call`
                returns; None for 1. A loss with weight 0 counts as 0 even if it is not finite, and so do its
                gradients. As in Keras, a mean divides by the number of losses, not by the sum of the weights.

        Returns:
            A scalar; with `reduction=None`, the losses that `call` returns.

        Raises:
            ArgumentError: if the shapes do not match; a `ValueError`.
            OperandError: if the inputs are not numbers; a `TypeError`.
            RuntimeDtypeError: if the dtype is float64 while JAX's x64 is off.
        """
        check_held(self._dtype, f"{self.name} is computed in {self._dtype}", "give dtype='float32'")
        y_true, y_pred = as_inputs(y_true, self._dtype, "y_true"), as_inputs(y_pred, self._dtype, "y_pred")
        weights = None if sample_weight is None else as_weights(self.name, sample_weight, self._dtype)
        if weights is not None:
            y_true, y_pred = finite_pair(y_true, y_pred, weights, self.reduced_axes)
        losses = jnp.asarray(self.call(y_true, y_pred), self._dtype)
        if weights is not None:
            losses = apply_weights(losses, weights)
        counts = None if self._reduction is None else self.counts(y_true)
        return reduce_losses(losses, self._reduction, None if counts is None else counts.reshape(losses.shape))

    def get_config(self) -> dict[str, Any]:
        """Return the arguments of the constructor by name, as data for JSON; `from_config` makes a loss of them."""
        config = super().get_config()
        return config | {"dtype": str(as_format(self._dtype))} if "dtype" in config else config

    def __repr__(self) -> str:
        return f"{type(self).__name__}(reduction={self._reduction!r}, dtype='{as_format(self._dtype)}')"


def _one_floating_dtype(dtype: DTypeLike) -> DType:
    try:
        row = as_format(dtype)
    except UnknownDtypeError:
        if not _names_a_policy(dtype):
            raise
        raise ArgumentError(
            f"the dtype of a loss must be a dtype, got the policy {shown(dtype)}: a loss has no variables to store "
            "in another dtype, and sums over a batch overflow in float16; use dtype='float32'"
        ) from None
    if row.kind is not Kind.FLOAT:
        raise ArgumentError(f"the dtype of a loss must be real floating, got {row}: give dtype='float32'")
    return row.dtype


def _names_a_policy(dtype: object) -> bool:
    if isinstance(dtype, (Policy, PolicyMap)):
        return True
    try:
        return isinstance(dtype, str) and bool(Policy(dtype))
    except (SupremumError, OperandError):
        return False


def as_reduction(reduction: object) -> str | None:
    """Look up a reduction by name: `"mean"`, `"sum"` or None."""
    if not isinstance(reduction, (str, type(None))) or reduction not in REDUCTIONS:
        raise UnknownNameError("reduction", reduction, [name for name in REDUCTIONS if name is not None])
    return REDUCTIONS[reduction]


def spread_weights(weights: jax.Array, shape: tuple[int, ...]) -> jax.Array:
    """Append axes to weights until they have as many axes as the values.

    Args:
        weights: shape (), or the first axes of `shape`; an axis of length 1 broadcasts, and is dropped at the end if
            there is one axis too many.
        shape: the shape of the values.

    Returns:
        An array that broadcasts to `shape`.

    Raises:
        ArgumentError: if the weights do not fit the values; a `ValueError`.

    >>> (
    ...     spread_weights(jnp.ones(4), (4, 7)).shape,
    ...     spread_weights(jnp.ones((4, 1)), (4,)).shape,
    ... )
    ((4, 1), (4,))
    """
    weights = _without_last_one(weights, len(shape))
    axes = weights.shape
    if len(axes) > len(shape) or any(a not in (1, b) for a, b in zip(axes, shape, strict=False)):
        raise ArgumentError(
            f"sample_weight has shape {axes}, but the values that it weights have shape {shape}; give one of shape "
            f"{shape[:1]}"
        )
    return weights.reshape(*axes, *(1 for _ in shape[len(axes) :]))


def _without_last_one(weights: Any, ndim: int) -> Any:
    """Drop the last axis if it has length 1 and there is one axis more than `ndim`."""
    return weights[..., 0] if weights.ndim == ndim + 1 and weights.shape[-1] == 1 else weights


def apply_weights(values: jax.Array, weights: jax.Array) -> jax.Array:
    """Multiply values by weights; a value with weight 0 becomes 0 even if it is not finite.

    Args:
        values: shape (batch, ...).
        weights: as for `spread_weights`.
    """
    spread = spread_weights(weights, values.shape).astype(values.dtype)
    return jnp.where(spread == 0, jnp.zeros_like(values), values * spread)


def reduce_losses(values: jax.Array, reduction: str | None, counts: jax.Array | None = None) -> jax.Array:
    """Reduce losses to their mean or sum, in their dtype.

    In a replica, the mean of the results over the replicas is the mean or sum of all values.

    Args:
        values: weighted losses of examples.
        reduction: `"mean"`, `"sum"` or None, which returns the values as they are.
        counts: bools in the shape of the values, which values count in a mean; None for all. Values that do not count
            must be 0. A mean of no values is 0.
    """
    if reduction is None:
        return values
    axis = replicas.value
    if reduction == "sum":
        total = jnp.sum(values)
        return total if axis is None else total * jax.lax.axis_size(axis)
    if values.size == 0:
        return jnp.zeros((), values.dtype)
    if counts is None:
        return jnp.mean(values)
    if axis is None:
        return jnp.mean(values, where=counts | ~jnp.any(counts))
    number = jax.lax.pmean(jnp.sum(counts, dtype=values.dtype), axis)
    return jnp.sum(values, where=counts) / jnp.where(number == 0, jnp.ones_like(number), number)


def replace_nonfinite(
    tree: PyTree, weights: ArrayLike, value: float, axes: Callable[[int], tuple[int, ...]] | None = None
) -> Any:
    """Replace inf and NaN by a number where the weight is 0; everything else stays as it is.

    Probabilities are still known to come from a softmax or sigmoid; their logits are replaced in the same way.

    Args:
        tree: arrays; integers and leaves that are not arrays are not changed.
        weights: bools or real numbers for the first axes of the arrays, not counting `axes`; arrays that they do not
            fit are not changed.
        value: the number.
        axes: returns the axes that the weights lack, for the number of axes of an array; None if they lack none.

    >>> replace_nonfinite(
    ...     jnp.asarray([[jnp.nan, 3.0], [jnp.nan, 3.0]]), jnp.asarray([1.0, 0.0]), 0.5
    ... ).tolist()
    [[nan, 3.0], [0.5, 3.0]]
    """

    def replace(leaf: Any) -> Any:
        if not is_inexact(leaf) or leaf.ndim == 0:
            return leaf
        # A plain loss function gets NumPy arrays as NumPy arrays, in their dtype.
        xp: Any = np if isinstance(leaf, np.ndarray) and not isinstance(weights, Tracer) else jnp
        factor = xp.asarray(weights)
        for axis in sorted(axes(leaf.ndim)) if axes else ():
            factor = xp.expand_dims(factor, axis) if axis <= factor.ndim else factor
        factor = _without_last_one(factor, leaf.ndim)
        if factor.ndim > leaf.ndim or any(a not in (1, b) for a, b in zip(factor.shape, leaf.shape, strict=False)):
            return leaf
        factor = factor.reshape(*factor.shape, *(1 for _ in leaf.shape[factor.ndim :]))
        finite = xp.where((factor != 0) | xp.isfinite(leaf), leaf, xp.asarray(value, leaf.dtype))
        origin = origin_of(leaf)
        return finite if origin is None else record(finite, origin._replace(logits=replace(origin.logits)))

    return jax.tree.map(replace, tree)


def finite_pair(
    y_true: PyTree, y_pred: PyTree, weights: jax.Array, axes: Callable[[int], tuple[int, ...]] | None = None
) -> tuple[Any, Any]:
    """Replace inf and NaN where the weight is 0 in labels and outputs, as `replace_nonfinite` does."""
    y_true = replace_nonfinite(y_true, weights, _IN_Y_TRUE, axes)
    return y_true, replace_nonfinite(y_pred, weights, IN_Y_PRED, axes)


def replace_left_out(batch: Batch) -> Batch:
    """Replace inf and NaN by a number in the inputs of examples whose weights are all 0.

    Args:
        batch: the batch.

    >>> x, weights = jnp.asarray([[1.0], [jnp.inf]]), jnp.asarray([1.0, 0.0])
    >>> replace_left_out(Batch(x, None, weights)).x.tolist()
    [[1.0], [0.5]]
    """
    weights = jax.tree.leaves(batch.sample_weight)
    # With several outputs, labels without weights of their own count.
    are_all = is_array(batch.sample_weight) or len(weights) == len(jax.tree.leaves(batch.y))
    if not weights or not are_all or not all(is_array(each) and each.ndim for each in weights):
        return batch
    nonzero = [jnp.any(jnp.asarray(each) != 0, axis=tuple(range(1, np.ndim(each)))) for each in weights]
    counts = jnp.any(jnp.stack(nonzero), 0)
    return batch._replace(x=replace_nonfinite(batch.x, counts, _IN_X))
