"""`minimize`, `get_gradients` and `apply_gradients` give the same training and read current variables in each step."""

import warnings

import jax
import jax.numpy as jnp
import pytest

from optimizers.problems import SCALE, X, Y
from supremum import nn
from supremum.optimizers import SGD, LossScaleOptimizer, RetraceWarning


def model_of(policy="float32", dropout=False):
    layers = [nn.Dense(6, dtype=policy), nn.BatchNorm(momentum=0.5, dtype=policy), nn.ReLU(dtype=policy)]
    layers += [nn.Dropout(0.5, dtype=policy)] if dropout else []
    model = nn.SequentialNetwork([*layers, nn.Dense(2, dtype=policy)])
    nn.initialize(model, X)
    return model


def loss_of(model):
    def loss_fn(x, y):
        return jnp.mean(jnp.square(model(x, training=True).astype(jnp.float32) - y))

    return loss_fn


def test_closures_read_current_values():
    w, factor = nn.Variable([1.0], "w"), [1.0]
    optimizer = SGD(0.5)
    for factor[0], expected in ((1.0, 0.5), (2.0, -0.5), (0.0, -0.5)):
        loss = optimizer.minimize(lambda: jnp.sum(w.value * factor[0]), w)
        assert float(w.value[0]) == expected
    assert loss.dtype == jnp.float32


def test_compiled_steps_read_current_values_of_other_variables():
    w, scale, count = (nn.Variable(1.0, name, dtype="float32") for name in ("w", "scale", "count"))
    traces = []

    def loss_fn(x):
        traces.append(x)
        count.assign_add(1.0)
        return w.value * scale.value * x

    optimizer = SGD(1.0)
    for scale_now in (1.0, 3.0):
        scale.assign(scale_now)
        before = float(w.value)
        loss = optimizer.minimize(loss_fn, w, jnp.float32(2.0))
        assert float(w.value) == before - 2 * scale_now
        assert float(loss) == before * 2 * scale_now
    assert float(count.value) == 3
    assert len(traces) == 2  # one trace finds the variables, one takes them as inputs
    optimizer.get_gradients(loss_fn, w, jnp.float32(2.0))
    assert float(count.value) == 4


@pytest.mark.parametrize("wrap", [lambda each: each, LossScaleOptimizer], ids=["plain", "scaled"])
def test_setting_a_hyperparameter_needs_no_new_trace(wrap):
    w, traces = nn.Variable([0.0], "w"), []

    def loss_fn(x):
        traces.append(x)
        return jnp.sum(w.value * x)

    optimizer = wrap(SGD(1.0, momentum=0.5))
    inner = getattr(optimizer, "inner_optimizer", optimizer)
    for number in range(4):
        optimizer.learning_rate = 2.0**-number
        if optimizer is not inner:
            optimizer.loss_scale.loss_scale.assign(2.0**number)
        before = float(w.value[0])
        optimizer.minimize(loss_fn, w, jnp.float32(1.0))
        assert float(w.value[0]) == before - 2.0**-number * (2 - 0.5**number)
    assert len(traces) == 1
    inner.nesterov = True
    optimizer.minimize(loss_fn, w, jnp.float32(1.0))
    assert len(traces) == 2


def test_a_loss_without_arguments_can_assign_to_other_variables():
    w, count = nn.Variable(1.0, "w", dtype="float32"), nn.Variable(0.0, "count", dtype="float32")
    optimizer = LossScaleOptimizer(SGD(1.0), SCALE)

    def loss_fn(factor=1.0):
        count.assign_add(1.0)
        return w.value * factor

    optimizer.minimize(loss_fn, w)
    (gradient,) = optimizer.get_gradients(loss_fn, w)
    assert (float(count.value), float(gradient), float(w.value)) == (2, 1, 0)
    optimizer.minimize(lambda: loss_fn(jnp.inf), w)
    optimizer.get_gradients(lambda: loss_fn(jnp.inf), w)
    assert (float(count.value), float(w.value)) == (2, 0)  # assignments of a skipped step are dropped
    assert int(optimizer.loss_scale.num_skipped_steps) == 1


@pytest.mark.slow
def test_dropout_draws_new_masks_in_every_compiled_step():
    model, optimizer = model_of(dropout=True), SGD(0.0)
    loss_fn = loss_of(model)
    with nn.random_key(jax.random.key(0)):
        losses = [float(optimizer.minimize(loss_fn, model.trainable_variables, X, Y)) for _ in range(3)]
    assert len(set(losses)) == 3
    with pytest.raises(ValueError, match="needs random numbers but has no key"):
        optimizer.minimize(loss_fn, model.trainable_variables, X, Y)


def test_a_computed_loss_raises_with_working_alternatives():
    w = nn.Variable([3.0], "w")
    optimizer = LossScaleOptimizer(SGD(0.5))
    for method in (optimizer.minimize, optimizer.get_gradients):
        with pytest.raises(
            TypeError, match=r"(?s)no tape.*get_scaled_loss.*jax.grad.*get_unscaled_gradients.*apply_grad"
        ):
            method(jnp.sum(w.value), w)
    with pytest.raises(TypeError, match="got float: JAX has no tape"):
        optimizer.minimize(1.0, w)
    # The code that the error suggests works.
    variables = [w]

    def loss_of(values):
        return jnp.sum(values[0] ** 2)

    def scaled_loss(values):
        return optimizer.get_scaled_loss(loss_of(values))

    gradients = jax.grad(scaled_loss)([variable.value for variable in variables])
    gradients = optimizer.get_unscaled_gradients(gradients)
    optimizer.apply_gradients(zip(gradients, variables, strict=True))
    assert float(w.value[0]) == 0


@pytest.mark.parametrize("wrapped", [False, True])
@pytest.mark.parametrize(
    ("loss", "message"),
    [
        (lambda w: w, r"real floating scalar, got float32\[2\]: return loss.mean"),
        (lambda w: 1, "got int: use jnp.asarray"),
        (lambda w: jnp.sum(w).astype(int), "got int32"),
        (lambda w: jnp.sum(w) * 1j, "got complex64"),
        (lambda w: (jnp.sum(w), 1), "got tuple"),
        (lambda w: None, "got NoneType"),
    ],
)
def test_a_loss_that_is_not_a_real_floating_scalar_raises(loss, message, wrapped):
    w = nn.Variable([1.0, 2.0], "w")
    optimizer = LossScaleOptimizer(SGD(0.5)) if wrapped else SGD(0.5)
    with pytest.raises(TypeError, match=message):
        optimizer.minimize(lambda: loss(w.value), w)
    with pytest.raises(TypeError, match=message):
        optimizer.get_gradients(lambda x: loss(w.value), w, X)
    assert int(optimizer.iterations) == 0


def test_a_variable_or_a_constant_can_be_the_loss():
    for optimizer in (SGD(0.5), LossScaleOptimizer(SGD(0.5))):
        w = nn.Variable(2.0, "w", dtype="float32")
        assert [float(optimizer.minimize(lambda *_, w=w: w, [w], *args)) for args in ((), (X,))] == [2, 1.5]
        assert [float(each) for each in (optimizer.minimize(lambda: 2.0, w), w.value)] == [2, 1]  # no gradient


def test_stateful_methods_raise_inside_a_trace():
    w, optimizer = nn.Variable([1.0], "w"), SGD(0.5)
    optimizer.build(w)

    def loss_fn(*_):
        return jnp.sum(w.value)

    calls = [
        lambda x: optimizer.minimize(loss_fn, w),
        lambda x: optimizer.minimize(loss_fn, w, x),
        lambda x: optimizer.get_gradients(loss_fn, w, x),
        lambda x: optimizer.apply_gradients([(x, w)]),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=r"value_and_grad and optimizer\.update"):
            jax.jit(call)(jnp.ones(1))
        assert int(optimizer.iterations) == 0
        assert float(w.value[0]) == 1


@pytest.mark.slow
def test_a_new_function_in_every_step_warns_once():
    w, optimizer = nn.Variable([1.0], "w"), SGD(0.0)

    def minimize_new_functions():
        for _ in range(80):
            with pytest.raises(TypeError, match="got NoneType"):  # only traced, because compiling takes a second
                optimizer.minimize(lambda x: None, w, 1.0)

    with pytest.warns(RetraceWarning, match="make it once, before the loop") as caught:
        minimize_new_functions()
    assert len(caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        minimize_new_functions()


def test_gradients_have_the_order_of_the_variables():
    a, b = nn.Variable([1.0], "b"), nn.Variable([1.0, 2.0], "a")
    found = SGD().get_gradients(lambda: jnp.sum(a.value) + jnp.sum(b.value), [a, b])
    assert [each.shape for each in found] == [(1,), (2,)]
    found = SGD().get_gradients(lambda: jnp.sum(a.value) + jnp.sum(b.value), {"z": b, "y": a})
    assert [each.shape for each in found] == [(2,), (1,)]
