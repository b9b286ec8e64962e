"""A call as a function of the arrays among its arguments, as JAX traces one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax


def split_arrays(
    function: Callable[..., Any], arguments: tuple[Any, Any], is_array: Callable[[Any], bool]
) -> tuple[Callable[[list[Any]], Any], list[Any]]:
    """A function of arrays alone, which calls another with them and the rest of its arguments.

    Args:
        function: what to call.
        arguments: its positional arguments and those by name, nested containers with arrays in them.
        is_array: which leaves are the arrays.

    Returns:
        The function, and the arrays that were given.

    >>> call, arrays = split_arrays(pow, ((2.0, 3), {}), lambda leaf: isinstance(leaf, float))
    >>> arrays, call([4.0])
    ([2.0], 64.0)
    """
    leaves, structure = jax.tree.flatten(arguments)
    places = [place for place, leaf in enumerate(leaves) if is_array(leaf)]

    def call(arrays: list[Any]) -> Any:
        given = list(leaves)
        for place, array in zip(places, arrays, strict=True):
            given[place] = array
        args, kwargs = jax.tree.unflatten(structure, given)
        return function(*args, **kwargs)

    return call, [leaves[place] for place in places]
