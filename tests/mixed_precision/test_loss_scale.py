import itertools
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mixed_precision import reference
from supremum.errors import UnknownNameError
from supremum.mixed_precision import (
    DynamicLossScale,
    FixedLossScale,
    LossScaleState,
    as_loss_scale,
    deserialize_loss_scale,
    serialize_loss_scale,
)

NAMES = ("period", "multiplier", "minimum", "maximum", "hysteresis")
SETTINGS = [
    dict(zip(NAMES, values, strict=True))
    for values in itertools.product([1, 2, 5], [2.0, 4.0], [1.0, 0.25], [2.0**127, 8.0], [1, 2, 3])
]
CASES = list(itertools.product([True, False], [0, 1, 4], ["minimum", "middle", "maximum"], [0, 1, 2, 3]))
FINITE = jnp.asarray([finite for finite, *_ in CASES])


def scale_of(period, **settings):
    return DynamicLossScale(4.0, period, **settings)


def states_of(settings):
    values = settings | {"middle": 4.0}
    return [(values[scale], good, 7, overflows, 9) for _, good, scale, overflows in CASES]


def _all_settings(states, finite):
    return [scale_of(**each).update(state, finite) for each, state in zip(SETTINGS, states, strict=True)]


def _scanned(states, finite):
    return jax.lax.scan(lambda _, case: (None, _all_settings(*case)), None, (states, finite))[1]


MODES = {"eager": _all_settings, "jitted": jax.jit(_all_settings), "scanned": _scanned}


@pytest.mark.one_in(3)
@pytest.mark.parametrize("mode", MODES)
def test_every_transition_matches_the_reference(mode):
    columns = [np.transpose(states_of(each)) for each in SETTINGS]
    states = [
        LossScaleState(jnp.asarray(c[0], jnp.float32), *(jnp.asarray(n, jnp.int32) for n in c[1:])) for c in columns
    ]
    for each, after in zip(SETTINGS, MODES[mode](states, FINITE), strict=True):
        got = list(zip(*(leaf.tolist() for leaf in after), strict=True))
        pairs = zip(states_of(each), FINITE.tolist(), strict=True)
        assert got == [reference.update(state, finite, **each) for state, finite in pairs], each


def test_defaults_match_the_rfc():
    scale = DynamicLossScale()
    assert (scale.initial_loss_scale, scale.increment_period, scale.multiplier) == (2**15, 2000, 2)
    assert (scale.minimum, scale.maximum, scale.hysteresis) == (1, 2**127, 1)


MOST = 2**31 - 1
NARROW = {"initial_loss_scale": 4.0, "minimum": 2.0, "maximum": 8.0, "hysteresis": 2}
RARE = {"initial_loss_scale": 2.0, "increment_period": MOST}
# The settings, the state before (a scale and counts), whether each step is finite, the scales, and the counts after.
UPDATES = {
    "overflows are tolerated until the scale rises": (
        {"initial_loss_scale": 16.0, "increment_period": 2, "hysteresis": 2}, (16, 0, 0, 0, 0), "FTFFTTFF",
        [16, 16, 8, 4, 4, 8, 8, 4], [0, 5, 2, 0],
    ),
    "a product that overflows float32": (
        {"increment_period": 1, "multiplier": 2.0**100}, (2.0**127, 0, 0, 0, 0), "TTT", [2.0**127] * 3, [0, 0, 0, 0]
    ),
    "below the minimum, finite": (NARROW, (1, 0, 0, 0, 0), "T", [2], [1, 0, 0, 0]),
    "below the minimum, overflow": (NARROW, (1, 0, 0, 0, 0), "F", [2], [0, 1, 1, 0]),
    "above the maximum, finite": (NARROW, (64, 0, 0, 0, 0), "T", [8], [1, 0, 0, 0]),
    "above the maximum, overflow": (NARROW, (64, 0, 0, 0, 0), "F", [8], [0, 1, 1, 0]),
    "full counts, overflow": (
        RARE | {"hysteresis": MOST}, (2, MOST - 1, MOST, MOST, MOST), "F", [1], [0, MOST, MOST, MOST]
    ),
    "full counts, finite": (RARE, (2, MOST - 1, MOST, MOST, MOST), "T", [4], [0, MOST, 0, MOST]),
}  # fmt: skip


@pytest.mark.parametrize("name", UPDATES)
def test_updates_change_scale_and_counts(name):
    settings, (first, *before), steps, scales, after = UPDATES[name]
    scale, found = DynamicLossScale(**settings), []
    state = LossScaleState(jnp.float32(first), *(jnp.asarray(count, jnp.int32) for count in before))
    for step in steps:
        state = scale.update(state, jnp.asarray(step == "T"))
        found.append(float(state.loss_scale))
    assert (found, [int(count) for count in state[1:]]) == (scales, after)


def test_back_off_lowers_the_scale_without_skipping_a_step():
    scale = DynamicLossScale(4.0, hysteresis=3, minimum=2.0)
    state = LossScaleState(jnp.float32(4), *(jnp.asarray(n) for n in (5, 7, 1, 9)))
    state = scale.back_off(state)
    assert [float(leaf) for leaf in state] == [2, 0, 7, 1, 10]
    assert [float(leaf) for leaf in scale.back_off(state)] == [2, 0, 7, 1, 11]
    assert FixedLossScale(8.0).back_off(FixedLossScale(8.0).init()) == FixedLossScale(8.0).init()
    assert int(scale.back_off(state._replace(num_retries=jnp.asarray(MOST, jnp.int32))).num_retries) == MOST


@pytest.mark.parametrize("step", ["update", "back_off"])
def test_the_state_is_strongly_typed_and_never_retraced(step):
    scale, traces = DynamicLossScale(), []

    @jax.jit
    def run(state, finite):
        traces.append(1)
        return scale.update(state, finite) if step == "update" else scale.back_off(state)

    state = scale.init()
    for finite in (True, False, True):
        state = run(state, jnp.asarray(finite))
    assert len(traces) == 1
    assert (state.loss_scale.dtype, state.loss_scale.weak_type) == (jnp.float32, False)
    assert {(leaf.dtype, leaf.weak_type) for leaf in state[1:]} == {(jnp.dtype("int32"), False)}
    with jax.enable_x64(True):
        for state in (scale.init(), scale.update(scale.init(), jnp.asarray(True)), scale.back_off(scale.init())):
            assert {(leaf.dtype, leaf.weak_type) for leaf in state[1:]} == {(jnp.dtype("int64"), False)}
            assert state.loss_scale.dtype == jnp.float32


@pytest.mark.parametrize(
    "made", [(np.float16(8), 1, 2, 0, 0), (8.0, np.int64(1), 2, 0, 0), (jnp.float16(8), 1, 2, 0, 0)]
)
def test_update_makes_a_hand_made_state_strongly_typed(made):
    for scale in (DynamicLossScale(), FixedLossScale(8.0)):
        state = jax.jit(scale.update)(LossScaleState(*made), jnp.asarray(True))
        assert (state.loss_scale.dtype, float(state.loss_scale)) == (jnp.float32, 8)
        assert not any(leaf.weak_type for leaf in state)


def test_the_state_shares_no_buffers_and_can_be_donated():
    step = jax.jit(lambda s: DynamicLossScale().update(s, jnp.asarray(True)), donate_argnums=0)
    assert int(step(DynamicLossScale().init()).num_good_steps) == 1
    state = step(DynamicLossScale().load_state_dict(DynamicLossScale().state_dict(DynamicLossScale().init())))
    assert int(step(state).num_good_steps) == 2


@pytest.mark.parametrize(
    "value", [8, np.int64(8), np.float16(8), jnp.float16(8), jnp.asarray(8), jnp.bfloat16(8)], ids=repr
)
def test_settings_become_python_numbers(value):
    scale = DynamicLossScale(value, minimum=value, maximum=value, multiplier=value)
    assert scale == DynamicLossScale(8.0, minimum=8.0, maximum=8.0, multiplier=8.0)
    assert {
        type(each) for name, each in scale.get_config().items() if name not in ("increment_period", "hysteresis")
    } == {float}
    assert hash(FixedLossScale(value)) == hash(FixedLossScale(8.0))
    assert as_loss_scale(value) == FixedLossScale(8.0)
    assert type(as_loss_scale(value).loss_scale_value) is float


def test_as_loss_scale_converts_short_forms():
    assert as_loss_scale(None) is None
    assert as_loss_scale("dynamic") == DynamicLossScale()
    assert as_loss_scale(8) == as_loss_scale(8.0) == FixedLossScale(8.0)
    assert as_loss_scale(FixedLossScale(2.0)) == FixedLossScale(2.0)


CUSTOM = DynamicLossScale(6.0, 3, 1.5, 2.0, 96.0, 5)


@pytest.mark.parametrize("scale", [None, FixedLossScale(3.0), CUSTOM], ids=repr)
def test_configs_survive_json(scale):
    assert deserialize_loss_scale(json.loads(json.dumps(serialize_loss_scale(scale)))) == scale
    if scale is not None:
        assert type(scale).from_config(scale.get_config()) == scale


def test_settings_are_read_only():
    for scale, name in ((CUSTOM, "multiplier"), (FixedLossScale(3.0), "loss_scale_value")):
        with pytest.raises(AttributeError, match="cannot assign"):
            setattr(scale, name, 4.0)


SAVED = {"loss_scale": 6.0, "num_good_steps": 1, "num_skipped_steps": 2, "num_overflows": 3, "num_retries": 4}


@pytest.mark.parametrize("x64", [False, True], ids=["x32", "x64"])
def test_a_state_survives_json(x64):
    with jax.enable_x64(x64):
        state = CUSTOM.load_state_dict(SAVED)
        assert (state.num_retries.dtype, state.loss_scale.dtype) == (jnp.asarray(0, int).dtype, jnp.float32)
        saved = CUSTOM.state_dict(state)
        assert saved == SAVED
        assert {type(value) for value in saved.values()} == {float, int}
        assert CUSTOM.load_state_dict(json.loads(json.dumps(saved))) == state


def test_load_state_dict_clips_the_scale_and_counts():
    assert float(CUSTOM.load_state_dict(SAVED | {"loss_scale": 1e30}).loss_scale) == 96
    assert float(CUSTOM.load_state_dict(SAVED | {"loss_scale": 1e-60}).loss_scale) == 2
    assert float(FixedLossScale(16.0).load_state_dict(SAVED).loss_scale) == 16
    assert int(CUSTOM.load_state_dict(SAVED | {"num_retries": 2**40}).num_retries) == 2**31 - 1


def test_load_state_dict_accepts_arrays_of_any_width():
    arrays = {"loss_scale": np.float16(6), "num_good_steps": jnp.asarray(1, jnp.int8), "num_overflows": np.array(3)}
    assert CUSTOM.load_state_dict(SAVED | arrays) == CUSTOM.load_state_dict(SAVED)


INF, NAN = float("inf"), float("nan")
BOUNDS = {
    "initial_loss_scale": (0.5, INF, NAN, 10**400), "increment_period": (0, 2**31),
    "hysteresis": (0, -3, 2**31, 10**5000), "multiplier": (1.0, 1 + 1e-9, INF, NAN, 1e39),
    "minimum": (0.0, 1e-40, NAN, -1), "maximum": (1e39, NAN, 0.5),
}  # fmt: skip
NOT_NUMBERS = (True, "8", None, 8j, [8.0], np.ones(2), np.True_)
NOT_WHOLE = (True, 2.0, "2", None, np.float32(2), np.True_)


def made(**settings):
    return lambda: DynamicLossScale(**settings)


def fixed(value):
    return lambda: FixedLossScale(value)


def converted(value):
    return lambda: as_loss_scale(value)


def read(data):
    return lambda: deserialize_loss_scale(data)


def loaded(without=None, **change):
    return lambda: CUSTOM.load_state_dict({name: each for name, each in (SAVED | change).items() if name != without})


INVALID = [
    *((made(**{name: bad}), ValueError, f"^{name} must be") for name, values in BOUNDS.items() for bad in values),
    *((made(**{name: bad}), TypeError, f"^{name} must be a number, got")
      for name in ("initial_loss_scale", "multiplier", "minimum", "maximum") for bad in NOT_NUMBERS),
    *((made(**{name: bad}), TypeError, f"^{name} must be a whole number, got")
      for name in ("increment_period", "hysteresis") for bad in NOT_WHOLE),
    *((fixed(bad), ValueError, "finite and at least 1") for bad in (0.5, 0, -1, INF, NAN, 1e39)),
    (fixed(10**400), ValueError, "got inf$"),
    (fixed(-(10**400)), ValueError, "got -inf$"),
    (lambda: jax.jit(lambda x: FixedLossScale(x).init())(8.0), TypeError,
     "^loss_scale_value must be known before tracing"),
    (converted("dynamc"), UnknownNameError, "did you mean 'dynamic'"),
    *((converted(bad), TypeError, "a loss scale must be") for bad in (True, [], 1j)),
    *((call, TypeError, r"must be a LossScaleState, got 3: use loss_scale\.init\(\)")
      for scale in (CUSTOM, FixedLossScale(8.0)) for call in (
          lambda scale=scale: scale.update(3, True), lambda scale=scale: scale.back_off(3),
          lambda scale=scale: scale.state_dict(3))),
    (read({"class_name": "DynamicLosScale", "config": {}}), ValueError, "did you mean 'DynamicLossScale'"),
    (read({"class_name": "Other", "config": {}}), ValueError, "choose from FixedLossScale, DynamicLossScale"),
    (read({"class_name": "FixedLossScale", "config": {}}), ValueError, "must have 'loss_scale_value'"),
    (read({"class_name": ["FixedLossScale"], "config": {}}), ValueError, "unknown class of loss scale"),
    (read({"class_name": "DynamicLossScale", "config": {"initial_los_scale": 2}}), ValueError,
     "did you mean 'initial_loss_scale'"),
    (read({"class_name": "DynamicLossScale", "config": {"multiplier": 1}}), ValueError, "multiplier must be above 1"),
    (read({"class_name": "DynamicLossScale"}), ValueError, "must have 'config'"),
    (read({}), ValueError, "must have 'class_name' and 'config'"),
    *((read(bad), TypeError, "must be a mapping, got")
      for bad in ("dynamic", 3, {"class_name": "FixedLossScale", "config": 3})),
    (loaded(loss_scal=2.0), ValueError, "did you mean 'loss_scale'"),
    *((loaded(loss_scale=bad), ValueError, "^loss_scale must be positive and finite") for bad in (0, -2.0, INF, NAN)),
    (loaded(loss_scale="8"), TypeError, "^loss_scale must be a number"),
    (loaded(num_retries=-1), ValueError, "^num_retries must be from 0"),
    (loaded(num_overflows=1.5), TypeError, "^num_overflows must be a whole number"),
    (loaded(num_good_steps=True), TypeError, "^num_good_steps must be a whole number"),
    *((loaded(without=name), ValueError, f"must have '{name}'") for name in SAVED),
]  # fmt: skip


def test_invalid_arguments_raise():
    for call, error, message in INVALID:
        with pytest.raises(error, match=message):
            call()
