"""Tracing a call to the program that JAX would run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax.extend.core import ClosedJaxpr

from supremum.jaxprs.mutable_arguments import lifted


def program_of(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> ClosedJaxpr:
    """Trace a call.

    Arguments other than arrays and numbers, such as strings, functions and layers that are not pytrees, are passed on
    unchanged; results other than arrays and numbers are dropped. A function made by `jax.jit` is traced as it would be
    called, with its static arguments.

    Args:
        function: any function that JAX can trace.
        args: the positional arguments; a `jax.ShapeDtypeStruct` can replace an array.
        kwargs: the keyword arguments.

    Raises:
        Exception: any error that the function raises.
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
    """Whether a leaf is an array or a number."""
    is_number = isinstance(leaf, (bool, int, float, complex, np.generic))
    return is_number or (hasattr(leaf, "shape") and hasattr(leaf, "dtype"))
