"""Carries of loops that do not match: which value, what it goes in as, and the line that makes it another."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax

from supremum.argument_checks import function, pytree
from supremum.errors import OperandError, shown
from supremum.operands import Operand, as_operand
from supremum.promotion import explain
from supremum.tracing.value_types import SourcePlace, ValueType, places_of_results, types_by_path


@dataclass(frozen=True, slots=True)
class CarryMismatch:
    """A value that goes into a round of a loop as one type and comes out of it as another.

    Args:
        path: which value of the carry, as Python would write it; empty where the carry is one array.
        before: its type when it goes in; None where more comes out than goes in.
        after: its type when it comes out; None where less comes out.
        place: where what comes out was made.
        fix: what to write instead.
    """

    path: str
    before: ValueType | None
    after: ValueType | None
    place: SourcePlace
    fix: str

    def __str__(self) -> str:
        lines = [f"carry{self.path} goes in as {self.before} and comes out as {self.after}"]
        if self.place.where:
            lines.append(f"  made at {self.place.where}: {self.place.expression}")
        return "\n".join([*lines, f"  fix: {self.fix}"])


def carry_mismatches(body: Callable[..., Any], init: Any, *xs: Any) -> tuple[CarryMismatch, ...]:
    """Why the carry of a loop does not match: each value that comes out of a round as another type than it went in.

    Args:
        body: what `jax.lax.while_loop` is given, a function of the carry; or, with `xs`, what `scan` is given.
        init: the carry that goes in.
        *xs: for a `scan` what it goes through, with the leading axis; None where it goes through nothing.

    Raises:
        OperandError: for the body of a `scan` that gives no pair, and for `xs` without a leading axis.
        Exception: whatever the body raises, as it raises it.

    >>> import jax.numpy as jnp
    >>> (found,) = carry_mismatches(lambda c, x: (c + x, None), jnp.zeros(2, "bfloat16"), jnp.ones((3, 2)))
    >>> str(found.before), str(found.after), found.place.expression
    ('bfloat16[2]', 'float32[2]', 'c + x')
    """
    function("body", body, "lambda carry, x: (carry, x)")
    for name, tree in (("init", init), ("xs", xs)):
        _check_arrays(name, tree)
    rows = [jax.tree_util.tree_map_with_path(_row, x) for x in xs]
    program, given = jax.make_jaxpr(body, return_shape=True)(init, *rows)
    if xs:
        if not isinstance(given, tuple) or len(given) != 2:
            raise OperandError("the body of a scan has to give a pair, the carry and an output: return carry, None")
        given = given[0]
    before, after = types_by_path(init), types_by_path(given)
    places = dict(zip(after, places_of_results(program), strict=False))
    return tuple(
        CarryMismatch(
            path, had, has, places.get(path, SourcePlace()), _fix(path, had, has, places.get(path, SourcePlace()))
        )
        for path in {**before, **after}
        if not _match(had := before.get(path), has := after.get(path))
    )


def _check_arrays(name: str, tree: Any) -> None:
    for leaf in jax.tree.leaves(pytree(name, tree)):
        try:
            _ = isinstance(leaf, jax.ShapeDtypeStruct) or jax.typeof(leaf)
        except Exception as error:  # of any kind, also what the value itself raises
            raise OperandError(f"{name} is made of arrays and numbers, not of {shown(leaf)}") from error


def _row(path: Any, leaf: Any) -> Any:
    if not getattr(leaf, "shape", ()):
        where = f"xs{jax.tree_util.keystr(path)}"
        raise OperandError(
            f"{where} is {shown(leaf)}, which has no leading axis to go through: JAX takes lists for containers, "
            "so "
            "make one array of a list of numbers, jnp.asarray([1.0, 2.0])"
        )
    return jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype)


def _match(had: ValueType | None, has: ValueType | None) -> bool:
    if had is None or has is None or had.shape != has.shape:
        return False
    if had.dtype == has.dtype:
        return True
    # JAX starts with another dtype where what goes in has none of its own and this one holds it.
    return had.weak and explain(_operand(had), _operand(has), rules="jax").dtype == has.dtype


def _operand(value: ValueType) -> Operand:
    known = as_operand(value.dtype)
    return Operand(known.category, known.dtype, weak=value.weak, ndim=len(value.shape))


def _fix(path: str, had: ValueType | None, has: ValueType | None, place: SourcePlace) -> str:
    if had is None or has is None:
        return "let the body give back the same containers that it is given"
    if had.shape != has.shape:
        return f"let carry{path} start with the shape {has.shape}, or give back one of {had.shape}"
    made = f"({place.expression}).astype('{had.dtype}')" if place.expression else f"it with .astype('{had.dtype}')"
    return f"start with jnp.asarray(carry{path}, '{has.dtype}'), or give back {made}"
