"""A call of a Python function as a program of its arrays: traced, and put back together from the program's results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import ClosedJaxpr

from supremum.errors import ArgumentError
from supremum.formats import FORMATS
from supremum.jaxprs.mutable_arguments import lifted

_DTYPES = frozenset(row.dtype for row in FORMATS)


def is_array(leaf: Any) -> bool:
    """Whether a leaf is a JAX array, or a NumPy array or scalar that JAX can hold.

    PRNG keys are JAX arrays. A NumPy array counts if its dtype is a number format in the byte order of the machine:
    strings, times and objects do not.
    """
    return isinstance(leaf, jax.Array) or (isinstance(leaf, (np.ndarray, np.generic)) and leaf.dtype in _DTYPES)


@dataclass(frozen=True, slots=True)
class TracedCall:
    """A traced call.

    Args:
        program: the program; its operands and results are arrays.
        arrays: the operands of the call.
        paths: the path of each operand in `(args, kwargs)`, as in `jax.tree_util`.
        put_back: builds the function's result from the results of the program. It also updates the arguments that the
            function changes in place, such as modules of Flax nnx.
        result_of: the same, but changes nothing: mutable objects in the result are placeholders.
        result_paths: for each result of the program, its path in the function's result, such as `"params/bias"`; None
            if it is the new value of an argument.
    """

    program: ClosedJaxpr
    arrays: list[Any]
    paths: list[tuple[Any, ...]]
    put_back: Callable[[Sequence[Any]], Any]
    result_of: Callable[[Sequence[Any]], Any]
    result_paths: tuple[str | None, ...]


def traced_call(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], under: str) -> TracedCall:
    """Trace a call.

    Leaves of arguments and results that are not arrays, such as Python numbers, are passed on as they are.

    Args:
        function: any function that JAX can trace.
        args: the positional arguments; a `jax.ShapeDtypeStruct` can replace an array.
        kwargs: the keyword arguments.
        under: the name of the transformation, for messages.

    Raises:
        ArgumentError: if the function changes an argument in place that no adapter is registered for.
    """
    lift = lifted(function, args, kwargs)
    if lift is not None:
        function, args, kwargs = lift.function, lift.args, lift.kwargs
    with_paths, tree = jax.tree_util.tree_flatten_with_path((args, kwargs))
    leaves = [leaf for _, leaf in with_paths]
    arrays, with_arrays = _split(leaves)
    paths = [path for path, leaf in with_paths if _is_operand(leaf)]
    with_results: Any = None
    structure: Any = None
    result_paths: tuple[str | None, ...] = ()

    def traced(*given: Any) -> list[Any]:
        nonlocal with_results, structure, result_paths
        call: tuple[Any, Any] = jax.tree.unflatten(tree, with_arrays(given))
        found_with_paths, structure = jax.tree_util.tree_flatten_with_path(function(*call[0], **call[1]))
        _check_unchanged(call, with_arrays(given), tree, under)
        results = [leaf for _, leaf in found_with_paths]
        found, with_results = _split(results)
        result_paths = tuple(_path(keys, lift is not None) for keys, leaf in found_with_paths if _is_operand(leaf))
        return found

    def put_back(results: Sequence[Any]) -> Any:
        given = jax.tree.unflatten(structure, with_results(results))
        return given if lift is None else lift.put_back(given)

    def result_of(results: Sequence[Any]) -> Any:
        given = jax.tree.unflatten(structure, with_results(results))
        return given if lift is None else given[1]

    program = jax.make_jaxpr(traced)(*arrays)
    return TracedCall(program, arrays, paths, put_back, result_of, result_paths)


def _path(keys: tuple[Any, ...], is_lifted: bool) -> str | None:
    """The path of a result; a lifted function returns the changes of its arguments first, and then its result."""
    if is_lifted:
        first, *rest = keys
        keys = tuple(rest)
        if first.idx == 0:
            return None
    return jax.tree_util.keystr(keys, simple=True, separator="/")


def _check_unchanged(call: Any, leaves: Sequence[Any], tree: Any, under: str) -> None:
    after, structure = jax.tree.flatten(call)
    if structure != tree or any(new is not old for new, old in zip(after, leaves, strict=True)):
        raise ArgumentError(
            f"the function changes its arguments; under {under} it gets copies, and the change would be lost: return "
            "the changed values, or register an adapter with supremum.tracing.register_adapter"
        )


def _split(leaves: Sequence[Any]) -> tuple[list[Any], Callable[[Sequence[Any]], list[Any]]]:
    """Separate the arrays among leaves, and return them with a function that puts other arrays in their places."""
    given = list(map(_is_operand, leaves))
    others = [None if array else leaf for leaf, array in zip(leaves, given, strict=True)]  # keeps no tracer alive

    def put(arrays: Sequence[Any]) -> list[Any]:
        rest = iter(arrays)
        return [next(rest) if array else other for other, array in zip(others, given, strict=True)]

    return [_canonical(leaf) for leaf, array in zip(leaves, given, strict=True) if array], put


def _is_operand(leaf: Any) -> bool:
    # A report takes shapes without values.
    return is_array(leaf) or isinstance(leaf, jax.ShapeDtypeStruct)


def _canonical(leaf: Any) -> Any:
    return jnp.asarray(leaf) if isinstance(leaf, (np.ndarray, np.generic)) else leaf
