"""One training step is one jitted call that skips cleanly, and the loop around it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from supremum import nn
from supremum.mixed_precision import DynamicLossScale, FixedLossScale, Policy
from supremum.optimizers import SGD, Adam
from supremum.training import SparseCategoricalCrossentropy, accuracy, fit, init_state, train_step

SCALES = {"none": None, "fixed": FixedLossScale(8.0), "dynamic": DynamicLossScale(8.0)}
every_scale = pytest.mark.parametrize("scale", SCALES.values(), ids=SCALES)


def blobs(count=128, classes=3):
    """Points around the corners of a triangle, far enough apart to be told apart."""
    random = np.random.default_rng(0)
    y = random.integers(classes, size=count).astype(np.int32)
    centres = np.stack(
        [np.cos(2 * np.pi * np.arange(classes) / classes), np.sin(2 * np.pi * np.arange(classes) / 3)], 1
    )
    return (2 * centres[y] + random.normal(scale=0.3, size=(count, 2))).astype(np.float32), y


def network(policy="mixed_float16", seed=0):
    layers = [nn.Dense(8, dtype=policy), nn.BatchNorm(momentum=0.5, dtype=policy), nn.ReLU(dtype=policy)]
    model = nn.Sequential([*layers, nn.Dense(3, dtype=policy)])
    nn.initialize(model, jnp.zeros((1, 2)), seed=seed)
    return model


def host(tree):
    return jax.tree.map(np.asarray, tree)


def equal(a, b):
    return all(np.array_equal(x, y) for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True))


@pytest.mark.parametrize(
    ("scale", "jitted"), [(None, True), (SCALES["fixed"], True), (SCALES["dynamic"], True), (SCALES["dynamic"], False)]
)
def test_a_step_changes_everything_it_should(scale, jitted):
    model = network()
    step = train_step(model, SparseCategoricalCrossentropy(from_logits=True), Adam(0.01), scale)
    state = init_state(model, Adam(0.01), scale)
    after, report = (jax.jit(step) if jitted else step)(state, *blobs())
    assert not bool(report.skipped)
    assert float(report.loss_scale) == (1 if scale is None else 8)
    for path in (path for path in state.trainable if path != "dense/bias"):  # a bias before a norm has no gradient
        assert not np.array_equal(state.trainable[path], after.trainable[path]), path
        assert after.trainable[path].dtype == np.float32
    assert not any(np.array_equal(state.other[path], after.other[path]) for path in state.other)
    assert jax.tree.structure(state) == jax.tree.structure(after)
    assert (after.loss_scale is None) == (scale is None)


@pytest.mark.parametrize(("bad", "jitted"), [(np.inf, True), (np.nan, True), (np.nan, False)])
def test_a_step_with_gradients_that_are_not_finite_changes_the_scale_only(bad, jitted):
    model = network()
    step = train_step(model, SparseCategoricalCrossentropy(from_logits=True), Adam(0.01), SCALES["dynamic"])
    step = jax.jit(step) if jitted else step
    x, y = blobs()
    state, _ = step(init_state(model, Adam(0.01), SCALES["dynamic"]), x, y)
    after, report = step(state, np.where(x > 1, np.float32(bad), x), y)
    assert bool(report.skipped)
    assert equal((after.trainable, after.other, after.optimizer), (state.trainable, state.other, state.optimizer))
    assert float(after.loss_scale.loss_scale) == 4
    assert int(after.loss_scale.num_skipped_steps) == 1
    recovered, report = step(after, x, y)
    assert not bool(report.skipped)
    assert np.all(np.isfinite(np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(recovered.trainable)])))


def test_only_a_dynamic_scale_compiles_a_finite_check_and_a_condition():
    model, counts = network(), {}
    for name, scale in SCALES.items():
        step = train_step(model, SparseCategoricalCrossentropy(from_logits=True), SGD(0.1), scale)
        text = str(jax.make_jaxpr(step)(init_state(model, SGD(0.1), scale), *blobs()))
        counts[name] = (text.count("cond["), text.count("is_finite"))
    assert counts["fixed"] == counts["none"]  # the loss itself asks is_finite once
    assert counts["none"][0] == 0
    assert counts["dynamic"] == (1, counts["none"][1] + len(network().variables) - 2)


@every_scale
def test_scaling_by_a_power_of_two_changes_no_bit_in_float32(scale):
    model = network("float32")
    results = []
    for settings in (None, scale):
        step = jax.jit(train_step(model, SparseCategoricalCrossentropy(from_logits=True), SGD(0.1), settings))
        state = init_state(model, SGD(0.1), settings)
        for _ in range(3):
            state, _ = step(state, *blobs())
        results.append(host(state.trainable))
    assert equal(*results)


@every_scale
def test_the_step_is_traced_once(scale):
    model, traces = network(), []
    inner = train_step(model, SparseCategoricalCrossentropy(from_logits=True), Adam(0.01), scale)

    def counted(state, x, y):
        traces.append(1)
        return inner(state, x, y)

    step, state = jax.jit(counted), init_state(model, Adam(0.01), scale)
    for _ in range(3):
        state, _ = step(state, *blobs())
    assert len(traces) == 1


HOST_PRIMITIVES = {"pure_callback", "io_callback", "debug_callback", "debug_print", "infeed", "outfeed", "device_put"}


def primitives(jaxpr):
    for equation in jaxpr.eqns:
        yield equation.primitive.name
        for value in equation.params.values():
            for inner in value if isinstance(value, (tuple, list)) else [value]:
                inner = getattr(inner, "jaxpr", inner)
                if hasattr(inner, "eqns"):
                    yield from primitives(inner)


@every_scale
def test_a_step_calls_nothing_on_the_host(scale):
    model = network()
    step = train_step(model, SparseCategoricalCrossentropy(from_logits=True), Adam(0.01), scale)
    found = set(primitives(jax.make_jaxpr(step)(init_state(model, Adam(0.01), scale), *blobs()).jaxpr))
    assert {"dot_general", "exp"} <= found
    assert not found & HOST_PRIMITIVES


def executions(run, folder):
    """How many compiled programs ran, read from the profiler's trace."""
    with jax.profiler.trace(folder):
        run()
    (file,) = folder.rglob("*.xplane.pb")
    planes = jax.profiler.ProfileData.from_file(str(file)).planes
    names = [event.name for plane in planes for line in plane.lines for event in line.events]
    return sum("LoadedExecutable::ExecuteHelper" in name for name in names)


@every_scale
def test_one_step_is_one_dispatch(scale, tmp_path):
    model = network()
    step = jax.jit(
        train_step(model, SparseCategoricalCrossentropy(from_logits=True), Adam(0.01), scale), donate_argnums=0
    )
    x, y = jax.device_put(blobs())
    state, _ = step(init_state(model, Adam(0.01), scale), x, y)
    states = [state]

    def run(count):
        for _ in range(count):
            states[0], _ = step(states[0], x, y)
        jax.block_until_ready(states[0].trainable)

    assert executions(lambda: run(1), tmp_path / "one") == 1
    assert executions(lambda: run(5), tmp_path / "five") == 5
    assert executions(lambda: (run(1), jnp.add(x, 1)), tmp_path / "more") == 2  # the count sees what else is run


@pytest.mark.parametrize("policy", ["float32", "mixed_bfloat16", "mixed_float16"])
def test_fit_learns_and_leaves_the_trained_values_in_the_model(policy):
    x, y = blobs(512)
    model, epochs = network(policy), []
    before = accuracy(model, x, y)

    def on_epoch(number, history):
        epochs.append((number, len(history.loss)))

    history = fit(
        model, Adam(0.02), SparseCategoricalCrossentropy(from_logits=True), x, y,
        batch_size=100, epochs=8, loss_scale=Policy(policy).loss_scale, on_epoch=on_epoch,
    )  # fmt: skip
    assert epochs == [(n, 5 * n) for n in range(1, 9)]
    assert len(history.seconds) == 8
    assert accuracy(model, x, y) > max(0.95, before)
    assert np.mean(history.loss[-5:]) < 0.3 * np.mean(history.loss[:5])
    assert (history.final_loss_scale is None) == (policy != "mixed_float16")


def test_fit_sees_every_example_once_an_epoch_and_shuffles_by_its_seed():
    seen = []

    class Recording(nn.Layer):
        def build(self, input_shape):
            self.w = self.add_weight("w", (1, 2), jax.nn.initializers.ones)

        def call(self, x):
            jax.debug.callback(lambda v: seen.append(np.asarray(v).ravel()), x, ordered=True)
            return x @ self.w.value

    def order(seed):
        seen.clear()
        model = Recording()
        nn.initialize(model, jnp.zeros((1, 1)))
        seen.clear()
        x = np.arange(10, dtype=np.float32)[:, None]
        fit(
            model,
            SGD(0.0),
            SparseCategoricalCrossentropy(from_logits=True),
            x,
            np.zeros(10, np.int32),
            batch_size=5,
            seed=seed,
        )
        jax.effects_barrier()
        return np.concatenate(seen).tolist()

    first, again, other = order(0), order(0), order(1)
    assert sorted(first) == list(range(10)) == sorted(other)
    assert first == again != other


@pytest.mark.parametrize(("x", "y", "batch"), [(3, 3, 4), (3, 2, 1), (3, 3, 0), (0, 0, 1)])
def test_fit_refuses_batches_that_do_not_fit(x, y, batch):
    with pytest.raises(ValueError, match="does not fit"):
        fit(
            network(),
            SGD(),
            SparseCategoricalCrossentropy(from_logits=True),
            np.zeros((x, 2)),
            np.zeros(y),
            batch_size=batch,
        )


def test_training_continues_past_overflows_and_counts_them():
    x, y = blobs(256)
    scale = DynamicLossScale(2.0**30, increment_period=5)  # far too high for float16: the first steps overflow
    model = network("mixed_float16")
    history = fit(
        model,
        Adam(0.02),
        SparseCategoricalCrossentropy(from_logits=True),
        x,
        y,
        batch_size=64,
        epochs=20,
        loss_scale=scale,
    )
    assert history.skipped[0]
    assert history.skipped_steps == sum(history.skipped) > 5
    assert history.loss_scale[:2] == [2.0**30, 2.0**29]
    assert accuracy(model, x, y) > 0.95


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_the_loss_is_computed_in_float32(dtype):
    logits = jnp.asarray([[30.0, 10.0, -20.0]] * 5, dtype)
    loss = SparseCategoricalCrossentropy(from_logits=True)
    value = loss(jnp.ones(5, "int32"), logits)
    assert (value.dtype, float(value)) == (jnp.float32, 20)
    assert jax.grad(lambda logits: loss(jnp.ones(5, "int32"), logits))(logits).dtype == dtype
    assert (
        SparseCategoricalCrossentropy(from_logits=True, dtype="bfloat16")(jnp.ones(5, "int32"), logits).dtype
        == jnp.bfloat16
    )
