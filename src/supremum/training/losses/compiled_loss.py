"""The loss of a model: the sum of the losses of its outputs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import jax
import jax.numpy as jnp

from supremum.errors import ArgumentError, listed, shown
from supremum.training.error_notes import noting_where
from supremum.training.losses.lookup import as_loss


class CompiledLoss:
    """A weighted sum of the losses of all outputs.

    Args:
        losses: what `as_loss` takes; for several outputs a list or dict of that, with None for outputs without a loss.
            None if all losses come from layers.
        weights: a number for each loss, in the same structure; None for 1.

    Raises:
        ArgumentError: if a weight has no loss; a `ValueError`.
    """

    def __init__(self, losses: Any, weights: Any = None) -> None:
        self._losses = _entries(losses)
        given = {} if weights is None else _entries(weights)
        unknown = sorted(str(name) for name in given.keys() - self._losses.keys())
        if unknown:
            raise ArgumentError(f"loss_weights has a weight for {listed(map(shown, unknown))}, which have no loss")
        self._functions = {name: None if each is None else as_loss(each) for name, each in self._losses.items()}
        self._weights = {name: given.get(name, 1.0) for name in self._losses}

    def __call__(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> jax.Array:
        """Compute the loss of a batch.

        Args:
            y_true: labels, in the structure of the losses.
            y_pred: outputs, in the structure of the losses.
            sample_weight: the weight of each example, shape (batch,); None if all have the same weight.

        Returns:
            A floating-point scalar.

        Raises:
            ArgumentError: if labels or outputs do not have the structure of the losses; a `ValueError`.
        """
        if all(function is None for function in self._functions.values()):
            return jnp.zeros((), jnp.float32)
        labels, outputs = self._matched("labels", y_true), self._matched("outputs", y_pred)
        terms: list[jax.Array] = []
        for name, function in self._functions.items():
            if function is not None:
                with noting_where(f"in the loss {_name_of(function)}", y_true=labels[name], y_pred=outputs[name]):
                    term = function(labels[name], outputs[name], sample_weight)
                # Do not multiply by 1, which would round.
                terms.append(term if self._weights[name] == 1 else term * self._weights[name])
        total = terms[0]
        for term in terms[1:]:
            total = total + term
        return total

    def _matched(self, what: str, tree: Any) -> dict[Any, Any]:
        found = _entries(tree)
        needed = [name for name, function in self._functions.items() if function is not None]
        if any(name not in found or found[name] is None for name in needed):
            raise ArgumentError(
                f"the loss is for {_names_of(self._losses)}, but the {what} are {_names_of(found)}; "
                "use the same structure"
            )
        return found


def _name_of(function: Any) -> str:
    return getattr(function, "name", None) or getattr(function, "__name__", None) or shown(function)


def _entries(tree: Any) -> dict[Any, Any]:
    """The entries of a list or dict by name, or a single value under the empty name."""
    if isinstance(tree, Mapping):
        return dict(cast("Mapping[Any, Any]", tree))
    if isinstance(tree, (list, tuple)):
        return dict(enumerate(cast("list[Any]", tree)))
    return {"": tree}


def _names_of(entries: Mapping[Any, Any]) -> str:
    if list(entries) == [""]:
        return "nothing" if entries[""] is None else "one array"
    return ", ".join(repr(name) for name in entries)
