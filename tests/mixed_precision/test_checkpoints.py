"""A resumed run continues exactly like an uninterrupted one."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from optional_packages import import_or_skip
from supremum.mixed_precision import DynamicLossScale, loss_scaled, scale_loss

SCALE = DynamicLossScale(2.0**15, increment_period=3, hysteresis=2)
OPTIMIZER = loss_scaled(optax.adam(1e-2), SCALE)
FACTORS = jnp.asarray([1, 1, jnp.inf, 1, jnp.nan, 1, 1, 1, jnp.inf, 1, 1, 1.0])
HALF = 6
TRACES = []


@jax.jit
def step(params, state, factor):
    TRACES.append(1)

    def loss(params):
        return scale_loss((params.astype(jnp.float16) * factor.astype(jnp.float16)).sum().astype(jnp.float32), state)

    updates, state = OPTIMIZER.update(jax.grad(loss)(params), state, params)
    return optax.apply_updates(params, updates), state


def trajectory(run, factors):
    seen = []
    for factor in factors:
        run = step(*run, factor)
        seen.append(run)
    return seen


START = (jnp.ones(3), OPTIMIZER.init(jnp.ones(3)))


def _by_state_dict(run, directory):
    (directory / "scale.json").write_text(json.dumps(SCALE.state_dict(run[1].scaling)))
    saved = SCALE.load_state_dict(json.loads((directory / "scale.json").read_text()))
    return run[0], run[1]._replace(scaling=saved)


def _by_orbax(run, directory):
    checkpoint = import_or_skip("orbax.checkpoint")
    with checkpoint.StandardCheckpointer() as checkpointer:
        checkpointer.save(directory / "run", run)
        checkpointer.wait_until_finished()
        return checkpointer.restore(directory / "run", jax.tree.map(jnp.zeros_like, START))


def _by_flax(run, directory):
    serialization = import_or_skip("flax.serialization")
    return serialization.from_bytes(START, serialization.to_bytes(run))


@pytest.mark.one_in(2)
@pytest.mark.parametrize("save", [_by_state_dict, _by_orbax, _by_flax])
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
def test_a_resumed_run_matches_an_uninterrupted_one(save, tmp_path):
    step.clear_cache()  # an earlier case of this test may have traced it
    TRACES.clear()
    whole = trajectory(START, FACTORS)
    resumed = trajectory(save(whole[HALF - 1], tmp_path), FACTORS[HALF:])
    assert int(whole[HALF - 1][1].scaling.num_overflows) == 2
    for want, got in zip(whole[HALF:], resumed, strict=True):
        assert jax.tree.structure(want) == jax.tree.structure(got)
        jax.tree.map(np.testing.assert_array_equal, want, got)
    assert len(TRACES) == 1
