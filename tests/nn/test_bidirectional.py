"""Tests of recurrent layers in both directions: merged outputs, states and errors."""

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
    every_cell,
    reference,
    weights_of,
)
from supremum.nn import RNN, Bidirectional, GRUCell, SimpleRNNCell


class TestBidirectional:
    @pytest.mark.slow
    @every_cell
    @pytest.mark.parametrize("merge", ["concat", "sum", "mul", "ave", None])
    def test_outputs_are_merged(self, name, merge):
        layer = Bidirectional(RNN(CELLS[name](UNITS)), merge=merge)
        x = data(BATCH, TIME, N)
        built(layer, x)
        ahead = reference(name, weights_of(layer.forward), x)
        back = reference(name, weights_of(layer.backward), x[:, ::-1])[:, ::-1]
        assert np.abs(ahead - back[:, ::-1]).max() > 0.01  # their weights differ
        want = {
            "concat": np.concatenate([ahead, back], -1),
            "sum": ahead + back,
            "mul": ahead * back,
            "ave": (ahead + back) / 2,
            None: np.stack([ahead, back]),
        }[merge]
        got = call(layer, x)
        np.testing.assert_allclose(got if merge else jnp.stack(got), want, rtol=1e-4, atol=1e-6)

    @pytest.mark.slow
    def test_states_lengths_and_last_steps_match_both_layers(self):
        layer = Bidirectional(RNN(GRUCell(UNITS), return_sequences=False, return_state=True))
        x = data(BATCH, TIME, N)
        lengths = jnp.asarray([5, 2, 1])
        outputs, (ahead, back) = call(layer, x, sequence_lengths=lengths)
        np.testing.assert_allclose(outputs, jnp.concatenate([ahead, back], -1))
        short, states = call(layer, x[1:2, :2])
        np.testing.assert_allclose(outputs[1:2], short, rtol=1e-5, atol=1e-6)
        assert call(layer, x, initial_state=(ahead, back))[0].shape == (BATCH, 2 * UNITS)
        assert len(states) == 2

    @pytest.mark.slow
    def test_the_mean_of_large_float16_numbers_is_finite(self):
        layer = Bidirectional(RNN(SimpleRNNCell(1, activation=lambda x: x + 6e4, dtype="float16")), merge="ave")
        x = jnp.zeros((1, 1, 1), "float16")
        assert call(layer, x).tolist() == [[[6e4]]]

    def test_layers_of_two_policies_give_their_result_type(self):
        backward = RNN(GRUCell(UNITS, dtype="float32"), reverse=True, keep_order=True)
        layer = Bidirectional(RNN(GRUCell(UNITS, dtype="mixed_bfloat16")), backward)
        x = data(BATCH, TIME, N)
        assert call(layer, x).dtype == "float32"
