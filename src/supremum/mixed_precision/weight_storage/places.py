"""Places in the state of an optimizer: the field of a leaf, and the parameter that it belongs to."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax

from supremum.mixed_precision.pytrees import path_text
from supremum.typing import PyTree

_INNER_FIELDS = frozenset({"codes", "scales"})  # of a BlockScaled, below the path of its parameter


class StatePlace(NamedTuple):
    """The place of a leaf.

    Args:
        field: the name of the innermost field that contains it, such as `"mu"`; empty without one.
        path: the path of its parameter; empty if it belongs to none.
    """

    field: str
    path: str

    @property
    def name(self) -> str:
        """Field and path, joined by a slash."""
        return "/".join(each for each in (self.field, self.path) if each)


def find_places(state: PyTree, params: PyTree) -> list[StatePlace]:
    """Find the places of the leaves of a state, in order.

    Args:
        state: the state of an optimizer.
        params: the parameters; a path of the state that ends with a path of a parameter belongs to that parameter.

    >>> import jax.numpy as jnp, optax
    >>> params = {"dense": {"kernel": jnp.ones(2)}}
    >>> [place.name for place in find_places(optax.adam(1e-3).init(params), params)]
    ['count', 'mu/dense/kernel', 'nu/dense/kernel']
    """
    known = {path for path, _ in jax.tree_util.tree_leaves_with_path(params)}
    return [_place(path, known) for path, _ in jax.tree_util.tree_leaves_with_path(state)]


def _place(path: Any, known: set[Any]) -> StatePlace:
    if path and getattr(path[-1], "name", None) in _INNER_FIELDS:
        path = path[:-1]
    start = next((at for at in range(len(path) + 1) if path[at:] in known), len(path))
    fields = [entry.name for entry in path[:start] if isinstance(entry, jax.tree_util.GetAttrKey)]
    return StatePlace(fields[-1] if fields else "", path_text(path[start:]))
