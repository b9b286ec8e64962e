"""A small transformer on scans of handwritten digits, one token a row: Flax linen and optax."""

import flax.linen as nn
import jax
import numpy as np
import optax
from flax.training.train_state import TrainState
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

BATCH, WIDTH = 32, 64


class Transformer(nn.Module):
    depth: int = 1

    @nn.compact
    def __call__(self, x, train):
        def dropout(x):
            return nn.Dropout(0.1, deterministic=not train)(x)

        x = nn.Dense(WIDTH)(x) + self.param("position", nn.initializers.normal(0.1), (8, WIDTH))
        for _ in range(self.depth):
            x = x + dropout(nn.MultiHeadDotProductAttention(num_heads=4)(nn.LayerNorm()(x)))
            x = x + dropout(nn.Dense(WIDTH)(nn.gelu(nn.Dense(2 * WIDTH)(nn.LayerNorm()(x)))))
        return nn.Dense(10)(nn.LayerNorm()(x).reshape(len(x), -1))


model = Transformer()


def loss(params, x, y, key):
    logits = model.apply({"params": params}, x, train=True, rngs={"dropout": key})
    return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean()


@jax.jit
def step(state, x, y, key):
    key = jax.random.fold_in(key, state.step)
    grads = jax.grad(lambda params: loss(params, x, y, key))(state.params)
    return state.apply_gradients(grads=grads)


def main(seed=0, epochs=10):
    digits = load_digits()
    x, y = np.float32(digits.images / 16), digits.target
    x_train, x_test, y_train, y_test = train_test_split(x, y, test_size=360, stratify=y, random_state=0)

    init_key, dropout_key = jax.random.split(jax.random.key(seed))
    params = jax.jit(model.init, static_argnames="train")(init_key, x_train[:1], train=False)["params"]
    optimizer = optax.adam(2e-3)
    state = TrainState.create(apply_fn=model.apply, params=params, tx=optimizer)
    rng = np.random.default_rng(seed)
    for _ in range(epochs):
        for batch in rng.permutation(len(x_train))[: len(x_train) // BATCH * BATCH].reshape(-1, BATCH):
            state = step(state, x_train[batch], y_train[batch], dropout_key)

    logits = state.apply_fn({"params": state.params}, x_test, train=False)
    accuracy = float((logits.argmax(axis=1) == y_test).mean())
    print(f"test accuracy {accuracy:.1%}")
    return accuracy


if __name__ == "__main__":
    main()
