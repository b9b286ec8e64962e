"""A call of a Python function as a program of its arrays: traced, and put back together from the program's results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
from jax.extend.core import ClosedJaxpr

from supremum.errors import ArgumentError
from supremum.jaxprs.array_leaves import is_array, split_arrays
from supremum.jaxprs.mutable_arguments import lift_objects


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
        is_lifted: whether mutable objects are among the arguments; such a call is traced anew each time.
    """

    program: ClosedJaxpr
    arrays: list[Any]
    paths: list[tuple[Any, ...]]
    put_back: Callable[[Sequence[Any]], Any]
    result_of: Callable[[Sequence[Any]], Any]
    result_paths: tuple[str | None, ...]
    is_lifted: bool


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
    lift = lift_objects(function, args, kwargs)
    if lift is not None:
        function, args, kwargs = lift.function, lift.args, lift.kwargs
    arrays, with_arrays = split_arrays((args, kwargs), _is_operand)
    with_results: Any = None
    result_paths: tuple[str | None, ...] = ()

    def traced(*operands: Any) -> list[Any]:
        nonlocal with_results, result_paths
        call = with_arrays(operands)
        result = function(*call[0], **call[1])
        _check_unchanged(call, with_arrays(operands), under)
        outputs, with_results = split_arrays(result, _is_operand)
        result_paths = tuple(_path(keys, lift is not None) for keys in _paths(result))
        return outputs

    def put_back(results: Sequence[Any]) -> Any:
        result = with_results(results)
        return result if lift is None else lift.put_back(result)

    def result_of(results: Sequence[Any]) -> Any:
        result = with_results(results)
        return result if lift is None else result[1]

    program = jax.make_jaxpr(traced)(*arrays)
    return TracedCall(program, arrays, _paths((args, kwargs)), put_back, result_of, result_paths, lift is not None)


def _paths(tree: Any) -> list[tuple[Any, ...]]:
    """The paths of the arrays in a tree."""
    return [path for path, leaf in jax.tree_util.tree_leaves_with_path(tree) if _is_operand(leaf)]


def _path(keys: tuple[Any, ...], is_lifted: bool) -> str | None:
    """The path of a result; a lifted function returns the changes of its arguments first, and then its result."""
    if is_lifted:
        first, *rest = keys
        keys = tuple(rest)
        if first.idx == 0:
            return None
    return jax.tree_util.keystr(keys, simple=True, separator="/")


def _check_unchanged(call: Any, before: Any, under: str) -> None:
    leaves, structure = jax.tree.flatten(before)
    after, new_structure = jax.tree.flatten(call)
    if structure != new_structure or any(new is not old for new, old in zip(after, leaves, strict=True)):
        raise ArgumentError(
            f"the function changes its arguments; under {under} it gets copies, and the change would be lost: return "
            "the changed values, or register an adapter with supremum.tracing.register_adapter"
        )


def _is_operand(leaf: Any) -> bool:
    # A report takes shapes without values.
    return is_array(leaf) or isinstance(leaf, jax.ShapeDtypeStruct)
