"""Programs that map float32 matrices `w` (8 x 8) and `x` (4 x 8) to a scalar; each uses a different part of JAX."""

from contextlib import nullcontext

import jax
import jax.numpy as jnp
import pytest
from jax import lax

from supremum.mixed_precision import UncastProductsWarning

PROGRAMS = {}
LEFT = {"with_backward_rule": "^autocast left 1 of 2 products in float32, inside 'backward_rule'"}
"""The warnings by program. Autocast does not cast the products of functions with a custom derivative rule."""


def warns_of_left(name):
    """Return a context that expects a warning if autocast does not cast all products of this program."""
    return pytest.warns(UncastProductsWarning, match=LEFT[name]) if name in LEFT else nullcontext()


def program(function):
    PROGRAMS[function.__name__] = function
    return function


@program
def scanned(w, x):
    def body(carry, a):
        carry = jnp.tanh(carry @ w + a)
        return carry, carry.sum()

    carry, sums = lax.scan(body, x, jnp.ones((5, 4, 8)))
    return carry.sum() + sums.sum()


@program
def counted_loop(w, x):
    return lax.fori_loop(0, 3, lambda _, c: jnp.tanh(c @ w), x).sum()


@program
def branches(w, x):
    picked = lax.switch(jnp.int32(1), [lambda a: a @ w, lambda a: a * 2, lambda a: jnp.cos(a) @ w], x)
    return (lax.cond(x.sum() > 0, lambda: x @ w, lambda: jnp.exp(x)) + picked).sum()


@program
def rematerialised(w, x):
    body = jax.checkpoint(lambda c, a: (jnp.tanh(c @ w) * a, None))
    return lax.scan(body, jax.checkpoint(lambda a: jnp.sin(a @ w) @ w)(x), jnp.arange(1.0, 4.0))[0].sum()


@program
def jitted_twice(w, x):
    layer = jax.jit(lambda w, x: jnp.tanh(x @ w))
    return layer(w, layer(w, x)).sum()


@program
def mapped(w, x):
    return jax.vmap(lambda row: jax.nn.softmax(w @ row))(x).max() + lax.map(lambda row: jnp.tanh(row @ w), x).sum()


@program
def collective(w, x):
    return jax.vmap(lambda row: jax.nn.relu(row @ w) - lax.pmean(row @ w, "batch"), axis_name="batch")(x).sum()


@jax.custom_vjp
def backward_rule(x, w):
    return jnp.sin(x) @ w


backward_rule.defvjp(
    lambda x, w: (jnp.sin(x) @ w, (x, w)),
    lambda saved, g: ((g @ saved[1].T) * jnp.cos(saved[0]), jnp.sin(saved[0]).T @ g),
)


@program
def with_backward_rule(w, x):
    return backward_rule(x @ w, w).sum()


@jax.custom_jvp
def forward_rule(x, y):
    return jnp.sin(x) * y


@forward_rule.defjvp
def _(primals, tangents):
    (x, y), (dx, dy) = primals, tangents
    return forward_rule(x, y), jnp.cos(x) * dx * y + jnp.sin(x) * dy


@program
def with_forward_rule(w, x):
    return forward_rule(x @ w, x).sum()


@program
def convolved(w, x):
    image, kernel = jnp.tile(x[..., None], (1, 1, 8))[..., None], jnp.tile(w[:3, :3, None, None], (1, 1, 1, 4))
    numbers = ("NHWC", "HWIO", "NHWC")
    y = lax.conv_general_dilated(image, kernel, (1, 1), "SAME", dimension_numbers=numbers) + w[0, :4]
    y = lax.reduce_window(y, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    return lax.reduce_window(y, 0.0, lax.add, (1, 2, 2, 1), (1, 2, 2, 1), "VALID").mean()


@program
def linear_algebra(w, x):
    square = w @ w.T + jnp.eye(8)
    return jnp.linalg.cholesky(square).sum() + jnp.linalg.solve(square, x.T).sum() + jnp.linalg.norm(x @ w)


@program
def transformed(w, x):
    return jnp.abs(jnp.fft.fft(x @ w)).sum()


@program
def complexes(w, x):
    return jnp.abs((x @ w) + 1j * (x @ w)).sum() + ((x @ w).astype(jnp.complex64) @ (w + 0j)).real.sum()


@program
def indexed(w, x):
    y = x @ w
    written = w.at[0].add(y[0]).at[:, 1].set(2.0).at[2].mul(3.0).at[1].max(y[0])
    moved = lax.dynamic_update_slice(w, y, (1, 0)).sum() + lax.dynamic_slice(y, (0, 0), (2, 2)).sum()
    return (
        written.sum() + moved + w[jnp.array([1, 2, 2])].sum() + jnp.take_along_axis(y, jnp.zeros((4, 1), int), 1).sum()
    )


@program
def ordered(w, x):
    y = x @ w
    return jnp.sort(y).sum() + lax.top_k(y, 2)[0].sum() + jnp.median(y) + lax.sort((y, x), num_keys=1)[1][0].sum()


@program
def attention(w, x):
    q = (x @ w).reshape(1, 4, 2, 4)
    return jax.nn.dot_product_attention(q, q, q, is_causal=True).sum()


@program
def einsums(w, x):
    return (
        jnp.einsum("ij,jk,lk->il", x, w, x).sum() + jnp.einsum("ii", w) + jnp.tensordot(x, w, 1).sum() + jnp.vdot(x, x)
    )


@program
def cumulated(w, x):
    y = x @ w
    return (
        jnp.cumsum(y).sum() + lax.cumlogsumexp(y).sum() + lax.cummax(y).sum() + lax.associative_scan(jnp.add, y).sum()
    )


@program
def masked(w, x):
    y = jnp.where(x > 0, x @ w, -1e9).max() + jnp.where(x > 0, x @ w, jnp.finfo(x.dtype).min).max()
    return y + (x @ w + 1e-8).sum() + jnp.clip(x @ w, -1, 1e6).sum()


@program
def normalised(w, x):
    y = x @ w
    centred = (y - y.mean(0)) / jnp.sqrt(y.var(0) + 1e-5)
    return (y / jnp.linalg.norm(y, axis=-1, keepdims=True)).sum() + (centred**3).sum() + jnp.std(y)


@program
def random(w, x):
    key = jax.random.key(3)
    kept = jnp.where(jax.random.bernoulli(key, 0.5, x.shape), x @ w, 0.0)
    return (jax.random.normal(key, x.shape) * (x @ w)).sum() + kept.sum() + jax.random.uniform(key, x.shape).sum()


@program
def by_hand(w, x):
    narrow = (x.astype(jnp.bfloat16) @ w.astype(jnp.bfloat16)).astype(jnp.float32)
    return narrow.sum() + jnp.exp(x.astype(jnp.float16)).astype(jnp.float32).sum()


@program
def differentiated(w, x):
    slopes = jax.grad(lambda x: jnp.sin(x @ w).sum())(x)
    return (
        slopes.sum()
        + jax.jacfwd(lambda row: row @ w)(x[0]).sum()
        + jax.hessian(lambda r: jnp.tanh(r @ w).sum())(x[0]).sum()
    )


@program
def fenced(w, x):
    a, b = lax.optimization_barrier((x @ w, x))
    return (a + b).sum()


@program
def integers(w, x):
    return (jnp.arange(4)[:, None] * x @ w).sum() + (jax.nn.one_hot(jnp.arange(4), 8) @ w).sum() + jnp.argmax(x @ w)
