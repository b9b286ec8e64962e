"""A training step of a GPT in plain JAX and optax: forward, backward and optimizer."""

import jax
import jax.numpy as jnp
import optax

WIDTH, HEADS, BATCH, LENGTH, TOKENS = 128, 4, 8, 128, 256
SCALE = (WIDTH // HEADS) ** -0.5


def dense(key, inputs, outputs):
    """Make the parameters of a dense layer."""
    return {"w": jax.random.normal(key, (inputs, outputs)) * inputs**-0.5, "b": jnp.zeros(outputs)}


def norm():
    """Make the parameters of a normalization."""
    return {"scale": jnp.ones(WIDTH), "b": jnp.zeros(WIDTH)}


def block(key):
    """Make the parameters of a block."""
    keys = jax.random.split(key, 4)
    return {
        "norms": [norm(), norm()], "qkv": dense(keys[0], WIDTH, 3 * WIDTH), "out": dense(keys[1], WIDTH, WIDTH),
        "up": dense(keys[2], WIDTH, 4 * WIDTH), "down": dense(keys[3], 4 * WIDTH, WIDTH),
    }  # fmt: skip


def apply_norm(p, x):
    """Normalize the last axis."""
    centered = x - x.mean(-1, keepdims=True)
    return centered * jax.lax.rsqrt((centered**2).mean(-1, keepdims=True) + 1e-5) * p["scale"] + p["b"]


def attention(p, x):
    """Attend to earlier tokens."""
    heads = (x @ p["qkv"]["w"] + p["qkv"]["b"]).reshape(BATCH, LENGTH, 3, HEADS, WIDTH // HEADS)
    q, k, v = jnp.moveaxis(heads, 2, 0)
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) * SCALE
    scores = jnp.where(jnp.tril(jnp.ones((LENGTH, LENGTH), bool)), scores, -1e9)
    mixed = jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores), v).reshape(BATCH, LENGTH, WIDTH)
    return mixed @ p["out"]["w"] + p["out"]["b"]


def loss(params, tokens):
    """Return the mean cross-entropy of the next tokens."""
    x = params["tokens"][tokens] + params["places"]
    for p in params["blocks"]:
        x = x + attention(p, apply_norm(p["norms"][0], x))
        hidden = jax.nn.gelu(apply_norm(p["norms"][1], x) @ p["up"]["w"] + p["up"]["b"])
        x = x + hidden @ p["down"]["w"] + p["down"]["b"]
    logits = apply_norm(params["norm"], x) @ params["tokens"].T
    return optax.softmax_cross_entropy_with_integer_labels(logits[:, :-1], tokens[:, 1:]).mean()


def training_step(layers):
    """Make a step and its arguments."""
    optimizer = optax.adamw(1e-3)
    keys = jax.random.split(jax.random.key(0), layers + 3)
    params = {
        "tokens": jax.random.normal(keys[0], (TOKENS, WIDTH)) * 0.02,
        "places": jax.random.normal(keys[1], (LENGTH, WIDTH)) * 0.02,
        "blocks": [block(key) for key in keys[3:]],
        "norm": norm(),
    }

    def step(params, state, tokens):
        value, gradients = jax.value_and_grad(loss)(params, tokens)
        updates, state = optimizer.update(gradients, state, params)
        return value, optax.apply_updates(params, updates), state

    return step, (params, optimizer.init(params), jax.random.randint(keys[2], (BATCH, LENGTH), 0, TOKENS))
