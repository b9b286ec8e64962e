"""Hyperparameters that `optax.inject_hyperparams` stores in a state."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import optax  # pyright: ignore[reportMissingTypeStubs] (it ships no types)

from supremum.errors import ArgumentError, OperandError, shown
from supremum.mixed_precision import is_floating

_NODE: Any = optax.InjectStatefulHyperparamsState


def _is_node(node: Any) -> bool:
    return isinstance(node, _NODE)


def _settable(node: Any, names: Container[str] | None) -> dict[str, Any]:
    return {
        name: value
        for name, value in node.hyperparams.items()
        if name not in node.hyperparams_states and is_floating(value) and (names is None or name in names)
    }


def extract(slots: Any, names: Container[str] | None = None) -> tuple[Any, dict[str, Any]]:
    """Split a state into its settable numbers, by name, and the state without them.

    Numbers from an optax schedule stay in the state.

    Args:
        slots: a state.
        names: the numbers to extract; None for all.

    Raises:
        ArgumentError: if two parts of a chain have a number of the same name.
    """
    numbers: dict[str, Any] = {}

    def take(node: Any) -> Any:
        if not _is_node(node):
            return node
        found = _settable(node, names)
        twice = sorted(found.keys() & numbers.keys())
        if twice:
            raise ArgumentError(
                f"two parts of the transformation have a hyperparameter {shown(twice[0])}: inject it in only one part"
            )
        numbers.update(found)
        # None marks the place of the number; it is not a leaf.
        return node._replace(hyperparams={name: None if name in found else v for name, v in node.hyperparams.items()})

    return jax.tree.map(take, slots, is_leaf=_is_node), numbers


def insert(slots: Any, numbers: Mapping[str, Any]) -> Any:
    """Put the numbers back into a state; the inverse of `extract`."""

    def give(node: Any) -> Any:
        if not _is_node(node):
            return node
        held = {name: numbers[name] if v is None else v for name, v in node.hyperparams.items()}
        return node._replace(hyperparams=held)

    return jax.tree.map(give, slots, is_leaf=_is_node)


def checked_transformation(transformation: Any) -> Any:
    """Check an optax transformation, and return it; convert `optax.MultiSteps`.

    Raises:
        OperandError: for anything else.
    """
    if isinstance(transformation, optax.MultiSteps):
        transformation = transformation.gradient_transformation()
    if not isinstance(transformation, optax.GradientTransformation):
        raise OperandError(
            f"an Optimizer needs an optax transformation, got {shown(transformation)}: use optax.adam(1e-3)"
        )
    return transformation


def numbers_of(transformation: Any) -> dict[str, Any]:
    """Return the injected numbers of a transformation, by name.

    They are only visible in a state. The result is empty if no state can be made without the variables, as with a mask
    by their names.
    """
    try:
        with jax.ensure_compile_time_eval():
            state = transformation.init({"": jnp.zeros((), jnp.float32)})
    except (ValueError, TypeError, KeyError, AttributeError):
        return {}
    return extract(state)[1]
