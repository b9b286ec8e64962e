"""Measure Keras' activations, constraints and initializers by name; prints JSON for tests/conformance/oracles.

Run it where Keras is installed: KERAS_BACKEND=jax python tools/oracle_keras_layers.py > keras-layers.json
"""

import json

import keras
import numpy as np

X = [-30, -3.5, -2, -1, -0.75, -0.25, 0, 0.25, 0.5, 1, 2.5, 4, 7, 30]
WEIGHT = [[3, -1, 0.2], [4, -1, 0.1], [-0.5, 2, 0]]
ACTIVATIONS = (
    "celu elu exponential gelu glu hard_sigmoid hard_silu hard_swish hard_tanh leaky_relu linear log_sigmoid "
    "log_softmax mish relu relu6 selu sigmoid silu softmax softplus softsign sparse_plus sparse_sigmoid squareplus "
    "swish tanh"
)
CONSTRAINTS = "max_norm min_max_norm non_neg unit_norm"
INITIALIZERS = (
    "glorot_normal glorot_uniform he_normal he_uniform lecun_normal lecun_uniform random_normal random_uniform "
    "truncated_normal orthogonal identity zeros ones"
)


def statistics(name):
    """Describe the numbers that an initializer draws."""
    drawn = np.asarray(keras.initializers.get(name)((400, 400), "float32"))
    return {"std": float(drawn.std()), "largest": float(np.abs(drawn).max()), "mean": float(drawn.mean())}


x, weight = np.asarray(X, "float32"), np.asarray(WEIGHT, "float32")
measured = {
    "framework": "keras",
    "version": keras.__version__,
    "x": X,
    "activations": {n: np.asarray(keras.activations.get(n)(x)).tolist() for n in ACTIVATIONS.split()},
    "weight": WEIGHT,
    "constraints": {n: np.asarray(keras.constraints.get(n)(weight)).tolist() for n in CONSTRAINTS.split()},
    "initializers of float32[400,400]": {name: statistics(name) for name in INITIALIZERS.split()},
}
rows = [f" {json.dumps(key)}: {json.dumps(value)}" for key, value in measured.items() if not isinstance(value, dict)]
for key, table in measured.items():
    if isinstance(table, dict):
        lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(value)}" for name, value in table.items())
        rows.append(f" {json.dumps(key)}: {{\n{lines}\n }}")
print("{\n" + ",\n".join(rows) + "\n}")
