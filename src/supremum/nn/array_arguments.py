"""Turn a call into a function of the arrays among its arguments, which JAX can trace."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax


def split_arrays(
    function: Callable[..., Any], arguments: tuple[Any, Any], is_array: Callable[[Any], bool]
) -> tuple[Callable[[list[Any]], Any], list[Any]]:
    """Split a call into the arrays among its arguments and a function of those arrays.

    Args:
        function: the function to call.
        arguments: its positional and keyword arguments, nested containers with arrays in them.
        is_array: says whether a leaf is one of the arrays.

    Returns:
        A function of a list of arrays, which makes the call with them, and the arrays from the arguments.

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
