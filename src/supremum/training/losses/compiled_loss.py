"""The losses that `compile` takes: by name, made of plain functions, and summed over the outputs of a model."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, cast

import jax
import jax.numpy as jnp

from supremum.errors import ArgumentError, OperandError, listed, shown
from supremum.formats import as_format
from supremum.nn import snake_case
from supremum.training.data import SampleWeight, as_inputs, as_weights
from supremum.training.losses import cross_entropy, hinge, overlap, regression
from supremum.training.losses.circle import Circle
from supremum.training.losses.ctc import CTC
from supremum.training.losses.loss import Loss, apply_weights, finite_pair, reduce_losses
from supremum.training.user_functions import note_place, resolve
from supremum.typing import ArrayLike, PyTree

_terms: ContextVar[dict[str, jax.Array] | None] = ContextVar("terms", default=None)

LOSSES: tuple[Callable[[], Loss], ...] = (
    cross_entropy.BinaryCrossentropy, cross_entropy.BinaryFocalCrossentropy, cross_entropy.CategoricalCrossentropy,
    cross_entropy.CategoricalFocalCrossentropy, cross_entropy.CategoricalGeneralizedCrossEntropy,
    hinge.CategoricalHinge, Circle, regression.CosineSimilarity, CTC, overlap.Dice, hinge.Hinge, regression.Huber,
    regression.KLDivergence, regression.LogCosh, regression.MeanAbsoluteError,
    regression.MeanAbsolutePercentageError, regression.MeanSquaredError, regression.MeanSquaredLogarithmicError,
    regression.Poisson, cross_entropy.SparseCategoricalCrossentropy, hinge.SquaredHinge, overlap.Tversky,
)  # fmt: skip
"""The losses that can be looked up by class name, in CamelCase and snake_case."""

_SHORT: dict[str, Callable[[], Loss]] = {
    "bce": cross_entropy.BinaryCrossentropy, "kld": regression.KLDivergence,
    "mae": regression.MeanAbsoluteError, "mape": regression.MeanAbsolutePercentageError,
    "mse": regression.MeanSquaredError, "msle": regression.MeanSquaredLogarithmicError,
}  # fmt: skip
_NAMED = {
    **{snake_case(loss_class.__name__): loss_class for loss_class in LOSSES},
    **{loss_class.__name__: loss_class for loss_class in LOSSES},
    **_SHORT,
    **{short.upper(): loss_class for short, loss_class in _SHORT.items()},
}


class FunctionLoss:
    """A loss made of a plain function of labels and outputs, which gets both uncast.

    Args:
        function: returns a loss, or losses to average, in a floating dtype, which is also the dtype of the result.
        name: the name of the loss; None for the function's name.

    >>> FunctionLoss(lambda y_true, y_pred: abs(y_true - y_pred))(
    ...     jnp.zeros(2), jnp.asarray([1.0, 3.0])
    ... )
    Array(2., dtype=float32)
    """

    def __init__(self, function: Callable[[Any, Any], Any], name: str | None = None) -> None:
        self.function = function
        self.name: str = getattr(function, "__name__", "loss") if name is None else name

    def __call__(self, y_true: PyTree, y_pred: PyTree, sample_weight: ArrayLike | None = None) -> jax.Array:
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
            y_true, y_pred = finite_pair(y_true, y_pred, weights)
        losses = as_inputs(self.function(y_true, y_pred), None, f"the result of {self.name}")
        if not isinstance(losses, jax.Array) or as_format(losses.dtype).category != "float":
            shown = type(losses).__name__ if not isinstance(losses, jax.Array) else as_format(losses.dtype)
            raise OperandError(f"{self.name} must give real floating-point losses, got {shown}")
        if sample_weight is not None:
            losses = apply_weights(losses, as_weights(self.name, sample_weight, losses.dtype))
        return reduce_losses(losses, "mean") if losses.ndim else losses

    def __repr__(self) -> str:
        return f"FunctionLoss({self.name})"


def as_loss(loss: str | Loss | Callable[[Any, Any], Any]) -> Loss | FunctionLoss:
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
'MeanSquaredError' or 'mean_squared_logarithmic_error'?
    """
    return resolve("loss", loss, (Loss, FunctionLoss), _NAMED, FunctionLoss)


@contextmanager
def record_terms() -> Generator[dict[str, jax.Array]]:
    """Record the losses of the outputs that a `CompiledLoss` with several adds up, while a block runs.

    Yields:
        The losses by name, without the weights of outputs; empty until a `CompiledLoss` is called in the block.
    """
    terms: dict[str, jax.Array] = {}
    token = _terms.set(terms)
    try:
        yield terms
    finally:
        _terms.reset(token)


class CompiledLoss:
    """A weighted sum of the losses of all outputs.

    Args:
        losses: what `as_loss` takes; for several outputs a list or dict of that, with None for outputs without a loss,
            or one for all of them if their names are known. None if all losses come from layers.
        weights: a number for each loss, in the same structure or by name; None for 1.
        output_names: the names of the outputs of a functional model with several, in order; None if they have none.

    Raises:
        ArgumentError: if a weight has no loss; a `ValueError`.
    """

    def __init__(
        self,
        losses: str | Loss | Callable[..., Any] | Sequence[Any] | Mapping[Any, Any] | None,
        weights: float | Sequence[float] | Mapping[Any, float] | None = None,
        output_names: Sequence[str] | None = None,
    ) -> None:
        self._output_names = output_names
        self._losses: dict[Any, Any] = entries(losses, output_names)
        if output_names and losses is not None and list(self._losses) == [""]:
            self._losses = dict.fromkeys(output_names, losses)
        by_name = {} if weights is None else entries(weights, output_names)
        unknown = sorted(str(name) for name in by_name.keys() - self._losses.keys())
        if unknown:
            raise ArgumentError(f"loss_weights has a weight for {listed(map(shown, unknown))}, which have no loss")
        self._is_mapping = isinstance(losses, Mapping)
        self._functions = {name: None if each is None else as_loss(each) for name, each in self._losses.items()}
        self._weights = {name: by_name.get(name, 1.0) for name in self._losses}

    @property
    def names(self) -> list[str]:
        """The names of the losses of outputs, such as `"digit_loss"`; none if there is only one loss."""
        names = [f"{name}_loss" for name in self._needed]
        return names if len(names) > 1 else []

    def __call__(self, y_true: PyTree, y_pred: PyTree, sample_weight: SampleWeight = None) -> jax.Array:
        """Compute the loss of a batch.

        Args:
            y_true: labels, in the structure of the losses; outputs without a loss need none.
            y_pred: outputs, in the structure of the losses.
            sample_weight: the weight of each example, shape (batch,), or such weights for outputs, in the structure of
                the losses; None if all have the same weight.

        Returns:
            A floating-point scalar.

        Raises:
            ArgumentError: if labels, outputs or weights do not have the structure of the losses; a `ValueError`.
        """
        if not self._needed:
            return jnp.zeros((), jnp.float32)
        labels = self._match("labels", self._name_partial_labels(y_true))
        outputs = self._match("outputs", y_pred)
        weights = weights_by_output(sample_weight, outputs, self._output_names)
        record = _terms.get()
        terms: list[jax.Array] = []
        for name, function in self._functions.items():
            if function is not None:
                with note_place(f"in the loss {function.name}", y_true=labels[name], y_pred=outputs[name]):
                    term = function(labels[name], outputs[name], weights[name])
                if record is not None:
                    record[f"{name}_loss"] = term
                # Do not multiply by 1, which would round.
                terms.append(term if self._weights[name] == 1 else term * self._weights[name])
        return sum(terms[1:], terms[0])

    @property
    def _needed(self) -> list[Any]:
        """The names of the outputs that have a loss."""
        return [name for name, function in self._functions.items() if function is not None]

    def _name_partial_labels(self, y_true: PyTree) -> PyTree:
        """Name labels without names that are as many as the losses, but fewer than the outputs, as Keras does."""
        labels, needed = entries(y_true), self._needed
        is_ordered = len(needed) == 1 or (not self._is_mapping and len(needed) < len(self._functions))
        if isinstance(y_true, Mapping) or not is_ordered or len(labels) != len(needed):
            return y_true
        return dict(zip(needed, labels.values(), strict=True))

    def _match(self, what: str, tree: PyTree) -> dict[Any, Any]:
        by_name = {name: each for name, each in entries(tree, self._output_names).items() if each is not None}
        if any(name not in by_name for name in self._needed):
            raise ArgumentError(
                f"the loss is for {_names_of(self._needed)}, but the {what} are {_names_of(by_name)}; "
                "use the same structure"
            )
        return by_name


def entries(tree: PyTree, output_names: Sequence[str] | None = None) -> dict[Any, Any]:
    """The entries of a list or dict by name, or a single value under the empty name.

    Args:
        tree: losses, labels, outputs or weights.
        output_names: the names of the entries of a list; None for their places.

    >>> entries(["mse", "mae"], ["size", "age"])
    {'size': 'mse', 'age': 'mae'}
    """
    if isinstance(tree, Mapping):
        return dict(cast("Mapping[Any, Any]", tree))
    if isinstance(tree, (list, tuple)):
        items = cast("list[Any]", tree)
        names = range(len(items)) if output_names is None or len(output_names) != len(items) else output_names
        return dict(zip(names, items, strict=True))
    return {"": tree}


def weights_by_output(
    sample_weight: SampleWeight, outputs: Iterable[Any], output_names: Sequence[str] | None
) -> dict[Any, Any]:
    """Return the sample weights of each output; None for outputs without weights.

    Args:
        sample_weight: weights of examples for all outputs, or a dict or list of them.
        outputs: the names of the outputs.
        output_names: as for `CompiledLoss`.

    Raises:
        ArgumentError: for weights of an output that does not exist; a `ValueError`.
    """
    parts: Any = sample_weight
    if not isinstance(parts, Mapping) and not (
        isinstance(parts, (list, tuple)) and all(part is None or hasattr(part, "shape") for part in parts)
    ):
        return dict.fromkeys(outputs, sample_weight)
    weights = entries(parts, output_names)
    unknown = [name for name in weights if name not in outputs]
    if unknown:
        raise ArgumentError(
            f"sample_weight has weights for {_names_of(unknown)}, but the outputs are {_names_of(outputs)}; "
            "use the same structure"
        )
    return {name: weights.get(name) for name in outputs}


def _names_of(names: Iterable[Any]) -> str:
    return ", ".join("one array" if name == "" else repr(name) for name in names) or "nothing"
