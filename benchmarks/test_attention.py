"""The memory, time and accuracy of attention over long sequences; each case runs in a separate process.

make bench
"""

import json
import subprocess
import sys

import pytest

CHILD = """
import json, resource, sys, time
import jax, jax.numpy as jnp, numpy as np
from supremum.nn.functional.attention import dot_product_attention

library, dtype, length = sys.argv[1], sys.argv[2], int(sys.argv[3])
theirs = lambda *args: jax.nn.dot_product_attention(*(x[None] for x in args))[0]
function = dot_product_attention if library == "supremum" else theirs
rng = np.random.default_rng(0)
query, key, cotangent = (jnp.asarray(rng.normal(size=(length, 1, 64)), dtype) for _ in range(3))
value = jnp.asarray(rng.uniform(-6e4, 6e4, (length, 1, 64)), dtype)
cotangent = cotangent * 1e-2

@jax.jit
def run(*args):
    outputs, pull = jax.vjp(function, *args)
    return outputs, *pull(cotangent)

peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
before, start = peak(), time.perf_counter()
results = jax.block_until_ready(run(query, key, value))
seconds, after = time.perf_counter() - start, peak()

# Outputs and gradients of some queries, in float64.
rows = slice(0, length, length // 16)
q, k, v, w = (np.asarray(x, np.float64)[:, 0] for x in (query, key, value, cotangent))
scores = q[rows] @ k.T / 8
p = np.exp(scores - scores.max(1, keepdims=True))
p /= p.sum(1, keepdims=True)
of_p = w[rows] @ v.T
wanted = p @ v, (p * (of_p - (p * of_p).sum(1, keepdims=True))) @ k / 8
off = [
    float(np.abs(np.asarray(got[rows, 0], np.float64) - want).max() / np.abs(want).max() / float(jnp.finfo(dtype).eps))
    for got, want in zip(results, wanted, strict=False)
]
finite = all(bool(jnp.isfinite(x).all()) for x in results)
print(json.dumps({"MiB": after - before, "seconds": seconds, "ulp": max(off), "finite": finite}))
"""
# JAX's attention does not compile in float16 on CPU, and stores all scores: 48 GiB for 65,536 keys.
CASES = [
    ("supremum", "float16", 8192),
    ("supremum", "float32", 8192),
    ("jax.nn", "float32", 8192),
    ("supremum", "bfloat16", 16384),
    ("supremum", "float32", 16384),
    ("jax.nn", "float32", 16384),
    ("supremum", "float16", 65536),
]


@pytest.mark.parametrize(("library", "dtype", "length"), CASES)
def test_outputs_and_gradients_of_one_head(benchmark, figures, library, dtype, length):
    arguments = [sys.executable, "-c", CHILD, library, dtype, str(length)]

    def measure():
        done = subprocess.run(arguments, check=True, capture_output=True, text=True)
        return json.loads(done.stdout.splitlines()[-1])

    found = benchmark.pedantic(measure, rounds=1)
    figures.note(
        f"attention of {library}, {dtype}, {length:,} queries and keys, with gradients",
        f"{found['MiB']:.0f} MiB more than the operands, {found['seconds']:.1f} s with compilation",
        peer=f"within {found['ulp']:.2f} ulp of float64",
    )
    assert found["finite"]
