"""Recurrent cells compared with Flax's: outputs, carries, gradients and dtypes, for all dtypes."""

import functools
import itertools

import flax.linen as linen
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from conformance.flax_judge import (
    EXACT,
    Cell,
    assert_imaginary_parts_are_kept,
    differences_with_some_gradients,
    gradients_everywhere,
    random_like,
)
from nn.recurrent_reference import with_weights
from slowly import for_each
from supremum import nn
from supremum.formats import as_format
from supremum.nn import RNN, Bidirectional, GRUCell, LSTMCell, SimpleRNNCell

N, UNITS = 2, 2
BATCH = 3


@pytest.fixture(autouse=True)
def _x64():
    with jax.enable_x64(True):
        yield


def shapes(gates):
    kernels = {"kernel": (N, gates * UNITS), "recurrent_kernel": (UNITS, gates * UNITS), "bias": (gates * UNITS,)}
    return kernels | ({"recurrent_bias": (UNITS,)} if gates == 3 else {})


def flax_params(params, inner, outer, *, bias_inside):
    """Split our weights into Flax's, one per gate: `inner` names the products with inputs, `outer` with states."""
    count = len(inner)
    found = {}
    for name, kernel in zip(inner, jnp.split(params["kernel"], count, -1), strict=True):
        found[name] = {"kernel": kernel}
    for name, kernel in zip(outer, jnp.split(params["recurrent_kernel"], count, -1), strict=True):
        found[name] = {"kernel": kernel}
    for name, bias in zip(outer if bias_inside else inner, jnp.split(params["bias"], count, -1), strict=True):
        found[name]["bias"] = bias
    if "recurrent_bias" in params:
        found[outer[-1]]["bias"] = params["recurrent_bias"]
    return found


def of_simple(params):
    return flax_params(params, ["i"], ["h"], bias_inside=False)


def of_lstm(params):
    return flax_params(params, ["ii", "if", "ig", "io"], ["hi", "hf", "hg", "ho"], bias_inside=True)


def of_gru(params):
    return flax_params(params, ["ir", "iz", "in"], ["hr", "hz", "hn"], bias_inside=False)


def swapped(pair):
    """Convert a hidden and a cell state to Flax's order, or back."""
    return pair[1], pair[0]


def same(state):
    return state


CELL_TYPES = {
    "simple": (linen.SimpleCell, of_simple, shapes(1), (BATCH, UNITS), same, SimpleRNNCell),
    "lstm": (linen.LSTMCell, of_lstm, shapes(4), ((BATCH, UNITS), (BATCH, UNITS)), swapped, LSTMCell),
    "gru": (linen.GRUCell, of_gru, shapes(3), (BATCH, UNITS), same, GRUCell),
}
every_type = pytest.mark.parametrize("name", CELL_TYPES)


def ours(name):
    cell_type = CELL_TYPES[name][-1]

    def layer(params, given, dtype):
        cell = with_weights(cell_type(UNITS, dtype=dtype or "infer"), **params)
        return cell.call(given["x"], given["state"])[1]

    return layer


def theirs(name, *, cast_state=True):
    """Flax's cell; by default the state is first cast to the requested dtype."""
    module, renamed, _, _, ordered, _ = CELL_TYPES[name]

    def layer(params, given, dtype):
        state = given["state"]
        if cast_state and dtype is not None:
            state = jax.tree.map(lambda leaf: leaf.astype(dtype), state)
        cell = module(features=UNITS, dtype=dtype)
        return ordered(cell.apply({"params": renamed(params)}, ordered(state), given["x"])[0])

    return layer


def inputs(name):
    return {"x": (BATCH, N), "state": CELL_TYPES[name][3]}


WITH_GRADIENTS = [
    Cell(inputs, params, asked)
    for inputs, params, asked in [
        ("float16", "float16", None),
        ("bfloat16", "float32", None),
        ("float32", "float32", "bfloat16"),
        ("complex64", "float32", None),
        ("float64", "complex64", None),
    ]
]
"""Cells in which gradients are compared too, one per kind of promotion."""


@gradients_everywhere
@for_each("name", CELL_TYPES, one_in=0, one_slow_in=3)
def test_recurrent_states_gradients_and_dtypes_agree_with_flax(name, everywhere):
    # On both sides, float16 gradients differ by up to 4 ulp from float64, because each product and sum rounds.
    options = {"cells": EXACT, "with_gradients": WITH_GRADIENTS, "everywhere": everywhere, "ulps": 8}
    layers = ours(name), theirs(name)
    assert differences_with_some_gradients(*layers, inputs(name), CELL_TYPES[name][2], **options) == []


@pytest.mark.one_in(3)
@every_type
def test_recurrent_cells_keep_imaginary_parts_that_flax_truncates(name):
    assert_imaginary_parts_are_kept(ours(name), inputs(name), CELL_TYPES[name][2])


def _has_a_wider_state(cell):
    return cell.asked is not None and jnp.promote_types(cell.inputs, cell.asked) != cell.asked


REASON = "our result has the requested dtype; Flax promotes it with the dtype of a wider earlier state"
DEPARTURES = {"lstm": (_has_a_wider_state, REASON), "gru": (_has_a_wider_state, REASON)}
"""Which cells differ from Flax's if the state has the dtype of the inputs, and why."""


@pytest.mark.slow
@every_type
def test_recurrent_dtypes_differ_from_flax_exactly_for_wider_states(name):
    departs, _ = DEPARTURES.get(name, (lambda cell: False, ""))
    params = CELL_TYPES[name][2]
    for cell in EXACT:
        given, weights = random_like(inputs(name), cell.inputs), random_like(params, cell.params)
        dtypes = []
        for layer in (ours(name), theirs(name, cast_state=False)):
            traced = jax.eval_shape(functools.partial(layer, dtype=cell.asked), weights, given)
            dtypes.append([leaf.dtype for leaf in jax.tree.leaves(traced)])
        assert (dtypes[0] != dtypes[1]) == departs(cell), (cell, dtypes)


RNN_OPTIONS = ({}, {"reverse": True}, {"reverse": True, "keep_order": True})


@for_each(
    "name, lengths, options", itertools.product(CELL_TYPES, (None, [4, 1, 3]), RNN_OPTIONS), one_in=0, one_slow_in=6
)
def test_rnn_sequences_agree_with_flax(name, lengths, options):
    module, renamed, params, _, ordered, cell = CELL_TYPES[name]
    params = random_like(params, "float32", 2)
    x = random_like((BATCH, 4, N), "float32", 1)
    lengths = None if lengths is None else jnp.asarray(lengths)
    layer = RNN(cell(UNITS, dtype="float32"), return_state=True, **options)
    nn.initialize(layer, x)
    given = {f"cell/{path}": value for path, value in params.items()}
    got, state = nn.functional_call(layer, given, x, sequence_lengths=lengths)[0]
    flax = linen.RNN(module(features=UNITS), return_carry=True, **options)
    carry, want = flax.apply({"params": {"cell": renamed(params)}}, x, seq_lengths=lengths)
    for a, b in zip(jax.tree.leaves(state), jax.tree.leaves(ordered(carry)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    counts = np.ones((BATCH, 4), bool) if lengths is None else np.arange(4) < np.asarray(lengths)[:, None]
    got, want = np.asarray(got), np.asarray(want)
    np.testing.assert_allclose(got[counts], want[counts], rtol=1e-5, atol=1e-6)
    assert not got[~counts].any()


BIDIRECTIONAL = [*WITH_GRADIENTS[:2], *WITH_GRADIENTS[3:], Cell("float32", "float32", "bfloat16")]


@for_each("name, cell", itertools.product(CELL_TYPES, BIDIRECTIONAL), one_in=0, one_slow_in=4)
def test_bidirectional_outputs_and_dtypes_agree_with_flax(name, cell):
    module, renamed, shapes, _, _, make = CELL_TYPES[name]
    params = [random_like(shapes, cell.params, seed) for seed in (2, 3)]
    x = random_like((BATCH, 3, N), cell.inputs, 1)
    layer = Bidirectional(RNN(make(UNITS, dtype=cell.asked or "infer", param_dtype=cell.params)))
    nn.initialize(layer, x)
    given = {
        f"{way}/cell/{path}": value
        for way, values in zip(("forward", "backward"), params, strict=True)
        for path, value in values.items()
    }
    got = nn.functional_call(layer, given, x)[0]
    # Flax's carry starts in the dtype of the parameters, and its scan fails if the result has a different dtype. Flax
    # also initializes its kernels again to get their shapes; from JAX 0.11 on its own initializer fails for 16 bits.
    zeros = linen.initializers.zeros
    ways = [
        linen.RNN(module(features=UNITS, dtype=cell.asked, param_dtype=got.dtype, recurrent_kernel_init=zeros))
        for _ in range(2)
    ]
    flax = linen.Bidirectional(*ways)
    names = ("forward_rnn", "backward_rnn")
    want = flax.apply(
        {"params": {way: {"cell": renamed(values)} for way, values in zip(names, params, strict=True)}}, x
    )
    assert got.dtype == want.dtype
    eps = max(as_format(dtype).eps for dtype in cell if dtype is not None)
    np.testing.assert_allclose(
        np.asarray(got, "complex128"), np.asarray(want, "complex128"), rtol=8 * eps, atol=8 * eps
    )
