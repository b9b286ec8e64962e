"""Train a model repeatedly and interrupt it at random moments; must run in a separate process, which gets the signals.

    python interrupted_fit.py ROUNDS STEPS_PER_EXECUTION DEVICES FOLDER

With several devices, the model is sharded. Interrupts are, in turn, Ctrl-C, two signals whose handlers raise, and an
exception that another thread sets. Prints one line per round, with the place of the interrupt and its kind. Raises if
the model is inconsistent after an interrupt.
"""

import ctypes
import os
import pathlib
import random
import signal
import sys
import threading
import time
import traceback
from functools import partial

import jax
import numpy as np

from supremum import nn, training

# All batches are equal, so the weights depend only on the number of steps.
X = np.tile(np.random.default_rng(0).normal(size=(4, 4)).astype("float32"), (24, 1))
Y = X.sum(axis=1, keepdims=True)


class BeginEndCounter(training.Callback):
    """Counts how often training began and ended."""

    def __init__(self):
        self.ended = 0
        self.began = 0

    def on_train_begin(self):
        self.began += 1

    def on_train_end(self):
        self.ended += 1


def make_model(steps):
    """Return a compiled model with running statistics, sharded if there are several devices."""
    model = training.Sequential([nn.Dense(8), nn.BatchNorm(), nn.Dense(1)])
    sharded = training.FullyShardedDataParallel(smallest=1) if jax.device_count() > 1 else None
    model.compile("adam", loss="mse", steps_per_execution=steps, seed=1, distribution=sharded)
    return model


def fit(model, callbacks):
    model.fit(
        X, Y, epochs=3, batch_size=4, verbose=0, callbacks=callbacks, validation_data=(X[:8], Y[:8]), shuffle=False
    )


def weights(model):
    values = {path: np.asarray(variable.value) for path, variable in model.variables.items()}
    return values | {f"optimizer/{name}": np.asarray(each) for name, each in model.optimizer.variables.items()}


def uninterrupted_weights(steps, last_count):
    """Return the weights by the step count after each dispatch, from training without interrupts."""
    model = make_model(steps)
    found = {}

    class KeepWeights(training.Callback):
        def on_train_batch_end(self, batch, logs):
            found[int(self.model.compiled().count)] = weights(self.model)

    while not found or max(found) < last_count:
        fit(model, [KeepWeights()])
    return found


def interrupted_function(error):
    """Return the innermost function of supremum that was interrupted, or `callbacks` for `on_train_end`."""
    frames = traceback.extract_tb(error.__traceback__)
    if any(frame.name == "on_train_end" for frame in frames):
        return "callbacks"
    own_frames = [frame for frame in frames if "supremum" in frame.filename]
    return f"{pathlib.Path(own_frames[-1].filename).name}:{own_frames[-1].name}" if own_frames else "outside"


class StoppedError(Exception):
    """What handlers and other threads raise."""


def raise_stopped(*_):
    raise StoppedError


def set_in_thread(number):
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(number), ctypes.py_object(StoppedError))


INTERRUPTS = {
    "SIGINT": partial(os.kill, os.getpid(), signal.SIGINT),
    "SIGTERM": partial(os.kill, os.getpid(), signal.SIGTERM),
    "SIGALRM": partial(os.kill, os.getpid(), signal.SIGALRM),
    "thread": partial(set_in_thread, threading.get_ident()),
}


def interrupt(call, send, delay):
    """Interrupt a call and return the function that was interrupted, or `after` if the call ended first.

    Also return `after` if Python ignored the interrupt, as in the function that JAX makes the garbage collector call.
    """
    timer = threading.Timer(delay, send)
    try:
        timer.start()
        call()
        timer.join()
        time.sleep(0.001)  # the interrupt arrives here at the latest
    except BaseException as error:  # JAX and Python may replace an error inside of their own `try`
        timer.join()
        return interrupted_function(error)
    return "after"


def main():
    rounds, steps, devices = map(int, sys.argv[1:4])
    folder = sys.argv[4]
    jax.config.update("jax_num_cpu_devices", devices)
    generator = random.Random(steps)
    for number in (signal.SIGTERM, signal.SIGALRM):
        signal.signal(number, raise_stopped)
    start = time.perf_counter()
    model = make_model(steps)
    fit(model, [])
    cold_seconds = time.perf_counter() - start
    start = time.perf_counter()
    fit(model, [])
    warm_seconds = time.perf_counter() - start
    expected = uninterrupted_weights(steps, 400)
    for number in range(rounds):
        kind = list(INTERRUPTS)[number % len(INTERRUPTS)]
        fresh = number // len(INTERRUPTS) % 8 == 0  # the first compilation
        if fresh or int(model.compiled().count) > 300:
            model = make_model(steps)
            if not fresh:
                fit(model, [])
        counter = BeginEndCounter()
        callbacks = [counter, training.ModelCheckpoint(f"{folder}/{{epoch}}.safetensors")]
        delay = generator.random() * (cold_seconds if fresh else warm_seconds)
        place = interrupt(partial(fit, model, callbacks), INTERRUPTS[kind], delay)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        assert counter.began <= counter.ended <= 1 or place == "callbacks", (place, vars(counter))
        if not model.built or not all(variable.is_initialized for variable in model.variables.values()):
            print(number, place, kind, "before there were weights", flush=True)
            fit(model, [])
            continue
        count = int(model.compiled().count)
        for path, value in weights(model).items():
            if count:
                np.testing.assert_array_equal(value, expected[count][path], err_msg=f"{place} {count} {path}")
        model.predict(X[:4], verbose=0)
        model.save_state(f"{folder}/state")
        model.load_state(f"{folder}/state")
        assert int(model.compiled().count) == count
        assert model.train_on_batch(X[:4], Y[:4]) >= 0
        model.load_state(f"{folder}/state")
        print(number, place, kind, count, flush=True)


if __name__ == "__main__":
    main()
