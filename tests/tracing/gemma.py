"""A training step in the style of Gemma, from Flax nnx, with the promotions that such programs have.

Its weights are bfloat16, but the scales of its norms are float32, so the first norm makes everything after it float32.
"""

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

BATCH, LENGTH, VOCABULARY, WIDTH, HEADS, HIDDEN = 2, 8, 32, 16, 2, 32


class RMSNorm(nnx.Module):
    def __init__(self, dtype):
        self.scale = nnx.Param(jnp.zeros(WIDTH, dtype))

    def __call__(self, x):
        variance = jnp.mean(jnp.square(x.astype(jnp.float32)), axis=-1, keepdims=True)
        normed = x * jax.lax.rsqrt(variance + 1e-6).astype(x.dtype)
        return normed * (1 + self.scale[...])


class Attention(nnx.Module):
    def __init__(self, rngs):
        linear = lambda: nnx.Linear(WIDTH, WIDTH, use_bias=False, param_dtype=jnp.bfloat16, rngs=rngs)  # noqa: E731
        self.query, self.key, self.value, self.out = linear(), linear(), linear(), linear()

    def __call__(self, x):
        q, k, v = (each(x).reshape(BATCH, LENGTH, HEADS, WIDTH // HEADS) for each in (self.query, self.key, self.value))
        scores = jnp.einsum("btnh,bsnh->bnts", q, k) / np.sqrt(WIDTH // HEADS)
        mask = jnp.tril(jnp.ones((LENGTH, LENGTH), bool))
        weights = jax.nn.softmax(jnp.where(mask, scores, -1e9), axis=-1)
        return self.out(jnp.einsum("bnts,bsnh->btnh", weights, v).reshape(BATCH, LENGTH, WIDTH))


class MLP(nnx.Module):
    def __init__(self, rngs):
        draw = lambda *shape: nnx.Param(0.1 * jax.random.normal(rngs(), shape, jnp.bfloat16))  # noqa: E731
        self.gate, self.up, self.down = draw(WIDTH, HIDDEN), draw(WIDTH, HIDDEN), draw(HIDDEN, WIDTH)

    def __call__(self, x):
        return (jax.nn.gelu(x @ self.gate[...]) * (x @ self.up[...])) @ self.down[...]


class Block(nnx.Module):
    def __init__(self, rngs, scale_dtype):
        self.before, self.between = RMSNorm(scale_dtype), RMSNorm(scale_dtype)
        self.attention, self.mlp = Attention(rngs), MLP(rngs)

    def __call__(self, x):
        x = x + self.attention(self.before(x))
        return x + self.mlp(self.between(x))


class Gemma(nnx.Module):
    def __init__(self, layers, scale_dtype=jnp.float32):
        rngs = nnx.Rngs(0)
        self.embedding = nnx.Param(jax.random.normal(rngs(), (VOCABULARY, WIDTH), jnp.bfloat16))
        self.blocks = nnx.List(Block(rngs, scale_dtype) for _ in range(layers))
        self.final = RMSNorm(scale_dtype)

    def __call__(self, tokens):
        x = self.embedding[...][tokens] * np.sqrt(WIDTH)
        for block in self.blocks:
            x = block(x)
        return self.final(x) @ self.embedding[...].T


def loss(model, tokens):
    logits = model(tokens)[:, :-1].astype(jnp.float32)
    chosen = jnp.take_along_axis(jax.nn.log_softmax(logits), tokens[:, 1:, None], axis=-1)
    return -jnp.mean(chosen)


def train_step(model, tokens):
    value, gradients = nnx.value_and_grad(loss)(model, tokens)
    update = lambda weight, gradient: weight - jnp.asarray(1e-3 * gradient, weight.dtype)  # noqa: E731
    nnx.update(model, jax.tree.map(update, nnx.state(model, nnx.Param), gradients))
    return value


def tokens():
    return jnp.zeros((BATCH, LENGTH), jnp.int32)
