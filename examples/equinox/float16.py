"""A convolutional network on scans of handwritten digits: Equinox and optax."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from supremum.mixed_precision import autocast, find_loss_scale_state, loss_scaled, scale_loss

BATCH = 32


class ConvNet(eqx.Module):
    layers: list[Callable]

    def __init__(self, key):
        keys = jax.random.split(key, 3)
        self.layers = [
            eqx.nn.Conv2d(1, 16, 3, padding=1, key=keys[0]),
            jax.nn.relu,
            eqx.nn.Conv2d(16, 32, 3, padding=1, key=keys[1]),
            jax.nn.relu,
            eqx.nn.MaxPool2d(2, stride=2),
            jnp.ravel,
            eqx.nn.Linear(32 * 4 * 4, 10, key=keys[2]),
        ]

    def __call__(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


def loss(model, x, y):
    return optax.softmax_cross_entropy_with_integer_labels(jax.vmap(model)(x), y).mean()


loss = autocast(loss, "mixed_float16")
optimizer = loss_scaled(optax.adam(3e-3))


@eqx.filter_jit
def step(model, opt_state, x, y):
    grads = eqx.filter_grad(lambda model: scale_loss(loss(model, x, y), opt_state))(model)
    updates, opt_state = optimizer.update(grads, opt_state, eqx.filter(model, eqx.is_inexact_array))
    return eqx.apply_updates(model, updates), opt_state


def main(seed=0, epochs=10):
    digits = load_digits()
    x, y = np.float32(digits.images[:, None] / 16), digits.target
    x_train, x_test, y_train, y_test = train_test_split(x, y, test_size=360, stratify=y, random_state=0)

    model = ConvNet(jax.random.key(seed))
    opt_state = optimizer.init(eqx.filter(model, eqx.is_inexact_array))
    rng = np.random.default_rng(seed)
    for _ in range(epochs):
        for batch in rng.permutation(len(x_train))[: len(x_train) // BATCH * BATCH].reshape(-1, BATCH):
            model, opt_state = step(model, opt_state, x_train[batch], y_train[batch])

    accuracy = float((jax.vmap(model)(x_test).argmax(axis=1) == y_test).mean())
    print(f"test accuracy {accuracy:.1%}, {find_loss_scale_state(opt_state).num_skipped_steps} steps skipped")
    return accuracy


if __name__ == "__main__":
    main()
