"""Train one model in all processes of a run; `test_fit_of_processes.py` starts this script.

Arguments: the checkpoint folder, the number of epochs, the distribution, and the checkpoint format. Environment
variables: DATA (`global`, `per_process` for separate batches in each process, or `same` for the same ones), BATCH (the
global batch size), UNEVEN (if set, process 0 has one batch less) and DIES (a process, an epoch and the signal that the
process gets in it).
"""

import hashlib
import os
import signal
import sys
from pathlib import Path

import jax
import numpy as np

from supremum import nn
from supremum.mixed_precision import use_policy
from supremum.optimizers import Adam
from supremum.training import (
    Callback,
    DataParallel,
    FullyShardedDataParallel,
    ModelCheckpoint,
    Sequential,
    SparseCategoricalCrossentropy,
)

EXAMPLES, FEATURES, CLASSES = 96, 16, 4
BATCH = int(os.environ.get("BATCH", "32"))
LAYOUT = {"dense/kernel": (None, "model"), "batch_norm/.*": ("model",), "dense_1/kernel": ("model",)}


def mesh_across_processes():
    """A mesh in which each replica has a device of every process."""
    devices = np.reshape(jax.devices(), (jax.process_count(), -1))
    return jax.sharding.Mesh(devices.T, ("data", "model"))


class KillProcess(Callback):
    """Sends this process a signal in the middle of an epoch, if DIES says so."""

    epoch = 0

    def on_epoch_begin(self, epoch):
        self.epoch = epoch

    def on_train_batch_end(self, batch, logs):
        del logs
        process, epoch, signal_name = os.environ.get("DIES", "9 9 -").split()
        if (jax.process_index(), self.epoch, batch) == (int(process), int(epoch), 1):
            os.kill(os.getpid(), getattr(signal, signal_name))


def main(folder, epochs, kind, checkpoint_format):
    jax.distributed.initialize()
    rng = np.random.default_rng(0)
    x = rng.normal(size=(EXAMPLES, FEATURES)).astype("float32")
    y = rng.integers(0, CLASSES, EXAMPLES)
    given = os.environ.get("DATA", "global")
    batches = "global" if given == "global" else "per_process"
    make_distribution = {
        "data": DataParallel,
        "sharded": lambda **given: FullyShardedDataParallel(smallest=16, **given),
        "model": lambda **given: DataParallel(mesh_across_processes(), data_axes="data", layout=LAYOUT, **given),
    }[kind]
    with use_policy("mixed_float16"):
        model = Sequential([nn.Dense(32, use_bias=False), nn.BatchNorm(axis_name="data"), nn.ReLU(), nn.Dense(CLASSES)])
    loss = SparseCategoricalCrossentropy(from_logits=True)
    model.compile(Adam(0.01), loss, "accuracy", distribution=make_distribution(batches=batches))
    path = Path(folder, "state")
    start = 0
    nn.initialize(model, x[:1])
    if path.exists():
        start = model.load_state(path)
        print(f"went on with epoch {start}", flush=True)
    checkpoint = ModelCheckpoint(path, format=checkpoint_format)
    if given != "per_process":
        data = {"x": x, "y": y, "batch_size": BATCH}
    else:
        size = BATCH // jax.process_count()
        first = size * jax.process_index()
        parts = [(x[i + first : i + first + size], y[i + first : i + first + size]) for i in range(0, EXAMPLES, BATCH)]
        data = {"x": parts[jax.process_index() == 0 and "UNEVEN" in os.environ :]}
    history = model.fit(**data, epochs=epochs, initial_epoch=start, verbose=2, callbacks=[checkpoint, KillProcess()])
    replicate = jax.jit(model.compiled().distribution.replicate)
    values = replicate({path: variable.value for path, variable in model.variables.items()})
    found = {path: np.asarray(value) for path, value in values.items()}
    np.savez(Path(folder, f"values{jax.process_index()}.npz"), loss=history.loss, **found)
    contents = b"".join(found[path].tobytes() for path in sorted(found)) + np.asarray(history.loss_scale).tobytes()
    print("digest", hashlib.sha256(contents).hexdigest(), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), *sys.argv[3:])
