"""Training data: batches, and the sources of `fit`, `evaluate` and `predict` that they are cut or taken from."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sized
from operator import itemgetter
from typing import Any, Final, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax.dtypes import canonicalize_dtype

from supremum.argument_checks import flag, pytree
from supremum.data_frames import fix_of_missing_values
from supremum.errors import ArgumentError, OperandError, SupremumError, UnknownDtypeError
from supremum.formats import as_format
from supremum.mixed_precision import PolicyWarning, is_inexact, keep_64_bits, native
from supremum.nn import described
from supremum.nn.functional import positive_int
from supremum.rules import held_dtype
from supremum.training.data.class_weights import as_class_weight, weights_by_class
from supremum.training.data.inputs import refuse_masked
from supremum.training.warnings import TrainingWarning
from supremum.typing import ArrayLike, PyTree
from supremum.user_frame import warn_user

ON_DEVICE_BYTES = 2**31
"""The largest total size of arrays that are put on the device once; larger data goes there batch by batch."""

_NO_BATCH: Final = object()

SampleWeight: TypeAlias = "ArrayLike | Mapping[Any, ArrayLike] | None"
"""The weight of each example, or such weights for outputs by name; None if all have the same weight."""


class Batch(NamedTuple):
    """The data of one training step.

    Attributes:
        x: the inputs of the model: an array, or the structure of arrays that the model takes.
        y: the labels; None if all losses come from the model itself.
        sample_weight: the weight of each example, shape (batch,), or such weights for outputs; None if all have the
            same weight.

    >>> Batch(np.ones((2, 3)), np.ones(2)).sample_weight is None
    True
    """

    x: Any
    y: Any = None
    sample_weight: Any = None


class Selection(NamedTuple):
    """Batches of arrays on the device, given as the indices of their examples.

    Attributes:
        data: all examples.
        order: the indices of the examples of each batch, shape (batches, batch_size).
        position: the index of the first batch.
    """

    data: Batch
    order: jax.Array
    position: jax.Array


def rows_of(batch: Batch, which: slice | np.ndarray[Any, Any]) -> Batch:
    """Select examples of a batch.

    Args:
        batch: the batch.
        which: the index of the examples, as for any array.
    """
    return jax.tree.map(itemgetter(which), batch)


class Rows(NamedTuple):
    """Batches of arrays on the host, given as the indices of their examples.

    Attributes:
        data: all examples, as NumPy arrays.
        order: the indices of the examples of each batch, shape (batches, batch_size).
    """

    data: Batch
    order: np.ndarray

    def block(self, start: int, count: int) -> Batch:
        """Select consecutive batches, stacked along a new first axis.

        Args:
            start: the index of the first batch.
            count: the number of batches.
        """
        return rows_of(self.data, self.order[start : start + count])


Part: TypeAlias = "Batch | Selection | Rows"
"""A piece of an epoch: one batch, or many batches."""


def as_batch(batch: PyTree, *, copies: bool = False) -> Batch:
    """Convert data, such as an item of an iterable, to a batch of arrays.

    Args:
        batch: x alone, or a tuple or list `(x,)`, `(x, y)` or `(x, y, sample_weight)`.
        copies: whether to copy mutable arrays.

    Raises:
        ArgumentError: if the tuple is empty or has more than three parts; a `ValueError`.
        OperandError: if a leaf is not an array; a `TypeError`.
    """
    parts = tuple(batch) if isinstance(batch, (tuple, list)) else (batch,)
    if not 1 <= len(parts) <= 3:
        raise ArgumentError(f"a batch must be x, (x, y) or (x, y, sample_weight), got {len(parts)} parts")
    arrays = Batch(*(_as_arrays(name, part, copies) for name, part in zip(Batch._fields, parts, strict=False)))
    common_length(arrays)
    return arrays


def _as_arrays(name: str, tree: PyTree, copies: bool) -> Any:
    """Convert the leaves of a tree to NumPy or JAX arrays in dtypes that JAX holds.

    With JAX's x64 off, 64-bit floats are narrowed with a warning; integers must fit.

    Args:
        name: the name of the tree in error messages.
        tree: the tree.
        copies: whether to copy mutable arrays that were not created here.
    """
    if tree is None:
        return None
    pytree(name, tree)
    arrays = _list_as_array(name, tree) if isinstance(tree, list) else tree

    def convert(leaf: Any) -> Any:
        array = _as_array(name, leaf)
        narrow = _as_held(name, array)
        can_change = narrow is array and arrays is tree and not isinstance(leaf, jax.Array)
        return _copy(narrow) if copies and can_change else narrow

    return jax.tree.map(convert, arrays)


def _copy(array: Any) -> Any:
    """Copy an array before returning; a plain copy by JAX may read the memory later."""
    return jnp.array(array, copy=True).block_until_ready() if isinstance(array, jax.Array) else np.array(array)


def _list_as_array(name: str, tree: list[Any]) -> Any:
    """Convert a list of numbers to an array; keep a list of arrays and None, those of several inputs or outputs."""
    refuse_masked(name, tree)
    arrays = [part for part in tree if part is not None]
    if arrays and all(hasattr(part, "shape") and np.ndim(part) > 0 for part in arrays):
        return tree
    try:
        array = np.asarray(tree)
    except ValueError:
        raise OperandError(
            f"{name} must not be a list of parts of different lengths; pad them and use np.asarray(...)"
        ) from None
    # Python numbers have no width, so they get JAX's default.
    return array.astype(canonicalize_dtype(array.dtype)) if is_inexact(array) else array


def _as_array(name: str, leaf: Any) -> Any:
    refuse_masked(name, leaf)
    if isinstance(leaf, (jax.Array, np.ndarray)):
        array = leaf
    else:
        if fix := fix_of_missing_values(leaf, None, name):
            raise OperandError(f"{name} must not have missing values, which only float dtypes hold, as NaN; use {fix}")
        try:
            array = np.asarray(leaf)
        except (TypeError, RuntimeError, ValueError):
            # NumPy cannot read some tensors of other libraries: those on other devices, and PyTorch's bfloat16.
            array = jnp.from_dlpack(leaf) if hasattr(leaf, "__dlpack__") else np.asarray(None)
    try:
        as_format(array.dtype)
    except UnknownDtypeError:
        what = f"{array.dtype}{list(array.shape)}" if array is leaf else type(leaf).__name__
        raise OperandError(f"{name} must hold arrays of numbers, got {what}; use np.asarray(...) of numbers") from None
    if array.ndim == 0:
        raise ArgumentError(f"{name} must have a first axis for the examples, got a single number")
    return native(array)


def _as_held(name: str, array: Any) -> Any:
    dtype = held_dtype(array.dtype)
    if dtype == array.dtype:
        return array
    wide, narrow = as_format(array.dtype), as_format(dtype)
    if wide.category == "integer":
        if array.size and not narrow.min <= array.min() <= array.max() <= narrow.max:
            raise ArgumentError(
                f"{name} holds {wide} numbers that do not fit {narrow}, the widest integer with JAX's x64 off; set "
                "jax.config.update('jax_enable_x64', True), or use smaller numbers"
            )
    else:
        warn_user(
            f"{name} is {wide}, and JAX narrows it to {narrow}; set jax.config.update('jax_enable_x64', True) to keep "
            f"it, or narrow it without this warning by {name}.astype('{narrow}')",
            PolicyWarning,
        )
    return np.asarray(array).astype(dtype)


def _apply_class_weight(batch: Batch, class_weight: Mapping[int, float] | None) -> Batch:
    if class_weight is None:
        return batch
    if batch.sample_weight is not None:
        raise ArgumentError(
            "give class_weight or sample_weight, not both; to combine them, multiply both into sample_weight"
        )
    return batch._replace(sample_weight=weights_by_class(batch.y, class_weight))


def describe_batch(batch: Batch) -> str:
    """Describe the parts of a batch: arrays by dtype and shape."""
    return described((), {name: part for name, part in batch._asdict().items() if part is not None})


def common_length(batch: Batch) -> int:
    """Return the number of examples in a batch.

    Raises:
        ArgumentError: if the arrays have different lengths, or no examples; a `ValueError`.
    """
    lengths = {leaf.shape[0] for leaf in jax.tree.leaves(batch)}
    if len(lengths) != 1:
        raise ArgumentError(f"all arrays must have the same number of examples, got {describe_batch(batch)}")
    if lengths == {0}:
        raise ArgumentError("there are no examples: x is empty")
    return lengths.pop()


def _warn_of_few_batches(steps: int, batches: int) -> None:
    warn_user(
        f"{steps} steps were requested, but the data ran out after {batches}, which ends the epoch; provide a batch "
        "for every step of every epoch, or request fewer steps",
        TrainingWarning,
    )


class ArrayData:
    """Arrays with one example per index of their first axis, cut into batches; the last one may be smaller.

    Args:
        x: inputs, a tree of arrays.
        y: labels, a tree of arrays, or None.
        sample_weight: shape (examples,), or None.
        batch_size: the number of examples in a batch.
        steps: the number of batches in an epoch; None for all of them, which is also the most, with a
            `TrainingWarning`.
        class_weight: the weight of the examples of each class, by its number, 1 for others; None for no weights.
            Labels are class numbers or one-hot.

    Raises:
        ArgumentError: if there are no examples, if the arrays have different lengths, if the batch size is below 1, or
            if both kinds of weights are given; a `ValueError`.
        OperandError: if a leaf is not an array; a `TypeError`.

    >>> data = ArrayData(
    ...     np.ones((10, 3), "float32"), np.ones(10, "float32"), None, batch_size=4
    ... )
    >>> data.steps
    3
    """

    def __init__(
        self,
        x: PyTree,
        y: PyTree = None,
        sample_weight: SampleWeight = None,
        *,
        batch_size: int,
        steps: int | None = None,
        class_weight: Mapping[int, float] | None = None,
    ) -> None:
        self._batch = _apply_class_weight(as_batch((x, y, sample_weight)), as_class_weight(class_weight))
        self.examples: int = common_length(self._batch)
        self._batch_size = min(positive_int("batch_size", batch_size), self.examples)
        self._on_device: Batch | None = None
        most = math.ceil(self.examples / self._batch_size)
        if steps is not None and positive_int("the number of steps", steps) > most:
            _warn_of_few_batches(steps, most)
        self.steps: int = most if steps is None else min(steps, most)

    def split(self, share: float) -> tuple[Batch, Batch]:
        """Split the examples in two: the first ones, and the last ones.

        Args:
            share: the fraction of the examples that goes to the second part, between 0 and 1.

        Raises:
            ArgumentError: if one part would be empty; a `ValueError`.
        """
        count = self.examples - int(self.examples * share)
        if not 0 < count < self.examples:
            raise ArgumentError(f"a split of {share} leaves one part of the {self.examples} examples empty")
        return rows_of(self._batch, slice(count)), rows_of(self._batch, slice(count, None))

    @property
    def first(self) -> Batch:
        """The shapes and dtypes of a batch."""

        def spec(leaf: Any) -> jax.ShapeDtypeStruct:
            return jax.ShapeDtypeStruct((self._batch_size, *leaf.shape[1:]), leaf.dtype)

        return jax.tree.map(spec, self._batch)

    def epoch(self, shuffler: np.random.Generator | None, *, on_host: bool = False) -> Iterator[Part]:
        """Yield the batches of an epoch.

        Args:
            shuffler: shuffles the examples; None keeps their order.
            on_host: whether the arrays stay on the host, to be split over several devices.
        """
        per_batch = self._batch_size
        # Shuffle on the host: XLA permutes by sorting, which takes 4.7 ms for 12,800 examples (six perceptron steps).
        order = np.arange(self.examples) if shuffler is None else shuffler.permutation(self.examples)
        order = order.astype(np.int32 if self.examples < 2**31 else np.int64)[: self.steps * per_batch]
        count = len(order) // per_batch
        whole = [order[: count * per_batch].reshape(count, per_batch)]
        if count * per_batch < len(order):
            whole.append(order[count * per_batch :][None])
        size = sum(leaf.nbytes for leaf in jax.tree.leaves(self._batch))
        if on_host or host_is_the_device() or size > ON_DEVICE_BYTES:
            data: Any = jax.tree.map(np.asarray, self._batch)
            yield from (Rows(data, each) for each in whole)
            return
        if self._on_device is None:
            self._on_device = jax.device_put(keep_64_bits(self._batch))
        data = self._on_device
        yield from (Selection(data, jnp.asarray(each), jnp.zeros((), jnp.int32)) for each in whole)

    def __repr__(self) -> str:
        return f"ArrayData({self.examples} examples, batch_size={self._batch_size}, steps={self.steps})"


def host_is_the_device() -> bool:
    """Whether NumPy should select the rows: on a CPU, XLA copies them one by one, 0.7 us each."""
    return jax.default_backend() == "cpu"


class IterableData:
    """Batches from any iterable: a list, a generator, a PyTorch DataLoader, Grain or tf.data.

    A batch is x alone, or a tuple or list (x,), (x, y) or (x, y, sample_weight); its leaves are anything that NumPy or
    DLPack reads. Every epoch iterates over the iterable again; an iterator, such as a generator, continues where it
    stopped. The iterable may reuse the memory of a batch for the next one, because batches are copied, except for JAX
    arrays, which are immutable.

    Args:
        batches: the iterable.
        steps: the number of batches in an epoch; None for all of them. If the iterable has fewer, epochs end early,
            with a `TrainingWarning`.
        class_weight: as for `ArrayData`.
        restarts: whether each epoch begins with the first batch, instead of where the last one ended; an iterator
            cannot be restarted.

    Raises:
        OperandError: if `batches` is not iterable, or `restarts` not a bool; a `TypeError`.

    >>> data = IterableData(
    ...     [(np.ones((4, 3), "float32"), np.ones(4, "float32"))], steps=1
    ... )
    >>> data.steps
    1
    """

    def __init__(
        self,
        batches: Iterable[Any],
        *,
        steps: int | None = None,
        class_weight: Mapping[int, float] | None = None,
        restarts: bool = False,
    ) -> None:
        if not isinstance(batches, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise OperandError(f"data must be arrays or an iterable of batches, got {type(batches).__name__}")
        self._batches = batches
        self._steps = steps
        self._class_weight = as_class_weight(class_weight)
        self._restarts = flag("restarts", restarts) and not isinstance(batches, Iterator)
        self._running: Iterator[Any] | None = None
        self._in_pass = 0
        self._peeked: Batch | None = None
        self._has_warned = False

    @property
    def steps(self) -> int | None:
        """The number of batches in an epoch; None if it is not known."""
        return len(self._batches) if self._steps is None and isinstance(self._batches, Sized) else self._steps

    @property
    def first(self) -> Batch:
        """The next batch, without consuming it."""
        if self._peeked is None:
            self._peeked = self._next()
        if self._peeked is None:
            raise ArgumentError("the data has no batches")
        return self._peeked

    def epoch(self, shuffler: np.random.Generator | None, *, on_host: bool = False) -> Iterator[Part]:  # noqa: ARG002 (the data shuffles itself)
        """Yield the batches of an epoch."""
        if self._restarts:
            self._running, self._in_pass, self._peeked = None, 0, None
        count, is_whole = 0, self._in_pass == (self._peeked is not None)  # whether this epoch has the whole pass
        while count != self._steps:
            batch, self._peeked = self._next() if self._peeked is None else self._peeked, None
            if batch is not None:
                count += 1
                yield batch
                continue
            self._in_pass, self._running = 0, None
            if self._steps is None:
                return
            if is_whole:
                if count and not self._has_warned:
                    self._has_warned = True
                    _warn_of_few_batches(self._steps, count)
                return
            is_whole = True

    def _next(self) -> Batch | None:
        if self._running is None:
            self._running = iter(self._batches)
        item = next(self._running, _NO_BATCH)
        if item is _NO_BATCH:
            return None
        self._in_pass += 1
        try:
            return _apply_class_weight(as_batch(item, copies=True), self._class_weight)
        except SupremumError as error:
            error.add_note(f"in batch {self._in_pass - 1} of what the iterable gives (counted from 0)")
            raise

    def __repr__(self) -> str:
        return f"IterableData({type(self._batches).__name__}, steps={self._steps})"


Data: TypeAlias = ArrayData | IterableData
"""A source of batches for every epoch."""
