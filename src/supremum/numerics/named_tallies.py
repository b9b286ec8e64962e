"""Tallies of values that have names: counted on the device, read on the host."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from supremum.errors import ArgumentError
from supremum.formats import Format, as_format
from supremum.numerics.tallies import Questions, Tally, counted_format, measure, questions_of
from supremum.numerics.value_counts import ValueCounts, counted, together


@dataclass(frozen=True, slots=True)
class Counted:
    """What is counted of some values, and under which name.

    Args:
        kind: the kind of the values, such as `"gradients"`.
        name: the name.
        source: the format that the values are counted in.
        questions: what is counted.
        formats: the formats to answer for.
        elements: the number of values of one run; the parts of a complex number are two.
    """

    kind: str
    name: str
    source: Format
    questions: Questions
    formats: tuple[Format, ...]
    elements: int


@jax.tree_util.register_pytree_node_class
class NamedTallies:
    """Tallies with names. It is a pytree, so that a jitted function can return it.

    Args:
        tallies: a tally for each row.
        rows: what was counted.

    >>> import jax.numpy as jnp
    >>> from supremum.formats import as_format
    >>> weights = {"w": jnp.array([1e-9, 1.0])}
    >>> found = tallies_of("weights", weights, (as_format("float16"),))
    >>> found.counts()["weights"]["w"].formats["float16"].flushed
    1
    """

    def __init__(self, tallies: Iterable[Tally], rows: Iterable[Counted]) -> None:
        self._tallies = tuple(tallies)
        self._rows = tuple(rows)

    def tree_flatten(self) -> tuple[tuple[Any, ...], tuple[Counted, ...]]:
        """The arrays, and what is not an array; for JAX."""
        return self._tallies, self._rows

    @classmethod
    def tree_unflatten(cls, rows: tuple[Counted, ...], tallies: tuple[Any, ...]) -> NamedTallies:
        """Build it from the parts of `tree_flatten`; for JAX."""
        return cls(tallies, rows)

    def and_also(self, other: NamedTallies) -> NamedTallies:
        """These tallies and others."""
        return NamedTallies((*self._tallies, *other._tallies), (*self._rows, *other._rows))

    def counts(self) -> dict[str, dict[str, ValueCounts]]:
        """Wait for the tallies, and read them by kind and name; rows of one name are added up."""
        found: dict[str, dict[str, list[ValueCounts]]] = {}
        for row, tally in zip(self._rows, jax.device_get(self._tallies), strict=True):
            arrays = Tally(*map(np.asarray, tally))
            read = counted(arrays, row.source, row.questions, row.formats, row.elements)
            found.setdefault(row.kind, {}).setdefault(row.name, []).append(read)
        return {kind: {name: together(counts) for name, counts in named.items()} for kind, named in found.items()}


def tallies_of(
    kind: str, named: Mapping[str, Any] | Sequence[tuple[str, Any]], formats: tuple[Format, ...]
) -> NamedTallies:
    """Count the values of floating arrays; outside of `jax.jit`, arrays of one type share a compiled program.

    Args:
        kind: the kind of the values.
        named: arrays by name, or pairs, in which a name may occur several times.
        formats: the formats to answer for.
    """
    tallies: list[Tally] = []
    rows: list[Counted] = []
    pairs: Iterable[tuple[str, Any]] = named.items() if isinstance(named, Mapping) else named
    for name, value in pairs:
        row = row_of(kind, name, value, formats)
        tallies.append(measure(value, row.source, row.questions))
        rows.append(row)
    return NamedTallies(tallies, rows)


def row_of(kind: str, name: str, value: Any, formats: tuple[Format, ...]) -> Counted:
    """What is counted of a floating array or type.

    Args:
        kind: its kind.
        name: its name.
        value: the array, or its abstract value.
        formats: the formats to answer for.

    Raises:
        ArgumentError: for an array of at least 2**32 elements; a `ValueError`.
    """
    if value.size >= 2**32:
        raise ArgumentError(f"{kind} are counted in arrays of less than 2**32 elements, got {value.shape} at {name}")
    source = counted_format(value.dtype)
    parts = 1 if as_format(value.dtype).category != "complex" else 2
    return Counted(kind, name, source, questions_of(source, formats), formats, value.size * parts)
