"""Measure all-reduces and print their times as JSON; `test_reduction.py` starts this program in several processes."""

import json
import time

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

from supremum.mixed_precision import all_reduce_gradients

ROUNDS, PARAMETERS = 15, 2**22


def main():
    jax.distributed.initialize()
    mesh = jax.make_mesh((jax.device_count(),), ("data",), axis_types=(jax.sharding.AxisType.Auto,))
    taken = {}
    for dtype in ("float32", "float16"):

        def averaged(grads, dtype=dtype):
            return all_reduce_gradients(grads, "data", dtype)

        program = jax.jit(jax.shard_map(averaged, mesh=mesh, in_specs=P("data"), out_specs=P()))
        taken[dtype] = program, []
    share = jax.NamedSharding(mesh, P("data"))
    grads = jax.jit(lambda: jnp.ones(PARAMETERS * jax.device_count()), out_shardings=share)()
    for _ in range(ROUNDS + 1):
        for program, seconds in taken.values():
            start = time.perf_counter()
            jax.block_until_ready(program(grads))
            seconds.append(time.perf_counter() - start)
    if jax.process_index() == 0:
        print("times", json.dumps({dtype: seconds[1:] for dtype, (_, seconds) in taken.items()}), flush=True)


if __name__ == "__main__":
    main()
