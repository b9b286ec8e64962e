"""A network with BatchNorm and dropout on scans of handwritten digits: Flax nnx and optax."""

import jax
import numpy as np
import optax
from flax import nnx
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from supremum.mixed_precision import all_finite, autocast, find_loss_scale_state, loss_scaled, scale_loss, select_tree

BATCH = 32


class Network(nnx.Module):
    def __init__(self, rngs):
        self.conv = nnx.Conv(1, 32, kernel_size=(3, 3), rngs=rngs)
        self.norm = nnx.BatchNorm(32, rngs=rngs)
        self.hidden = nnx.Linear(32 * 4 * 4, 64, rngs=rngs)
        self.dropout = nnx.Dropout(0.2, rngs=rngs)
        self.out = nnx.Linear(64, 10, rngs=rngs)

    def __call__(self, x):
        x = nnx.max_pool(nnx.relu(self.norm(self.conv(x))), (2, 2), strides=(2, 2))
        x = nnx.relu(self.hidden(x.reshape(len(x), -1)))
        return self.out(self.dropout(x))


def loss(graphdef, params, rest, x, y):
    # A function of arrays, not of a module: it returns what the forward pass changes (statistics, random counts).
    model = nnx.merge(graphdef, params, rest, copy=True)
    value = optax.softmax_cross_entropy_with_integer_labels(model(x), y).mean()
    return value, nnx.state(model, nnx.Not(nnx.Param))


loss = autocast(loss, "mixed_float16")


@nnx.jit
def step(model, optimizer, x, y):
    graphdef, params, rest = nnx.split(model, nnx.Param, ...)

    def objective(params):
        value, changed = loss(graphdef, params, rest, x, y)
        return scale_loss(value, optimizer.opt_state), changed

    grads, changed = jax.grad(objective, has_aux=True)(params)
    optimizer.update(model, grads)
    nnx.update(model, select_tree(all_finite(grads), changed, rest))


def main(seed=0, epochs=10):
    digits = load_digits()
    x, y = np.float32(digits.images[..., None] / 16), digits.target
    x_train, x_test, y_train, y_test = train_test_split(x, y, test_size=360, stratify=y, random_state=0)

    model = Network(nnx.Rngs(seed))
    optimizer = nnx.Optimizer(model, loss_scaled(optax.adam(3e-3)), wrt=nnx.Param)
    rng = np.random.default_rng(seed)
    for _ in range(epochs):
        for batch in rng.permutation(len(x_train))[: len(x_train) // BATCH * BATCH].reshape(-1, BATCH):
            step(model, optimizer, x_train[batch], y_train[batch])

    model.eval()
    accuracy = float((model(x_test).argmax(axis=1) == y_test).mean())
    print(f"test accuracy {accuracy:.1%}, {find_loss_scale_state(optimizer.opt_state).num_skipped_steps} steps skipped")
    return accuracy


if __name__ == "__main__":
    main()
