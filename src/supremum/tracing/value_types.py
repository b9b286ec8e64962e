"""The types of the values that go into a program and come out, and the lines that made them."""

from __future__ import annotations

from dataclasses import dataclass

import jax
from jax.extend.core import ClosedJaxpr, Var
from jax.tree_util import keystr, tree_leaves_with_path

from supremum.formats import DType
from supremum.jaxprs import walk
from supremum.tracing.expressions import Sources
from supremum.tracing.origins import Origins
from supremum.typing import ArrayLike, PyTree


@dataclass(frozen=True, slots=True)
class ValueType:
    """The type of a value in a program.

    Args:
        dtype: its dtype.
        shape: its shape.
        weak: whether it is weak, like an array made of Python numbers.

    >>> from supremum.tracing import weak_types
    >>> weak_types(lambda x: x)(2.0)[0].type
    ValueType(dtype=dtype('float32'), shape=(), weak=True)
    """

    dtype: DType
    shape: tuple[int, ...]
    weak: bool

    @classmethod
    def of(cls, value: ArrayLike) -> ValueType:
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

    >>> from supremum.tracing import weak_types
    >>> weak_types(lambda x: x + 1.0)(2.0)[1].place.expression
    'x + 1.0'
    """

    where: str = ""
    expression: str = ""

    def __str__(self) -> str:
        return f"\n  made at {self.where}: {self.expression}" if self.where else ""


def types_by_path(tree: PyTree) -> dict[str, ValueType]:
    """The types of the leaves of a tree, by their paths as Python would write them.

    >>> {
    ...     path: str(kind)
    ...     for path, kind in types_by_path({"step": 0, "w": jax.numpy.ones(2)}).items()
    ... }
    {"['step']": 'int32[] (weak)', "['w']": 'float32[2]'}
    """
    return {keystr(path): ValueType.of(leaf) for path, leaf in tree_leaves_with_path(tree)}


def places_of_results(program: ClosedJaxpr) -> list[SourcePlace]:
    """The lines that made the results of a program."""
    origins, sources = Origins(), Sources()
    sites = {var: site for site in walk(program) if site.caller is None for var in site.equation.outvars}
    places: list[SourcePlace] = []
    for atom in program.jaxpr.outvars:
        site = sites.get(atom) if isinstance(atom, Var) else None
        at = None if site is None else origins.of(site).place
        places.append(SourcePlace() if at is None else SourcePlace(str(at), sources.text(at)))
    return places
