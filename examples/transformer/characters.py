"""A small transformer that learns to write Python character by character, in bfloat16 except for weights and logits."""

import argparse
import inspect

import jax
import jax.numpy as jnp
import numpy as np
import optax
from supremum import nn
from supremum.mixed_precision import use_policy

CONTEXT, BATCH = 64, 16


class Block(nn.Layer):
    """Attention and a multilayer perceptron, each with a norm before it and a residual connection."""

    def __init__(self, heads, **options):
        super().__init__(**options)
        self.heads = heads

    def build(self, input_shape):
        width, policy = input_shape[-1], self.dtype_policy
        self.attention = nn.MultiHeadAttention(self.heads, dtype=policy)
        self.widen, self.narrow = nn.Dense(4 * width, dtype=policy), nn.Dense(width, dtype=policy)
        self.norms = [nn.LayerNorm(dtype=policy), nn.LayerNorm(dtype=policy)]

    def call(self, x, cache=None):
        attended = self.attention(self.norms[0](x), is_causal=True, cache=cache)
        if cache is not None:
            attended, cache = attended
        x = x + attended
        x = x + self.narrow(jax.nn.gelu(self.widen(self.norms[1](x))))
        return x if cache is None else (x, cache)


class Characters(nn.Layer):
    """A transformer that returns, at each position, the logits of the next character."""

    def __init__(self, count, width=64, depth=2, heads=4, **options):
        super().__init__(**options)
        self.characters, self.places = nn.Embedding(count, width), nn.Embedding(CONTEXT, width)
        self.blocks = [Block(heads) for _ in range(depth)]
        self.norm, self.logits = nn.LayerNorm(), nn.Dense(count, dtype="float32")

    def call(self, tokens, caches=None):
        begin = 0 if caches is None else caches[0].length
        x = self.characters(tokens) + self.places(begin + jnp.arange(tokens.shape[1]))
        new = []
        for number, block in enumerate(self.blocks):
            x = block(x) if caches is None else block(x, caches[number])
            if caches is not None:
                x, cache = x
                new.append(cache)
        logits = self.logits(self.norm(x))
        return logits if caches is None else (logits, new)


def loss(model, variables, tokens):
    logits, _ = nn.functional_call(model, variables, tokens[:, :-1])
    return optax.softmax_cross_entropy_with_integer_labels(logits, tokens[:, 1:]).mean()


def generate(model, variables, tokens, key):
    """Generate characters after a first one, with a cache of keys and values."""

    def step(carry, key):
        token, caches = carry
        (logits, caches), _ = nn.functional_call(model, variables, token[:, None], caches)
        token = jax.random.categorical(key, logits[:, 0])
        return (token, caches), token

    caches = [block.attention.init_cache(len(tokens), CONTEXT) for block in model.blocks]
    return jax.lax.scan(step, (tokens, caches), jax.random.split(key, CONTEXT))[1].T


def main(seed=0, steps=200):
    text = inspect.getsource(argparse)
    letters = sorted(set(text))
    tokens = np.array([letters.index(letter) for letter in text])
    with use_policy("mixed_bfloat16"):
        model = Characters(len(letters), dtype="variable=float32,compute=bfloat16,output=float32")
        nn.initialize(model, jnp.zeros((BATCH, CONTEXT), int), seed=seed)
    variables, _ = nn.split_variables(model)
    optimizer = optax.adam(optax.cosine_decay_schedule(3e-3, steps))

    @jax.jit
    def step(variables, state, batch):
        value, gradients = jax.value_and_grad(loss, argnums=1)(model, variables, batch)
        updates, state = optimizer.update(gradients, state)
        return optax.apply_updates(variables, updates), state, value

    state, rng, losses = optimizer.init(variables), np.random.default_rng(seed), []
    for _ in range(steps):
        begins = rng.integers(0, len(tokens) - CONTEXT, BATCH)
        variables, state, value = step(variables, state, tokens[begins[:, None] + np.arange(CONTEXT + 1)])
        losses.append(value)

    nn.load_variables(model, variables)
    bits = float(jnp.stack(losses[-20:]).mean()) / np.log(2)
    written = jax.jit(generate, static_argnums=0)(
        model, variables, jnp.array([letters.index("\n")]), jax.random.key(seed)
    )
    print(f"{bits:.2f} bits per character; the model writes:", "".join(letters[token] for token in written[0]))
    return model, bits


if __name__ == "__main__":
    main()
