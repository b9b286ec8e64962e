"""Batches from arrays, iterables and data loaders."""

import itertools

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

from optional_packages import import_or_skip
from supremum.errors import ArgumentError, OperandError
from supremum.mixed_precision import PolicyWarning
from supremum.training import TrainingWarning
from supremum.training.data import ArrayData, Batch, IterableData, Rows, Selection, as_batch, as_data
from supremum.training.data import batches as module


def batches_of(data, seed=None):
    """Return all batches of an epoch as NumPy arrays."""
    batches = []
    for part in data.epoch(None if seed is None else np.random.default_rng(seed)):
        if isinstance(part, (Selection, Rows)):
            batches += [
                jax.tree.map(lambda leaf, rows=rows: np.asarray(leaf)[rows], part.data)
                for rows in np.asarray(part.order)
            ]
        else:
            batches.append(part)
    return batches


@pytest.fixture(params=["on the host", "on the device", "too large for the device"])
def data_place(request, monkeypatch):
    if request.param != "on the host":
        monkeypatch.setattr(module, "host_is_the_device", lambda: False)
    if request.param == "too large for the device":
        monkeypatch.setattr(module, "ON_DEVICE_BYTES", 0)


class TestArrays:
    x = np.arange(20.0, dtype="float32").reshape(10, 2)
    y, weights = np.arange(10, dtype="int32"), np.ones(10, "float32")

    def test_batches_are_rows_in_order_and_the_last_may_be_smaller(self, data_place):
        data = ArrayData(self.x, self.y, self.weights, batch_size=4)
        batches = batches_of(data)
        assert data.steps == len(batches) == 3
        assert [len(batch.y) for batch in batches] == [4, 4, 2]
        np.testing.assert_array_equal(np.concatenate([batch.x for batch in batches]), self.x)
        np.testing.assert_array_equal(np.concatenate([batch.y for batch in batches]), self.y)

    def test_shuffling_permutes_all_parts_alike_and_depends_on_the_seed(self, data_place):
        data = ArrayData({"a": self.x, "b": self.x * 2}, self.y, batch_size=4)
        first, again, other = (batches_of(data, seed) for seed in (0, 0, 1))
        order = np.concatenate([batch.y for batch in first])
        assert sorted(order) == list(range(10))
        assert list(order) != list(range(10))
        np.testing.assert_array_equal(np.concatenate([batch.x["a"] for batch in first]), self.x[order])
        np.testing.assert_array_equal(np.concatenate([batch.x["b"] for batch in first]), 2 * self.x[order])
        np.testing.assert_array_equal(order, np.concatenate([batch.y for batch in again]))
        assert list(order) != list(np.concatenate([batch.y for batch in other]))

    def test_accepts_lists_jax_arrays_and_narrow_formats(self):
        narrow = self.x.astype(ml_dtypes.bfloat16)
        data = ArrayData([jnp.asarray(self.x), narrow], self.y.tolist(), batch_size=5)
        batch = batches_of(data)[0]
        assert [leaf.dtype for leaf in jax.tree.leaves(batch)] == ["float32", "bfloat16", "int32"]
        assert data.first.x[0].shape == (5, 2)

    @pytest.mark.parametrize(
        ("arguments", "options", "error", "message"),
        [
            ((x, y[:9]), {}, ArgumentError, r"x=float32\[10,2\], y=int32\[9\]"),
            ((x, y, weights[:5]), {}, ArgumentError, r"sample_weight=float\d+\[5\]"),
            (({"a": x, "b": x[:3]},), {}, ArgumentError, r"float32\[10,2\], \'b\': float32\[3,2\]"),
            ((x[:0], y[:0]), {}, ArgumentError, "x is empty"),
            ((x,), {"batch_size": 0}, ArgumentError, "batch_size must be an integer of at least 1, got 0"),
            ((x,), {"batch_size": 2.0}, ArgumentError, r"got 2\.0"),
            ((np.float32(3),), {}, ArgumentError, "single number"),
            ((np.array(["a", "b"], object),), {}, OperandError, "must hold arrays of numbers"),
            ((["a", "b"],), {}, OperandError, "must hold arrays of numbers"),
            (([[1, 2], [3]],), {}, OperandError, "different lengths"),
        ],
    )
    def test_invalid_arguments_raise(self, arguments, options, error, message):
        with pytest.raises(error, match=message):
            ArrayData(*arguments, **{"batch_size": 2, **options})

    def test_narrowed_floats_warn_and_integers_that_do_not_fit_raise(self):
        with pytest.warns(PolicyWarning, match=r"y is float64.*y.astype\('float32'\)"):
            assert ArrayData(self.x, self.y / 3.0, batch_size=2).first.y.dtype == "float32"
        assert ArrayData(self.x, self.y.astype("int64"), batch_size=2).first.y.dtype == "int32"
        with pytest.raises(ArgumentError, match="int64 numbers that do not fit int32"):
            ArrayData(self.x, self.y.astype("int64") + 2**31, batch_size=2)
        with jax.enable_x64(True):
            data = ArrayData(self.x, self.y.astype("int64") + 2**31, batch_size=2)
            assert batches_of(data)[0].y.tolist() == [2**31, 2**31 + 1]


PARTS = [(np.full((2, 1), float(number), "float32"), np.full(2, number, "int32")) for number in range(3)]


class TestIterables:
    @staticmethod
    def numbers(data):
        return [int(batch.y[0]) for batch in data.epoch(None)]

    @pytest.mark.parametrize(
        ("make", "steps", "epochs"),
        [
            (lambda: IterableData(PARTS), 3, [[0, 1, 2], [0, 1, 2]]),
            (lambda: IterableData(part for part in PARTS), None, [[0, 1, 2], []]),
            (lambda: IterableData(PARTS, steps=2), 2, [[0, 1], [2, 0], [1, 2]]),
            (lambda: IterableData(PARTS, steps=3), 3, [[0, 1, 2]] * 3),
            *[
                (lambda make=make, steps=steps: IterableData(make(PARTS), steps=steps), steps, [[0, 1, 2][:steps]])
                for make, steps in itertools.product((list, iter), (1, 2, 3))
            ],
        ],
    )
    def test_an_epoch_continues_where_the_last_one_ended(self, make, steps, epochs):
        data = make()
        assert data.steps == steps
        assert data.first.y[0] == data.first.y[0] == 0
        assert [self.numbers(data) for _ in epochs] == epochs

    def test_an_iterator_that_ends_within_an_epoch_warns(self):
        data = IterableData(iter(PARTS), steps=2)
        assert self.numbers(data) == [0, 1]
        with pytest.warns(TrainingWarning, match="2 steps were requested, but the data ran out after 1"):
            assert self.numbers(data) == [2]
        assert self.numbers(data) == []

    def test_fewer_batches_than_steps_warn_once(self):
        class Unsized:
            def __iter__(self):
                return iter(PARTS)

        class Once:
            """Can be iterated again, but is then empty."""

            def __init__(self):
                self.parts = iter(PARTS)

            def __iter__(self):
                yield from self.parts

        ran_out = "5 steps were requested, but the data ran out after 3"
        for batches, steps, message, expected in [
            (PARTS, 5, ran_out, [[0, 1, 2], [0, 1, 2]]),
            (Unsized(), 5, ran_out, [[0, 1, 2], [0, 1, 2]]),
            (Once(), 5, ran_out, [[0, 1, 2], []]),
            ((part for part in PARTS), 5, ran_out, [[0, 1, 2], []]),
            (iter(PARTS), 2, "2 steps were requested, but the data ran out after 1", [[0, 1], [2], []]),
        ]:
            data = IterableData(batches, steps=steps)
            with pytest.warns(TrainingWarning, match=message) as caught:
                assert [self.numbers(data) for _ in expected] == expected
            assert len(caught) == 1

    def test_steps_limit_the_batches_of_arrays(self):
        x = np.arange(10, dtype="float32")
        assert [len(each) for each in [batches_of(as_data(x, x, None, batch_size=4, steps=2))]] == [2]
        with pytest.warns(TrainingWarning, match="4 steps were requested, but the data ran out after 3, which ends"):
            assert as_data(x, x, None, batch_size=4, steps=4).steps == 3

    def test_as_batch_accepts_arrays_dicts_pairs_triples_and_tensors(self):
        x, y = PARTS[0]
        assert as_batch(x).y is None
        assert as_batch([x, y]).y is y
        assert as_batch({"a": x}).x["a"] is x
        assert as_batch((x, y, y)).sample_weight is y

        class Tensor:
            """A tensor that can be read with DLPack but not with NumPy."""

            def __array__(self, *_):
                raise TypeError("bfloat16 is nothing to NumPy")

            def __dlpack__(self, **options):
                return jnp.asarray(x).__dlpack__(**options)

            def __dlpack_device__(self):
                return jnp.asarray(x).__dlpack_device__()

        np.testing.assert_array_equal(as_batch((Tensor(), y)).x, x)

    @pytest.mark.parametrize(
        ("batch", "error", "message"),
        [
            ((1, 2, 3, 4), ArgumentError, "got 4 parts"),
            ((np.ones((2, 1), "int32"), np.ones(3, "int32")), ArgumentError, "same number of examples"),
            (object(), OperandError, "must hold arrays of numbers"),
        ],
    )
    def test_invalid_batch_raises(self, batch, error, message):
        with pytest.raises(error, match=message):
            as_batch(batch)

    def test_array_options_with_an_iterable_raise(self):
        for name, value in (("y", np.ones(2)), ("sample_weight", np.ones(2)), ("batch_size", 3)):
            with pytest.raises(ArgumentError, match=f"leave out {name}="):
                as_data(PARTS, **{"batch_size": None, name: value})
        with pytest.raises(OperandError, match="got int"):
            as_data(3, None, None, batch_size=None)


def test_torch_loaders_and_tensors_give_batches():
    torch = import_or_skip("torch")
    loader = torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(torch.arange(6.0).reshape(6, 1), torch.arange(6)), batch_size=4
    )
    batches = batches_of(IterableData(loader))
    assert [batch.x.shape for batch in batches] == [(4, 1), (2, 1)]
    assert batches[1].y.tolist() == [4, 5]
    assert as_batch(torch.ones((2, 1), dtype=torch.bfloat16)).x.dtype == "bfloat16"
    assert isinstance(batches[0], Batch)
