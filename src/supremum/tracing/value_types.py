"""The types of a program's inputs and outputs, and the lines that made them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
from jax.extend.core import ClosedJaxpr, Var
from jax.tree_util import keystr, tree_leaves_with_path

from supremum.formats import DType
from supremum.jaxprs import Site, Sources
from supremum.tracing.expression_operands import Function, Functions
from supremum.tracing.origins import Origins


@dataclass(frozen=True, slots=True)
class ValueType:
    """The type of a value in a program.

    Args:
        dtype: its dtype.
        shape: its shape.
        weak: whether it is weak, like an array made of Python numbers.
    """

    dtype: DType
    shape: tuple[int, ...]
    weak: bool

    @classmethod
    def of(cls, value: Any) -> ValueType:
        """The type of an array, a number or a `jax.ShapeDtypeStruct`."""
        aval = jax.typeof(value) if not isinstance(value, jax.ShapeDtypeStruct) else value
        return cls(aval.dtype, aval.shape, bool(getattr(aval, "weak_type", False)))

    def __str__(self) -> str:
        return f"{self.dtype}[{','.join(map(str, self.shape))}]{' (weak)' if self.weak else ''}"


@dataclass(frozen=True, slots=True)
class SourcePlace:
    """Where a value was made.

    Args:
        where: the line, as `file:line`; empty if unknown.
        expression: the source text there.
    """

    where: str = ""
    expression: str = ""


def types_by_path(tree: Any) -> dict[str, ValueType]:
    """The types of the leaves of a tree, by their paths as Python would write them.

    >>> {path: str(kind) for path, kind in types_by_path({"step": 0, "w": jax.numpy.ones(2)}).items()}
    {"['step']": 'int32[] (weak)', "['w']": 'float32[2]'}
    """
    return {keystr(path): ValueType.of(leaf) for path, leaf in tree_leaves_with_path(tree)}


def places_of_results(program: ClosedJaxpr) -> list[SourcePlace]:
    """The lines that made the results of a program."""
    functions, sources = Functions(), Sources()
    origins, function = Origins(functions), Function(program.jaxpr)
    places: list[SourcePlace] = []
    for atom in program.jaxpr.outvars:
        index = function.maker(atom) if isinstance(atom, Var) else None
        if index is None:
            places.append(SourcePlace())
            continue
        origin = origins.of(Site(program.jaxpr.eqns[index], (), (), 1, program.jaxpr, index, None))
        at = origin.user or origin.maker
        places.append(SourcePlace() if at is None else SourcePlace(str(at), sources.text(at)))
    return places
