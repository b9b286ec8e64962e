"""Counts the values of many arrays together: they are packed into rows of one size, and each row is counted.

A reduction to about twenty counts takes XLA half a second to compile, which each shape would cost again. Rows have one
shape, so that all arrays of a dtype share one program.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from supremum.formats import as_format
from supremum.numerics.tallied_results import Slot
from supremum.numerics.tallies import Questions, Tally, measure

WIDTH: Final = 4096
"""How many values a row has."""
ROWS: Final = 1024
"""How many rows are counted together, a block."""


class Place(NamedTuple):
    """Where a tally is.

    Args:
        block: the index of the block.
        first: the first of its rows; None for a block that is one tally.
        end: the row after the last one.
    """

    block: int
    first: int | None = None
    end: int | None = None


@partial(jax.tree_util.register_dataclass, data_fields=["blocks"], meta_fields=["places"])
@dataclass(frozen=True, eq=False)
class PackedTallies:
    """Several tallies. It is a pytree, so that a jitted function can return it.

    Args:
        blocks: tallies, or those of all rows of a block.
        places: the places of each tally, whose parts are to be added up.
    """

    blocks: list[Tally]
    places: tuple[tuple[Place, ...], ...]

    def only(self, indices: Sequence[int]) -> PackedTallies:
        """Some of the tallies, by their indices."""
        return PackedTallies(self.blocks, tuple(self.places[index] for index in indices))

    def fetch(self) -> list[Tally]:
        """Wait for the tallies, and return them as NumPy arrays, which may have one more axis, of parts to add up."""
        blocks: list[Any] = jax.device_get(self.blocks)

        def part(place: Place) -> Tally:
            counts, least, most = map(np.asarray, blocks[place.block])
            if place.first is None:
                return Tally(counts, least, most)
            rows = slice(place.first, place.end)
            return Tally(counts[..., rows, :, :], least[..., rows], most[..., rows])

        return [
            Tally(*map(np.concatenate, zip(*map(part, places), strict=True), (-3, -1, -1)))
            if len(places) > 1
            else part(*places)
            for places in self.places
        ]


class Packing:
    """Counts the values of arrays, block by block, and keeps none of them."""

    def __init__(self) -> None:
        self._blocks: list[Any] = []
        self._places: dict[Slot, tuple[Place, ...]] = {}
        self._packers: dict[Questions, _Packer] = {}

    def add(self, slot: Slot, value: jax.Array | Tally) -> None:
        """Count a result.

        Args:
            slot: what is counted.
            value: the values, or their tally if they were counted already.
        """
        if not isinstance(value, Tally) and not slot.questions.source.zero:
            value = _count_alone(value, slot.questions, np.uint32(slot.copies))  # only zeros can fill a row
        if isinstance(value, Tally):
            self._places[slot] = (Place(len(self._blocks)),)
            self._blocks.append(value)
            return
        if slot.questions not in self._packers:
            self._packers[slot.questions] = _Packer(slot.questions, self._blocks)
        self._places[slot] = tuple(self._packers[slot.questions].add(value, slot.copies))

    def tallies(self, slots: Iterable[Slot]) -> PackedTallies:
        """The tallies of slots, all of which were added."""
        for packer in self._packers.values():
            packer.count()
        return PackedTallies(self._blocks, tuple(self._places[slot] for slot in slots))


class _Packer:
    """Packs arrays into blocks, and counts each block that is full.

    Args:
        questions: what to count.
        blocks: where to put the tallies of blocks.
    """

    def __init__(self, questions: Questions, blocks: list[Any]) -> None:
        self._questions, self._blocks = questions, blocks
        self._buffer: Any = jnp.zeros((ROWS, WIDTH), questions.source.dtype)
        self._start()

    def _start(self) -> None:
        self._used = 0
        self._runs, self._copies = np.zeros((2, ROWS), "uint32")

    def add(self, array: jax.Array, copies: int) -> Iterator[Place]:
        """Pack an array, each of whose values counts several times; the places of its tallies."""
        is_first = True
        is_complex = as_format(array.dtype).category == "complex"
        for part in (lax.real(array), lax.imag(array)) if is_complex else (array,):
            rows = max(1, -(-part.size // WIDTH))
            for first in range(0, rows, ROWS):
                yield self._pack(part, first, min(rows, ROWS), is_first, copies)
                is_first = False

    def _pack(self, array: Any, first: int, rows: int, is_run: bool, copies: int) -> Place:
        if self._used + rows > ROWS:
            self.count()
        if not self._used:
            self._blocks.append(None)
            self._block = len(self._blocks) - 1
        place = Place(self._block, self._used, self._used + rows)
        self._buffer = _put(self._buffer, array, np.int32(self._used), np.int32(first))
        self._runs[self._used] = is_run
        self._copies[self._used : place.end] = copies
        self._used += rows
        return place

    def count(self) -> None:
        """Count the block, unless it is empty. The rows that no array uses have the values of earlier ones."""
        if self._used:
            self._blocks[self._block] = _count_rows(self._buffer, self._runs, self._copies, self._questions)
            self._start()


@partial(jax.jit, donate_argnums=0)
def _put(buffer: jax.Array, array: jax.Array, row: Any, first: Any) -> jax.Array:
    """Write an array, or the rows of it that begin with `first`, into a block; zeros fill the last row."""
    rows = max(1, -(-array.size // WIDTH))
    part = min(rows, ROWS)
    values = jnp.ravel(array).astype(buffer.dtype)
    values = jnp.pad(values, (0, -(-rows // part) * part * WIDTH - array.size)).reshape(-1, WIDTH)
    taken = lax.dynamic_slice_in_dim(values, first, part)
    return lax.dynamic_update_slice_in_dim(buffer, taken, row, 0)


_count_alone = jax.jit(measure, static_argnums=1)


@partial(jax.jit, static_argnums=3)
def _count_rows(block: jax.Array, runs: Any, copies: Any, questions: Questions) -> Tally:
    """The tallies of the rows of a block, of which only the first rows of arrays count as runs."""
    tallies = jax.vmap(partial(measure, questions=questions))(block, copies=copies)
    return tallies._replace(counts=tallies.counts.at[:, 0, 0].set(runs))
