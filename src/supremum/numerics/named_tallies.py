"""Tallies of values that have names: counted on the device, read on the host."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import numpy as np
from jax.core import ShapedArray

from supremum.errors import ArgumentError
from supremum.formats import Format
from supremum.numerics.tallies import Questions, Tally, elements_of, measure, questions_of
from supremum.numerics.value_counts import ValueCounts, read_counts, sum_counts


@dataclass(frozen=True, slots=True)
class TallyRow:
    """What is counted of some values, and under which name.

    Args:
        kind: the kind of the values, such as `"gradients"`.
        name: the name.
        questions: what is counted.
        elements: the number of values of one run; the parts of a complex number are two.
    """

    kind: str
    name: str
    questions: Questions
    elements: int


@partial(jax.tree_util.register_dataclass, data_fields=["tallies"], meta_fields=["rows"])
@dataclass(frozen=True, eq=False)
class NamedTallies:
    """Tallies with names. It is a pytree, so that a jitted function can return it.

    Args:
        tallies: a tally for each row.
        rows: what was counted.

    >>> import jax.numpy as jnp
    >>> from supremum.formats import as_format
    >>> weights = {"w": jnp.array([1e-9, 1.0])}
    >>> tallies = tallies_of("weights", weights.items(), (as_format("float16"),))
    >>> tallies.counts()["weights"]["w"].formats["float16"].flushed
    1
    """

    tallies: tuple[Tally, ...]
    rows: tuple[TallyRow, ...]

    def __add__(self, other: NamedTallies) -> NamedTallies:
        """These tallies and those of another."""
        return NamedTallies((*self.tallies, *other.tallies), (*self.rows, *other.rows))

    def counts(self) -> dict[str, dict[str, ValueCounts]]:
        """Wait for the tallies, and read them by kind and name; rows of one name are added up."""
        kinds: dict[str, dict[str, list[ValueCounts]]] = {}
        for row, tally in zip(self.rows, jax.device_get(self.tallies), strict=True):
            counts = read_counts(Tally(*map(np.asarray, tally)), row.questions, row.elements)
            kinds.setdefault(row.kind, {}).setdefault(row.name, []).append(counts)
        return {kind: {name: sum_counts(counts) for name, counts in named.items()} for kind, named in kinds.items()}


def tallies_of(kind: str, named: Iterable[tuple[str, Any]], formats: tuple[Format, ...]) -> NamedTallies:
    """Count the values of floating arrays; outside of `jax.jit`, arrays of one type share a compiled program.

    Args:
        kind: the kind of the values.
        named: names and arrays; a name may occur several times.
        formats: the formats to answer for.
    """
    pairs = list(named)
    rows = [row_of(kind, name, value, formats) for name, value in pairs]
    tallies = [measure(value, row.questions) for (_, value), row in zip(pairs, rows, strict=True)]
    return NamedTallies(tuple(tallies), tuple(rows))


def row_of(kind: str, name: str, value: jax.Array | ShapedArray, formats: tuple[Format, ...]) -> TallyRow:
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
    return TallyRow(kind, name, questions_of(value.dtype, formats), elements_of(value))
