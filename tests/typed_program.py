"""What users write, with the types that a type checker must find; tests/test_types.py checks it with pyright."""

from typing import Any, assert_type

import jax
import jax.numpy as jnp
import numpy as np

import supremum
from supremum import mixed_precision, nn, ops, optimizers, tracing, training
from supremum.rules import RuleName

x = jnp.ones((2, 3))

# Promotion
assert_type(supremum.result_type("int8", "uint8", rules="jax-x64"), np.dtype[Any])
assert_type(supremum.explain("int8", 2.0, rules=supremum.rules.TORCH), supremum.Decision)
assert_type(supremum.can_promote("int8", "uint8"), bool)
name: RuleName = "numpy"
from_a_file: str = "numpy"
with supremum.use_rules(name), supremum.use_rules(from_a_file) as rules:
    assert_type(rules, supremum.RuleSet)
wrong_name: RuleName = "numpi"  # pyright: ignore[reportAssignmentType]

try:
    supremum.result_type("int8", "float8_e5m2")
except supremum.PromotionError as error:
    assert_type(error.reason, tuple[str, ...])

# Arrays
a = supremum.asarray([1, 2])
assert_type(a + 1.5, supremum.Array)
assert_type(1.5 * a @ a, supremum.Array)
assert_type(a < 2, supremum.Array)
assert_type(a.sum(axis=0), supremum.Array)
assert_type(a.reshape(2, 1), supremum.Array)
assert_type(a.real, supremum.Array)
assert_type(ops.add(a, 1), supremum.Array)
v = supremum.ArrayVariable(1.0)
v += 1
assert_type(v, supremum.ArrayVariable)


# Layers return what their `call` returns
assert_type(nn.Dense(4)(x), jax.Array)
assert_type(nn.BatchNorm()(x, training=True), jax.Array)
assert_type(nn.Dense(4)(np.ones((2, 3), "float32")), jax.Array)
assert_type(nn.Dense(4).units, int)
assert_type(nn.GRUCell(3)(x, x), tuple[jax.Array, jax.Array])


class Block(nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.dense = nn.Dense(4)
        self.norm = nn.LayerNorm()

    def call(self, x: jax.Array) -> dict[str, jax.Array]:
        hidden = self.norm(self.dense(x))
        assert_type(hidden, jax.Array)
        return {"hidden": hidden}


assert_type(Block()(x, training=True), dict[str, jax.Array])

# A functional model
inputs = nn.Input((3,))
hidden = nn.Dense(4)(inputs)
assert_type(hidden, nn.SymbolicTensor)
assert_type(2 * hidden + 1, nn.SymbolicTensor)
assert_type(nn.Add()([hidden, hidden]), nn.SymbolicTensor)
model = training.Model(inputs, hidden)
model.compile(optimizers.Adam(1e-3), "mse")

# Variables
w = nn.Variable([1.0, 2.0], "w")
assert_type(w * 2, jax.Array)
assert_type(w.assign_add(1), nn.Variable)


# Scaled gradients keep the parameters of the loss function
def loss(params: dict[str, jax.Array], x: jax.Array, *, weight: float = 1.0) -> jax.Array:
    return weight * jnp.vdot(params["w"], x)


scale = mixed_precision.DynamicLossScale()
step = mixed_precision.scaled_value_and_grad(loss, scale)
result = step(scale.init(), {"w": x}, x, weight=0.5)
assert_type(result, mixed_precision.ScaledGradients)
assert_type(result.finite, jax.Array)

# Autocast, casts and decorators keep the types of functions
autocast = mixed_precision.autocast(loss, "mixed_bfloat16")
assert_type(autocast({"w": x}, x), jax.Array)
assert_type(tracing.casts(loss)({"w": x}, x), tracing.CastReport)


@supremum.use_rules("torch")
def double(x: int) -> int:
    return 2 * x


assert_type(double(2), int)


def refused() -> None:
    """Calls that type checkers refuse; nobody makes them."""
    step(scale.init(), {"w": x})  # pyright: ignore[reportCallIssue] (x is missing)
    step(scale.init(), {"w": x}, x, wieght=0.5)  # pyright: ignore[reportCallIssue]
    step(scale.init(), x, x)  # pyright: ignore[reportArgumentType] (the parameters must be a dict)
    autocast({"w": x}, "x")  # pyright: ignore[reportArgumentType]
    double("2")  # pyright: ignore[reportArgumentType]
