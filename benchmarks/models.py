"""A residual network with layer norms, without casts and with the casts of mixed precision written by hand."""

import jax
import jax.numpy as jnp


def init(width, depth):
    keys = jax.random.split(jax.random.key(0), depth)
    return [
        {"w": jax.random.normal(key, (width, width)) / width**0.5, "b": jnp.zeros(width), "scale": jnp.ones(width)}
        for key in keys
    ]


def norm(x, scale):
    centred = x - x.mean(-1, keepdims=True)
    return centred * jax.lax.rsqrt(jnp.mean(centred * centred, -1, keepdims=True) + 1e-6) * scale


def loss(logits, labels):
    return -jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], 1).mean()


def plain(layers, x, labels):
    for layer in layers:
        h = norm(x, layer["scale"])
        x = x + jax.nn.relu(h @ layer["w"] + layer["b"])
    return loss(x @ layers[0]["w"], labels)


def by_hand(dtype):
    """Return the same loss with each product and its bias in the given dtype, and the rest in float32."""

    def cast(layers, x, labels):
        for layer in layers:
            h = norm(x, layer["scale"]).astype(dtype)
            x = x + jax.nn.relu(h @ layer["w"].astype(dtype) + layer["b"].astype(dtype))
        logits = x.astype(dtype) @ layers[0]["w"].astype(dtype)
        return loss(logits.astype(jnp.float32), labels)

    return cast


def train_step(function):
    """Return a function that makes one step of gradient descent."""

    def step(layers, x, labels):
        value, gradients = jax.value_and_grad(function)(layers, x, labels)
        return jax.tree.map(lambda p, g: p - 1e-3 * g, layers, gradients), value

    return step
