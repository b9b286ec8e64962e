"""The RFC's "LossScaleOptimizer __getattribute__ and __setattr__ delegation" and "OptimizerWrapper"."""

import jax.numpy as jnp
import numpy as np
import optax
import pytest

from optimizers.problems import GRADIENTS, SCALE, assert_equal, pairs_of, values_of, variables_of
from supremum import nn
from supremum.optimizers import SGD, Adam, LossScaleOptimizer, Optimizer, OptimizerWrapper, optimizers_within
from supremum.optimizers.hyperparameters import HyperparameterAttribute
from supremum.optimizers.settings import Setting

WRAPPERS = {
    "wrapper": OptimizerWrapper,
    "scaled": LossScaleOptimizer,
    "both": lambda each: OptimizerWrapper(LossScaleOptimizer(each)),
    "both, the other way": lambda each: LossScaleOptimizer(OptimizerWrapper(each)),
}
every_wrapper = pytest.mark.parametrize("wrap", WRAPPERS.values(), ids=WRAPPERS)


class MyCustomOptimizer(SGD):
    """The class of the RFC, with a method that the wrapper does not forward."""

    def apply_gradients_zero_min(self, pairs):
        self.apply_gradients([(jnp.maximum(gradient, 0), each) for gradient, each in pairs])


def innermost(optimizer):
    return list(optimizers_within(optimizer))[-1]


@every_wrapper
def test_hyperparameters_are_read_set_and_listed(wrap):
    optimizer = wrap(SGD(momentum=0.125))
    inner = innermost(optimizer)
    assert float(optimizer.momentum) == 0.125 == float(inner.momentum)
    optimizer.momentum = 0.25
    assert float(inner.momentum) == 0.25
    inner.learning_rate = 0.5
    assert float(optimizer.learning_rate) == 0.5
    optimizer.learning_rate.assign(0.75)
    assert float(inner.learning_rate) == 0.75
    assert set(inner.hyperparameters) <= set(dir(optimizer))
    assert "nesterov" not in dir(optimizer)
    assert optimizer.clipnorm is None


@pytest.mark.parametrize("wrap", [OptimizerWrapper, LossScaleOptimizer])
def test_other_attributes_are_not_forwarded(wrap):
    optimizer = wrap(MyCustomOptimizer(0.5))
    for name in ("nesterov", "apply_gradients_zero_min", "mu_dtype", "learning_rte"):
        with pytest.raises(AttributeError, match=f"no attribute '{name}'"):
            getattr(optimizer, name)
        with pytest.raises(AttributeError, match=f"no attribute '{name}'"):
            setattr(optimizer, name, True)
    for name in ("gradient_transformers", "use_ema", "weights"):
        with pytest.raises(AttributeError, match=r"use optimizer\.inner_optimizer"):
            getattr(optimizer, name)
        with pytest.raises(AttributeError, match=r"use optimizer\.inner_optimizer"):
            setattr(optimizer, name, True)
    assert innermost(optimizer).nesterov is False


@pytest.mark.parametrize("scaled", [True, False])
def test_setting_nesterov_as_in_the_rfc_takes_effect_during_training(scaled):
    opt, variables = SGD(0.5, momentum=0.5), variables_of()
    if scaled:
        opt = LossScaleOptimizer(opt, SCALE)
    opt.build(variables)
    opt.apply_gradients(pairs_of(variables, GRADIENTS[0]))
    before, key = values_of(variables), opt.trace_key
    inner_opt = getattr(opt, "inner_optimizer", opt)
    inner_opt.nesterov = True
    assert opt.trace_key != key
    opt.apply_gradients(pairs_of(variables, GRADIENTS[1]))
    inner_opt.nesterov = False
    assert opt.trace_key == key
    a, b = (GRADIENTS[n]["dense/bias"] for n in range(2))
    np.testing.assert_allclose(
        values_of(variables)["dense/bias"], before["dense/bias"] - 0.5 * (b + 0.5 * (b + 0.5 * a)), rtol=1e-5
    )


def test_every_public_name_is_forwarded_or_overridden():
    attributes = (HyperparameterAttribute, Setting)  # they use `hyperparameters`, `set_hyperparameter` and `settings`
    public = {name for name, each in vars(Optimizer).items() if name[0] != "_" and not isinstance(each, attributes)}
    assert {"minimize", "update", "variables", "get_config", "trace_key", "hyperparameters"} <= public
    overridden = set(vars(OptimizerWrapper))
    # They call the wrapper's `value_and_grad` and `update`, and its `settings`, which raises.
    others = {"minimize", "get_gradients", "apply_gradients", "set_setting"}
    assert public - overridden == others, "OptimizerWrapper has to hand these on"


@every_wrapper
def test_forwarded_members_match_the_inner_optimizer(wrap):
    variables, others = variables_of(), variables_of()
    plain, optimizer = Adam(0.1), wrap(Adam(0.1))
    for each, held in ((plain, variables), (optimizer, others)):
        each.build(held)
        for gradients in GRADIENTS[:3]:
            each.apply_gradients(pairs_of(held, gradients))
    assert_equal(values_of(others), values_of(variables))
    inner = innermost(optimizer)
    assert_equal(
        {n: np.asarray(a) for n, a in inner.variables.items()}, {n: np.asarray(a) for n, a in plain.variables.items()}
    )
    assert int(optimizer.iterations) == 3
    assert optimizer.built_for == inner.built_for != {}
    assert set(inner.variables) <= set(optimizer.variables)
    assert optimizer.gradient_dtypes(others["dense/bias"])[0] == jnp.float32
    assert list(optimizer.hyperparameters) == list(inner.hyperparameters)
    assert isinstance(
        optimizer.make_transformation(**dict.fromkeys(inner.hyperparameters, 0.5)), optax.GradientTransformation
    )
    optimizer.add_hyperparameter("extra", 0.5)
    assert float(optimizer.hyperparameters["extra"]) == 0.5
    optimizer.set_hyperparameter("extra", 0.25)
    assert float(inner.hyperparameters["extra"]) == 0.25


@every_wrapper
def test_wrappers_are_optimizers_and_accept_optax_transformations(wrap):
    optimizer = wrap(SGD(0.5))
    assert isinstance(optimizer, Optimizer)
    assert not isinstance(optimizer, SGD)
    with pytest.raises(AttributeError):
        optimizer.inner_optimizer = SGD()
    transformed = wrap(optax.sgd(0.5))
    assert type(innermost(transformed)) is Optimizer
    assert type(innermost(wrap("sgd"))) is SGD
    for invalid, error in ((None, TypeError), (3, TypeError), ("sgdd", ValueError)):
        with pytest.raises(error):
            wrap(invalid)


def test_a_wrapper_that_overrides_update_changes_every_method():
    class Halved(OptimizerWrapper):
        def update(self, gradients, state, values, **options):
            return super().update({key: each / 2 for key, each in gradients.items()}, state, values, **options)

    for args in ((), (jnp.ones(1),)):
        w = nn.Variable([1.0], "w")
        Halved(SGD(1.0)).minimize(lambda *_, w=w: jnp.sum(w.value), w, *args)
        assert float(w.value[0]) == 0.5
    Halved(SGD(1.0)).apply_gradients([(jnp.ones(1), w)])
    assert float(w.value[0]) == 0


@every_wrapper
def test_aggregate_gradients_false_reaches_the_inner_optimizer(wrap):
    optimizer = wrap(SGD(1.0, gradient_aggregator=lambda pairs: [(2 * gradient, each) for gradient, each in pairs]))
    w = nn.Variable([0.0], "w")
    optimizer.apply_gradients([(jnp.ones(1), w)], aggregate_gradients=False)
    assert float(w.value[0]) == -1
    optimizer.apply_gradients([(jnp.ones(1), w)])
    assert float(w.value[0]) == -3
