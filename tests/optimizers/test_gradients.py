"""Applying gradients: validation, clipping, transformers and skipped variables."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from optimizers.problems import GRADIENTS, SCALE, START, assert_equal, leaves_of, pairs_of, values_of, variables_of
from supremum import nn
from supremum.optimizers import SGD, Adam, LossScaleOptimizer, Optimizer


def test_variables_keep_their_dtype_and_are_rounded_once():
    w = nn.Variable(jnp.full(4, 256, jnp.bfloat16), "w")
    SGD(1.0).apply_gradients([(jnp.full(4, -3, jnp.bfloat16), w)])
    assert w.true_dtype == jnp.bfloat16
    np.testing.assert_array_equal(np.asarray(w.value, np.float32), np.full(4, 260))  # 259 rounds to even, 260
    # lr * g is not a bfloat16 number: rounding it first would give 1.
    v = nn.Variable(jnp.full(1, 256, jnp.bfloat16), "v")
    SGD(1.01).apply_gradients([(jnp.full(1, -1, jnp.bfloat16), v)])
    assert float(v.value[0]) == 258


@pytest.mark.slow
@pytest.mark.parametrize("left", ["none", "missing"])
def test_variables_without_a_gradient_keep_values_and_slots(left):
    optimizer, variables = Adam(0.1), variables_of()
    optimizer.apply_gradients(pairs_of(variables, GRADIENTS[0]))
    values, slots = values_of(variables), leaves_of(optimizer)
    kernel, bias = variables["dense/kernel"], variables["dense/bias"]
    pairs = [(jnp.asarray(GRADIENTS[1]["dense/bias"]), bias)]
    optimizer.apply_gradients([(None, kernel), *pairs] if left == "none" else pairs)
    after, now = values_of(variables), leaves_of(optimizer)
    for name in ("mu/kernel", "nu/kernel"):
        np.testing.assert_array_equal(now[name], slots[name])
        assert not np.array_equal(now[name.replace("kernel", "bias")], slots[name.replace("kernel", "bias")])
    np.testing.assert_array_equal(after["dense/kernel"], values["dense/kernel"])
    assert not np.array_equal(after["dense/bias"], values["dense/bias"])
    assert int(optimizer.iterations) == 2


def test_new_variables_get_slots_and_old_variables_keep_theirs():
    optimizer, variables = Adam(0.1), variables_of()
    optimizer.build(variables)
    optimizer.apply_gradients(pairs_of(variables, GRADIENTS[0]))
    before = leaves_of(optimizer)
    new_variable = nn.Variable([1.0], "kernel")
    optimizer.build([new_variable])
    after = leaves_of(optimizer)
    assert_equal({name: after[name] for name in before}, before)
    assert set(after) - set(before) == {"mu/kernel", "nu/kernel"}
    # Paths replace names, and each variable keeps its slots.
    optimizer.build({"late/kernel": new_variable, "first/bias": variables["dense/bias"]})
    renamed = leaves_of(optimizer)
    assert {"mu/late/kernel", "mu/first/bias", "mu/dense/kernel"} <= set(renamed)
    np.testing.assert_array_equal(renamed["mu/first/bias"], before["mu/dense/bias"])
    optimizer.apply_gradients([(jnp.ones(1), new_variable)])
    assert float(new_variable.value[0]) < 1


def gradient_of_dtype(dtype):
    return lambda v: [(jnp.ones(v.shape, dtype), v)]


PAIRS = [
    (gradient_of_dtype("float16"), TypeError, r"must be float32, got float16: use gradient.astype\('float32'"),
    (gradient_of_dtype("int32"), TypeError, "must be float32, got int32"),
    (lambda v: [(jnp.ones(3), v)], ValueError, r"must have shape \(2,\), got \(3,\)"),
    (lambda v: [(jnp.ones(2), v), (jnp.ones(2), v)], ValueError, "must have one gradient, got two: add them up"),
    (lambda v: [(None, v)], ValueError, "at least one gradient must not be None"),
    (lambda v: [], ValueError, "at least one gradient must not be None"),
    (lambda v: [(jnp.ones(2), jnp.ones(2))], TypeError, r"nn\.Variable objects, got ArrayImpl"),
    (lambda v: [(1.0, v)], TypeError, "must be an array, got 1.0"),
    (lambda v: [v, v], TypeError, r"apply_gradients\(zip\(gradients, variables\)\)"),
    (
        lambda v: zip([jnp.ones(2)], {"dense/kernel": v}, strict=True),
        TypeError,
        r"got the name 'dense/kernel': .* zip\(gradients, ",
    ),
    (lambda v: jnp.ones(2), TypeError, "pairs"),
    (lambda v: {"a": 1}, TypeError, "pairs"),
    (lambda v: [(jnp.ones(2, int), nn.Variable([1, 2], "n"))], ValueError, "variables must be real floating"),
    (lambda v: [(jnp.ones(2), nn.Dense(2).add_weight("late", 2))], RuntimeError, "no value yet"),
]


def transformed(function):
    return lambda v: SGD(0.1, gradient_transformers=[function]).apply_gradients([(jnp.ones(2), v)])


def updated(gradients, optimizer):
    return optimizer.update(gradients, optimizer.init({"w": jnp.ones(1)}), {"w": jnp.ones(1)})


def minimized(*args):
    """Minimize a loss that assigns to the variable."""
    return lambda v: SGD(0.5).minimize(lambda *_: jnp.sum(v.assign_add(jnp.ones(2)).value), v, *args)


def stepped(transformation):
    return lambda v: Optimizer(transformation).apply_gradients([(jnp.ones(2), v)])


OTHERS = [
    (transformed(lambda pairs: [g for g, _ in pairs]), TypeError, "pairs"),
    (transformed(lambda pairs: None), TypeError, "pairs"),
    (transformed(lambda pairs: [(jnp.ones(3), each) for _, each in pairs]), ValueError, "shape"),
    (transformed(lambda pairs: [(jnp.ones(2, int), each) for _, each in pairs]), TypeError, "floating"),
    (transformed(lambda pairs: [(g, nn.Variable([1.0])) for g, _ in pairs]), ValueError, "did not get one"),
    (
        transformed(lambda pairs: [(None, each) for _, each in pairs]),
        ValueError,
        "at least one gradient must not be None",
    ),
    (lambda v: updated({"v": jnp.ones(1)}, SGD(0.1)), ValueError, "unknown variable 'v'"),
    (lambda v: updated({"w": jnp.ones(1)}, SGD(0.1, gradient_transformers=[list])), ValueError, r"build\(variables\)"),
    (
        stepped(optax.polyak_sgd()),
        ValueError,
        r"cannot take a step on the variables w.*without other arguments such as the loss",
    ),
    (stepped(optax.masked(optax.sgd(1.0), {"v": True})), ValueError, "cannot make a state for the variables w"),
    (lambda v: SGD(0.1).build([v, v]), ValueError, "must occur only once"),
    (minimized("mean"), TypeError, "must be arrays, got 'mean'"),
    *(
        (minimized(*args), ValueError, r"must not assign to Variable\('w'.*assign to it after the step")
        for args in ((), (jnp.ones(1),))
    ),
    (lambda v: SGD(0.1).build([]), ValueError, "needs at least one variable"),
    (
        lambda v: [each.build(variables_of()) for each in [SGD(0.1)] * 2],
        ValueError,
        r"two variables are called 'dense/kernel'.*from_config",
    ),
]


@pytest.mark.parametrize(("pairs", "error", "message"), PAIRS)
def test_invalid_gradients_raise(pairs, error, message):
    optimizer, variable = SGD(0.1), nn.Variable([1.0, 2.0], "w")
    with pytest.raises(error, match=message):
        optimizer.apply_gradients(pairs(variable))
    assert int(optimizer.iterations) == 0
    np.testing.assert_array_equal(np.asarray(variable.value), [1, 2])


@pytest.mark.parametrize(("call", "error", "message"), OTHERS)
def test_other_invalid_arguments_raise(call, error, message):
    variable = nn.Variable([1.0, 2.0], "w")
    with pytest.raises(error, match=message):
        call(variable)
    np.testing.assert_array_equal(np.asarray(variable.value), [1, 2])


def test_an_optimizer_that_refuses_other_variables_is_built_for_the_first():
    optimizer = SGD(0.1)
    optimizer.build(variables_of())
    other = nn.Variable([1.0], "w")
    for variables, message in (
        (variables_of(), "two variables are called"),
        ([other, other], "must occur only once"),
        ([], "needs at least one variable"),
    ):
        with pytest.raises(ValueError, match=message):
            optimizer.build(variables)
    assert set(optimizer.built_for) == set(START)


CLIPS = {
    "clipvalue": lambda g: {k: np.clip(v, -0.5, 0.5) for k, v in g.items()},
    "clipnorm": lambda g: {k: v * min(1, 0.5 / np.linalg.norm(v)) for k, v in g.items()},
    "global_clipnorm": lambda g: {
        k: v * min(1, 0.5 / np.sqrt(sum(np.sum(np.square(w)) for w in g.values()))) for k, v in g.items()
    },
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CLIPS)
def test_gradients_are_clipped_unscaled(name):
    large = {key: np.float64(3) * value / np.linalg.norm(value) for key, value in GRADIENTS[0].items()}
    for optimizer in (SGD(1.0, **{name: 0.5}), LossScaleOptimizer(SGD(1.0, **{name: 0.5}), SCALE)):
        variables = variables_of()
        if isinstance(optimizer, LossScaleOptimizer):
            gradients = optimizer.get_gradients(
                lambda v=variables: sum(jnp.sum(each.value * large[key]) for key, each in v.items()), variables
            )
            optimizer.apply_gradients(zip(gradients, variables.values(), strict=True))
        else:
            optimizer.apply_gradients(pairs_of(variables, large))
        for key, clipped in CLIPS[name](large).items():
            moved = values_of(variables)[key] - START[key]
            np.testing.assert_allclose(moved, -clipped, rtol=1e-4, atol=1e-6)
    if name != "clipvalue":  # the squares of finite gradients do not overflow, and those of zeros divide nothing
        w = nn.Variable(np.zeros(2, np.float32), "w")
        SGD(1.0, **{name: 1.0}).apply_gradients([(jnp.asarray([3e30, 4e30]), w)])
        before = np.asarray(w.value)
        np.testing.assert_allclose(before, [-0.6, -0.8], rtol=1e-6)
        SGD(1.0, **{name: 1.0}).apply_gradients([(jnp.zeros(2), w)])
        np.testing.assert_array_equal(np.asarray(w.value), before)
    # A new number keeps the trace; None changes it.
    inner = optimizer.inner_optimizer
    key = inner.trace_key
    setattr(inner, name, 2.0)
    assert inner.trace_key == key
    setattr(inner, name, None)
    assert inner.trace_key != key


def test_transformers_and_aggregator_see_unscaled_gradients_in_order():
    seen = []

    def recording(name, factor):
        def function(pairs):
            seen.append((name, [each.name for _, each in pairs]))
            return [(gradient * factor + 0 * each.value, each) for gradient, each in pairs]

        return function

    def like_the_variable(pairs):
        return [(each.value, each) for _, each in pairs]  # the value inside the trace

    options = {
        "gradient_aggregator": recording("aggregator", 2.0),
        "gradient_transformers": [recording("one", 3.0), recording("two", 5.0)],
    }
    plain, scaled = SGD(1.0, **options), LossScaleOptimizer(SGD(1.0, **options), SCALE)
    for optimizer in (plain, scaled):
        w = nn.Variable([1.0], "w")
        seen.clear()
        optimizer.apply_gradients([(jnp.ones(1), w)])
        assert [name for name, _ in seen] == ["aggregator", "one", "two"]
        assert float(w.value[0]) == 1 - 30
        optimizer.apply_gradients([(jnp.ones(1), w)], aggregate_gradients=False)
        assert float(w.value[0]) == 1 - 30 - 15
    w, optimizer = nn.Variable([1.0], "w"), SGD(0.5, gradient_transformers=[like_the_variable])
    for expected in (0.5, 0.25):
        optimizer.apply_gradients([(jnp.ones(1), w)])
        assert float(w.value[0]) == expected


def test_an_update_is_pure():
    optimizer, variables = Adam(0.1), variables_of()
    optimizer.build(variables)
    state, values = optimizer.state, {key: each.value for key, each in variables.items()}
    new = jax.jit(optimizer.update)(
        {key: jnp.asarray(g) for key, g in GRADIENTS[0].items()}, state, values, after=1, before=0
    )
    numbers = int(new.state.iterations), int(optimizer.iterations), int(new.alongside), bool(new.skipped)
    assert numbers == (1, 0, 1, False)
    assert jax.tree.structure(new.state) == jax.tree.structure(state)
    assert not [leaf for leaf in jax.tree.leaves(state) if leaf.weak_type]
    assert jax.tree.map(lambda a: (a.shape, a.dtype), new.state) == jax.tree.map(lambda a: (a.shape, a.dtype), state)
    optimizer.state = new.state
    assert int(optimizer.iterations) == 1
