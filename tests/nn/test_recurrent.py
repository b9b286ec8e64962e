"""Tests of recurrent cells and layers: values, the dtype of the state, padding, random numbers and errors."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nn.recurrent_reference import (
    BATCH,
    CELLS,
    TIME,
    UNITS,
    N,
    built,
    call,
    data,
    either_mode,
    every_cell,
    reference,
    rnn,
    sigmoid,
    weights_of,
    with_weights,
)
from supremum import nn
from supremum.errors import ArgumentError
from supremum.formats import as_format
from supremum.nn import RNN, GRUCell, RecurrentCell, SimpleRNNCell
from supremum.nn.initializers import GateInitializer, orthogonal
from supremum.nn.layers.normalization import BatchNorm
from supremum.nn.scopes import next_random_key


class TestSequences:
    @pytest.mark.slow
    @pytest.mark.one_slow_in(3)
    @every_cell
    @either_mode
    @pytest.mark.parametrize("policy", ["float32", "mixed_float16", "mixed_bfloat16", "infer"])
    def test_values_match_numpy_in_the_dtypes_of_the_policy(self, name, policy, jitted):
        layer, x = rnn(name, policy, return_state=True), data(BATCH, TIME, N)
        outputs, state = call(layer, x, jitted)
        want = reference(name, weights_of(layer), x)
        compute = layer.compute_dtype or "float32"
        np.testing.assert_allclose(np.asarray(outputs, "float64"), want, atol=8 * as_format(compute).eps)
        for leaf in (outputs, *jax.tree.leaves(state)):
            assert (leaf.dtype, leaf.weak_type) == (compute, False)
        hidden = jax.tree.leaves(state)[0]
        assert jnp.array_equal(hidden, outputs[:, -1])

    @pytest.mark.one_slow_in(3)
    @pytest.mark.one_in(10)
    @every_cell
    @pytest.mark.parametrize("unroll", [1, 2])
    def test_directions_agree(self, name, unroll):
        layer, x = rnn(name, unroll=unroll), np.asarray(data(BATCH, TIME, N))
        weights = weights_of(layer)

        def variant(**options):
            return call(RNN(layer.cell, unroll=unroll, **options), x)

        backwards = reference(name, weights, x[:, ::-1])
        close = {"rtol": 1e-5, "atol": 1e-6}
        np.testing.assert_allclose(variant(reverse=True), backwards, **close)
        np.testing.assert_allclose(variant(reverse=True, keep_order=True), backwards[:, ::-1], **close)
        np.testing.assert_allclose(variant(reverse=True, return_sequences=False), backwards[:, -1], **close)
        forwards = reference(name, weights, x)
        np.testing.assert_allclose(variant(return_sequences=False), forwards[:, -1], **close)

    @pytest.mark.one_in(4)
    @every_cell
    def test_any_number_of_batch_axes(self, name):
        layer = rnn(name)
        x = np.asarray(data(2, 3, TIME, N))
        want = np.reshape(call(layer, x.reshape(6, TIME, N)), (2, 3, TIME, UNITS))
        np.testing.assert_allclose(call(layer, x), want, rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(call(layer, x[0, 0]), want[0, 0], rtol=1e-5, atol=1e-6)
        lengths = jnp.asarray([[1, 2, 3], [4, 5, 0]])
        got = np.asarray(call(layer, x, sequence_lengths=lengths))
        assert not got[1, 2].any()
        np.testing.assert_allclose(got[1, 0, :4], want[1, 0, :4], rtol=1e-6, atol=1e-6)

    @pytest.mark.one_in(2)
    @every_cell
    def test_a_state_continues_a_sequence(self, name):
        layer, x = rnn(name, return_state=True), np.asarray(data(BATCH, TIME, N))
        whole = np.asarray(call(layer, x)[0])
        _, state = call(layer, x[:, :2])
        rest, _ = call(layer, x[:, 2:], initial_state=state)
        np.testing.assert_allclose(rest, whole[:, 2:], rtol=1e-6, atol=1e-6)
        if name == "lstm":
            rest, _ = call(layer, x[:, 2:], initial_state=list(state))
            np.testing.assert_allclose(rest, whole[:, 2:], rtol=1e-6, atol=1e-6)

    @pytest.mark.slow
    @every_cell
    def test_gradients_match_float64(self, name):
        x = data(BATCH, TIME, N)
        layer = rnn(name)

        def loss(variables, x):
            return jnp.mean(nn.functional_call(layer, variables, x)[0].astype(x.dtype) ** 2)

        variables = nn.split_variables(layer)[0]
        got = jax.jit(jax.grad(loss))(variables, x)
        with jax.enable_x64(True):
            wide = jax.tree.map(lambda leaf: jnp.asarray(np.asarray(leaf), "float64"), variables)
            layer = RNN(CELLS[name](UNITS, dtype="float64"))
            built(layer, x)
            want = jax.jit(jax.grad(loss))(wide, jnp.asarray(np.asarray(x), "float64"))
        assert got.keys() == want.keys() != set()
        for path, slope in got.items():
            assert slope.dtype == "float32"
            np.testing.assert_allclose(slope, want[path], rtol=1e-4, atol=1e-6)

    @pytest.mark.compiled
    def test_gradients_of_weights_are_summed_over_steps_in_float32(self):
        """A float16 sum of 5000 equal steps stops growing once a step is half a unit in the last place."""
        step = {"kernel_initializer": jax.nn.initializers.zeros, "recurrent_initializer": jax.nn.initializers.zeros}
        layer = RNN(SimpleRNNCell(1, activation=lambda x: x, dtype="mixed_float16", use_bias=False, **step))
        x = jnp.ones((1, 5000, 1), jnp.float16)
        built(layer, x)
        variables = nn.split_variables(layer)[0]
        summed = jax.grad(lambda v: jnp.sum(nn.functional_call(layer, v, x)[0].astype("float32")))
        assert jax.jit(summed)(variables)["cell/kernel"].tolist() == [[5000]]


class TestPadding:
    lengths = jnp.asarray([5, 2, 0])

    @pytest.mark.slow
    @every_cell
    @either_mode
    @pytest.mark.parametrize("said", ["lengths", "mask"])
    @pytest.mark.parametrize(
        "options", [{}, {"reverse": True, "keep_order": True}, {"return_sequences": False}], ids=str
    )
    def test_padding_values_do_not_matter(self, name, jitted, said, options):
        layer = rnn(name, return_state=True, **options)
        x = data(BATCH, TIME, N)
        counts = jnp.arange(TIME) < self.lengths[:, None]
        given = {"sequence_lengths": self.lengths} if said == "lengths" else {"mask": counts}
        padded = jnp.where(counts[..., None], x, jnp.nan)
        outputs, state = call(layer, padded, jitted, **given)
        for row, length in enumerate(self.lengths.tolist()):
            want, last = call(layer, x[row : row + 1, :length])
            got = outputs[row] if options.get("return_sequences") is False else outputs[row, :length]
            np.testing.assert_allclose(got, want[0], rtol=1e-5, atol=1e-6)
            for a, b in zip(jax.tree.leaves(state), jax.tree.leaves(last), strict=True):
                np.testing.assert_allclose(a[row], b[0], rtol=1e-5, atol=1e-6)
        if options.get("return_sequences") is not False:
            assert not outputs[~counts].any()

        def loss(variables, x):
            found = nn.functional_call(layer, variables, x, **given)[0]
            return sum(jnp.sum(leaf) for leaf in jax.tree.leaves(found))

        slopes = jax.grad(loss, (0, 1))(nn.split_variables(layer)[0], padded)
        assert all(jnp.all(jnp.isfinite(leaf)) for leaf in jax.tree.leaves(slopes))

    def test_reversed_outputs_begin_with_the_last_step_that_counts(self):
        layer = rnn("gru", reverse=True)
        x = np.asarray(data(BATCH, TIME, N))
        got = np.asarray(call(layer, x, sequence_lengths=self.lengths))
        np.testing.assert_allclose(got[1, :2], call(layer, x[1:2, :2])[0], rtol=1e-5, atol=1e-6)
        assert not got[1, 2:].any()
        assert not got[2].any()
        longer = call(layer, x, sequence_lengths=jnp.asarray([9, 2, -1]))
        np.testing.assert_array_equal(longer, got)

    @pytest.mark.slow
    def test_a_mask_may_have_holes(self):
        layer = rnn("lstm", return_sequences=False)
        x = data(BATCH, TIME, N)
        mask = jnp.asarray([[True, False, True, True, False]] * BATCH)
        got = call(layer, x, mask=mask)
        np.testing.assert_allclose(got, call(layer, x[:, [0, 2, 3]]), rtol=1e-5, atol=1e-6)


class TestStateDtype:
    @pytest.mark.slow
    @pytest.mark.one_slow_in(3)
    @every_cell
    @pytest.mark.parametrize(
        ("given", "params", "state", "want"),
        [
            ("float16", "float16", None, "float16"),
            ("float16", "float32", None, "float32"),
            ("bfloat16", "float16", None, "float32"),
            ("int32", "bfloat16", None, "bfloat16"),
            ("float32", "float32", "float16", "float32"),
            ("float16", "float16", "float32", "float32"),
            ("complex64", "float32", None, "complex64"),
            ("float32", "float32", "complex64", "complex64"),
        ],
    )
    def test_infer_state_has_the_result_type_from_the_first_step(self, name, given, params, state, want):
        layer = RNN(CELLS[name](UNITS, dtype="infer", param_dtype=params), return_state=True)
        x = data(BATCH, TIME, N, dtype=given) if given != "int32" else jnp.ones((BATCH, TIME, N), "int32")
        options = {}
        if state is not None:
            one = jnp.ones((BATCH, UNITS), state)
            options = {"initial_state": (one, one) if name == "lstm" else one}
        for jitted in (False, True):
            outputs, last = call(layer, x, jitted, **options)
            assert {leaf.dtype.name for leaf in (outputs, *jax.tree.leaves(last))} == {want}

    def test_complex_inputs_stay_complex_under_a_fixed_policy(self):
        layer = RNN(SimpleRNNCell(UNITS, dtype="mixed_float16"), return_state=True)
        x = data(BATCH, TIME, N, dtype="complex64")
        assert {leaf.dtype.name for leaf in call(layer, x)} == {"complex64"}

    def test_activations_cannot_change_the_dtype_of_the_state(self):
        def widening(x):
            return jnp.tanh(x.astype("float32"))

        state = jnp.zeros((1, 2), "float16")
        cell = built(SimpleRNNCell(2, activation=widening, dtype="float16"), state, state)
        assert cell(state, state)[1].dtype == "float16"

    def test_custom_gates_get_complex_numbers(self):
        x, h = data(1, 2, dtype="complex64"), data(1, 2, dtype="complex64", seed=1)
        kernel = data(2, 6, seed=2)

        def gate(z):
            return jax.nn.sigmoid(z.real)

        cell = GRUCell(2, activation=lambda z: z, recurrent_activation=gate, dtype="infer")
        with_weights(cell, kernel=kernel, recurrent_kernel=kernel, bias=None, recurrent_bias=None)
        _, new = cell.call(x, h)
        xr, xz, xn = np.split(np.asarray(x @ kernel), 3, -1)
        hr, hz, hn = np.split(np.asarray(h @ kernel), 3, -1)
        z = sigmoid((xz + hz).real)
        want = (1 - z) * (xn + sigmoid((xr + hr).real) * hn) + z * np.asarray(h)
        assert new.dtype == "complex64"
        np.testing.assert_allclose(new, want, rtol=1e-5, atol=1e-6)


class NoisyCell(RecurrentCell):
    def initial_state(self, batch_shape, dtype=None):
        return jnp.zeros((*batch_shape, 1), dtype)

    def call(self, x, state):
        noise = jax.random.normal(next_random_key(), (*x.shape[:-1], 1))
        return noise, state


class TestRandomNumbers:
    @pytest.mark.slow
    @either_mode
    def test_random_numbers_differ_by_step_and_repeat_with_the_key(self, jitted):
        layer, x = RNN(NoisyCell()), data(1, 50, 1)
        key = jax.random.key(0)
        first = call(layer, x, jitted, random_key=key)
        assert len(np.unique(np.asarray(first))) == 50
        assert jnp.array_equal(first, call(layer, x, jitted, random_key=key))
        assert not jnp.any(first == call(layer, x, jitted, random_key=jax.random.key(1)))

    def test_missing_key_raises_in_the_cell(self):
        layer, x = RNN(NoisyCell()), data(1, 2, 1)
        built(layer, x)
        with pytest.raises(
            ArgumentError,
            match=r"the layer needs random numbers.*; use nn.functional_call\(model, variables, x, random_key=",
        ):
            layer(x)


class NormedCell(RecurrentCell):
    def __init__(self):
        super().__init__()
        self.norm = BatchNorm()

    def initial_state(self, batch_shape, dtype=None):
        return jnp.zeros((*batch_shape, N), dtype)

    def call(self, x, state):
        return (state + self.norm(x),) * 2


class TestAssignments:
    def test_assignments_in_a_step_raise_with_their_names(self):
        layer, x = RNN(NormedCell()), data(BATCH, TIME, N)
        assert call(layer, x).shape == x.shape
        for run in (lambda: call(layer, x, training=True), lambda: layer(x, training=True)):
            with pytest.raises(
                ArgumentError,
                match=r"NormedCell\(dtype='float32'\) must not.*, got assignments to norm/moving_mean, norm",
            ):
                run()
        assert layer.cell.norm.moving_mean.value.tolist() == [0, 0]

    def test_scan_leaks_no_tracers(self):
        layer, x = rnn("lstm"), data(BATCH, TIME, N)
        with jax.checking_leaks():
            call(layer, x)


class TestInitialisers:
    @pytest.mark.one_in(2)
    @pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "complex64"])
    def test_each_gate_has_an_orthogonal_kernel(self, dtype):
        kernel = GateInitializer(orthogonal, 3)(jax.random.key(0), (8, 24), jnp.dtype(dtype))
        assert kernel.dtype == dtype
        parts = [np.asarray(part, "complex128") for part in jnp.split(kernel, 3, -1)]
        for part in parts:
            np.testing.assert_allclose(part @ part.conj().T, np.eye(8), atol=8 * as_format(dtype).eps)
        assert not np.allclose(parts[0], parts[1])


@pytest.mark.one_in(2)
@every_cell
@pytest.mark.parametrize("shape", [(0, TIME, N), (BATCH, 0, N)])
def test_empty_sequences_give_empty_or_zero_outputs(name, shape):
    layer = rnn(name, return_state=True)
    outputs, state = call(layer, jnp.zeros(shape))
    assert outputs.shape == (*shape[:2], UNITS)
    leaves = jax.tree.leaves(state)
    assert len(leaves) == (2 if "lstm" in name.lower() else 1)
    assert all(leaf.shape == (shape[0], UNITS) and not leaf.any() for leaf in leaves)
    last = RNN(layer.cell, return_sequences=False)
    assert call(last, jnp.zeros(shape)).tolist() == [[0.0] * UNITS] * shape[0]


@pytest.mark.parametrize("name", CELLS)
def test_the_dtype_of_an_rnn_is_that_of_its_cell(name):
    x = data(BATCH, TIME, N)
    layers = [RNN(CELLS[name](UNITS), dtype="mixed_bfloat16"), RNN(CELLS[name](UNITS, dtype="mixed_bfloat16"))]
    outputs = [built(layer, x)(x) for layer in layers]
    assert {each.dtype for each in outputs} == {jnp.dtype("bfloat16")}
    assert (outputs[0] == outputs[1]).all()
    copy = RNN.from_config(layers[0].get_config())
    assert {each.dtype_policy.name for each in (copy, copy.cell, layers[0].cell)} == {"mixed_bfloat16"}
    model = built(nn.SequentialNetwork([RNN(CELLS[name](UNITS), dtype="mixed_float16")], dtype="mixed_bfloat16"), x)
    assert model(x).dtype == "float16"
