"""A script for several processes: steps that all take together; on its way one fails as told.

Arguments: how (one of the names below), which process, and a file that is made just before.
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


def fail(how):
    if how == "is killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "hangs":
        os.kill(os.getpid(), signal.SIGSTOP)
    if how == "raises":
        raise RuntimeError("no more data")


def main(how, which, mark):
    initialize_processes()
    initialize_processes()  # does nothing
    mesh = jax.make_mesh((jax.device_count(),), ("data",), axis_types=(AxisType.Auto,))
    rows = PartitionSpec("data")
    mean = jax.jit(
        jax.shard_map(lambda x: jax.lax.pmean(x, "data"), mesh=mesh, in_specs=rows, out_specs=PartitionSpec())
    )
    own = np.full((jax.local_device_count(), 1), jax.process_index(), np.float32)
    everyones = jax.make_array_from_process_local_data(NamedSharding(mesh, rows), own)
    result = None
    for step in range(5 if how == "succeeds" else 5000):
        try:
            result = float(np.asarray(mean(everyones)).item())
        except jax.errors.JaxRuntimeError:
            if how == "raises":
                # On a busy machine, the launcher might otherwise see this failure together with its cause.
                time.sleep(10)
            raise
        if step == 3 and jax.process_index() == int(which):
            Path(mark).touch()
            fail(how)
        time.sleep(0.02)
    print(jax.process_index(), jax.process_count(), jax.device_count(), result)


if __name__ == "__main__":
    main(*sys.argv[1:])
