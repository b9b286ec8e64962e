"""Losses by name, as functions, and as they are."""

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
"""The losses that have names: those of their classes, in both spellings."""

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
    """A plain function of labels and outputs as a loss; it is given both as they are, uncast.

    Args:
        function: gives a loss, or losses of which the mean is taken, in a floating dtype, which the result has too.
        name: what it is called; None for the function's name.
    """

    def __init__(self, function: Callable[[Any, Any], Any], name: str | None = None) -> None:
        self.function = function
        self.name = getattr(function, "__name__", "loss") if name is None else name

    def __call__(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> jax.Array:
        """The loss, a scalar.

        Args:
            y_true: what should have come out.
            y_pred: what did.
            sample_weight: a weight for each of the losses that the function gives; None for 1. Where it is 0, the
                function gets other numbers in place of inf and NaN, so that gradients are 0 too.

        Raises:
            OperandError: if the function does not give an array of real floating numbers; a `TypeError`.
            ArgumentError: for weights that do not fit, as of examples where the function gives one number.
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
    """A loss as it is, the loss of a name, or one made of a function.

    Args:
        loss: a `Loss`; a name, such as `"mse"`, `"mean_squared_error"` or `"MeanSquaredError"`, for the loss with its
            usual settings; or a function of labels and outputs, which gets both uncast.

    Returns:
        A function of labels, outputs and, if wanted, weights of the examples; it has a `name`.

    Raises:
        UnknownNameError: for a name that no loss has, with the near ones; a `ValueError`.
        OperandError: for anything else; a `TypeError`.

    >>> as_loss("mse")
    MeanSquaredError(reduction='mean', dtype='float32')
    >>> as_loss("mean_sqared_error")
    Traceback (most recent call last):
        ...
    supremum.errors.UnknownNameError: unknown loss 'mean_sqared_error': did you mean 'mean_squared_error' or \
'MeanSquaredError' or 'mean_absolute_error'?
    """
    return looked_up("loss", loss, (Loss, FunctionLoss), _NAMED, FunctionLoss)
