"""Lookup of losses by name, and losses made of plain functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax

from supremum.errors import OperandError
from supremum.formats import as_format
from supremum.nn import snake_case
from supremum.training.data import as_inputs, as_weights
from supremum.training.lookup import looked_up
from supremum.training.losses import cross_entropy, regression
from supremum.training.losses.loss import Loss
from supremum.training.losses.sample_weights import reduced, weighted
from supremum.training.losses.zero_weights import IN_Y_PRED, IN_Y_TRUE, finite_where_left_out

LOSSES: tuple[Callable[[], Loss], ...] = (
    cross_entropy.BinaryCrossentropy,
    cross_entropy.CategoricalCrossentropy,
    regression.CosineSimilarity,
    regression.Huber,
    regression.KLDivergence,
    regression.MeanAbsoluteError,
    regression.MeanSquaredError,
    regression.Poisson,
    cross_entropy.SparseCategoricalCrossentropy,
)
"""The losses that can be looked up by class name, in CamelCase and snake_case."""

_SHORT: dict[str, Callable[[], Loss]] = {
    "bce": cross_entropy.BinaryCrossentropy,
    "kld": regression.KLDivergence,
    "mae": regression.MeanAbsoluteError,
    "mse": regression.MeanSquaredError,
}
_NAMED = {
    **{snake_case(made.__name__): made for made in LOSSES},
    **{made.__name__: made for made in LOSSES},
    **_SHORT,
    **{short.upper(): made for short, made in _SHORT.items()},
}


class FunctionLoss:
    """A loss made of a plain function of labels and outputs, which gets both uncast.

    Args:
        function: returns a loss, or losses to average, in a floating dtype, which is also the dtype of the result.
        name: the name of the loss; None for the function's name.
    """

    def __init__(self, function: Callable[[Any, Any], Any], name: str | None = None) -> None:
        self.function = function
        self.name = getattr(function, "__name__", "loss") if name is None else name

    def __call__(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> jax.Array:
        """Compute the loss, a scalar.

        Args:
            y_true: labels.
            y_pred: outputs.
            sample_weight: a weight for each loss that the function returns; None for 1. Where it is 0, the function
                gets finite numbers instead of inf and NaN, because gradients must be 0 there too.

        Raises:
            OperandError: if the function does not return an array of real floating numbers; a `TypeError`.
            ArgumentError: if the weights do not fit, such as weights of examples when the function returns one number.
        """
        weights = None if sample_weight is None else as_inputs(sample_weight, None, "sample_weight")
        if isinstance(weights, jax.Array):
            y_true = finite_where_left_out(y_true, weights, IN_Y_TRUE)
            y_pred = finite_where_left_out(y_pred, weights, IN_Y_PRED)
        losses = as_inputs(self.function(y_true, y_pred), None, f"the result of {self.name}")
        if not isinstance(losses, jax.Array) or as_format(losses.dtype).category != "float":
            shown = type(losses).__name__ if not isinstance(losses, jax.Array) else as_format(losses.dtype)
            raise OperandError(f"{self.name} must give real floating-point losses, got {shown}")
        if sample_weight is not None:
            losses = weighted(losses, as_weights(self.name, sample_weight, losses.dtype))
        return reduced(losses, "mean") if losses.ndim else losses

    def __repr__(self) -> str:
        return f"FunctionLoss({self.name})"


def as_loss(loss: Any) -> Any:
    """Return a loss from a `Loss`, a name or a function.

    Args:
        loss: a `Loss`, which is returned as it is; a name, such as `"mse"`, `"mean_squared_error"` or
            `"MeanSquaredError"`, for the loss with its default settings; or a function of labels and outputs, which
            gets both uncast.

    Returns:
        A function of labels, outputs and optional sample weights; it has a `name`.

    Raises:
        UnknownNameError: if no loss has this name; the message suggests similar names; a `ValueError`.
        OperandError: if `loss` is anything else; a `TypeError`.

    >>> as_loss("mse")
    MeanSquaredError(reduction='mean', dtype='float32')
    >>> as_loss("mean_sqared_error")
    Traceback (most recent call last):
        ...
    supremum.errors.UnknownNameError: unknown loss 'mean_sqared_error': did you mean 'mean_squared_error' or \
'MeanSquaredError' or 'mean_absolute_error'?
    """
    return looked_up("loss", loss, (Loss, FunctionLoss), _NAMED, FunctionLoss)
