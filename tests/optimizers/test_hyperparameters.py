"""Hyperparameters are inputs of the jitted step: they can be read, set and scheduled without a new trace."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from optimizers.problems import GRADIENTS, START, leaves_of, pairs_of, values_of, variables_of
from supremum.optimizers import SGD, Adam, AdamW, Optimizer, RMSprop


class TraceCounter(SGD):
    """An SGD that counts how often its step is traced."""

    traces = 0

    def update(self, *args, **kwargs):
        type(self).traces += 1
        return super().update(*args, **kwargs)


def train(optimizer, count=1, variables=None, at=None):
    variables = variables_of() if variables is None else variables
    optimizer.build(variables)
    for number, gradients in enumerate(GRADIENTS[:count]):
        if at is not None:
            at(number)
        optimizer.apply_gradients(pairs_of(variables, gradients))
    return values_of(variables)


def test_hyperparameters_are_float32_scalars_that_act_as_numbers():
    optimizer = Adam(0.1, beta_1=0.8)
    rate = optimizer.learning_rate
    assert (rate.dtype, rate.shape, float(rate), rate * 2 > 0.19) == (jnp.float32, (), float(np.float32(0.1)), True)
    assert list(optimizer.hyperparameters) == [
        "clipnorm", "clipvalue", "global_clipnorm", "learning_rate", "weight_decay", "beta_1", "beta_2", "epsilon",
    ]  # fmt: skip
    assert set(optimizer.hyperparameters) <= set(dir(optimizer))
    assert not hasattr(optimizer, "momentum")
    assert optimizer.clipnorm is None
    assert repr(optimizer.beta_1) == "Hyperparameter('beta_1', 0.800000011920929, dtype=float32)"


def test_a_new_value_takes_effect_without_a_new_trace():
    TraceCounter.traces = 0
    optimizer, variables = TraceCounter(1.0, momentum=0.5), variables_of()
    settings = [("learning_rate", 0.5), ("learning_rate", np.float16(0.25)), ("momentum", jnp.float32(0.75))]

    def change(number):
        if number:
            name, value = settings[number - 1]
            (setattr(optimizer, name, value) if number % 2 else getattr(optimizer, name).assign(value))
            assert float(getattr(optimizer, name)) == float(value)

    found = train(optimizer, 4, variables, change)
    assert TraceCounter.traces == 1
    rates, decays = [1.0, 0.5, 0.25, 0.25], [0.5, 0.5, 0.5, 0.75]
    for key in START:
        w, m = START[key].astype(np.float64), 0.0
        for gradients, rate, decay in zip(GRADIENTS, rates, decays, strict=False):
            m = decay * m + gradients[key]
            w = w - rate * m
        np.testing.assert_allclose(found[key], w, rtol=1e-5, atol=1e-5)


def test_zero_momentum_has_no_slot():
    optimizer, variables = SGD(0.5), variables_of()
    train(optimizer, 1, variables)
    assert not [name for name in optimizer.variables if name.startswith("trace/")]
    optimizer.momentum = 0.5
    assert np.all(np.asarray(optimizer.variables["trace/dense/kernel"]) == 0)
    before = values_of(variables)
    optimizer.apply_gradients(pairs_of(variables, GRADIENTS[1]))
    np.testing.assert_array_equal(np.asarray(optimizer.variables["trace/dense/kernel"]), GRADIENTS[1]["dense/kernel"])
    optimizer.apply_gradients(pairs_of(variables, GRADIENTS[2]))
    moved = before["dense/kernel"] - 0.5 * (1.5 * GRADIENTS[1]["dense/kernel"] + GRADIENTS[2]["dense/kernel"])
    np.testing.assert_allclose(values_of(variables)["dense/kernel"], moved, rtol=1e-5, atol=1e-5)
    optimizer.momentum = 0.0
    assert float(optimizer.momentum) == 0
    assert "trace/dense/kernel" not in optimizer.variables
    assert int(optimizer.iterations) == 3


@pytest.mark.parametrize("make", [lambda s: optax.exponential_decay(1.0, 1, 0.5), lambda s: s], ids=["optax", "plain"])
def test_a_schedule_is_called_with_the_traced_count_of_applied_steps(make):
    seen = []

    def halved(step):
        seen.append(step)
        return 0.5**step

    schedule = make(halved)
    optimizer = SGD(schedule)
    found = train(optimizer, 3)
    for key in START:
        expected = START[key] - sum(0.5**n * GRADIENTS[n][key] for n in range(3))
        np.testing.assert_allclose(found[key], expected, rtol=1e-5, atol=1e-5)
    if schedule is halved:
        assert seen
        assert all(isinstance(step, jax.core.Tracer) and step.dtype == jnp.int32 for step in seen)
    assert float(optimizer.learning_rate) == 0.125
    other = SGD(1.0)
    other.learning_rate = optimizer.learning_rate
    assert other.learning_rate.schedule is optimizer.learning_rate.schedule is schedule
    assert "learning_rate" not in optimizer.variables
    with pytest.raises(ValueError, match=r"follows the schedule.*write optimizer.learning_rate = 0.5"):
        optimizer.learning_rate.assign(0.5)
    optimizer.learning_rate = 0.5
    assert (float(optimizer.learning_rate), optimizer.learning_rate.schedule) == (0.5, None)


def test_momentum_can_follow_a_schedule():
    optimizer = SGD(1.0, momentum=lambda step: step / 2)
    found = train(optimizer, 3)
    m = [np.zeros(2)]
    for number in range(3):
        m.append(number / 2 * m[-1] + GRADIENTS[number]["dense/bias"])
    np.testing.assert_allclose(found["dense/bias"], -sum(m), rtol=1e-5, atol=1e-5)
    other = SGD(1.0)
    other.momentum = optimizer.momentum
    assert other.momentum.schedule is optimizer.momentum.schedule


INJECTED = optax.inject_hyperparams(optax.adam)(1.0, b1=0.5)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: SGD("0.1"), TypeError, "learning_rate must be a number or a function of the step, got '0.1'"),
        (lambda: SGD(None), TypeError, "learning_rate must be a number"),
        (lambda: SGD([0.1]), TypeError, "learning_rate must be a number"),
        (lambda: SGD(float("nan")), ValueError, "learning_rate must be from 0 to"),
        (lambda: SGD(-0.1), ValueError, "learning_rate must be from 0 to"),
        (lambda: SGD(1e39), ValueError, "learning_rate"),
        (lambda: SGD(True), TypeError, "learning_rate"),
        (lambda: SGD(0.1, momentum=1.5), ValueError, "momentum must be from 0 to 1, got 1.5"),
        (lambda: Adam(beta_1=1.0), ValueError, "beta_1 must be at least 0 and below 1, got 1.0"),
        (lambda: SGD(lambda: 0.1), ValueError, "function of the step"),
        (lambda: SGD(clipnorm=0), ValueError, "clipnorm"),
        (lambda: SGD(clipnorm=1, clipvalue=1), ValueError, "only one of clipnorm, clipvalue and global_clipnorm"),
        (lambda: SGD(nesterov=1), TypeError, "True or False"),
        (lambda: Adam(amsgrad="yes"), TypeError, "amsgrad must be True or False"),
        (lambda: SGD(ema_momentum=1.5), ValueError, "ema_momentum"),
        (lambda: SGD(ema_overwrite_frequency=0), ValueError, "ema_overwrite_frequency"),
        (lambda: SGD(gradient_accumulation_steps=0), ValueError, "gradient_accumulation_steps"),
        (lambda: SGD(momentun=0.5), ValueError, "unknown argument 'momentun': did you mean 'momentum'"),
        (lambda: Adam(mu_dtype="int8"), ValueError, "real floating dtype"),
        (lambda: Adam(nu_dtype="float8_e8m0fnu"), ValueError, "with zero"),
        (lambda: Adam(nu_dtype="bfloat61"), ValueError, "bfloat16"),
        (lambda: SGD(gradient_transformers=len), TypeError, "must be a list of functions"),
        (lambda: SGD(gradient_transformers=[1]), TypeError, "must be a list of functions"),
        (lambda: SGD(gradient_aggregator=1), TypeError, "function"),
        (lambda: Optimizer(None), TypeError, r"optax transformation, got None: use optax\.adam"),
        (lambda: Optimizer(SGD()), TypeError, "optimizer as it is"),
        (lambda: Optimizer(optax.sgd(1.0), learning_rate=1), ValueError, "unknown hyperparameter"),
        (lambda: setattr(Optimizer(INJECTED), "b1", 0.5), AttributeError, "no attribute 'b1'"),
        (lambda: SGD().momentun, AttributeError, "no attribute 'momentun'"),
        (lambda: SGD().beta_1, AttributeError, "SGD has no hyperparameter 'beta_1'"),
        (lambda: setattr(SGD(), "learning_rate", np.ones(2)), TypeError, "learning_rate must be a number"),
        (lambda: jax.jit(lambda x: setattr(SGD(), "learning_rate", x))(1.0), TypeError, "before tracing"),
    ],
)  # fmt: skip
def test_invalid_arguments_raise(make, error, message):
    with pytest.raises(error, match=message):
        make()


@pytest.mark.parametrize(
    ("gives", "error", "message"),
    [
        (lambda step: "x", TypeError, "must return a real number, got 'x'"),
        (lambda step: jnp.ones(2), ValueError, "must return a scalar"),
    ],
)
def test_a_schedule_that_does_not_return_a_scalar_number_raises(gives, error, message):
    variables = variables_of()
    with pytest.raises(error, match=message):
        train(SGD(gives), 1, variables)
    np.testing.assert_array_equal(values_of(variables)["dense/kernel"], START["dense/kernel"])


def test_injected_hyperparameters_are_hyperparameters():
    chain = optax.chain(optax.clip(100.0), optax.inject_hyperparams(optax.sgd)(learning_rate=0.5, momentum=0.5))
    optimizer = Optimizer(chain, momentum=0.25)
    assert list(optimizer.hyperparameters)[3:] == ["learning_rate", "momentum"]
    assert (float(optimizer.learning_rate), float(optimizer.momentum)) == (0.5, 0.25)
    found = train(optimizer, 3, at=lambda number: number == 2 and setattr(optimizer, "learning_rate", 2.0))
    reference = SGD(0.5, momentum=0.25)
    expected = train(reference, 3, at=lambda number: number == 2 and setattr(reference, "learning_rate", 2.0))
    for key in START:
        np.testing.assert_allclose(found[key], expected[key], rtol=1e-6)
    assert float(optimizer.variables["learning_rate"]) == 2
    assert not [name for name in optimizer.variables if "hyperparams" in name]


def test_hyperparameters_without_an_attribute_are_set_by_name():
    optimizer, variables = Optimizer(INJECTED), variables_of()
    train(optimizer, 1, variables)
    key = optimizer.trace_key
    optimizer.set_hyperparameter("b1", 0.25)
    optimizer.hyperparameters["b2"].assign(0.75)
    assert [float(optimizer.hyperparameters[name]) for name in ("b1", "b2")] == [0.25, 0.75]
    assert optimizer.trace_key == key
    with pytest.raises(ValueError, match=r"unknown hyperparameter .b3.: choose from clipnorm, .*b1, b2"):
        optimizer.set_hyperparameter("b3", 0.5)
    with pytest.raises(ValueError, match="unknown hyperparameter 'rho'"):
        optimizer.rho = 0.5


def test_optax_schedules_and_masks_work_unchanged():
    schedule = optax.exponential_decay(1.0, 1, 0.5)
    found = train(Optimizer(optax.inject_hyperparams(optax.sgd)(schedule)), 3)
    expected = train(SGD(schedule), 3)
    np.testing.assert_allclose(found["dense/kernel"], expected["dense/kernel"], rtol=1e-6)
    masked = optax.masked(optax.set_to_zero(), {"dense/kernel": False, "dense/bias": True})
    found = train(Optimizer(optax.chain(optax.sgd(1.0, 0.5), masked)), 3)
    np.testing.assert_array_equal(found["dense/bias"], START["dense/bias"])
    assert not np.array_equal(found["dense/kernel"], START["dense/kernel"])


def test_optax_multi_steps_accumulates_gradients():
    optimizer = Optimizer(optax.MultiSteps(optax.sgd(1.0), every_k_schedule=2))
    found = train(optimizer, 3)
    mean = (GRADIENTS[0]["dense/bias"] + GRADIENTS[1]["dense/bias"]) / 2
    np.testing.assert_allclose(found["dense/bias"], -mean, rtol=1e-6)
    assert "acc_grads/dense/bias" in optimizer.variables


def test_moments_are_stored_in_the_chosen_dtype_and_computed_in_float32():
    optimizer, variables = Adam(0.1, mu_dtype="bfloat16", nu_dtype=jnp.float16), variables_of()
    train(optimizer, 3, variables)
    names = leaves_of(optimizer)
    assert (names["mu/dense/kernel"].dtype, names["nu/dense/kernel"].dtype) == (jnp.bfloat16, jnp.float16)
    m, v = np.zeros(2, np.float32), np.zeros(2, np.float32)
    for gradients in GRADIENTS[:3]:
        g = gradients["dense/bias"]
        m = np.float32((np.float32(0.1) * g + np.float32(0.9) * m).astype(jnp.bfloat16))
        v = np.float32((np.float32(0.001) * g * g + np.float32(0.999) * v).astype(np.float16))
    np.testing.assert_allclose(names["mu/dense/bias"].astype(np.float32), m, rtol=2**-8)
    np.testing.assert_allclose(names["nu/dense/bias"].astype(np.float32), v, rtol=2**-10)
    # Setting the dtype during training converts the stored moments from the next step on.
    optimizer.nu_dtype = None
    assert optimizer.variables["nu/dense/bias"].dtype == jnp.float32
    np.testing.assert_array_equal(
        np.asarray(optimizer.variables["nu/dense/bias"]), names["nu/dense/bias"].astype(np.float32)
    )
    optimizer.apply_gradients(pairs_of(variables, GRADIENTS[3]))
    assert optimizer.variables["nu/dense/bias"].dtype == jnp.float32


def test_the_trace_key_changes_with_settings_only():
    optimizer = RMSprop(0.1)
    key = optimizer.trace_key
    optimizer.learning_rate, optimizer.epsilon = 0.2, 1e-3
    assert optimizer.trace_key == key
    assert hash(key) == hash(optimizer.trace_key)
    for name, value in {"centered": True, "weight_decay": 0.1, "clipnorm": 1.0, "momentum": 0.5, "rho": lambda s: 0.5,
                        "gradient_transformers": [list], "own": {"a": [1]}}.items():  # fmt: skip
        before = optimizer.trace_key
        setattr(optimizer, name, value)
        assert optimizer.trace_key != before, name
    before = optimizer.trace_key
    optimizer.own = {"a": [1]}
    assert optimizer.trace_key == before
    optimizer.own = {"a": [True]}
    assert optimizer.trace_key != before


def test_a_hyperparameter_of_a_subclass_is_set_by_name():
    class Signed(SGD):
        def __init__(self):
            super().__init__(1.0)
            self.add_hyperparameter("sign", 1.0)

        def direction(self, *, sign, **others):
            return optax.chain(super().direction(**others), optax.scale(sign))

    optimizer, variables = Signed(), variables_of()
    optimizer.set_hyperparameter("sign", 0.5)
    optimizer.apply_gradients(pairs_of(variables, GRADIENTS[0]))
    moved = START["dense/kernel"] - 0.5 * GRADIENTS[0]["dense/kernel"]
    np.testing.assert_allclose(values_of(variables)["dense/kernel"], moved, rtol=1e-5, atol=1e-6)
    optimizer.sign = 0.25
    with pytest.raises(ValueError, match=r"sign is not an attribute: use optimizer.set_hyperparameter\('sign'"):
        optimizer.apply_gradients(pairs_of(variables, GRADIENTS[0]))


def test_weight_decay_can_be_turned_off():
    optimizer, variables = AdamW(0.5, weight_decay=0.5), variables_of()
    zero = [(jnp.zeros(each.shape), each) for each in variables.values()]
    optimizer.apply_gradients(zero)
    np.testing.assert_allclose(values_of(variables)["dense/kernel"], 0.75 * START["dense/kernel"], rtol=1e-6)
    optimizer.weight_decay = None
    assert optimizer.weight_decay is None
    optimizer.apply_gradients(zero)
    np.testing.assert_allclose(values_of(variables)["dense/kernel"], 0.75 * START["dense/kernel"], rtol=1e-6)
