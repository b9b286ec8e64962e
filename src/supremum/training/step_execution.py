"""Send steps to the device, one by one or several in one dispatch, and keep what one passes to the next."""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from operator import itemgetter
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from supremum.argument_checks import whole_number
from supremum.mixed_precision import keep_64_bits
from supremum.nn.functional import MOST
from supremum.training.data import Batch, Data, Rows, Selection, describe_batch
from supremum.training.distributed import DataParallel
from supremum.training.donated_carry import DonatedCarry
from supremum.typing import PyTree

Sent: TypeAlias = "list[Batch] | Batch | Selection"
"""The batches of one dispatch: a list of them, their arrays stacked, or the indices of their examples."""
Begin: TypeAlias = Callable[[int, Callable[[], Batch]], Hashable]
"""A function that is called before each dispatch, with its number of steps and a function that returns its first batch.

It returns everything else that the compiled step depends on."""


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

    def __init__(self, value: PyTree) -> None:
        self.value = value

    def step(self, run: Callable[..., tuple[Any, ...]], *args: object) -> tuple[Any, ...]:
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
        self._run = jax.jit(self._run_steps, static_argnums=(3, 4), donate_argnums=(0,) if donate else ())

    def _run_steps(
        self, carry: Any, constant: Any, sent: Sent, count: int, _: Hashable
    ) -> tuple[Any, Any, jax.Array | None]:
        """Return the next carry, the kept results of the steps, stacked, and the position after them in a selection."""
        after = sent.position + count if isinstance(sent, Selection) else None
        if count == 1:
            carry, results = self._step(carry, constant, _first_batch(sent))
            return carry, jax.tree.map(itemgetter(None), results), after
        items: Any = sent
        if isinstance(sent, Selection):
            items = sent.position + jnp.arange(count)
        elif isinstance(sent, list):
            items = jax.tree.map(lambda *leaves: jnp.stack(leaves), *sent)

        def one(carry: Any, item: Any) -> tuple[Any, Any]:
            return self._step(carry, constant, _batch_at(sent, item) if isinstance(sent, Selection) else item)

        carry, results = jax.lax.scan(one, carry, items)
        return carry, results, after

    def over(
        self,
        data: Data,
        carry: KeptCarry | DonatedCarry,
        constant: PyTree,
        begin: Begin,
        shuffler: np.random.Generator | None,
    ) -> Iterator[tuple[int, Any]]:
        """Run the step over all batches.

        Args:
            data: the batches.
            carry: what one step passes to the next.
            constant: values that steps do not change.
            begin: called before each dispatch.
            shuffler: the generator to shuffle with; None for the order of the data.

        Yields:
            How many steps were sent at once, and the kept results of each, stacked.
        """
        done, position = 0, None
        for part, start, count in self._dispatches(data.epoch(shuffler, on_host=self._distribution is not None)):
            with _note_batches(done, count, part):
                sent: Sent = keep_64_bits(self._block(part, start, count)) if isinstance(part, Rows) else part
                if isinstance(part, Selection) and start:
                    sent = part._replace(position=position)
                version = self._version(begin(count, partial(_first_batch, sent)))
                _, results, position = carry.step(self._run, constant, sent, count, version)
            done += count
            yield count, results

    def _dispatches(
        self, parts: Iterable[Batch | Selection | Rows]
    ) -> Iterator[tuple[list[Batch] | Selection | Rows, int, int]]:
        """Return what to send at once: a part, the first of its batches, and how many."""
        most = self.steps_per_execution
        waiting: list[Batch] = []
        for part in parts:
            if isinstance(part, (Selection, Rows)):
                start, steps = 0, part.order.shape[0]
                while start < steps:
                    count = most if steps - start >= most else 1
                    yield part, start, count
                    start += count
                continue
            batch = keep_64_bits(part if self._distribution is None else self._distribution.batch(part))
            if waiting and _shapes(waiting[-1]) != _shapes(batch):
                yield from (([each], 0, 1) for each in waiting)
                waiting = []
            waiting.append(batch)
            if len(waiting) == most:
                yield waiting, 0, most
                waiting = []
        yield from (([each], 0, 1) for each in waiting)

    def _version(self, key: Hashable) -> int:
        """Return a number that stands for the key, because jit compares a number faster than the key."""
        if key is not self._key and key != self._key:
            self._key = key
            self._changes += 1
        return self._changes


@contextmanager
def _note_batches(first: int, count: int, part: list[Batch] | Selection | Rows) -> Generator[None]:
    """Add a note to errors, saying which batches caused them."""
    try:
        yield
    except Exception as error:
        data, rows = (part[0], ()) if isinstance(part, list) else (part.data, part.order.shape[1:])
        inputs = describe_batch(jax.tree.map(partial(_spec_in_batch, rows), data))
        batches = f"batch {first}" if count == 1 else f"one of the batches {first} to {first + count - 1}"
        error.add_note(f"in {batches} (counted from 0), of {inputs}")
        raise


def _spec_in_batch(rows: tuple[int, ...], leaf: Any) -> jax.ShapeDtypeStruct:
    """Return the shape and dtype of a leaf in one batch, given the shape of the rows taken from it; () for all."""
    return jax.ShapeDtypeStruct((*rows, *leaf.shape[len(rows) :]), leaf.dtype)


def _first_batch(sent: Sent) -> Batch:
    if isinstance(sent, Selection):
        return _batch_at(sent, sent.position)
    return sent[0] if isinstance(sent, list) else jax.tree.map(itemgetter(0), sent)


@partial(jax.jit, inline=True)
def _batch_at(selection: Selection, position: jax.Array) -> Batch:
    return jax.tree.map(partial(_take_rows, selection.order[position]), selection.data)


def _take_rows(rows: jax.Array, leaf: jax.Array) -> jax.Array:
    return leaf.at[rows].get(mode="promise_in_bounds", unique_indices=True)


def _shapes(batch: Batch) -> Hashable:
    return jax.tree.structure(batch), tuple((leaf.shape, leaf.dtype) for leaf in jax.tree.leaves(batch))
