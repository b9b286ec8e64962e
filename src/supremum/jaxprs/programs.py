"""The program of a function: what JAX would run, without running it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax.extend.core import ClosedJaxpr

from supremum.jaxprs.mutable_arguments import lifted


def program_of(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> ClosedJaxpr:
    """The program that a call stands for.

    What is no array and no number among the arguments, such as a string, a function or a layer that is no pytree, is
    handed to the function as it is; what is none among the results is left out. A function made by `jax.jit` is traced
    as it would be called, static arguments included.

    Args:
        function: any function that JAX can trace.
        args: its arguments; `jax.ShapeDtypeStruct` will do for arrays.
        kwargs: those with names.

    Raises:
        Exception: whatever the function raises, as it raises it.
    """
    lift = lifted(function, args, kwargs)
    if lift is not None:
        function, args, kwargs = lift.function, lift.args, lift.kwargs
    trace: Any = getattr(function, "trace", None)
    if trace is not None and hasattr(function, "lower"):
        return trace(*args, **kwargs).jaxpr
    leaves, tree = jax.tree.flatten((args, kwargs))
    traced = [index for index, leaf in enumerate(leaves) if is_value(leaf)]

    def call(*values: Any) -> Any:
        given = list(leaves)
        for index, value in zip(traced, values, strict=True):
            given[index] = value
        inner_args, inner_kwargs = jax.tree.unflatten(tree, given)
        return [leaf for leaf in jax.tree.leaves(function(*inner_args, **inner_kwargs)) if is_value(leaf)]

    return jax.make_jaxpr(call)(*(leaves[index] for index in traced))


def is_value(leaf: Any) -> bool:
    """Whether something is an array or a number, which a program can be given."""
    if isinstance(leaf, (bool, int, float, complex, np.generic)):
        return True
    return hasattr(leaf, "shape") and hasattr(leaf, "dtype")
