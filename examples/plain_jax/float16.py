"""A multilayer perceptron on scans of handwritten digits: plain JAX, momentum written by hand."""

import jax
import jax.numpy as jnp
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from supremum.mixed_precision import DynamicLossScale, autocast, scaled_value_and_grad

LEARNING_RATE, MOMENTUM, BATCH = 0.05, 0.9, 32


def init(key, sizes=(64, 128, 64, 10)):
    keys = jax.random.split(key, len(sizes) - 1)
    return [
        {"w": jax.random.normal(key, (n, m)) * np.sqrt(2 / n), "b": jnp.zeros(m)}
        for key, n, m in zip(keys, sizes[:-1], sizes[1:], strict=True)
    ]


def predict(params, x):
    for layer in params[:-1]:
        x = jax.nn.relu(x @ layer["w"] + layer["b"])
    return x @ params[-1]["w"] + params[-1]["b"]


def loss(params, x, y):
    log_probabilities = jax.nn.log_softmax(predict(params, x))
    return -jnp.take_along_axis(log_probabilities, y[:, None], axis=1).mean()


loss = autocast(loss, "mixed_float16")


def update(state, grads):
    velocity = jax.tree.map(lambda v, g: MOMENTUM * v + g, state["velocity"], grads)
    params = jax.tree.map(lambda p, v: p - LEARNING_RATE * v, state["params"], velocity)
    return state | {"params": params, "velocity": velocity}


@jax.jit
def step(state, x, y):
    _, grads, finite, scaling = scaled_value_and_grad(loss, "dynamic")(state["scaling"], state["params"], x, y)
    return jax.lax.cond(finite, update, lambda state, _: state, state, grads) | {"scaling": scaling}


def main(seed=0, epochs=10):
    digits = load_digits()
    x, y = np.float32(digits.data / 16), digits.target
    x_train, x_test, y_train, y_test = train_test_split(x, y, test_size=360, stratify=y, random_state=0)

    params = init(jax.random.key(seed))
    state = {"params": params, "velocity": jax.tree.map(jnp.zeros_like, params), "scaling": DynamicLossScale().init()}
    rng = np.random.default_rng(seed)
    for _ in range(epochs):
        for batch in rng.permutation(len(x_train))[: len(x_train) // BATCH * BATCH].reshape(-1, BATCH):
            state = step(state, x_train[batch], y_train[batch])

    accuracy = float((predict(state["params"], x_test).argmax(axis=1) == y_test).mean())
    print(f"test accuracy {accuracy:.1%}, {state['scaling'].num_skipped_steps} steps skipped")
    return accuracy


if __name__ == "__main__":
    main()
