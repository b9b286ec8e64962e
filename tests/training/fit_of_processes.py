"""A training that every process of a run takes part in: what `test_fit_of_processes.py` starts.

Arguments: the folder of checkpoints, how many epochs, the distribution, and the format of checkpoints. Whether the
batches are those of this process alone, how large they are in all, whether the first process has one batch less, and
which process dies in which epoch, say DATA, BATCH, UNEVEN and DIES.
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
    initialize_processes,
)

EXAMPLES, FEATURES, CLASSES = 96, 16, 4
BATCH = int(os.environ.get("BATCH", "32"))


class Dying(Callback):
    """Kills, stops or leaves the process in the middle of an epoch."""

    epoch = 0

    def on_epoch_begin(self, epoch):
        self.epoch = epoch

    def on_train_batch_end(self, batch, logs):
        del logs
        who, epoch, how = os.environ.get("DIES", "9 9 -").split()
        if (jax.process_index(), self.epoch, batch) == (int(who), int(epoch), 1):
            os.kill(os.getpid(), getattr(signal, how))


def main(folder, epochs, kind, form):
    initialize_processes()
    rng = np.random.default_rng(0)
    x = rng.normal(size=(EXAMPLES, FEATURES)).astype("float32")
    y = rng.integers(0, CLASSES, EXAMPLES)
    batches = os.environ.get("DATA", "global")
    make = {"data": DataParallel, "sharded": lambda **given: FullyShardedDataParallel(smallest=16, **given)}[kind]
    with use_policy("mixed_float16"):
        model = Sequential([nn.Dense(32, use_bias=False), nn.BatchNorm(axis_name="data"), nn.ReLU(), nn.Dense(CLASSES)])
    loss = SparseCategoricalCrossentropy(from_logits=True)
    model.compile(Adam(0.01), loss, "accuracy", distribution=make(batches=batches))
    path = Path(folder, "state")
    start = 0
    nn.initialize(model, x[:1])
    if path.exists():
        start = model.load_state(path)
        print(f"went on with epoch {start}", flush=True)
    keep = ModelCheckpoint(path, format=form)
    if batches == "global":
        data = {"x": x, "y": y, "batch_size": BATCH}
    else:
        here = BATCH // jax.process_count()
        first = here * jax.process_index()
        parts = [(x[i + first : i + first + here], y[i + first : i + first + here]) for i in range(0, EXAMPLES, BATCH)]
        data = {"x": parts[jax.process_index() == 0 and "UNEVEN" in os.environ :]}
    history = model.fit(**data, epochs=epochs, initial_epoch=start, verbose=2, callbacks=[keep, Dying()])
    whole = jax.jit(model.compiled().distribution.everywhere)
    values = whole({path: variable.value for path, variable in model.variables.items()})
    found = {path: np.asarray(value) for path, value in values.items()}
    np.savez(Path(folder, f"values{jax.process_index()}.npz"), loss=history.loss, **found)
    told = b"".join(found[path].tobytes() for path in sorted(found)) + np.asarray(history.loss_scale).tobytes()
    print("digest", hashlib.sha256(told).hexdigest(), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), *sys.argv[3:])
