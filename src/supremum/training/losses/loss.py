"""The base class of losses: the dtype, the casts, the sample weights and the reduction.

Keras RFC 293, mixed precision, "Loss dtype": a loss has one dtype, not a policy, and ignores the global policy.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, TypedDict

import jax
import jax.numpy as jnp

from supremum.errors import ArgumentError, OperandError, SupremumError, UnknownDtypeError, shown
from supremum.formats import DType, Kind, as_format
from supremum.keyword_signature import KeywordSignature
from supremum.mixed_precision import Policy, PolicyMap
from supremum.nn import snake_case
from supremum.nn.functional import check_held
from supremum.training.data import as_inputs, as_weights
from supremum.training.losses.sample_weights import as_reduction, reduced, weighted
from supremum.training.losses.zero_weights import IN_Y_PRED, IN_Y_TRUE, finite_where_left_out


class LossOptions(TypedDict, total=False):
    """The keyword arguments of every loss; see `Loss`."""

    reduction: str | None
    dtype: Any
    name: str | None


class Loss(ABC):
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
    >>> class LogCosh(Loss):
    ...     def call(self, y_true, y_pred):
    ...         return jnp.log(jnp.cosh(y_pred - y_true)).mean(-1)
    >>> loss = LogCosh()(jnp.zeros((2, 3)), jnp.ones((2, 3), "float16"))
    >>> loss.dtype, round(float(loss), 4)
    (dtype('float32'), 0.4338)
    """

    __signature__ = KeywordSignature()

    def __init__(self, *, reduction: str | None = "mean", dtype: Any = "float32", name: str | None = None) -> None:
        self._dtype = _one_floating_dtype(dtype)
        self._reduction = as_reduction(reduction)
        self.name = snake_case(type(self).__name__) if name is None else name

    @property
    def dtype(self) -> DType:
        """The dtype that the loss is computed in; it never changes."""
        return self._dtype

    @property
    def reduction(self) -> str | None:
        """`"mean"`, `"sum"` or None."""
        return self._reduction

    @abstractmethod
    def call(self, y_true: Any, y_pred: Any) -> jax.Array:
        """Compute the loss of each example, shape (batch, ...).

        Args:
            y_true: labels, in the loss's dtype if they are floating.
            y_pred: outputs, in the loss's dtype if they are floating.
        """

    def counts(self, y_true: Any) -> jax.Array | None:
        """Return which losses count in a mean, as bools in the shape of the result of `call`; None if all do."""
        del y_true
        return None

    def reduced_axes(self, ndim: int) -> tuple[int, ...]:
        """Return the axes of an input that `call` reduces and that weights therefore lack; none by default.

        Args:
            ndim: the number of axes of the input.
        """
        del ndim
        return ()

    def _finite_where_left_out(self, tree: Any, weights: jax.Array, value: float) -> Any:
        def replaced(leaf: jax.Array) -> Any:
            return finite_where_left_out(leaf, weights, value, self.reduced_axes(leaf.ndim) if leaf.ndim else ())

        return jax.tree.map(replaced, tree)

    def __call__(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> jax.Array:
        """Compute the loss, in the loss's dtype.

        Args:
            y_true: labels.
            y_pred: outputs.
            sample_weight: a weight for each example, shape (batch,), or for each loss that `call` returns; None for 1.
                A loss with weight 0 counts as 0 even if it is not finite, and so do its gradients. As in Keras, a mean
                divides by the number of losses, not by the sum of the weights.

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
            y_true = self._finite_where_left_out(y_true, weights, IN_Y_TRUE)
            y_pred = self._finite_where_left_out(y_pred, weights, IN_Y_PRED)
        losses = jnp.asarray(self.call(y_true, y_pred), self._dtype)
        if weights is not None:
            losses = weighted(losses, weights)
        counts = None if self._reduction is None else self.counts(y_true)
        return reduced(losses, self._reduction, counts)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(reduction={self._reduction!r}, dtype='{as_format(self._dtype)}')"


def _one_floating_dtype(dtype: Any) -> DType:
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


def _names_a_policy(dtype: Any) -> bool:
    if isinstance(dtype, (Policy, PolicyMap)):
        return True
    try:
        return isinstance(dtype, str) and bool(Policy(dtype))
    except (SupremumError, OperandError):
        return False
