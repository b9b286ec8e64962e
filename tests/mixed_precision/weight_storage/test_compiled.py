"""What XLA makes of a step with all its optimizations, in a process without the flags of the other tests."""

import json
import os
import subprocess
import sys

import pytest

PROGRAM = """
import json
import jax, jax.numpy as jnp, numpy as np, optax
from supremum.mixed_precision import narrow_weights, weight_memory

found = {}
params = {"w": jnp.ones(4096, "bfloat16")}
gradient = {"w": jnp.full(4096, -1.0)}
for weights in ("stochastic", "kahan", "master"):
    optimizer = narrow_weights(optax.sgd(2.0**-12), weights)

    @jax.jit
    def steps(params, state):  # unrolled: no loop keeps XLA from combining the steps
        for _ in range(16):
            params, state = optimizer.step(gradient, state, params)
        return params, state

    state = optimizer.init(params)
    made, after = steps(params, state)
    eager, beside = params, state
    for _ in range(16):
        eager, beside = optimizer.step(gradient, beside, eager)
    same = jax.tree.map(lambda a, b: bool((a == b).all()), (made, after), (eager, beside))
    text = jax.jit(optimizer.step).lower(gradient, state, params).compile().as_text()
    found[weights] = {
        "same": all(jax.tree.leaves(same)),
        "mean": float(made["w"].astype(jnp.float32).mean()),
        "hash": [str(number) in text for number in (0xED5AD4BB, 0xAC4C1B51, 0x31848BAB)],
        "integers": text.count("bitcast-convert"),
        "random keys": "threefry" in text,
    }

del made, after, eager, beside, state, params, gradient
before = {id(array) for array in jax.live_arrays()}
params = {"w": jnp.ones((256, 256), "bfloat16"), "b": jnp.zeros(256, "bfloat16")}
optimizer = narrow_weights(optax.adam(1e-3), "kahan", {"mu": "bfloat16", "nu": "dynamic8"})
state = optimizer.init(params)
params, state = jax.jit(optimizer.step, donate_argnums=(1, 2))(jax.tree.map(jnp.ones_like, params), state, params)
jax.block_until_ready(params)
live = [array for array in jax.live_arrays() if id(array) not in before]
found["memory"] = [sum(array.nbytes for array in live), weight_memory(params, state).total_bytes]

print(json.dumps(found))
"""


@pytest.mark.slow
def test_xla_keeps_the_rounding_and_its_bits():
    environment = {name: value for name, value in os.environ.items() if name != "XLA_FLAGS"}
    run = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    found = json.loads(run.stdout)
    for weights in ("stochastic", "kahan", "master"):
        assert found[weights]["same"]
        assert found[weights]["integers"] > 0
        assert not found[weights]["random keys"]
        assert found[weights]["hash"] == [weights == "stochastic"] * 3
        # 16 updates of 2**-12; numbers of bfloat16 are 2**-7 apart here.
        assert abs(found[weights]["mean"] - (1 + 2.0**-8)) < (2.0**-11 if weights == "stochastic" else 2.0**-7)
    assert found["memory"][0] == found["memory"][1]
