"""The check of the arguments of a function that `numerics` runs or traces."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax

from supremum.errors import OperandError
from supremum.jaxprs import is_array, lifted


def check_arguments(under: str, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Check that a call has an array or a number among its arguments, if it has any.

    Args:
        under: the name of the public function that makes the call, for the message.
        fn: the function that is called.
        args: the positional arguments.
        kwargs: the keyword arguments.

    Raises:
        OperandError: if it has none; a `TypeError`.
    """
    leaves = jax.tree.leaves((args, kwargs))
    kinds = (bool, int, float, complex, jax.ShapeDtypeStruct)
    known = any(is_array(leaf) or isinstance(leaf, kinds) for leaf in leaves)
    if leaves and not known and lifted(fn, args, kwargs) is None:
        found = ", ".join(dict.fromkeys(type(leaf).__name__ for leaf in leaves))
        raise OperandError(f"{under} needs an array among the arguments of the function, got {found}; use jnp.asarray")
