"""Places in the state of an optimizer: the field of a leaf, and the parameter that it belongs to."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax

_INNER_FIELDS = frozenset({"codes", "scales"})  # of a BlockScaled, below the path of its parameter


class Place(NamedTuple):
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


def path_text(path: Any) -> str:
    """Write a path as its names, joined by slashes."""
    return jax.tree_util.keystr(tuple(path), simple=True, separator="/")


def placed(state: Any, params: Any) -> list[Place]:
    """Find the places of the leaves of a state, in order.

    Args:
        state: the state of an optimizer.
        params: the parameters; a path of the state that ends with a path of a parameter belongs to that parameter.

    >>> import jax.numpy as jnp, optax
    >>> params = {"dense": {"kernel": jnp.ones(2)}}
    >>> [place.name for place in placed(optax.adam(1e-3).init(params), params)]
    ['count', 'mu/dense/kernel', 'nu/dense/kernel']
    """
    known = {path for path, _ in jax.tree_util.tree_leaves_with_path(params)}
    return [_place(path, known) for path, _ in jax.tree_util.tree_leaves_with_path(state)]


def _place(path: Any, known: set[Any]) -> Place:
    if path and getattr(path[-1], "name", None) in _INNER_FIELDS:
        path = path[:-1]
    start = next((at for at in range(len(path) + 1) if path[at:] in known), len(path))
    fields = [entry.name for entry in path[:start] if isinstance(entry, jax.tree_util.GetAttrKey)]
    return Place(fields[-1] if fields else "", path_text(path[start:]))
