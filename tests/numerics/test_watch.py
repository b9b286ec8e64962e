"""`watch` measures calls of any step, exactly, and leaves its results as they are."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.ad_checkpoint import checkpoint_name

from numerics.reference import counts_of
from slowly import mostly_slow
from supremum.errors import ArgumentError, OperandError
from supremum.formats import as_format
from supremum.mixed_precision import DynamicLossScale, scaled_value_and_grad
from supremum.numerics import watch

FORMATS = "float16", "bfloat16"
ROWS = [as_format(name) for name in FORMATS]
RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(16, 4)).astype("float32")
Y = RANDOM.normal(size=(16, 1)).astype("float32")
PARAMS = {"dense": RANDOM.normal(size=(4, 8)).astype("float32"), "out": RANDOM.normal(size=(8, 1)).astype("float32")}
OPTIMIZER = optax.adam(1e-2)


def plain(counts):
    found = counts.to_dict()
    for row in found["formats"].values():
        del row["overflow_to"]
    return found


def loss(params, x, y):
    with jax.named_scope("dense"):
        hidden = jnp.tanh(x @ params["dense"])
    with jax.named_scope("out"):
        found = hidden @ params["out"]
    return 1e-5 * jnp.mean((found - y) ** 2)


def step(params, state, x, y):
    value, gradients = jax.value_and_grad(loss)(params, x, y)
    gradients = {name: checkpoint_name(each, f"gradient of {name}") for name, each in gradients.items()}
    updates, state = OPTIMIZER.update(gradients, state, params)
    return optax.apply_updates(params, updates), state, value


def run(step, steps=5):
    params = jax.tree.map(jnp.asarray, PARAMS)
    state = OPTIMIZER.init(params)
    for _ in range(steps):
        params, state, value = step(params, state, X, Y)
    return params, state, value


JITTED = {
    "eager": lambda step: step,
    "jitted": jax.jit,
    "donated": partial(jax.jit, donate_argnums=(0, 1)),
}


@pytest.mark.parametrize("mode", mostly_slow(JITTED, "jitted", "donated"))
def test_results_have_the_same_bits(mode):
    jitted = JITTED[mode](step)
    watched = watch(jitted, every=2)
    expected, found = run(jitted), run(watched)
    assert all(a.tobytes() == b.tobytes() for a, b in zip(*map(jax.tree.leaves, (expected, found)), strict=True))
    assert watched.history.steps == [0, 2, 4]


def test_counts_equal_numpy():
    watched = watch(jax.jit(step), formats=FORMATS)
    params, _, value = run(watched, 1)
    gradients = jax.jit(jax.grad(loss))(PARAMS, X, Y)
    (record,) = watched.history.records
    for name, gradient in gradients.items():
        assert plain(record.values["named"][f"gradient of {name}"]) == counts_of([np.asarray(gradient)], ROWS)
        assert plain(record.values["inputs"][f"[0]['{name}']"]) == counts_of([PARAMS[name]], ROWS)
        assert plain(record.values["outputs"][f"[0]['{name}']"]) == counts_of([np.asarray(params[name])], ROWS)
    assert record.values["outputs"]["[2]"].largest == float(value)
    hidden = jax.jit(lambda x, w: jnp.tanh(x @ w))(X, PARAMS["dense"])
    assert plain(record.values["forward"]["dense"]) == counts_of([np.asarray(hidden)], ROWS)


def test_what_leaves_a_scope_in_the_backward_pass():
    """The gradient of the weights and that of the inputs leave a layer, and nothing in between does."""
    watched = watch(jax.jit(step), formats=FORMATS)
    run(watched, 1)
    backward = watched.history.records[0].values["backward"]
    assert set(backward) == {"dense", "out"}
    assert backward["out"].values == 8 + 16 * 8  # weights and hidden values
    assert backward["dense"].values == 4 * 8  # the inputs have no gradient


def test_scopes_inside_loops_and_calls():
    @jax.jit
    def looped(x):
        @jax.jit
        def layer(x):
            with jax.named_scope("layer"):
                return jnp.sin(2 * x)

        with jax.named_scope("outer"):
            x, _ = jax.lax.scan(lambda carry, _: (layer(carry) + 1, None), x, length=3)
        return x + 1

    watched = watch(looped)
    watched(jnp.ones(4))
    forward = watched.history.records[0].values["forward"]
    assert {name: (counts.runs, counts.values) for name, counts in forward.items()} == {
        "outer": (1, 4),
        "outer/layer": (3, 12),
    }


def test_the_loss_scale_and_skipped_steps():
    scale = DynamicLossScale(2.0**20)
    differentiate = scaled_value_and_grad(lambda w, x: jnp.sum((w * x) ** 2), scale)

    @partial(jax.jit, donate_argnums=1)
    def step(w, state, x):
        _, gradients, _, state = differentiate(state, w, x)
        return w - 1e-3 * gradients.astype(w.dtype) * 0, state

    got = []
    watched = watch(step, every=2, on_log=got.append)
    w, state = jnp.ones(2, "float16"), scale.init()
    scales = []
    for _ in range(4):
        scales.append(float(state.loss_scale))
        w, state = watched(w, state, jnp.ones(2, "float16"))
    assert watched.history.loss_scale == [2.0**20, scales[2]]
    assert [(each["step"], each["skipped_steps"]) for each in got] == [(0, 0), (2, 2)]
    assert scales[2] == 2.0**13  # the largest power of two in float16, halved twice


def test_one_program_for_calls_of_one_kind():
    traces = []

    def step(w, scale):
        traces.append(1)
        return w * scale

    watched = watch(step, every=1)
    for _ in range(3):
        watched(jnp.ones(2), 2.0)
    assert len(traces) == 3 + 1  # each call, and once to count
    watched(jnp.ones(3), 2.0)
    watched(jnp.ones(3), 3.0)
    assert len(traces) == 5 + 3
    assert [record.values["outputs"]["result"].largest for record in watched.history.records] == [2, 2, 2, 2, 3]


@pytest.mark.slow
def test_layers_of_flax():
    linen = pytest.importorskip("flax.linen")

    class Net(linen.Module):
        @linen.compact
        def __call__(self, x):
            return linen.Dense(1)(linen.relu(linen.Dense(8)(x)))

    net = Net()
    params = net.init(jax.random.key(0), X)

    @jax.jit
    def step(params):
        gradients = jax.grad(lambda params: jnp.mean((net.apply(params, X) - Y) ** 2))(params)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, gradients)

    watched = watch(step)
    watched(params)
    values = watched.history.records[0].values
    assert {"Net/Dense_0", "Net/Dense_1"} <= set(values["forward"]) & set(values["backward"])
    assert "[0]['params']['Dense_0']['kernel']" in values["inputs"]


def test_modules_of_flax_nnx_are_updated_once():
    nnx = pytest.importorskip("flax.nnx")
    model = nnx.Linear(4, 1, rngs=nnx.Rngs(0))
    before = np.asarray(model.kernel[...])

    @nnx.jit
    def step(model, x):
        gradients = nnx.grad(lambda model: jnp.mean(model(x) ** 2))(model)
        nnx.update(model, jax.tree.map(lambda p, g: p - 0.1 * g, nnx.state(model), gradients))
        return jnp.float32(1.0)

    expected = nnx.clone(model)
    step(expected, X)
    watched = watch(step, every=1)
    watched(model, X)
    assert np.asarray(model.kernel[...]).tobytes() == np.asarray(expected.kernel[...]).tobytes() != before.tobytes()
    kernel = [counts for name, counts in watched.history.records[0].values["inputs"].items() if "kernel" in name]
    assert kernel[0].largest == np.abs(before).max()


def test_a_failing_step_is_not_counted_and_raises_its_own_error():
    def step(x):
        raise ValueError("my error")

    watched = watch(step)
    with pytest.raises(ValueError, match="my error"):
        watched(jnp.ones(1))
    assert watched.calls == 0
    assert watched.history.records == []


def test_traced_calls_and_wrong_arguments_raise():
    watched = watch(jnp.sin)
    with pytest.raises(OperandError, match=r"watch\(jax.jit\(step\)\)"):
        jax.jit(watched)(jnp.ones(1))
    for options in ({"every": 0}, {"every": "2"}, {"on_log": 1}):
        with pytest.raises((ArgumentError, OperandError)):
            watch(jnp.sin, **options)
    with pytest.raises(OperandError, match="step must be a function"):
        watch(1)
