"""A training step is one jitted call, and a skipped step changes only the loss scale and the logs."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from supremum import nn
from supremum.jaxprs import walk
from supremum.mixed_precision import DynamicLossScale, FixedLossScale
from supremum.optimizers import SGD, Adam, LossScaleOptimizer
from supremum.training import Batch, SparseCategoricalCrossentropy, init_state, train_step
from supremum.training.step import LOSS_MEAN
from training.blobs import blobs, equal
from training.blobs import network as unbuilt

SCALES = {"none": None, "fixed": FixedLossScale(8.0), "dynamic": DynamicLossScale(8.0)}
LOSS = SparseCategoricalCrossentropy(from_logits=True)
every_scale = pytest.mark.parametrize("scale", SCALES.values(), ids=SCALES)


def network(policy="mixed_float16"):
    model = unbuilt(policy)
    nn.initialize(model, jnp.zeros((1, 2)))
    return model


def step_and_state(model, optimizer, scale):
    """Return the step of an optimizer, with an optional loss scale, and the initial state."""
    optimizer = optimizer if scale is None else LossScaleOptimizer(optimizer, scale)
    step = train_step(model, LOSS, optimizer)
    return lambda state, x, y: step(state, Batch(x, y)), init_state(model, optimizer)


def on_host(tree):
    return jax.tree.map(np.asarray, tree)


@pytest.mark.one_slow_in(3)
@pytest.mark.one_in(4)
@pytest.mark.parametrize(
    ("scale", "jitted"), [(None, True), (SCALES["fixed"], True), (SCALES["dynamic"], True), (SCALES["dynamic"], False)]
)
def test_a_step_updates_weights_statistics_and_count(scale, jitted):
    model = network()
    step, state = step_and_state(model, Adam(0.01), scale)
    after = (jax.jit(step) if jitted else step)(state, *blobs())
    _, loss_scale, skipped = after.log.fetch()[0]
    assert not skipped
    assert loss_scale == (1 if scale is None else 8)
    # The gradient of a bias before a batch norm is zero.
    moved = state.trainable.keys() - {"dense/bias"}
    assert len(moved) == len(state.trainable) - 1 > 0 < len(state.other)
    for path in moved:
        assert not np.array_equal(state.trainable[path], after.trainable[path]), path
        assert after.trainable[path].dtype == np.float32
    assert not any(np.array_equal(state.other[path], after.other[path]) for path in state.other)
    assert jax.tree.structure(state) == jax.tree.structure(after)
    assert int(after.count) == 1


@pytest.mark.one_slow_in(3)
@pytest.mark.one_in(3)
@pytest.mark.parametrize(("bad", "jitted"), [(np.inf, True), (np.nan, True), (np.nan, False)])
def test_a_skipped_step_changes_only_the_scale_and_the_mean_loss(bad, jitted):
    model = network()
    step, state = step_and_state(model, Adam(0.01), SCALES["dynamic"])
    step = jax.jit(step) if jitted else step
    x, y = blobs()
    state = step(state, x, y)
    after = step(state, np.where(x > 1, np.float32(bad), x), y)
    assert after.log.fetch()[:, 2].tolist() == [0, 1]
    kept = [(each.trainable, each.other, each.optimizer.inner) for each in (state, after)]
    assert equal(*kept)
    assert np.isfinite(state.log.fetch()[0, 0])
    assert not np.isfinite(LOSS_MEAN.result_of(after.loss))
    assert float(after.optimizer.scaling.loss_scale) == 4
    assert int(after.optimizer.scaling.num_skipped_steps) == 1
    assert int(after.count) == int(state.count) + 1
    recovered = step(after, x, y)
    assert not recovered.log.fetch()[2, 2]
    assert np.all(np.isfinite(np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(recovered.trainable)])))


def test_only_a_dynamic_scale_compiles_a_finite_check_and_a_conditional():
    model, counts = network(), {}
    for name, scale in SCALES.items():
        assert scale is None or LossScaleOptimizer(SGD(), scale).skips is (name == "dynamic")
        step, state = step_and_state(model, SGD(0.1), scale)
        text = str(jax.make_jaxpr(step)(state, *blobs()))
        counts[name] = (text.count("cond["), text.count("is_finite"))
    assert counts["fixed"] == counts["none"]  # the loss itself calls is_finite once
    assert counts["none"][0] == 0
    assert counts["dynamic"] == (1, counts["none"][1] + len(network().variables) - 2)


@pytest.mark.compiled
@pytest.mark.one_slow_in(3)
@pytest.mark.one_in(4)
@every_scale
def test_scaling_by_a_power_of_two_keeps_float32_results_identical(scale):
    model = network("float32")
    results = []
    for settings in (None, scale):
        step, state = step_and_state(model, SGD(0.1), settings)
        step = jax.jit(step)
        for _ in range(3):
            state = step(state, *blobs())
        results.append(on_host(state.trainable))
    assert equal(*results)


HOST_PRIMITIVES = {"pure_callback", "io_callback", "debug_callback", "debug_print", "infeed", "outfeed", "device_put"}


@every_scale
def test_a_step_makes_no_host_calls(scale):
    model = network()
    step, state = step_and_state(model, Adam(0.01), scale)
    found = {site.equation.primitive.name for site in walk(jax.make_jaxpr(step)(state, *blobs()))}
    assert {"dot_general", "exp"} <= found
    assert not found & HOST_PRIMITIVES


def executions(run, folder):
    """Count the compiled programs that ran, from the profiler's trace."""
    with jax.profiler.trace(folder):
        run()
    (file,) = folder.rglob("*.xplane.pb")
    planes = jax.profiler.ProfileData.from_file(str(file)).planes
    names = [event.name for plane in planes for line in plane.lines for event in line.events]
    return sum("LoadedExecutable::ExecuteHelper" in name for name in names)


@pytest.mark.one_in(4)
@every_scale
def test_a_step_is_one_program_that_is_traced_once(scale, tmp_path):
    traces, (inner, state) = [], step_and_state(network(), Adam(0.01), scale)
    x, y = jax.device_put(blobs())

    def counting_step(state, x, y):
        traces.append(1)
        return inner(state, x, y)

    step = jax.jit(counting_step, donate_argnums=0)
    states = [step(state, x, y)]

    def run(count):
        for _ in range(count):
            states[0] = step(states[0], x, y)
        jax.block_until_ready(states[0].trainable)

    assert executions(lambda: run(1), tmp_path / "one") == 1
    assert executions(lambda: run(5), tmp_path / "five") == 5
    assert executions(lambda: (run(1), jnp.add(x, 1)), tmp_path / "more") == 2  # other programs are counted too
    step(states[0], *blobs())  # from NumPy's arrays
    assert len(traces) == 1


def test_a_step_of_fit_is_one_dispatch(tmp_path):
    model = unbuilt("mixed_float16")
    model.compile(Adam(0.01), LOSS, ["accuracy"])
    x, y = blobs(128)
    model.fit(x, y, batch_size=8, verbose=0)

    def count(epochs):
        run = partial(model.fit, x, y, batch_size=8, epochs=epochs, verbose=0)
        return executions(run, tmp_path / str(epochs))

    counts = count(1), count(2)
    # Besides its steps, the second epoch dispatches the shuffle, the initial metrics and the metric results.
    assert 16 <= counts[1] - counts[0] <= 16 + 30
