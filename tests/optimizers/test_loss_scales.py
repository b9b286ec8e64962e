"""The RFC, "The new LossScale class": settings that are only read, variables that are assigned."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from supremum.mixed_precision import DynamicLossScale, FixedLossScale
from supremum.optimizers import StatefulLossScale

NARROW = DynamicLossScale(8.0, increment_period=2, multiplier=4.0, minimum=2.0, maximum=64.0, hysteresis=3)


def test_calling_returns_a_float32_scalar():
    for settings, value in {"dynamic": 2.0**15, 7: 7.0, NARROW: 8.0, FixedLossScale(3.0): 3.0}.items():
        scales = [StatefulLossScale(settings), *([settings] if callable(settings) else [])]
        for found in (scale() for scale in scales):
            assert (found.dtype, found.shape, float(found), found.weak_type) == (jnp.float32, (), value, False)


def test_setting_a_setting_raises():
    scale = StatefulLossScale(NARROW)
    assert scale.settings is NARROW
    for name, value in NARROW.get_config().items():
        for owner in (scale, scale.settings):
            with pytest.raises(AttributeError):
                setattr(owner, name, value)
    assert scale.settings.get_config() == NARROW.get_config()


def test_variables_can_be_assigned_but_not_replaced():
    scale = StatefulLossScale(NARROW)
    assert scale.assign(16) is scale
    scale.num_good_steps.assign(np.int8(1))
    assert (float(scale()), int(scale.num_good_steps), float(scale.loss_scale), scale.loss_scale * 2) == (16, 1, 16, 32)
    assert (scale.loss_scale.dtype, scale.num_good_steps.dtype, scale.loss_scale.shape) == (jnp.float32, jnp.int32, ())
    # The next transition starts from the assigned values: after one more good step the scale rises.
    scale.state = NARROW.update(scale.state, jnp.asarray(True))
    assert (float(scale()), int(scale.num_good_steps)) == (64, 0)
    for name in ("loss_scale", "num_good_steps"):
        with pytest.raises(AttributeError, match="no setter"):
            setattr(scale, name, 4)
    for name in ("num_skipped_steps", "anything"):
        with pytest.raises(AttributeError):
            setattr(scale, name, 4)


@pytest.mark.parametrize(
    ("name", "value", "error", "message"),
    [
        ("loss_scale", np.inf, ValueError, "positive and finite, got inf"),
        ("loss_scale", float("nan"), ValueError, "positive and finite"),
        ("loss_scale", 0, ValueError, "positive and finite"),
        ("loss_scale", 1.0, ValueError, "from 2.0 to 64.0.*assign 2.0"),
        ("loss_scale", 65, ValueError, "from 2.0 to 64.0.*assign 64.0"),
        ("loss_scale", "8", TypeError, "must be a number"),
        ("loss_scale", True, TypeError, "must be a number"),
        ("num_good_steps", -1, ValueError, "from 0 to 2147483647, got -1"),
        ("num_good_steps", 1.0, TypeError, "whole number"),
    ],
)
def test_invalid_assigned_values_raise(name, value, error, message):
    scale = StatefulLossScale(NARROW)
    with pytest.raises(error, match=message):
        getattr(scale, name).assign(value)
    assert (float(scale()), int(scale.num_good_steps)) == (8, 0)


def test_a_copy_has_the_same_state_and_changes_separately():
    scale = StatefulLossScale(NARROW)
    scale.loss_scale.assign(32)
    copy = scale.copy()
    assert (copy.settings, float(copy())) == (NARROW, 32)
    copy.loss_scale.assign(4)
    assert (float(scale()), float(copy())) == (32, 4)
    buffers = {leaf.unsafe_buffer_pointer() for each in (scale, scale.copy()) for leaf in each.state}
    assert len(buffers) == 10


def test_invalid_states_raise_and_counts_can_be_read():
    scale = StatefulLossScale("dynamic")
    with pytest.raises(TypeError, match="LossScaleState"):
        scale.state = (1.0, 2)
    with pytest.raises(TypeError, match="copy"):
        StatefulLossScale(scale)
    for bad, error in ((None, TypeError), ([], TypeError), ("dynamc", ValueError), (0.5, ValueError)):
        with pytest.raises(error):
            StatefulLossScale(bad)
    scale.state = scale.settings.update(scale.state, jnp.asarray(False))
    assert int(scale.num_skipped_steps) == 1
    assert "num_skipped_steps=1" in repr(scale)
    with pytest.raises(TypeError, match="known before tracing"):
        jax.jit(lambda x: scale.loss_scale.assign(x).value)(2.0)


@pytest.mark.parametrize("multiplier", [2.0, 3.0, 1.5, 7.0, 10.0])
def test_a_scale_is_divided_exactly(multiplier):
    scale = DynamicLossScale(2.0**15, multiplier=multiplier, maximum=2.0**100)
    state, value = scale.init(), np.float32(2.0**15)
    update = jax.jit(scale.update)
    for _ in range(8):
        state, value = update(state, False), np.float32(value / np.float32(multiplier))
        assert np.float32(state.loss_scale) == max(value, 1)
