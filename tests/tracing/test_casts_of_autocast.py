"""Casts that autocast inserts belong to autocast, not to the user."""

import jax
import jax.numpy as jnp
import pytest
from jax import lax

from supremum.mixed_precision import autocast
from supremum.tracing import ForbiddenCastError, casts, forbid_casts

X, W = jnp.ones((4, 4)), jnp.ones((4, 4))


def mixed(x, w):
    return x + x @ w


PROGRAMS = {
    "residual": mixed,
    "loop": lambda x, w: lax.scan(lambda c, _: (jnp.tanh(c @ w) + c, None), x, length=3)[0],
    "branches": lambda x, w: lax.cond(x.sum() > 0, lambda: x @ w, lambda: x),
    "softmax": lambda x, w: jax.nn.softmax(x @ w) @ w,
    "remat": lambda x, w: jax.checkpoint(mixed)(x, w),
    "mapped": lambda x, w: jax.vmap(lambda row: row @ w)(x),
    "norm": lambda x, w: (x - x.mean()) / jnp.sqrt(x.var() + 1e-5) @ w,
}
AROUND = {
    "plain": lambda function: function,
    "jit": jax.jit,
    "grad": lambda function: jax.grad(lambda *args: function(*args).sum(), argnums=(0, 1)),
    "jit of grad": lambda function: jax.jit(jax.grad(lambda *args: function(*args).sum())),
    "vmap": lambda function: jax.vmap(function, in_axes=(None, 0)),
}


@pytest.mark.one_in(16)
@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("name", PROGRAMS)
def test_clean_programs_have_only_casts_of_autocast(name, around):
    w = jnp.stack([W, W]) if around == "vmap" else W
    # Without autocast, the user's lines have no casts.
    assert set(casts(AROUND[around](PROGRAMS[name]))(X, w).by_class) <= {"library"}
    program = AROUND[around](autocast(PROGRAMS[name], "mixed_bfloat16"))
    report = casts(program)(X, w)
    assert "autocast" in report.by_class
    assert set(report.by_class) <= {"autocast", "library"}, str(report)
    assert all(cast.where.startswith(__file__) or cast.where == "-" for cast in report)
    assert not any("supremum.autocast.cast" in cast.scope for cast in report)
    forbid_casts()(program)(X, w)
    with pytest.raises(ForbiddenCastError, match="autocast: "):
        forbid_casts("autocast")(program)(X, w)
    with pytest.raises(ForbiddenCastError):
        forbid_casts("all")(program)(X, w)
    forbid_casts("all", allow=["autocast", "library"])(program)(X, w)


def test_promotions_inside_autocast_belong_to_the_user():
    def function(x, w):
        y = (x @ w).astype("float16")
        return y * w

    report = casts(autocast(function))(X, W)
    kinds = {(cast.kind, cast.expression) for cast in report}
    assert ("autocast", "x @ w") in kinds
    outside = casts(lambda x, w: autocast(mixed)(x, w) * w.astype("float16"))(X, W)
    assert {cast.expression for cast in outside.promotion} == {'autocast(mixed)(x, w) * w.astype("float16")'}
    with pytest.raises(ForbiddenCastError, match="1 forbidden cast"):
        forbid_casts()(lambda x, w: autocast(mixed)(x, w) * w.astype("float16"))(X, W)


def test_the_reason_of_an_autocast_names_its_dtype():
    report = casts(jax.grad(lambda x: autocast(mixed)(x, W).sum()))(X)
    reasons = {cast.reason for cast in report}
    assert "autocast brings it to bfloat16 here" in reasons
    assert "the gradient of a cast by autocast" in reasons
    assert "[autocast]" in str(report.explain(0))
