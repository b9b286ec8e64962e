"""The base of losses: one dtype, the casts, the weights of examples and the reduction.

Keras RFC 293, mixed precision, "Loss dtype": a loss has one dtype, not a policy, and knows no global policy.
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
    """What every loss takes by name; `Loss` says what it means."""

    reduction: str | None
    dtype: Any
    name: str | None


class Loss(ABC):
    """A number that training makes small.

    Subclasses compute the loss of each example in `call`. Floating inputs, those of Python and NumPy too, are cast to
    `dtype` before it; integers, such as labels, and bools never are. Models in float64 want `dtype="float64"`.

    Args:
        reduction: `"mean"` over all losses that `call` gives (also by Keras' name, `"sum_over_batch_size"`), `"sum"`,
            or None to leave them as they are.
        dtype: one real floating dtype, which the result has too. Not a policy: there are no variables to store in
            another dtype, and sums over a batch overflow in the float16 that a policy may compute in.
        name: what it is called; None for its class, as in `"mean_squared_error"`.

    Raises:
        ArgumentError: for a policy, or a dtype that is not real floating; a `ValueError`.
        UnknownNameError: for an unknown reduction or dtype; a `ValueError`.

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
        """The dtype it computes in, which never changes."""
        return self._dtype

    @property
    def reduction(self) -> str | None:
        """`"mean"`, `"sum"` or None."""
        return self._reduction

    @abstractmethod
    def call(self, y_true: Any, y_pred: Any) -> jax.Array:
        """The loss of each example, shape (batch, ...).

        Args:
            y_true: what should have come out; where it is floating, in the loss's dtype.
            y_pred: what did, likewise.
        """

    def counts(self, y_true: Any) -> jax.Array | None:
        """Which of the losses that `call` gives a mean divides by, as bools of their shape; None for all of them."""
        del y_true
        return None

    def reduced_axes(self, ndim: int) -> tuple[int, ...]:
        """Which axes of an input `call` takes away, where others follow that weights may have; none by default.

        Args:
            ndim: how many axes the input has.
        """
        del ndim
        return ()

    def _finite_where_left_out(self, tree: Any, weights: jax.Array, value: float) -> Any:
        def replaced(leaf: jax.Array) -> Any:
            return finite_where_left_out(leaf, weights, value, self.reduced_axes(leaf.ndim) if leaf.ndim else ())

        return jax.tree.map(replaced, tree)

    def __call__(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> jax.Array:
        """The loss, in the loss's dtype.

        Args:
            y_true: what should have come out.
            y_pred: what did.
            sample_weight: a weight for each example, shape (batch,), or for each of the losses that `call` gives; None
                for 1. What has the weight 0 counts as 0, also where it is not finite, and so do its gradients. As in
                Keras a mean is over the number of losses, not over the sum of weights.

        Returns:
            A scalar; with `reduction=None` the losses that `call` gives.

        Raises:
            ArgumentError: for shapes that do not fit; a `ValueError`.
            OperandError: for inputs that are not numbers; a `TypeError`.
            RuntimeDtypeError: for float64 while JAX's x64 is off.
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
