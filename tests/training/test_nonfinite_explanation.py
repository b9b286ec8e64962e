"""`NumericsMonitor(on_nonfinite="explain")` names the operation that made the first NaN or infinity."""

import warnings

import jax.numpy as jnp
import numpy as np
import pytest

from slowly import mostly_slow, slow
from supremum import nn
from supremum.errors import ArgumentError, UnknownNameError
from supremum.mixed_precision import DynamicLossScale
from supremum.optimizers import SGD, Adam, LossScaleOptimizer
from supremum.training import NumericsMonitor, Sequential, TrainingWarning
from training.blobs import equal, values

X = np.random.default_rng(0).normal(size=(40, 3)).astype("float32")
Y = np.ones((40, 1), "float32")


class Log(nn.Layer):
    """The logarithm of the inputs, which is not finite at zero."""

    def call(self, x):
        return jnp.log(x)


def explained(model, x, monitor=None, **options):
    monitor = monitor or NumericsMonitor(on_nonfinite="explain")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", TrainingWarning)
        model.fit(x, Y, batch_size=16, shuffle=False, callbacks=monitor, verbose=0, **options)
    told = [str(each.message) for each in caught if "NumericsMonitor" in str(each.message)]
    return monitor, told


def with_zero(place):
    """Positive inputs, of which one is zero."""
    x = np.abs(X) + 1
    x[place, 0] = 0
    return x


@pytest.mark.parametrize("optimizer", mostly_slow([SGD, Adam], SGD))
@pytest.mark.parametrize(("place", "step"), [slow(0, 0), (20, 1), slow(39, 2)])
def test_it_names_the_step_the_layer_and_the_pass(optimizer, place, step):
    """The last batch of each epoch is smaller."""
    model = Sequential([Log(name="logs"), nn.Dense(1)])
    model.compile(optimizer(0.01), "mse")
    monitor, (message,) = explained(model, with_zero(place), epochs=2)
    assert f"Step {step} (counted from 0)" in message
    assert "an infinity in the forward pass of" in message
    assert "logs" in message, message
    assert "jnp.log(x), the logarithm of zero" in message
    assert monitor.origins[0].expression == "jnp.log(x)"
    assert "test_nonfinite_explanation.py" in message


class Steep(nn.Layer):
    """A function that is zero at zero, with a large derivative there."""

    def call(self, x):
        return jnp.tanh(1e10 * x)


@pytest.mark.slow
def test_an_origin_in_the_backward_pass():
    model = Sequential([nn.Dense(1), Steep(name="steep")])
    model.compile(SGD(0.01), lambda y, found: 1e30 * jnp.mean(found))
    monitor, (message,) = explained(model, np.zeros_like(X))
    assert "an infinity in the backward pass of" in message
    assert "1e10 * x" in message
    assert monitor.origins[0].backward


def test_skipped_steps_at_the_floor_of_the_scale():
    model = Sequential([nn.Dense(1)], dtype="mixed_float16")
    model.compile(LossScaleOptimizer(SGD(0.1), DynamicLossScale(2.0)), "mse")
    monitor, (message,) = explained(model, 1e6 * np.abs(X), epochs=3)
    assert "skipped steps at the floor of the loss scale" in message
    assert monitor.origins is not None
    assert all(np.isfinite(each).all() for each in values(model).values())


@pytest.mark.slow
def test_training_has_the_same_bits_and_nothing_is_said_if_all_is_finite():
    def run(monitor):
        model = Sequential([nn.Dense(4), nn.BatchNorm(), nn.Dense(1)])
        model.compile(Adam(0.01), "mse")
        told = explained(model, X, monitor, epochs=2)[1]
        return values(model), told

    monitor = NumericsMonitor(on_nonfinite="explain")
    (found, told), (expected, _) = run(monitor), run(NumericsMonitor(on_nonfinite="ignore"))
    assert equal(found, expected)
    assert told == []
    assert monitor.origins is None


def test_several_steps_at_once_and_other_words_raise():
    model = Sequential([nn.Dense(1)])
    model.compile("sgd", "mse", steps_per_execution=4)
    with pytest.raises(ArgumentError, match=r"steps_per_execution=1$"):
        model.fit(X, Y, callbacks=NumericsMonitor(on_nonfinite="explain"), verbose=0)
    with pytest.raises(UnknownNameError, match="did you mean 'explain'"):
        NumericsMonitor(on_nonfinite="explian")
