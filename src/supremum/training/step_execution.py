"""Send steps to the device, one by one or several in one dispatch, and keep what one passes to the next."""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable, Iterator
from contextlib import contextmanager
from functools import partial
from operator import itemgetter
from typing import Any, Protocol, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from supremum.argument_checks import whole_number
from supremum.mixed_precision import keep_64_bits
from supremum.nn.functional import MOST
from supremum.training.data import Batch, Data, Rows, Selection, described_batch
from supremum.training.distributed import DataParallel
from supremum.training.donated_carry import DonatedCarry


class KeptCarry:
    """A carry whose memory steps do not reuse.

    Args:
        value: the input of the first step.

    >>> carry = KeptCarry(1)
    >>> carry.step(lambda value: (value + 1, "other results"))
    (2, 'other results')
    >>> carry.value
    2
    """

    def __init__(self, value: Any) -> None:
        self.value = value

    def step(self, run: Callable[..., tuple[Any, ...]], *args: Any) -> tuple[Any, ...]:
        """Run a step, and keep the next value.

        Args:
            run: a function of the value and of `args`; its first result is the next value.
            args: the other arguments.

        Returns:
            The results.
        """
        results = run(self.value, *args)
        self.value: Any = results[0]
        return results

    def show(self, look: Callable[[Any], None]) -> None:
        """Call a function with the value."""
        look(self.value)


Carry: TypeAlias = KeptCarry | DonatedCarry


class Look(Protocol):
    """A function of the carry before a dispatch and of its first batch, which may change neither."""

    def __call__(self, carry: Any, batch: Batch) -> None:
        """Look at both."""
        ...


Watch: TypeAlias = Callable[[int, int], Look | None]
"""A function of the number of steps in a dispatch, and of the version of everything else that the compiled step depends
on, called before the dispatch. It returns a function to call with the values, or None."""


class Execution:
    """A compiled step: a function of a carry, constants, and a batch.

    Sending several steps in one dispatch saves the cost of the other dispatches, about a seventh of a step for a small
    perceptron. But the steps run in a loop on the device, in which XLA's convolutions on CPU use only one core and take
    5 to 24 times as long.

    Args:
        step: the pure function; it returns the next carry and the results of the step to keep.
        steps_per_execution: how many steps to send at once.
        donate: whether the memory of a carry may be reused for the next one.
        distribution: how batches are split over several devices; None for one device.

    Raises:
        OperandError: if `steps_per_execution` is not a whole number; a `TypeError`.
        ArgumentError: for a number below 1; a `ValueError`.
    """

    def __init__(
        self,
        step: Callable[[Any, Any, Batch], tuple[Any, Any]],
        steps_per_execution: int = 1,
        *,
        donate: bool = False,
        distribution: DataParallel | None = None,
    ) -> None:
        self.steps_per_execution: int = whole_number("steps_per_execution", steps_per_execution, 1, MOST)
        self._step = step
        self._distribution = distribution
        self._block = Rows.block if distribution is None else distribution.rows
        self._key: Hashable = None
        self._changes = 0
        donated = (0,) if donate else ()
        self._separate = jax.jit(self._run_separate, static_argnums=3, donate_argnums=donated)
        self._in_rows = jax.jit(self._run_rows, static_argnums=3, donate_argnums=donated)
        self._selected = jax.jit(self._run_selected, static_argnums=(3, 4), donate_argnums=donated)

    def _run_separate(self, carry: Any, constant: Any, batches: list[Batch], key: Hashable) -> tuple[Any, Any]:
        if len(batches) == 1:
            return self._once(carry, constant, batches[0])
        block = jax.tree.map(lambda *leaves: jnp.stack(leaves), *batches)
        return self._run_rows(carry, constant, block, key)

    def _run_rows(self, carry: Any, constant: Any, block: Batch, _: Hashable) -> tuple[Any, Any]:
        if jax.tree.leaves(block)[0].shape[0] == 1:
            return self._once(carry, constant, jax.tree.map(itemgetter(0), block))
        return jax.lax.scan(lambda carry, batch: self._step(carry, constant, batch), carry, block)

    def _once(self, carry: Any, constant: Any, batch: Batch) -> tuple[Any, Any]:
        carry, kept = self._step(carry, constant, batch)
        return carry, _stacked_once(kept)

    def _run_selected(
        self, carry: Any, constant: Any, selection: Selection, count: int, _: Hashable
    ) -> tuple[Any, jax.Array, Any]:
        def one(carry: Any, position: jax.Array) -> tuple[Any, Any]:
            return self._step(carry, constant, _batch_at(selection, position))

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
        shuffler: np.random.Generator | None,
        watch: Watch | None = None,
    ) -> Iterator[tuple[int, Any]]:
        """Run the step over all batches.

        Args:
            data: the batches.
            carry: what one step passes to the next.
            constant: values that steps do not change.
            key: called before each dispatch; returns everything else that the compiled step depends on.
            shuffler: the generator to shuffle with; None for the order of the data.
            watch: called before each dispatch; None for nothing.

        Yields:
            How many steps were sent at once, and the kept results of each, stacked.
        """
        waiting: list[Batch] = []
        done = 0

        def send(batches: list[Batch]) -> tuple[int, Any]:
            nonlocal done
            with _note_batches(done, len(batches), batches[0]):
                version = self._version(key())
                if watch is not None and (look := watch(len(batches), version)) is not None:
                    carry.show(partial(look, batch=batches[0]))
                results = carry.step(self._separate, constant, batches, version)
            done += len(batches)
            return len(batches), results[1]

        for part in data.epoch(shuffler, on_host=self._distribution is not None):
            if isinstance(part, (Selection, Rows)):
                yield from self._over_many(part, carry, constant, key, done, watch)
                done += part.order.shape[0]
                continue
            part = keep_64_bits(part if self._distribution is None else self._distribution.batch(part))
            if waiting and _shapes(waiting[-1]) != _shapes(part):
                yield from (send([batch]) for batch in waiting)
                waiting = []
            waiting.append(part)
            if len(waiting) >= self.steps_per_execution:
                yield send(waiting)
                waiting = []
        yield from (send([batch]) for batch in waiting)

    def _over_many(
        self,
        part: Selection | Rows,
        carry: Carry,
        constant: Any,
        key: Callable[[], Hashable],
        before: int,
        watch: Watch | None,
    ) -> Iterator[tuple[int, Any]]:
        steps, done = part.order.shape[0], 0
        while done < steps:
            count = self.steps_per_execution if steps - done >= self.steps_per_execution else 1
            with _note_batches(before + done, count, part):
                run, args = self._dispatch(part, done, count)
                version = self._version(key())
                if watch is not None and (look := watch(count, version)) is not None:
                    carry.show(partial(look, batch=self._first_batch(part, done)))
                results = carry.step(run, constant, *args, version)
            if isinstance(part, Selection):
                part = part._replace(position=results[1])
            done += count
            yield count, results[-1]

    def _dispatch(self, part: Selection | Rows, done: int, count: int) -> tuple[Any, tuple[Any, ...]]:
        """Return the jitted function that runs some steps, and its arguments between the constants and the version."""
        if isinstance(part, Selection):
            return self._selected, (part, count)
        return self._in_rows, (keep_64_bits(self._block(part, done, count)),)

    def _first_batch(self, part: Selection | Rows, done: int) -> Batch:
        if isinstance(part, Selection):
            return _selected_batch(part)
        return jax.tree.map(itemgetter(0), keep_64_bits(self._block(part, done, 1)))

    def _version(self, key: Hashable) -> int:
        """Return a number that stands for the key, because jit compares a number faster than the key."""
        if key is not self._key and key != self._key:
            self._key = key
            self._changes += 1
        return self._changes


@contextmanager
def _note_batches(first: int, count: int, part: Batch | Selection | Rows) -> Generator[None]:
    """Add a note to errors, saying which batches caused them."""
    try:
        yield
    except Exception as error:
        data, rows = (part, ()) if isinstance(part, Batch) else (part.data, part.order.shape[1:])
        inputs = described_batch(jax.tree.map(partial(_spec_in_batch, rows), data))
        batches = f"batch {first}" if count == 1 else f"one of the batches {first} to {first + count - 1}"
        error.add_note(f"in {batches} (counted from 0), of {inputs}")
        raise


def _spec_in_batch(rows: tuple[int, ...], leaf: Any) -> jax.ShapeDtypeStruct:
    """Return the shape and dtype of a leaf in one batch, given the shape of the rows taken from it; () for all."""
    return jax.ShapeDtypeStruct((*rows, *leaf.shape[len(rows) :]), leaf.dtype)


def _stacked_once(kept: Any) -> Any:
    """Stack the kept results of one step, like those of several."""
    return jax.tree.map(itemgetter(None), kept)


@jax.jit
def _selected_batch(selection: Selection) -> Batch:
    return _batch_at(selection, selection.position)


def _batch_at(selection: Selection, position: jax.Array) -> Batch:
    return jax.tree.map(partial(_taken, selection.order[position]), selection.data)


def _taken(rows: jax.Array, leaf: jax.Array) -> jax.Array:
    return leaf.at[rows].get(mode="promise_in_bounds", unique_indices=True)


def _shapes(batch: Batch) -> Hashable:
    return jax.tree.structure(batch), tuple((leaf.shape, leaf.dtype) for leaf in jax.tree.leaves(batch))
