"""A script for several processes that take steps together until one of them fails.

Arguments: how that one fails (`is killed`, `hangs`, `raises` or `succeeds`), its index, and a file that it creates just
before.
"""

import os
import signal
import sys
import time
from pathlib import Path

import jax
import numpy as np
from jax.sharding import AxisType, NamedSharding, PartitionSpec

from supremum.training import initialize_processes


def fail(failure):
    if failure == "is killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if failure == "hangs":
        os.kill(os.getpid(), signal.SIGSTOP)
    if failure == "raises":
        raise RuntimeError("no more data")


def main(failure, rank, marker):
    initialize_processes()
    initialize_processes()  # does nothing
    mesh = jax.make_mesh((jax.device_count(),), ("data",), axis_types=(AxisType.Auto,))
    rows = PartitionSpec("data")
    mean = jax.jit(
        jax.shard_map(lambda x: jax.lax.pmean(x, "data"), mesh=mesh, in_specs=rows, out_specs=PartitionSpec())
    )
    local = np.full((jax.local_device_count(), 1), jax.process_index(), np.float32)
    global_array = jax.make_array_from_process_local_data(NamedSharding(mesh, rows), local)
    result = None
    for step in range(5 if failure == "succeeds" else 5000):
        try:
            result = float(np.asarray(mean(global_array)).item())
        except jax.errors.JaxRuntimeError:
            if failure == "raises":
                # Otherwise, on a busy machine, the launcher might see this failure at the same time as its cause.
                time.sleep(10)
            raise
        if step == 3 and jax.process_index() == int(rank):
            Path(marker).touch()
            fail(failure)
        time.sleep(0.02)
    print(jax.process_index(), jax.process_count(), jax.device_count(), result)


if __name__ == "__main__":
    main(*sys.argv[1:])
