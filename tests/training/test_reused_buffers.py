"""Iterables that use the memory of a batch again for the next one."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from optional_packages import import_or_skip
from slowly import mostly_slow
from supremum import nn
from supremum.optimizers import SGD
from supremum.training import IterableData, Sequential
from supremum.training.data.conversion import as_batch

NUMBERS = range(1, 7)


class Buffers:
    """Batches of one number, in the same arrays every time."""

    def __init__(self, wrap=lambda x, y, w: (x, y, w), make=lambda shape, dtype: np.zeros(shape, dtype)):
        self.wrap, self.arrays = wrap, [make((1, 1), "float32"), make((1, 1), "float32"), make((1,), "float32")]

    def __iter__(self):
        for number in NUMBERS:
            for array, value in zip(self.arrays, (number, 0, 1), strict=True):
                array[:] = value
            yield self.wrap(*self.arrays)
        for array in self.arrays:
            array[:] = -7


def inside_out(x, y, w):
    """In containers that are used again too."""
    KEPT["x"] = x
    return KEPT, y


KEPT = {}


def from_torch(**options):
    torch = import_or_skip("torch")
    return Buffers(make=lambda shape, dtype: torch.zeros(shape, dtype=getattr(torch, dtype)), **options)


def bfloat16_from_torch():
    torch = import_or_skip("torch")
    return Buffers(make=lambda shape, dtype: torch.zeros(shape, dtype=torch.bfloat16))


class ReadOnly(Buffers):
    """Views that cannot be written to, of memory that is."""

    def __iter__(self):
        for parts in super().__iter__():
            views = [part.view() for part in parts]
            for view in views:
                view.flags.writeable = False
            yield tuple(views)


KINDS = {
    "a generator": lambda: iter(Buffers()),
    "what can be iterated again": Buffers,
    "lists": lambda: Buffers(lambda x, y, w: [x, y]),
    "a dict that is used again": lambda: Buffers(inside_out),
    "nested tuples": lambda: Buffers(lambda x, y, w: ((x, {"same": x}), y, w)),
    "integers": lambda: Buffers(make=lambda shape, dtype: np.zeros(shape, "int32")),
    "integers that are narrowed": lambda: Buffers(make=lambda shape, dtype: np.zeros(shape, "int64")),
    "read-only views": ReadOnly,
    "tensors of PyTorch": from_torch,
    "tensors that NumPy cannot read": bfloat16_from_torch,
}


class First(nn.Layer):
    """The first number of whatever comes, times a weight of 1."""

    def build(self, input_shape):
        self.w = self.add_weight("w", (), jax.nn.initializers.ones)

    def call(self, x):
        return jax.tree.leaves(x)[0].astype("float32") * self.w.value


def compiled(size):
    model = Sequential([First()])
    model.compile(SGD(0.0), "mse", steps_per_execution=size)
    return model


@pytest.mark.one_in(20)
@pytest.mark.parametrize("size", [4, 1])
@pytest.mark.parametrize("make", KINDS.values(), ids=KINDS)
def test_every_batch_is_trained_evaluated_and_predicted_on(make, size):
    squares = [float(number**2) for number in NUMBERS]
    model = compiled(size)
    history = model.fit(make(), validation_data=make(), verbose=0)
    assert history.loss == squares
    assert history.history["loss"] == history.history["val_loss"] == [pytest.approx(np.mean(squares))]
    assert model.evaluate(make(), verbose=0)["loss"] == pytest.approx(np.mean(squares))
    assert model.predict(make(), verbose=0).ravel().tolist() == list(NUMBERS)


@pytest.mark.parametrize("size", mostly_slow([1, 4], 4))
def test_over_epochs_and_with_steps(size):
    model = compiled(size)
    squares = [float(number**2) for number in NUMBERS]
    assert model.fit(Buffers(), epochs=3, verbose=0).loss == squares * 3
    assert model.fit(Buffers(), steps_per_epoch=4, epochs=3, verbose=0).loss == squares * 2
    assert model.predict(Buffers(), steps=2, verbose=0).ravel().tolist() == [1, 2]


def test_arrays_of_jax_and_those_made_here_are_not_copied():
    x, y = jnp.ones((2, 1)), jnp.zeros(2)
    batch = next(iter(IterableData([(x, {"a": y})]).epoch(None)))
    assert batch.x is x
    assert batch.y["a"] is y
    made = []

    class Counting(np.ndarray):
        def __array_finalize__(self, other):
            made.append(other)

    as_batch(([1.0, 2.0], [1, 2]), copies=True)
    assert not made
    given = np.ones((2, 1), "float32").view(Counting)
    del made[:]
    kept = as_batch(given, copies=True).x
    assert type(kept) is np.ndarray
    assert not np.shares_memory(kept, given)
    assert as_batch(given).x is given
    wide = np.ones((2, 1), "int64")
    assert as_batch(wide, copies=True).x.dtype == "int32"


@pytest.mark.parametrize("run", mostly_slow(["fit", "evaluate", "predict"], "evaluate"))
def test_a_step_that_still_runs_does_not_see_the_next_batch(run):
    """JAX reads large arrays of NumPy where they lie, when it comes to them."""

    def batches():
        memory = np.zeros(2**20 + 16, "float32")
        start = (-memory.ctypes.data % 64) // 4  # JAX copies what is not at a multiple of 64
        x = memory[start : start + 2**20].reshape(-1, 1)
        for number in NUMBERS:
            x[:] = number
            yield (x,) if run == "predict" else (x, np.zeros_like(x))

    model = compiled(1)
    if run == "fit":
        assert model.fit(batches(), verbose=0).loss == [float(number**2) for number in NUMBERS]
    elif run == "evaluate":
        assert model.evaluate(batches(), verbose=0)["loss"] == pytest.approx(np.mean(np.square(NUMBERS)))
    else:
        assert np.unique(model.predict(batches(), verbose=0), return_counts=True)[1].tolist() == [2**20] * 6
