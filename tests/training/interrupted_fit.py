"""Trains a model again and again, with Ctrl-C at random moments; started as a process of its own, which gets them.

    python interrupted_fit.py ROUNDS STEPS_PER_EXECUTION FOLDER

It prints a line for each round: whether it was interrupted, and where. Whatever does not hold is an error.
"""

import os
import pathlib
import random
import signal
import sys
import threading
import time
import traceback
from functools import partial

import numpy as np

from supremum import nn, training

# All batches are alike, so that the weights follow from how many steps there were.
X = np.tile(np.random.default_rng(0).normal(size=(4, 4)).astype("float32"), (24, 1))
Y = X.sum(axis=1, keepdims=True)


class Watch(training.Callback):
    """Notes the weights after each step, from the optimizer's count of steps, and whether it was told of the end."""

    def __init__(self):
        self.ended = 0
        self.began = 0

    def on_train_begin(self):
        self.began += 1

    def on_train_end(self):
        self.ended += 1


def made(steps, fresh):
    """A compiled model, with weights unless fresh, and with a layer that keeps running statistics."""
    model = training.Sequential([nn.Dense(8), nn.BatchNorm(), nn.Dense(1)])
    model.compile("adam", loss="mse", steps_per_execution=steps, seed=1)
    if not fresh:
        fit(model, [])
    return model


def fit(model, callbacks):
    model.fit(
        X, Y, epochs=3, batch_size=4, verbose=0, callbacks=callbacks, validation_data=(X[:8], Y[:8]), shuffle=False
    )


def weights(model):
    return {path: np.asarray(variable.value) for path, variable in model.variables.items()}


def reference(steps, most):
    """The weights after each number of dispatches, of a training that nobody interrupts."""
    model = training.Sequential([nn.Dense(8), nn.BatchNorm(), nn.Dense(1)])
    model.compile("adam", loss="mse", steps_per_execution=steps, seed=1)
    found = {}

    class Keep(training.Callback):
        def on_train_batch_end(self, batch, logs):
            found[int(self.model.compiled().count)] = weights(self.model)

    while not found or max(found) < most:
        fit(model, [Keep()])
    return found


def where(error):
    """The innermost function of ours that the interrupt came in, or the callback that it took the last word from."""
    frames = traceback.extract_tb(error.__traceback__)
    if any(frame.name == "on_train_end" for frame in frames):
        return "callbacks"
    ours = [frame for frame in frames if "supremum" in frame.filename and "interrupts" not in frame.filename]
    return f"{pathlib.Path(ours[-1].filename).name}:{ours[-1].name}" if ours else "outside"


def interrupted(call, delay):
    """Where Ctrl-C interrupted a call; `after` where the call ended first.

    Also where Python ignored it, as it does in the function that JAX has called by the garbage collector.
    """
    timer = threading.Timer(delay, os.kill, (os.getpid(), signal.SIGINT))
    try:
        timer.start()
        call()
        timer.join()
        time.sleep(0.001)  # here at the latest the interrupt comes
    except KeyboardInterrupt as error:
        timer.join()
        return where(error)
    return "after"


def main():
    rounds, steps, folder = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    chosen = random.Random(steps)
    start = time.perf_counter()
    model = made(steps, fresh=True)
    fit(model, [])
    cold = time.perf_counter() - start
    start = time.perf_counter()
    fit(model, [])
    warm = time.perf_counter() - start
    right = reference(steps, 400)
    model = made(steps, fresh=False)
    for number in range(rounds):
        fresh = number % 8 == 0  # the first compilation
        if fresh or int(model.compiled().count) > 300:
            model = made(steps, fresh)
        watch = Watch()
        callbacks = [watch, training.ModelCheckpoint(f"{folder}/{{epoch}}.safetensors")]
        place = interrupted(partial(fit, model, callbacks), chosen.random() * (cold if fresh else warm))
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        assert watch.ended == (1 if watch.began else 0) or place.startswith("callbacks"), (place, vars(watch))
        if not model.built or not all(each.is_initialized for each in model.variables.values()):
            print(number, place, "before there were weights", flush=True)
            fit(model, [])
            continue
        count = int(model.compiled().count)
        for path, value in weights(model).items():
            if count:
                np.testing.assert_array_equal(value, right[count][path], err_msg=f"{place} {count} {path}")
        model.predict(X[:4], verbose=0)
        model.save_state(f"{folder}/state")
        model.load_state(f"{folder}/state")
        assert int(model.compiled().count) == count
        assert model.train_on_batch(X[:4], Y[:4])["loss"] >= 0
        model.load_state(f"{folder}/state")
        print(number, place, count, flush=True)


if __name__ == "__main__":
    main()
