"""Where batches come from: arrays, which are kept on the device, and iterables of batches."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sized
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax.dtypes import canonicalize_dtype

from supremum.argument_checks import pytree
from supremum.errors import ArgumentError, OperandError, SupremumError, UnknownDtypeError
from supremum.formats import as_format
from supremum.mixed_precision import PolicyWarning
from supremum.mixed_precision.tree_casting import keep_64_bits, native
from supremum.nn.functional.shape_checks import positive_int
from supremum.nn.input_description import described
from supremum.rules.jax import held_dtype
from supremum.training.data.batch import Batch
from supremum.training.data.inputs import refuse_masked
from supremum.training.warnings import TrainingWarning
from supremum.user_frame import warn_user

Shuffler: TypeAlias = np.random.Generator

_NO_BATCH: Final = object()

ON_DEVICE_BYTES = 2**31
"""Arrays up to this size in all are put on the device once, larger ones batch by batch."""


class Selection(NamedTuple):
    """Batches of arrays that are on the device: which examples of them.

    Attributes:
        data: all examples.
        order: the examples of each batch, shape (batches, batch_size).
        position: the number of the first batch.
    """

    data: Batch
    order: jax.Array
    position: jax.Array


class Rows(NamedTuple):
    """Batches of arrays that are on the host: which examples of them.

    Attributes:
        data: all examples, NumPy's arrays.
        order: the examples of each batch, shape (batches, batch_size).
    """

    data: Batch
    order: np.ndarray

    def block(self, start: int, count: int) -> Batch:
        """Some batches, one after the other along a first axis.

        Args:
            start: the number of the first.
            count: how many.
        """
        chosen = self.order[start : start + count]

        def rows(leaf: Any) -> Any:
            return leaf[chosen]

        return jax.tree.map(rows, self.data)


Part: TypeAlias = "Batch | Selection | Rows"
"""What an epoch is given in: one batch, or many of them."""


class Data(Protocol):
    """Batches, epoch after epoch."""

    @property
    def steps(self) -> int | None:
        """How many batches an epoch has; None where that is not known before its end."""
        ...

    @property
    def first(self) -> Batch:
        """A batch to make a model for; only shapes and dtypes count."""
        ...

    def epoch(self, shuffler: Shuffler | None, *, on_host: bool = False) -> Iterator[Part]:
        """The batches of an epoch; a `Selection`, or `Rows`, stands for all that it has.

        Args:
            shuffler: what to shuffle by; None for the order of the data.
            on_host: whether arrays stay there, to be cut for several devices.
        """
        ...


class ArrayData:
    """Arrays with one example per index of their first axis, cut into batches; the last one may be smaller.

    Args:
        x: inputs, a tree of arrays.
        y: labels, likewise, or None.
        sample_weight: shape (examples,), or None.
        batch_size: examples in a batch.

    Raises:
        ArgumentError: for no examples, arrays of different lengths, or a batch size below 1; a `ValueError`.
        OperandError: for what is no array; a `TypeError`.
    """

    def __init__(self, x: Any, y: Any = None, sample_weight: Any = None, *, batch_size: int) -> None:
        self._batch = Batch(
            *(as_arrays(name, part) for name, part in zip(Batch._fields, (x, y, sample_weight), strict=True))
        )
        self.examples = _common_length(self._batch)
        self._batch_size = min(positive_int("batch_size", batch_size), self.examples)
        self._on_device: Batch | None = None

    def in_one_batch(self) -> ArrayData:
        """All examples as one batch."""
        return ArrayData(*self._batch, batch_size=self.examples)

    def part(self, which: slice) -> Batch:
        """Some of the examples.

        Args:
            which: a slice of them.

        Raises:
            ArgumentError: if there are none; a `ValueError`.
        """
        if not len(range(*which.indices(self.examples))):
            raise ArgumentError(f"of {self.examples} examples none would be left")
        return self._rows(which)

    def _rows(self, which: Any) -> Batch:
        def rows(leaf: Any) -> Any:
            return leaf[which]

        return jax.tree.map(rows, self._batch)

    @property
    def steps(self) -> int:
        """How many batches an epoch has."""
        return math.ceil(self.examples / self._batch_size)

    @property
    def first(self) -> Batch:
        """The shapes and dtypes of a batch."""

        def spec(leaf: Any) -> jax.ShapeDtypeStruct:
            return jax.ShapeDtypeStruct((self._batch_size, *leaf.shape[1:]), leaf.dtype)

        return jax.tree.map(spec, self._batch)

    def epoch(self, shuffler: Shuffler | None, *, on_host: bool = False) -> Iterator[Part]:
        """The batches of an epoch, in the order of the data, or in one that the shuffler draws."""
        size, count = self._batch_size, self.examples // self._batch_size
        # On the host: XLA sorts for a permutation, which takes 4.7 ms for 12,800 examples, six steps of a perceptron.
        order = np.arange(self.examples) if shuffler is None else shuffler.permutation(self.examples)
        order = order.astype(np.int32 if self.examples < 2**31 else np.int64)
        whole = [order[: count * size].reshape(count, size)]
        if count * size < self.examples:
            whole.append(order[count * size :][None])
        if on_host or host_is_the_device():
            data: Any = jax.tree.map(np.asarray, self._batch)
            yield from (Rows(data, each) for each in whole)
        elif sum(leaf.nbytes for leaf in jax.tree.leaves(self._batch)) <= ON_DEVICE_BYTES:
            if self._on_device is None:
                self._on_device = jax.device_put(keep_64_bits(self._batch))
            data = self._on_device
            yield from (Selection(data, jnp.asarray(each), jnp.zeros((), jnp.int32)) for each in whole)
        else:
            yield from (self._rows(rows) for each in whole for rows in each)


class IterableData:
    """Batches that something else makes: a list, a generator, a DataLoader of PyTorch, Grain or tf.data.

    A batch is x alone, or a tuple or list of x, y and sample weights, of which the last ones may be left out; its
    leaves are anything that NumPy or DLPack reads. What can be iterated again is, in every epoch; what cannot, such as
    a generator, goes on where it was. The iterable may use the memory of a batch again for the next one: batches are
    copied, but for arrays of JAX, which cannot change.

    Args:
        batches: the iterable.
        steps: how many batches make an epoch; None for all there are. If there are fewer, a `TrainingWarning` says so:
            an epoch then has those that there are, or, of what can be iterated again, some of them twice.

    Raises:
        OperandError: for what cannot be iterated; a `TypeError`.
    """

    def __init__(self, batches: Iterable[Any], *, steps: int | None = None) -> None:
        if not isinstance(batches, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise OperandError(f"data are arrays, or an iterable of batches, not {type(batches).__name__}")
        self._batches = batches
        self._steps = steps
        self._running: Iterator[Any] | None = None
        self._in_pass = 0
        self._peeked: Batch | None = None
        self._has_warned = False

    @property
    def steps(self) -> int | None:
        """How many batches an epoch has; None for as many as come."""
        return len(self._batches) if self._steps is None and isinstance(self._batches, Sized) else self._steps

    @property
    def first(self) -> Batch:
        """The next batch, which stays the next one."""
        if self._peeked is None:
            self._peeked = self._next()
        if self._peeked is None:
            raise ArgumentError("the data gave no batch")
        return self._peeked

    def epoch(self, shuffler: Shuffler | None, *, on_host: bool = False) -> Iterator[Part]:  # noqa: ARG002 (the data shuffles itself)
        """The next batches."""
        if isinstance(self._batches, Sized):
            self._warn_of_repetition(len(self._batches))
        given, last_pass = 0, None
        while given != self._steps:
            batch, self._peeked = self._next() if self._peeked is None else self._peeked, None
            if batch is not None:
                if last_pass is not None:
                    self._warn_of_repetition(last_pass)
                given += 1
                yield batch
                continue
            last_pass, self._in_pass, self._running = self._in_pass, 0, None
            if self._steps is None:
                return
            if not last_pass:
                if given:
                    self._warn(
                        f"{self._steps} steps were asked for, but the data ran out after {given}: let it give a batch "
                        "for every step of every epoch, or ask for fewer steps"
                    )
                return

    def _next(self) -> Batch | None:
        if self._running is None:
            self._running = iter(self._batches)
        found = next(self._running, _NO_BATCH)
        if found is _NO_BATCH:
            return None
        self._in_pass += 1
        try:
            return as_batch(found, copies=True)
        except SupremumError as error:
            error.add_note(f"in batch {self._in_pass - 1} of what the iterable gives (counted from 0)")
            raise

    def _warn_of_repetition(self, batches: int) -> None:
        if self._steps is not None and batches < self._steps:
            number = "1 batch" if batches == 1 else f"{batches} batches"
            self._warn(
                f"{self._steps} steps were asked for, but the data has only {number}, so that some come more than "
                "once: ask for fewer steps"
            )

    def _warn(self, message: str) -> None:
        if not self._has_warned:
            self._has_warned = True
            warn_user(message, TrainingWarning)


def host_is_the_device() -> bool:
    """Whether rows are better taken by NumPy: on CPU XLA takes them one by one, 0.7 us each."""
    return jax.default_backend() == "cpu"


def as_data(x: Any, y: Any, sample_weight: Any, *, batch_size: int | None, steps: int | None = None) -> Data:
    """The data that the arguments of `fit` stand for.

    Raises:
        ArgumentError: for options that the data have no use for; a `ValueError`.
    """
    if isinstance(x, (ArrayData, IterableData)):
        return x
    pytree("x", x)
    if steps is not None:
        steps = positive_int("the number of steps", steps)
    if is_tree_of_arrays(x):
        data = ArrayData(x, y, sample_weight, batch_size=32 if batch_size is None else batch_size)
        return data if steps is None else _Shortened(data, steps)
    for name, value in (("y", y), ("sample_weight", sample_weight), ("batch_size", batch_size)):
        if value is not None:
            raise ArgumentError(f"an iterable gives whole batches, (x, y) or (x, y, sample_weight): leave out {name}=")
    return IterableData(x, steps=steps)


class _Shortened:
    """Arrays of which an epoch takes a number of batches."""

    def __init__(self, data: ArrayData, steps: int) -> None:
        if steps > data.steps:
            raise ArgumentError(f"{data.steps} batches are no {steps} steps: give steps_per_epoch={data.steps} or less")
        self._data, self.steps = data, steps

    @property
    def first(self) -> Batch:
        return self._data.first

    def epoch(self, shuffler: Shuffler | None, *, on_host: bool = False) -> Iterator[Part]:
        left = self.steps
        for part in self._data.epoch(shuffler, on_host=on_host):
            if isinstance(part, (Selection, Rows)):
                part = part._replace(order=part.order[:left])
                left -= part.order.shape[0]
            else:
                left -= 1
            yield part
            if left == 0:
                return


def is_tree_of_arrays(x: Any) -> bool:
    """Whether something is arrays, or dicts, tuples and lists of them, and no iterable of batches.

    A list of tuples or dicts is one of batches; one of arrays is several inputs.
    """
    if isinstance(x, dict):
        return all(is_tree_of_arrays(part) for part in x.values())
    if isinstance(x, tuple):
        return bool(x) and all(is_tree_of_arrays(part) for part in x)
    if isinstance(x, list):
        return bool(x) and all(map(_is_array, x))
    return _is_array(x)


def _is_array(x: Any) -> bool:
    return hasattr(x, "shape") and hasattr(x, "dtype")


def as_batch(batch: Any, *, copies: bool = False) -> Batch:
    """What an iterable gave, as a batch of arrays.

    Args:
        batch: what it gave.
        copies: whether arrays that can change are copied.

    Raises:
        ArgumentError: for a tuple of more than three; a `ValueError`.
        OperandError: for what is no array; a `TypeError`.
    """
    parts = tuple(batch) if isinstance(batch, (tuple, list)) else (batch,)
    if not 1 <= len(parts) <= 3:
        raise ArgumentError(f"a batch is x, (x, y) or (x, y, sample_weight), not {len(parts)} parts")
    made = Batch(*(as_arrays(name, part, copies=copies) for name, part in zip(Batch._fields, parts, strict=False)))
    _common_length(made)
    return made


def as_arrays(name: str, tree: Any, *, copies: bool = False) -> Any:
    """A tree with arrays of NumPy or JAX as leaves, in dtypes that JAX holds.

    Floats that JAX narrows, those of 64 bits with its x64 off, are narrowed with a warning; integers have to fit.

    Args:
        name: what the tree is called, for errors.
        tree: what is given.
        copies: whether arrays that can change, and that were not made here, are copied.
    """
    if tree is None:
        return None
    given = pytree(name, tree)
    if isinstance(tree, list):
        tree = _list_as_array(name, tree)
    is_ours = isinstance(given, list) and tree is not given

    def held(leaf: Any) -> Any:
        array = _as_array(name, leaf)
        found = _as_held(name, array)
        can_change = found is array and not is_ours and not isinstance(leaf, jax.Array)
        return _copied(found) if copies and can_change else found

    return jax.tree.map(held, tree)


def _copied(array: Any) -> Any:
    """A copy that is there when this returns; JAX's own copies may read the memory later."""
    return jnp.array(array, copy=True).block_until_ready() if isinstance(array, jax.Array) else np.array(array)


def _list_as_array(name: str, tree: list[Any]) -> Any:
    """A list of numbers as an array; one of arrays is what a model of several inputs takes."""
    refuse_masked(name, tree)
    if tree and all(hasattr(part, "shape") and np.ndim(part) > 0 for part in tree):
        return tree
    try:
        array = np.asarray(tree)
    except ValueError:
        raise OperandError(
            f"{name} is a list of parts of different lengths: pad them, and give np.asarray(...)"
        ) from None
    # Python's numbers have no width of their own.
    is_inexact = _is_number(array.dtype) and as_format(array.dtype).is_inexact
    return array.astype(canonicalize_dtype(array.dtype)) if is_inexact else array


def _as_array(name: str, leaf: Any) -> Any:
    refuse_masked(name, leaf)
    if isinstance(leaf, (jax.Array, np.ndarray)):
        array = leaf
    else:
        try:
            array = np.asarray(leaf)
        except (TypeError, RuntimeError, ValueError):
            # Tensors of other libraries that NumPy cannot read: those of other devices, bfloat16 of PyTorch.
            array = jnp.from_dlpack(leaf) if hasattr(leaf, "__dlpack__") else np.asarray(None)
    if not _is_number(array.dtype):
        held = f"an array of {array.dtype}, of shape {array.shape}" if array is leaf else f"a {type(leaf).__name__}"
        raise OperandError(f"{name} holds {held}, which is no array of numbers: give np.asarray(...) of numbers")
    if array.ndim == 0:
        raise ArgumentError(f"{name} holds a single number, and its first axis has to be that of the examples")
    return native(array)


def _is_number(dtype: Any) -> bool:
    try:
        as_format(dtype)
    except UnknownDtypeError:
        return False
    return True


def _as_held(name: str, array: Any) -> Any:
    held = held_dtype(array.dtype)
    if held == array.dtype:
        return array
    if as_format(array.dtype).category == "integer":
        limits = as_format(held)
        if array.size and not limits.min <= array.min() <= array.max() <= limits.max:
            raise ArgumentError(
                f"{name} holds {as_format(array.dtype)} numbers that do not fit {limits}, the largest "
                "integer there is with JAX's x64 off: jax.config.update('jax_enable_x64', True), or give smaller ones"
            )
    else:
        warn_user(
            f"{name} is {as_format(array.dtype)}, and JAX narrows it to {as_format(held)}: with "
            f"jax.config.update('jax_enable_x64', True) JAX holds it, and {name}.astype('{as_format(held)}') says that "
            "this is meant",
            PolicyWarning,
        )
    return np.asarray(array).astype(held)


def _common_length(batch: Batch) -> int:
    found = {leaf.shape[0] for leaf in jax.tree.leaves(batch)}
    if len(found) != 1:
        told = described((), {name: part for name, part in batch._asdict().items() if part is not None})
        raise ArgumentError(f"there is one label for each example, and these have different numbers of them: {told}")
    if found == {0}:
        raise ArgumentError("there are no examples: x is empty")
    return found.pop()
