"""Flax nnx modules as arguments: autocast keeps the changes that a call makes to them."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx

from slowly import mostly_slow
from supremum.mixed_precision import autocast
from supremum.tracing import casts, forbid_casts

X = jnp.asarray(np.random.default_rng(0).normal(size=(6, 4)), jnp.float32)
Y = jnp.ones((6, 1))


class Model(nnx.Module):
    def __init__(self, rngs):
        self.first = nnx.Linear(4, 8, rngs=rngs)
        self.norm = nnx.BatchNorm(8, rngs=rngs)
        self.dropout = nnx.Dropout(0.5, rngs=rngs)
        self.last = nnx.Linear(8, 1, rngs=rngs)
        self.calls = nnx.Variable(jnp.zeros((), "int32"))

    def __call__(self, x):
        self.calls[...] += 1
        return self.last(self.dropout(jax.nn.relu(self.norm(self.first(x)))))


def loss(model, x, y):
    return ((model(x) - y) ** 2).mean()


def state_of(model):
    return {".".join(map(str, path)): np.asarray(_raw(leaf)) for path, leaf in nnx.to_flat_state(nnx.state(model))}


def _raw(leaf):
    value = leaf[...] if hasattr(leaf, "get_value") else leaf
    return jax.random.key_data(value) if jnp.issubdtype(value.dtype, jax.dtypes.prng_key) else value


CALLS = {
    "grad(autocast)": lambda cast: lambda m: nnx.grad(cast(loss))(m, X, Y),
    "jit(autocast)": lambda cast: lambda m: nnx.jit(cast(loss))(m, X, Y),
    "autocast(grad)": lambda cast: lambda m: cast(nnx.grad(loss))(m, X, Y),
    "autocast": lambda cast: lambda m: cast(loss)(m, X, Y),
    "autocast(jit)": lambda cast: lambda m: cast(nnx.jit(loss))(m, X, Y),
    "jit(value_and_grad(autocast))": lambda cast: lambda m: nnx.jit(nnx.value_and_grad(cast(loss)))(m, X, Y),
    "the module": lambda cast: lambda m: cast(m)(X),
    "a method": lambda cast: lambda m: cast(m.__call__)(X),
    "by name": lambda cast: lambda m: cast(loss)(y=Y, x=X, model=m),
    "in a container": lambda cast: lambda m: cast(lambda holder, x: holder["models"][0](x))({"models": [m]}, X),
    "remat": lambda cast: lambda m: nnx.grad(nnx.remat(cast(loss)))(m, X, Y),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", mostly_slow(CALLS, "grad(autocast)", "jit(autocast)", "autocast(grad)", "the module"))
def test_results_and_state_match_those_without_autocast(name):
    plain, cast = Model(nnx.Rngs(0)), Model(nnx.Rngs(0))
    for _ in range(2):
        expected = CALLS[name](lambda function: function)(plain)
        found = CALLS[name](lambda function: autocast(function, "mixed_bfloat16"))(cast)
        for one, other in zip(jax.tree.leaves(expected), jax.tree.leaves(found), strict=True):
            assert one.dtype == other.dtype
            np.testing.assert_allclose(one, other, rtol=0.1, atol=0.1)
    before, after = state_of(plain), state_of(cast)
    assert before.keys() == after.keys()
    for path, value in before.items():
        assert value.dtype == after[path].dtype
        np.testing.assert_allclose(value, after[path], rtol=0.02, atol=0.02, err_msg=path)
    assert after["calls"] == 2
    assert any(np.any(value != state_of(Model(nnx.Rngs(0)))[path]) for path, value in after.items() if "mean" in path)


@pytest.mark.slow
def test_products_are_cast_and_statistics_are_not():
    report = autocast(loss, "mixed_bfloat16").report(Model(nnx.Rngs(0)), X, Y)
    assert {row.dtype for row in report.rows if row.operation == "dot_general"} == {"bfloat16"}
    assert {row.dtype for row in report.rows if row.operation == "reduce_sum"} == {"float32"}


def test_reports_do_not_change_the_module():
    model = Model(nnx.Rngs(0))
    before = state_of(model)
    assert "calls" in before
    autocast(loss).report(model, X, Y)
    casts(loss)(model, X, Y)
    casts(nnx.grad(loss))(model, X, Y)
    casts(nnx.jit(loss))(model, X, Y)
    for path, value in state_of(model).items():
        np.testing.assert_array_equal(value, before[path], err_msg=path)


@pytest.mark.slow
def test_casts_are_found_inside_modules():
    def mixing(model, x):
        return model.first(x).astype("bfloat16") * model.last.kernel[0, 0]

    model = Model(nnx.Rngs(0))
    report = casts(mixing)(model, X)
    assert {(cast.kind, cast.expression) for cast in report} >= {
        ("explicit", 'model.first(x).astype("bfloat16")'),
        ("promotion", 'model.first(x).astype("bfloat16") * model.last.kernel[0, 0]'),
    }
    assert set(casts(nnx.jit(autocast(loss)))(model, X, Y).by_class) <= {"autocast", "library"}
    checked = forbid_casts()(loss)
    checked(model, X, Y)
    assert model.calls[...] == 1  # traced for the check, and then run once


@pytest.mark.slow
def test_a_module_passed_twice_stays_one_module():
    def both(one, other, x):
        one.calls[...] += 1
        other.calls[...] += 1
        return one.first(x) + other.first(x)

    model = Model(nnx.Rngs(0))
    autocast(both)(model, model, X)
    assert model.calls[...] == 2
    part = Model(nnx.Rngs(0))
    autocast(lambda whole, norm, x: (whole(x), norm(whole.first(x)))[0])(part, part.norm, X)
    assert part.calls[...] == 1


@pytest.mark.slow
def test_nnx_optimizers_can_step_inside():
    def step(model, optimizer, x, y):
        value, gradients = nnx.value_and_grad(loss)(model, x, y)
        optimizer.update(model, gradients)
        return value

    trained, cast = Model(nnx.Rngs(0)), Model(nnx.Rngs(0))
    for model, function in ((trained, step), (cast, autocast(step, "mixed_bfloat16"))):
        optimizer = nnx.Optimizer(model, optax.sgd(0.1), wrt=nnx.Param)
        for _ in range(3):
            nnx.jit(function)(model, optimizer, X, Y)
        assert optimizer.step[...] == 3
    np.testing.assert_allclose(trained.last.kernel[...], cast.last.kernel[...], rtol=0.05, atol=0.02)


def test_functions_can_return_the_module_and_make_variables():
    model = Model(nnx.Rngs(0))

    def function(model, x):
        model.seen = nnx.Variable(x.sum())
        return model, nnx.Param(model.first(x)), nnx.state(model, nnx.Param)

    with jax.checking_leaks():
        same, made, state = autocast(function)(model, X)
    np.testing.assert_allclose(model.seen[...], X.sum(), rtol=1e-2)
    assert same is model
    assert isinstance(made, nnx.Param)
    assert made[...].shape == (6, 8)
    assert jax.tree.leaves(state)[0].dtype == "float32"


def test_an_error_leaves_the_module_unchanged():
    def failing(model, x):
        model(x)
        raise RuntimeError("in the middle")

    model = Model(nnx.Rngs(0))
    before = state_of(model)
    with pytest.raises(RuntimeError, match="in the middle"):
        autocast(failing)(model, X)
    assert "calls" in before
    for path, value in state_of(model).items():
        np.testing.assert_array_equal(value, before[path], err_msg=path)


@pytest.mark.slow
def test_no_tracers_stay_in_a_module():
    model = Model(nnx.Rngs(0))
    with jax.checking_leaks():
        autocast(loss)(model, X, Y)
        autocast(loss).report(model, X, Y)
    leaves = jax.tree.leaves(nnx.state(model))
    assert len(leaves) > 5
    assert not any(isinstance(leaf, jax.core.Tracer) for leaf in leaves)
