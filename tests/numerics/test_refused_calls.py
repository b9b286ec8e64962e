"""Functions that run or trace a function refuse what they cannot measure with one clear error, and leave nothing on."""

import jax
import jax.numpy as jnp
import pytest

from supremum import SupremumError
from supremum.numerics import attribute, first_nonfinite, on, products, profile, promotion_costs, watch

X = jnp.arange(3.0)
RUN = {each.__name__: each for each in (attribute, first_nonfinite, profile, promotion_costs)}
TRACED = RUN | {"products": products, "on": lambda function: on("tpu", function)}


def impure(x):
    jax.debug.print("{}", x)
    return x


def sharded(x):
    mesh = jax.make_mesh((1,), ("i",), devices=jax.devices()[:1])
    spec = jax.sharding.PartitionSpec()
    return jax.shard_map(jnp.sin, mesh=mesh, in_specs=spec, out_specs=spec)(x)


CALLS = [
    # functions, the function that they get, its arguments, and the message
    (TRACED, 3, (X,), "fn must be a function, got 3"),
    (TRACED, jnp.exp, ("x", len), "{name} needs an array among the arguments of the function, got str, builtin"),
    (RUN, jnp.argmax, (X,), r"{name} needs a function with a floating-point result, got one that returns int32\[\]"),
    (RUN, lambda x: None, (X,), "{name} needs .* that returns no arrays"),
    (RUN, impure, (X,), "{name} needs a function without side effects"),
    (
        RUN,
        jnp.exp,
        (jax.ShapeDtypeStruct((2,), "float32"),),
        r"{name} runs the function.*got a ShapeDtypeStruct.*jnp\.ones",
    ),
    (RUN, sharded, (X,), r"{name} cannot look inside of a shard_map \(.*test_refused_calls.py"),
]
ALL_CALLS = [(name, *call) for measures, *call in CALLS for name in measures]


@pytest.mark.parametrize(("name", "function", "arguments", "message"), ALL_CALLS)
def test_a_call_is_refused(name, function, arguments, message):
    before = dict(jax.config.values)
    with pytest.raises(SupremumError, match=message.format(name=name)):
        TRACED[name](function)(*arguments)
    assert dict(jax.config.values) == before


FORMATS = {
    "float16": "formats must be a list of formats",
    ("int8",): "formats must be real floating formats, got int8",
    ("complex64",): "real floating formats",
    ("float17",): "did you mean",
}


@pytest.mark.parametrize("formats", FORMATS)
@pytest.mark.parametrize("measure", [profile, lambda function, formats: watch(function, formats=formats)])
def test_formats_are_checked(measure, formats):
    with pytest.raises(SupremumError, match=FORMATS[formats]):
        measure(jnp.exp, formats)


TRANSFORMATIONS = [jax.grad, jax.value_and_grad, jax.jacfwd, lambda function: jax.jit(jax.grad(function))]


@pytest.mark.parametrize("name", ["first_nonfinite", "profile"])
def test_derivatives_are_refused(name):
    message = rf"{name} cannot be differentiated.*{name}\(jax.grad\(function\)\)"
    for transform in TRANSFORMATIONS:
        with pytest.raises(SupremumError, match=message):
            transform(lambda x: TRACED[name](jnp.exp)(x).outputs)(1.0)
    with pytest.raises(SupremumError, match=message):  # by a value that the function closes over
        jax.grad(lambda w: TRACED[name](lambda x: jnp.sum(x * w))(X).outputs)(2.0)


@pytest.mark.parametrize("name", ["attribute", "promotion_costs"])
def test_transformations_around_are_refused(name):
    with pytest.raises(SupremumError, match=r"outside of jax\.jit"):
        jax.jit(lambda x: TRACED[name](jnp.sin)(x))(X)


def test_rows_are_not_known_while_jax_traces():
    with pytest.raises(SupremumError, match="return the profile from the function"):
        jax.jit(lambda x: profile(jnp.exp)(x).rows)(X)
    with pytest.raises(SupremumError, match="return the result of first_nonfinite"):
        jax.jit(lambda x: len(first_nonfinite(jnp.log)(x)))(X)


@pytest.mark.parametrize("name", RUN)
def test_flags_of_the_user_neither_stop_it_nor_change(name):
    def bad(x):
        return jnp.log(x - 1) - jnp.log(x - 1)

    with (
        jax.debug_nans(True),
        jax.debug_infs(True),
        jax.numpy_dtype_promotion("strict"),
        jax.numpy_rank_promotion("raise"),
    ):
        before = dict(jax.config.values)
        TRACED[name](bad)(X)
        with pytest.raises(ZeroDivisionError):
            TRACED[name](lambda x: x / (1 // 0))(X)
        assert dict(jax.config.values) == before
