"""Data iterables that reuse the memory of one batch for the next."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from optional_packages import import_or_skip
from slowly import mostly_slow
from supremum import nn
from supremum.optimizers import SGD
from supremum.training import IterableData, Sequential
from supremum.training.data import as_batch

NUMBERS = range(1, 7)


class Buffers:
    """Yield batches of one number each, always in the same arrays."""

    def __init__(self, wrap=lambda x, y, w: (x, y, w), make=lambda shape, dtype: np.zeros(shape, dtype)):
        self.wrap, self.arrays = wrap, [make((1, 1), "float32"), make((1, 1), "float32"), make((1,), "float32")]

    def __iter__(self):
        for number in NUMBERS:
            for array, value in zip(self.arrays, (number, 0, 1), strict=True):
                array[:] = value
            yield self.wrap(*self.arrays)
        for array in self.arrays:
            array[:] = -7


def in_reused_dict(x, y, w):
    """Return the arrays in a dict that is reused too."""
    REUSED_DICT["x"] = x
    return REUSED_DICT, y


REUSED_DICT = {}


def from_torch(name=None):
    torch = import_or_skip("torch")
    return Buffers(make=lambda shape, dtype: torch.zeros(shape, dtype=getattr(torch, name or dtype)))


class ReadOnly(Buffers):
    """Yield read-only views of memory that is overwritten."""

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
    "a dict that is used again": lambda: Buffers(in_reused_dict),
    "nested tuples": lambda: Buffers(lambda x, y, w: ((x, {"same": x}), y, w)),
    "integers": lambda: Buffers(make=lambda shape, dtype: np.zeros(shape, "int32")),
    "integers that are narrowed": lambda: Buffers(make=lambda shape, dtype: np.zeros(shape, "int64")),
    "read-only views": ReadOnly,
    "tensors of PyTorch": from_torch,
    "tensors that NumPy cannot read": lambda: from_torch("bfloat16"),
}


class FirstInput(nn.Layer):
    """Multiply the first input array by a weight of 1."""

    def build(self, input_shape):
        self.w = self.add_weight("w", (), jax.nn.initializers.ones)

    def call(self, x):
        return jax.tree.leaves(x)[0].astype("float32") * self.w.value


def compiled(size):
    model = Sequential([FirstInput()])
    model.compile(SGD(0.0), "mse", steps_per_execution=size)
    return model


@pytest.mark.one_in(20)
@pytest.mark.parametrize("size", [4, 1])
@pytest.mark.parametrize("make", KINDS.values(), ids=KINDS)
def test_fit_evaluate_and_predict_see_every_batch(make, size):
    squares = [float(number**2) for number in NUMBERS]
    model = compiled(size)
    history = model.fit(make(), validation_data=make(), verbose=0)
    assert history.loss == squares
    assert history.history["loss"] == history.history["val_loss"] == [pytest.approx(np.mean(squares))]
    assert model.evaluate(make(), verbose=0) == pytest.approx(np.mean(squares))
    assert model.predict(make(), verbose=0).ravel().tolist() == list(NUMBERS)


@pytest.mark.parametrize("size", mostly_slow([1, 4], 4))
def test_epochs_and_steps_see_the_right_batches(size):
    model = compiled(size)
    squares = [float(number**2) for number in NUMBERS]
    assert model.fit(Buffers(), epochs=3, verbose=0).loss == squares * 3
    assert model.fit(Buffers(), steps_per_epoch=4, epochs=3, verbose=0).loss == squares * 2
    assert model.predict(Buffers(), steps=2, verbose=0).ravel().tolist() == [1, 2]


def test_only_arrays_that_the_caller_can_overwrite_are_copied():
    x, y = jnp.ones((2, 1)), jnp.zeros(2)
    batch = next(iter(IterableData([(x, {"a": y})]).epoch(None)))
    assert batch.x is x
    assert batch.y["a"] is y
    casts = []

    class CastCounter(np.ndarray):
        def __array_finalize__(self, other):
            casts.append(other)

    as_batch(([1.0, 2.0], [1, 2]), copies=True)
    assert not casts
    given = np.ones((2, 1), "float32").view(CastCounter)
    del casts[:]
    kept = as_batch(given, copies=True).x
    assert type(kept) is np.ndarray
    assert not np.shares_memory(kept, given)
    assert as_batch(given).x is given
    wide = np.ones((2, 1), "int64")
    assert as_batch(wide, copies=True).x.dtype == "int32"


@pytest.mark.parametrize("run", mostly_slow(["fit", "evaluate", "predict"], "evaluate"))
def test_a_running_step_does_not_see_the_next_batch(run):
    """JAX reads large NumPy arrays in place, when the step runs."""

    def batches():
        memory = np.zeros(2**20 + 16, "float32")
        start = (-memory.ctypes.data % 64) // 4  # JAX copies arrays that are not aligned to 64 bytes
        x = memory[start : start + 2**20].reshape(-1, 1)
        for number in NUMBERS:
            x[:] = number
            yield (x,) if run == "predict" else (x, np.zeros_like(x))

    model = compiled(1)
    if run == "fit":
        assert model.fit(batches(), verbose=0).loss == [float(number**2) for number in NUMBERS]
    elif run == "evaluate":
        assert model.evaluate(batches(), verbose=0) == pytest.approx(np.mean(np.square(NUMBERS)))
    else:
        assert np.unique(model.predict(batches(), verbose=0), return_counts=True)[1].tolist() == [2**20] * 6
