"""The program examples/transformer/characters.py learns, uses the right dtypes, and has caches that change nothing."""

import contextlib
import io
import runpy
from functools import cache
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from supremum import nn

pytestmark = pytest.mark.slow

PROGRAM = runpy.run_path(str(Path(__file__).parents[2] / "examples/transformer/characters.py"))


@cache
def trained():
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        return *PROGRAM["main"](steps=60), printed


def test_it_learns_and_prints():
    _, bits, printed = trained()
    assert bits < 4  # a model of character frequencies alone needs 4.24
    assert "bits per character; the model writes:" in printed.getvalue()


def test_weights_and_logits_are_float32_and_caches_bfloat16():
    model, *_ = trained()
    assert {variable.true_dtype for variable in model.variables.values()} == {np.dtype("float32")}
    assert {layer.compute_dtype.name for path, layer in model.layers_by_path().items() if path != "logits"} == {
        "bfloat16"
    }
    caches = [block.attention.init_cache(1, 4) for block in model.blocks]
    logits, caches = model(jnp.ones((1, 4), int), caches)
    assert (logits.dtype, caches[0].keys.dtype) == ("float32", "bfloat16")


def test_a_cache_gives_the_logits_of_the_whole_context():
    model, *_ = trained()
    tokens = jnp.asarray(np.random.default_rng(0).integers(0, 50, (2, 12)))
    caches = [block.attention.init_cache(2, 12) for block in model.blocks]
    step, found = jax.jit(model), []
    for place in range(12):
        logits, caches = step(tokens[:, place : place + 1], caches)
        found.append(logits)
    np.testing.assert_allclose(jnp.concatenate(found, 1), model(tokens), atol=0.1)


def test_the_block_is_the_identity_where_nothing_is_added():
    x = jnp.asarray(np.random.default_rng(1).normal(size=(1, 5, 8)), "float32")
    block = PROGRAM["Block"](2)
    nn.initialize(block, x)
    silent = {path: v.value * ("output" not in path and "narrow" not in path) for path, v in block.variables.items()}
    np.testing.assert_array_equal(nn.functional_call(block, silent, x)[0], x)
