"""Loop carries that change type: which value, its types before and after, and the line that changes it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import jax
from jax.tree_util import keystr, tree_map_with_path

from supremum.argument_checks import function, pytree
from supremum.errors import OperandError, shown
from supremum.operands import as_operand
from supremum.promotion import explain
from supremum.tracing.value_types import SourcePlace, ValueType, places_of_results, types_by_path
from supremum.typing import PyTree


@dataclass(frozen=True, slots=True)
class CarryMismatch:
    """A carried value whose type changes in one iteration of a loop.

    Args:
        path: the value within the carry, as Python would write it; empty if the carry is one array.
        before: the type of the input; None if only the output has this value.
        after: the type of the output; None if only the input has this value.
        place: the line that made the output.
        fix: what to write instead.

    >>> import jax.numpy as jnp
    >>> (found,) = carry_mismatches(
    ...     lambda c, x: (c + x, None), jnp.zeros(2, "bfloat16"), jnp.ones((3, 2))
    ... )
    >>> found.fix
    "start with jnp.asarray(carry, 'float32'), or return (c + x).astype('bfloat16')"
    """

    path: str
    before: ValueType | None
    after: ValueType | None
    place: SourcePlace
    fix: str

    def __str__(self) -> str:
        change = f"carry{self.path} goes in as {self.before} and comes out as {self.after}"
        return f"{change}{self.place}\n  fix: {self.fix}"


def carry_mismatches(body: Callable[..., Any], init: PyTree, *xs: PyTree) -> tuple[CarryMismatch, ...]:
    """Find the values of a loop's carry whose type changes in one iteration.

    Args:
        body: the body of a `jax.lax.while_loop`, a function of the carry; or, with `xs`, the body of a `scan`.
        init: the initial carry.
        *xs: for a `scan`, the arrays that it iterates over, with the leading axis; None if it has none.

    Raises:
        OperandError: if the body of a `scan` does not return a pair, or `xs` has no leading axis.
        Exception: any error that the body raises.

    >>> import jax.numpy as jnp
    >>> (found,) = carry_mismatches(
    ...     lambda c, x: (c + x, None), jnp.zeros(2, "bfloat16"), jnp.ones((3, 2))
    ... )
    >>> str(found.before), str(found.after), found.place.expression
    ('bfloat16[2]', 'float32[2]', 'c + x')
    """
    function("body", body, "lambda carry, x: (carry, x)")
    for name, tree in (("init", init), ("xs", xs)):
        _check_arrays(name, tree)
    rows = [tree_map_with_path(_row, x) for x in xs]
    program, result = jax.make_jaxpr(body, return_shape=True)(init, *rows)
    if xs:
        if not isinstance(result, tuple) or len(result) != 2:
            raise OperandError("The body of a scan must return a pair of carry and output, such as: return carry, None")
        result = result[0]
    before, after = types_by_path(init), types_by_path(result)
    places = dict.fromkeys(before, SourcePlace()) | dict(zip(after, places_of_results(program), strict=False))
    return tuple(
        CarryMismatch(path, had, has, place, _fix(path, had, has, place))
        for path, place in places.items()
        if not _match(had := before.get(path), has := after.get(path))
    )


def _check_arrays(name: str, tree: PyTree) -> None:
    for leaf in jax.tree.leaves(pytree(name, tree)):
        try:
            _ = isinstance(leaf, jax.ShapeDtypeStruct) or jax.typeof(leaf)
        except Exception as error:  # the value itself may raise anything
            raise OperandError(f"{name} must consist of arrays and numbers, got {shown(leaf)}.") from error


def _row(path: Any, leaf: Any) -> Any:
    if not getattr(leaf, "shape", ()):
        raise OperandError(
            f"xs must have a leading axis to iterate over, got {shown(leaf)} at xs{keystr(path)}. "
            "JAX treats lists as containers; make an array of a list of numbers: jnp.asarray([1.0, 2.0])"
        )
    return jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype)


def _match(had: ValueType | None, has: ValueType | None) -> bool:
    if had is None or has is None or had.shape != has.shape:
        return False
    if had.dtype == has.dtype:
        return True
    # JAX converts a weak input to the dtype of the output if that dtype can hold it.
    operands = (replace(as_operand(each.dtype), weak=each.weak, ndim=len(each.shape)) for each in (had, has))
    return had.weak and explain(*operands, rules="jax").dtype == has.dtype


def _fix(path: str, had: ValueType | None, has: ValueType | None, place: SourcePlace) -> str:
    if had is None or has is None:
        return "return the same containers from the body that it takes"
    if had.shape != has.shape:
        return f"start carry{path} with the shape {has.shape}, or return the shape {had.shape}"
    cast = f"({place.expression}).astype('{had.dtype}')" if place.expression else f"it with .astype('{had.dtype}')"
    return f"start with jnp.asarray(carry{path}, '{has.dtype}'), or return {cast}"
