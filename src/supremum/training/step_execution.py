"""How steps are sent to the device: one by one, or several in one dispatch."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Hashable, Iterator
from contextlib import contextmanager
from functools import partial
from operator import itemgetter
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from supremum.argument_checks import whole_number
from supremum.errors import UnknownNameError
from supremum.mixed_precision import keep_64_bits
from supremum.nn import described
from supremum.nn.functional import MOST
from supremum.training.data import Batch, Data, Rows, Selection
from supremum.training.distributed import DataParallel
from supremum.training.step_carry import Carry

SEVERAL = 16
"""How many steps `"auto"` tries in one dispatch."""

_MEASURED = 4
"""Of how many dispatches one by one `"auto"` takes the median time, after one that compiles."""


class Execution:
    """A step, compiled: a function of a carry, what does not change, and a batch.

    Several steps in one dispatch save what a dispatch costs, about a seventh of a step of a small perceptron; they run
    in a loop on the device, in which XLA's convolutions on CPU do not use more than one core, and take 5 to 24 times
    as long. `"auto"` therefore measures both on real steps, and keeps the faster.

    Args:
        step: the pure function; it returns the next carry and what is kept of the step.
        steps_per_execution: how many steps to send at once, or `"auto"`.
        donate: whether the memory of a carry may be used for the next one.
        distribution: over which devices batches are cut; None for one device.

    Raises:
        ArgumentError: for a number below 1; a `ValueError`.
        UnknownNameError: for another word than `"auto"`; a `ValueError`.
    """

    def __init__(
        self,
        step: Callable[[Any, Any, Batch], tuple[Any, Any]],
        steps_per_execution: int | str = 1,
        *,
        donate: bool = False,
        distribution: DataParallel | None = None,
    ) -> None:
        if isinstance(steps_per_execution, str) and steps_per_execution != "auto":
            raise UnknownNameError("steps_per_execution", steps_per_execution, ["auto"])
        automatic = isinstance(steps_per_execution, str)
        self.chosen: int | None = (
            None if automatic else whole_number("steps_per_execution", steps_per_execution, 1, MOST)
        )
        self._times: dict[int, list[float]] = {1: [], SEVERAL: []}
        self.most_at_once = SEVERAL if self.chosen is None else self.chosen
        self._step = step
        self._distribution = distribution
        self._key: Hashable = None
        self._changes = 0
        donated = (0,) if donate else ()
        self._separate = jax.jit(self._run_separate, static_argnums=3, donate_argnums=donated)
        self._in_rows = jax.jit(self._run_rows, static_argnums=3, donate_argnums=donated)
        self._selected = jax.jit(self._run_selected, static_argnums=(3, 4), donate_argnums=donated)

    def _run_separate(self, carry: Any, constant: Any, batches: list[Batch], _: Hashable) -> tuple[Any, Any]:
        if len(batches) == 1:
            return self._once(carry, constant, batches[0])
        return self._scanned(carry, constant, jax.tree.map(lambda *leaves: jnp.stack(leaves), *batches))

    def _run_rows(self, carry: Any, constant: Any, block: Batch, _: Hashable) -> tuple[Any, Any]:
        if jax.tree.leaves(block)[0].shape[0] == 1:
            return self._once(carry, constant, jax.tree.map(itemgetter(0), block))
        return self._scanned(carry, constant, block)

    def _once(self, carry: Any, constant: Any, batch: Batch) -> tuple[Any, Any]:
        carry, kept = self._step(carry, constant, batch)
        return carry, _stacked_once(kept)

    def _scanned(self, carry: Any, constant: Any, batches: Batch) -> tuple[Any, Any]:
        return jax.lax.scan(lambda carry, batch: self._step(carry, constant, batch), carry, batches)

    def _run_selected(
        self, carry: Any, constant: Any, selection: Selection, count: int, _: Hashable
    ) -> tuple[Any, jax.Array, Any]:
        def one(carry: Any, position: jax.Array) -> tuple[Any, Any]:
            rows = selection.order[position]
            return self._step(carry, constant, jax.tree.map(partial(_taken, rows), selection.data))

        if count == 1:
            carry, kept = one(carry, selection.position)
            kept = _stacked_once(kept)
        else:
            carry, kept = jax.lax.scan(one, carry, selection.position + jnp.arange(count))
        return carry, selection.position + count, kept

    def over(
        self,
        data: Data,
        carry: Carry,
        constant: Any,
        key: Callable[[], Hashable],
        shuffler: np.random.Generator | None = None,
    ) -> Iterator[tuple[int, Any]]:
        """Run the step over all batches.

        Args:
            data: the batches.
            carry: what one step hands to the next.
            constant: what does not change.
            key: gives what else is compiled in, before each dispatch.
            shuffler: what to shuffle by; None for the order of the data.

        Yields:
            How many steps were sent at once, and what was kept of each, stacked.
        """
        waiting: list[Batch] = []
        done = 0

        def send(batches: list[Batch]) -> tuple[int, Any]:
            nonlocal done
            with _noting(done, len(batches), batches[0]):
                results = _sent(carry, self._separate, constant, batches, self._version(key()))
            done += len(batches)
            return len(batches), results[1]

        for part in data.epoch(shuffler, on_host=self._distribution is not None):
            if isinstance(part, (Selection, Rows)):
                yield from self._over_many(part, carry, constant, key, done)
                done += part.order.shape[0]
                continue
            part = keep_64_bits(part if self._distribution is None else self._distribution.batch(part))
            if self.chosen is None:
                # Batches that come one by one are not waited for unless that was asked for.
                self.chosen = 1
            if waiting and _shapes(waiting[-1]) != _shapes(part):
                yield from (send([batch]) for batch in waiting)
                waiting = []
            waiting.append(part)
            if len(waiting) >= self.chosen:
                yield send(waiting)
                waiting = []
        yield from (send([batch]) for batch in waiting)

    def _over_many(
        self, part: Selection | Rows, carry: Carry, constant: Any, key: Callable[[], Hashable], before: int
    ) -> Iterator[tuple[int, Any]]:
        steps, done = part.order.shape[0], 0
        # The last batch of an epoch, which may be smaller, is compiled separately and is not measured.
        is_measured = self.chosen is None and steps > 1
        while done < steps:
            count = self._next_count(steps - done)
            start = time.perf_counter()
            with _noting(before + done, count, part):
                if isinstance(part, Rows):
                    block = self._block(part, done, count)
                    results = _sent(carry, self._in_rows, constant, block, self._version(key()))
                else:
                    results = _sent(carry, self._selected, constant, part, count, self._version(key()))
                    part = part._replace(position=results[1])
            if is_measured and self.chosen is None:
                jax.block_until_ready(results)
                self._times[count].append((time.perf_counter() - start) / count)
            done += count
            yield count, results[-1]

    def _block(self, part: Rows, start: int, count: int) -> Batch:
        if self._distribution is not None:
            return self._distribution.rows(part, start, count)
        return keep_64_bits(part.block(start, count))

    def _version(self, key: Hashable) -> int:
        """A number for what is compiled in, which jit compares faster than the whole of it."""
        if key is not self._key and key != self._key:
            self._key = key
            self._changes += 1
        return self._changes

    def _next_count(self, left: int) -> int:
        """How many steps to send next; while that is not chosen, those that are still to be measured."""
        if self.chosen is None:
            single, several = self._times[1], self._times[SEVERAL]
            if len(single) <= _MEASURED:
                return 1
            if len(several) < 2:
                return SEVERAL if left >= SEVERAL else 1
            # The first dispatch of each kind includes compilation.
            self.chosen = SEVERAL if several[1] < sorted(single[1:])[(len(single) - 1) // 2] else 1
        return self.chosen if left >= self.chosen else 1


@contextmanager
def _noting(first: int, count: int, part: Batch | Selection | Rows) -> Generator[None]:
    """Note on an error which batches it came from."""
    try:
        yield
    except Exception as error:
        data: Any = part if isinstance(part, Batch) else part.data
        rows = () if isinstance(part, Batch) else part.order.shape[1:]
        inputs = {
            name: jax.tree.map(partial(_in_batch, rows), each)
            for name, each in data._asdict().items()
            if each is not None
        }
        batches = f"batch {first}" if count == 1 else f"one of the batches {first} to {first + count - 1}"
        error.add_note(f"in {batches} (counted from 0), of {described((), inputs)}")
        raise


def _in_batch(rows: tuple[int, ...], leaf: Any) -> jax.ShapeDtypeStruct:
    """What a leaf is in one batch, given the number of rows that are taken of it; () for all."""
    return jax.ShapeDtypeStruct((*rows, *leaf.shape[len(rows) :]), leaf.dtype)


def _sent(carry: Carry, compiled: Callable[..., Any], *args: Any) -> tuple[Any, ...]:
    return carry.step(lambda value: compiled(value, *args))


def _stacked_once(kept: Any) -> Any:
    """What was kept of one step, as of several."""
    return jax.tree.map(itemgetter(None), kept)


def _taken(rows: jax.Array, leaf: jax.Array) -> jax.Array:
    return leaf.at[rows].get(mode="promise_in_bounds", unique_indices=True)


def _shapes(batch: Batch) -> Any:
    return jax.tree.structure(batch), [(leaf.shape, leaf.dtype) for leaf in jax.tree.leaves(batch)]
