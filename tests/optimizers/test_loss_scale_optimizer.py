"""The RFC, "LossScaleOptimizer Overview" and "LossScaleOptimizer API"."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from optimizers.problems import GRADIENTS, SCALE, START, assert_equal, leaves_of, pairs_of, values_of, variables_of
from supremum import nn
from supremum.mixed_precision import DynamicLossScale, FixedLossScale, ScaledOptimizerState
from supremum.optimizers import SGD, Adam, LossScaleOptimizer, Optimizer, OptimizerWrapper, StatefulLossScale

START_SCALE = float(SCALE.initial_loss_scale)


class ScaleRecorder:
    """A loss of one variable that records the scale of its cotangent."""

    def __init__(self, bad=1.0):
        self.w, self.bad, self.scales = nn.Variable([3.0], "w"), bad, []
        identity = jax.custom_vjp(lambda x: x)

        def backward(_, cotangent):
            jax.debug.callback(lambda scale: self.scales.append(float(scale)), cotangent)
            return (cotangent,)

        identity.defvjp(lambda x: (x, None), backward)
        self.loss_of = lambda w: identity(jnp.sum(w) * self.bad)

    def __call__(self):
        return self.loss_of(self.w.value)


def performed_steps(method, bad=1.0, settings=SCALE):
    """Return which of the four steps a method performs: scaling, unscaling, updating the scale and skipping."""
    recorder = ScaleRecorder(bad)
    optimizer = LossScaleOptimizer(SGD(0.5), settings)
    gradients = {
        "minimize": lambda: optimizer.minimize(recorder, recorder.w),
        "get_gradients": lambda: optimizer.get_gradients(recorder, recorder.w),
        "apply_gradients": lambda: optimizer.apply_gradients([(jnp.full(1, bad), recorder.w)]),
        "get_scaled_loss": lambda: jax.grad(lambda w: optimizer.get_scaled_loss(recorder.loss_of(w)))(recorder.w.value),
        "get_unscaled_gradients": lambda: optimizer.get_unscaled_gradients([jnp.full(1, bad)]),
    }[method]()
    jax.effects_barrier()
    state = optimizer.loss_scale.state
    return {
        "loss": recorder.scales,
        "gradients": None if gradients is None or np.ndim(gradients) == 0 else np.ravel(np.asarray(gradients)).tolist(),
        "good": int(state.num_good_steps),
        "skipped": int(state.num_skipped_steps),
        "scale": float(state.loss_scale),
        "w": float(recorder.w.value[0]),
        "iterations": int(optimizer.iterations),
    }


NOTHING = {"loss": [], "gradients": None, "good": 0, "skipped": 0, "scale": START_SCALE, "w": 3.0, "iterations": 0}
TABLE = {
    "minimize": {"loss": [START_SCALE], "good": 1, "w": 2.5, "iterations": 1},
    "get_gradients": {"loss": [START_SCALE], "gradients": [1.0]},
    "apply_gradients": {"good": 1, "w": 2.5, "iterations": 1},
    "get_scaled_loss": {"loss": [START_SCALE], "gradients": [START_SCALE]},
    "get_unscaled_gradients": {"gradients": [1 / START_SCALE]},
}
SKIPPED = {"good": 0, "skipped": 1, "scale": START_SCALE / 2, "w": 3.0, "iterations": 0}


@pytest.mark.parametrize("method", TABLE)
def test_each_method_performs_the_steps_of_the_rfc_table(method):
    assert performed_steps(method) == {**NOTHING, **TABLE[method]}
    steps_3_and_4 = SKIPPED if method in ("minimize", "apply_gradients") else {}
    bad = {"gradients": [np.inf]} if TABLE[method].get("gradients") else {}
    assert performed_steps(method, np.inf) == {**NOTHING, **TABLE[method], **bad, **steps_3_and_4}


@pytest.mark.parametrize("method", TABLE)
def test_a_fixed_scale_is_never_updated_and_never_skips(method):
    fixed = FixedLossScale(START_SCALE)
    expected = {**NOTHING, **TABLE[method], "good": 0}
    assert performed_steps(method, settings=fixed) == expected
    if method in ("minimize", "apply_gradients"):
        assert performed_steps(method, np.inf, fixed) == {**expected, "w": -np.inf}


def test_the_rfc_examples_work():
    opt = SGD(0.25)
    opt = LossScaleOptimizer(opt, "dynamic")
    var = nn.Variable(1.0, "var", dtype="float32")
    opt.minimize(lambda: var**2, var)
    assert float(var.value) == 0.5

    def loss_fn(value):
        return value**2

    grad = jax.grad(lambda value: opt.get_scaled_loss(loss_fn(value)))(var.value)
    assert float(grad) == 2**15
    (grad,) = opt.get_unscaled_gradients([grad])
    opt.apply_gradients([(grad, var)])
    assert float(var.value) == 0.25
    grad = jax.grad(opt.get_scaled_loss(loss_fn))(var.value)  # a function works too
    assert float(grad) == 2**14


@pytest.mark.one_in(2)
@pytest.mark.parametrize(("seed", "settings"), [(0, SCALE), (1, DynamicLossScale(4.0, 2, hysteresis=2, maximum=16.0))])
def test_a_skipped_step_changes_nothing_but_the_scale(seed, settings):
    bad = np.random.default_rng(seed).random(24) < 0.4
    optimizer, variables = LossScaleOptimizer(Adam(0.05), settings), variables_of()
    plain, others = Adam(0.05), variables_of()
    for each, held in ((optimizer, variables), (plain, others)):
        each.build(held)
    expected = settings.init()
    for number, overflows in enumerate(bad):
        gradients = GRADIENTS[number % 20]
        value = [np.inf, -np.inf, np.nan][number % 3]
        given = {key: np.where(np.arange(g.size).reshape(g.shape) == 1, value, g) if overflows else g
                 for key, g in gradients.items()}  # fmt: skip
        given["dense/kernel"] = gradients["dense/kernel"]  # one bad leaf is enough
        before = leaves_of(optimizer), values_of(variables)
        optimizer.apply_gradients(pairs_of(variables, given))
        if overflows:
            inner = set(plain.variables)
            assert_equal({n: leaves_of(optimizer)[n] for n in inner}, {n: before[0][n] for n in inner})
            assert_equal(values_of(variables), before[1])
        else:
            plain.apply_gradients(pairs_of(others, gradients))
        expected = settings.update(expected, jnp.asarray(not overflows))
        assert [float(leaf) for leaf in optimizer.loss_scale.state] == [float(leaf) for leaf in expected]
    assert_equal(values_of(variables), values_of(others))
    assert int(optimizer.loss_scale.num_skipped_steps) == bad.sum()
    assert int(optimizer.iterations) == len(bad) - bad.sum()


def test_parts_are_read_only_and_may_be_shared_and_aggregation_can_be_set():
    inner, shared = SGD(0.5), StatefulLossScale(SCALE)
    optimizer, other = LossScaleOptimizer(inner, shared), LossScaleOptimizer(SGD(0.5), shared)
    assert optimizer.inner_optimizer is inner
    assert optimizer.loss_scale is other.loss_scale is shared
    assert LossScaleOptimizer(SGD(), SCALE).loss_scale is not LossScaleOptimizer(SGD(), SCALE).loss_scale
    for each in (optimizer, other):
        each.apply_gradients([(jnp.full(1, jnp.nan), nn.Variable([1.0], "w"))])
    assert float(shared()) == START_SCALE / 4
    for name in ("loss_scale", "inner_optimizer"):
        with pytest.raises(AttributeError):
            setattr(optimizer, name, None)
    assert optimizer.aggregate_in_float16 is True
    key = optimizer.trace_key
    optimizer.aggregate_in_float16 = False
    assert optimizer.aggregate_in_float16 is False
    assert optimizer.trace_key != key
    with pytest.raises(TypeError, match="True or False"):
        optimizer.aggregate_in_float16 = 1


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_a_scaled_loss_is_float32(dtype):
    optimizer = LossScaleOptimizer(SGD(), 1024)
    assert float(jax.grad(optimizer.get_scaled_loss(jnp.square))(jnp.float32(0.25))) == 512  # a function works too
    with jax.enable_x64(True):
        wide = jax.grad(lambda w: optimizer.get_scaled_loss(w * (1 / 3)))(jnp.float64(1))
        assert (wide.dtype, float(optimizer.get_unscaled_gradients([wide])[0])) == (jnp.float64, 1 / 3)
        assert optimizer.get_scaled_loss(jnp.float64(1 / 3)).dtype == jnp.float32
    scaled = optimizer.get_scaled_loss(jnp.asarray(300, dtype))
    assert (scaled.dtype, scaled.weak_type) == (jnp.float32, False)
    assert float(scaled) == float(jnp.asarray(300, dtype)) * 1024
    (unscaled, none) = optimizer.get_unscaled_gradients([jnp.asarray([1e-3], dtype), None])
    assert none is None
    assert unscaled.dtype == jnp.float32
    np.testing.assert_array_equal(np.asarray(unscaled), np.asarray(jnp.asarray([1e-3], dtype), np.float32) / 1024)


OPTIMIZER = LossScaleOptimizer(SGD())
INVALID = [
    *((lambda make=make: LossScaleOptimizer(make(OPTIMIZER)), TypeError, "already scales its loss")
      for make in (lambda each: each, OptimizerWrapper, lambda each: OptimizerWrapper(OptimizerWrapper(each)))),
    (lambda: LossScaleOptimizer(None), TypeError, r"needs an optimizer, got None: pass SGD\(0.01\)"),
    (lambda: LossScaleOptimizer(SGD(), None), TypeError, "needs a loss scale, got None: pass 'dynamic' or a number"),
    (lambda: LossScaleOptimizer(SGD(), "dynamix"), ValueError, "dynamic"),
    *((lambda loss=loss: OPTIMIZER.get_scaled_loss(loss), TypeError, "real floating")
      for loss in (jnp.int32(1), 1, None, 1j, "x")),
    *((lambda bad=bad: OPTIMIZER.get_unscaled_gradients(bad), TypeError, "real floating arrays or None")
      for bad in ([jnp.ones(2, int)], [1.0], ["x"])),
    *((lambda call=call: jax.jit(call)(1.0), ValueError,
       r"constant from the time of tracing.*value_and_grad and optimizer\.update")
      for each in (OPTIMIZER.get_scaled_loss, lambda x: OPTIMIZER.get_unscaled_gradients([x])[0])
      for call in (each, jax.grad(each))),
]  # fmt: skip


def test_invalid_arguments_raise():
    for call, error, message in INVALID:
        with pytest.raises(error, match=message):
            call()
    assert type(LossScaleOptimizer(optax.sgd(0.5)).inner_optimizer) is Optimizer
    assert OPTIMIZER.get_scaled_loss(2.0).dtype == jnp.float32
    assert float(OPTIMIZER.get_scaled_loss(nn.Variable([2.0], "w"))[0]) == 2**16
    for call in (OPTIMIZER.get_scaled_loss, lambda x: OPTIMIZER.get_unscaled_gradients([x])):
        jax.vmap(call)(jnp.ones(2))
    jax.jit(LossScaleOptimizer(SGD(), 8).get_scaled_loss)(1.0)


def test_float16_variables_take_unscaled_gradients_that_float16_would_flush():
    w = nn.Variable(jnp.ones(1, jnp.float16), "w")
    optimizer = LossScaleOptimizer(SGD(2.0**20), SCALE)
    (gradient,) = optimizer.get_gradients(lambda: jnp.sum(w.value.astype(jnp.float32)) * 2.0**-26, w)
    assert (gradient.dtype, float(gradient[0])) == (jnp.float32, 2.0**-26)
    optimizer.apply_gradients([(gradient, w)])
    assert (w.true_dtype, float(w.value[0])) == (jnp.float16, 1 - 2.0**-6)
    with pytest.raises(TypeError, match=r"must be float32, got float16"):
        optimizer.apply_gradients([(jnp.ones(1, jnp.float16), nn.Variable([1.0], "v"))])


def test_the_pure_functions_take_a_state_and_return_the_next():
    optimizer = LossScaleOptimizer(SGD(0.5), SCALE)
    values = {key: jnp.asarray(value) for key, value in START.items()}
    state = optimizer.init(values)
    assert isinstance(state, ScaledOptimizerState)

    @jax.jit
    def step(state, values, bad):
        def loss_fn(values, bad):
            return sum(jnp.sum(each) for each in values.values()) * bad, bad * 2

        (loss, aux), gradients = optimizer.value_and_grad(loss_fn, has_aux=True)(state, values, bad)
        return loss, aux, gradients, optimizer.update(gradients, state, values, after={"n": aux}, before={"n": bad})

    loss, aux, gradients, new = step(state, values, 1.0)
    np.testing.assert_allclose(float(loss), sum(value.sum() for value in START.values()), rtol=1e-5)
    assert float(aux) == 2
    assert {float(x) for each in gradients.values() for x in np.ravel(each)} == {1.0}
    assert (bool(new.skipped), float(new.alongside["n"]), int(new.state.scaling.num_good_steps)) == (False, 2, 1)
    *_, new = step(new.state, new.values, jnp.inf)
    assert (bool(new.skipped), float(new.alongside["n"])) == (True, np.inf)
    assert float(optimizer.loss_scale()) == START_SCALE
    optimizer.build(variables_of())
    optimizer.state = new.state
    assert float(optimizer.loss_scale()) == START_SCALE / 2
    assert int(optimizer.iterations) == 1


def test_code_inside_a_step_reads_the_scale_and_the_numbers_of_that_step():
    optimizer = LossScaleOptimizer(SGD(1.0), SCALE)
    optimizer.inner_optimizer.gradient_transformers = [
        lambda pairs: [(g * optimizer.loss_scale() * optimizer.learning_rate, each) for g, each in pairs]
    ]
    w = nn.Variable([0.0], "w")
    for scale in (2.0, 8.0):
        w.assign(jnp.zeros(1))
        optimizer.loss_scale.loss_scale.assign(scale)
        optimizer.learning_rate = scale / 2
        optimizer.apply_gradients([(jnp.ones(1), w)])
        assert float(w.value[0]) == -scale * (scale / 2) ** 2
