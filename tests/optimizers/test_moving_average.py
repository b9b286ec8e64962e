"""`MovingAverage`, a wrapper that averages the weights."""

import jax.numpy as jnp
import numpy as np
import pytest

from optimizers.problems import GRADIENTS, SCALE, START, assert_equal, leaves_of, pairs_of, values_of, variables_of
from supremum import nn
from supremum.optimizers import SGD, LossScaleOptimizer, MovingAverage

WRAPS = {
    "plain": lambda decay: MovingAverage(SGD(0.1), decay),
    "around a scale": lambda decay: MovingAverage(LossScaleOptimizer(SGD(0.1), SCALE), decay),
    "inside a scale": lambda decay: LossScaleOptimizer(MovingAverage(SGD(0.1), decay), SCALE),
}


def average_of(optimizer):
    return optimizer if isinstance(optimizer, MovingAverage) else optimizer.inner_optimizer


@pytest.mark.one_in(2)
@pytest.mark.parametrize("wrap", WRAPS.values(), ids=WRAPS)
def test_the_average_follows_applied_steps_only(wrap):
    optimizer, variables = wrap(0.75), variables_of()
    optimizer.build(variables)
    averages = {key: value.astype(np.float64) for key, value in START.items()}
    skips = optimizer.skips
    for number, gradients in enumerate(GRADIENTS[:6]):
        overflows = skips and number == 3
        given = {key: g * np.inf if overflows else g for key, g in gradients.items()}
        before = {key: np.asarray(each) for key, each in average_of(optimizer).average_variables.items()}
        optimizer.apply_gradients(pairs_of(variables, given))
        if overflows:
            after = {key: np.asarray(each) for key, each in average_of(optimizer).average_variables.items()}
            assert_equal(after, before)
        else:
            averages = {key: 0.75 * each + 0.25 * values_of(variables)[key] for key, each in averages.items()}
    for key, expected in averages.items():
        found = average_of(optimizer).average_variables[key]
        assert found.dtype == jnp.float32
        np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-5, atol=1e-6)


def test_averages_of_16_bit_variables_are_float32_until_they_are_used():
    w = nn.Variable(jnp.full(1, 256, jnp.bfloat16), "w")
    optimizer = MovingAverage(SGD(1.0), 0.5)
    optimizer.build(w)
    assert optimizer.average_variables["w"].dtype == jnp.float32
    optimizer.apply_gradients([(jnp.full(1, -2, jnp.bfloat16), w)])
    assert (optimizer.average_variables["w"].dtype, float(optimizer.average_variables["w"][0])) == (jnp.float32, 257)
    with optimizer.averaged():
        assert (w.true_dtype, float(w.value[0])) == (jnp.bfloat16, 256)
    assert float(w.value[0]) == 258
    with pytest.raises(ZeroDivisionError), optimizer.averaged():
        raise ZeroDivisionError
    assert float(w.value[0]) == 258
    optimizer.assign_average_variables()
    assert float(w.value[0]) == 256


def test_the_decay_is_part_of_the_state():
    w = nn.Variable([0.0], "w")
    optimizer = MovingAverage(SGD(1.0), 0.5)
    optimizer.build(w)
    key = optimizer.trace_key
    for decay, expected in ((0.5, 0.5), (0.25, 1.625), (0.0, 3.0)):
        optimizer.decay = decay
        assert float(optimizer.decay) == decay
        optimizer.apply_gradients([(-jnp.ones(1), w)])
        assert float(optimizer.average_variables["w"][0]) == expected
    assert optimizer.trace_key == key
    optimizer.decay.assign(0.75)
    assert optimizer.get_config()["decay"] == 0.75
    for bad in (1.0, -0.1, float("nan")):
        with pytest.raises(ValueError, match="decay must be at least 0 and below 1"):
            optimizer.decay = bad
    with pytest.raises(ValueError, match="decay must be at least 0 and below 1"):
        MovingAverage(SGD(), 2)


def test_minimize_updates_the_average():
    w = nn.Variable([0.0], "w")
    optimizer = MovingAverage(LossScaleOptimizer(SGD(1.0)), 0.5)
    optimizer.build(w)
    optimizer.minimize(lambda x: -jnp.sum(w.value * x), w, 1.0)
    assert (float(w.value[0]), float(optimizer.average_variables["w"][0])) == (1, 0.5)
    (gradient,) = optimizer.get_gradients(lambda x: -jnp.sum(w.value * x), w, 1.0)
    assert float(gradient[0]) == -1


def test_averages_are_saved_and_follow_renamed_variables():
    source, variables = MovingAverage(SGD(0.1), 0.5), variables_of()
    source.build(variables)
    source.apply_gradients(pairs_of(variables, GRADIENTS[0]))
    assert {f"average/{key}" for key in START} <= set(source.variables)
    target = MovingAverage(SGD(0.1), 0.5)
    target.build(variables_of())
    target.load_variables(source.variables)
    assert_equal(leaves_of(target), leaves_of(source))
    with pytest.raises(ValueError, match="no value for average/dense/bias, average/dense/kernel"):
        target.load_variables(source.inner_optimizer.variables)
    new_variable = nn.Variable([5.0], "late")
    source.build({"late": new_variable, "renamed/bias": variables["dense/bias"]})
    assert float(source.average_variables["late"][0]) == 5
    np.testing.assert_array_equal(
        np.asarray(source.average_variables["renamed/bias"]), np.asarray(target.average_variables["dense/bias"])
    )
    assert "dense/bias" not in source.average_variables


def test_averages_have_separate_buffers():
    w = nn.Variable([1.0], "w")
    optimizer = MovingAverage(SGD(0.1))
    optimizer.build(w)
    assert optimizer.average_variables["w"].unsafe_buffer_pointer() != w.value.unsafe_buffer_pointer()


def test_a_step_on_some_variables_keeps_the_other_averages():
    optimizer, variables = MovingAverage(SGD(0.1), 0.5), variables_of()
    optimizer.build(variables)
    optimizer.apply_gradients(pairs_of(variables, GRADIENTS[0]))
    before = np.asarray(optimizer.average_variables["dense/bias"])
    optimizer.apply_gradients([(jnp.ones((3, 2)), variables["dense/kernel"])])
    np.testing.assert_array_equal(np.asarray(optimizer.average_variables["dense/bias"]), before)
