"""Count the files of the library that a call of each of ten functions passes through, and the calls of its functions.

    python tools/count_walks.py [--files] [WALK ...]

Prints both for a first call, in a process of its own in which no cache is filled, and for the same call again. What
runs during an import is not counted. `--files` also prints the files of the first call, in the order in which they are
entered, each with its number of calls.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import sys
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from types import FrameType
from typing import Any

import supremum

OURS = f"{Path(supremum.__file__).parent}/"
Walk = Callable[[], Callable[[], Any]]
"""A function that imports and makes what is needed, and returns the call to count."""
WALKS: dict[str, Walk] = {}


def matmul(x: Any, y: Any) -> Any:
    """Return a matrix product, the function that the tools for programs of JAX are asked about."""
    return x @ y


def walk(prepare: Walk) -> Walk:
    """Add a walk under the name of the function that prepares it."""
    WALKS[prepare.__name__] = prepare
    return prepare


@walk
def result_type() -> Callable[[], Any]:
    """Ask for the dtype of two NumPy arrays."""
    import numpy as np

    x, y = np.ones(3, "int8"), np.ones(3, "float32")
    return lambda: supremum.result_type(x, y)


@walk
def add_arrays() -> Callable[[], Any]:
    """Add two arrays of NumPy."""
    import numpy as np

    x, y = supremum.asarray(np.ones(3, "int8")), supremum.asarray(np.ones(3, "float32"))
    return lambda: x + y


@walk
def mean_of_array() -> Callable[[], Any]:
    """Call a function of NumPy with an array."""
    import numpy as np

    x = supremum.asarray(np.ones(3, "float16"))
    return lambda: np.mean(x)


@walk
def autocast_call() -> Callable[[], Any]:
    """Call a function of JAX under autocast."""
    import jax.numpy as jnp

    from supremum.mixed_precision import autocast

    x = jnp.ones((4, 4))
    return lambda: autocast(matmul, "mixed_bfloat16")(x, x)


@walk
def dense() -> Callable[[], Any]:
    """Call a layer, which makes its weights."""
    import jax.numpy as jnp

    from supremum import nn

    x, layer = jnp.ones((2, 4)), nn.Dense(3)
    return lambda: layer(x)


@walk
def fit_step() -> Callable[[], Any]:
    """Train a model for one step."""
    import numpy as np

    from supremum import nn, training

    x, y = np.ones((4, 4), "float32"), np.ones((4, 1), "float32")
    model = training.Sequential([nn.Dense(1)])
    model.compile("sgd", loss="mse")
    return lambda: model.fit(x, y, batch_size=4, epochs=1, verbose=0)


@walk
def casts() -> Callable[[], Any]:
    """List the casts of a function of JAX."""
    import jax.numpy as jnp

    from supremum.tracing import casts

    x, y = jnp.ones((4, 4), "bfloat16"), jnp.ones((4, 4), "float32")
    return lambda: str(casts(matmul)(x, y))


@walk
def profile() -> Callable[[], Any]:
    """Count the values of a function of JAX."""
    import jax.numpy as jnp

    from supremum.numerics import profile

    x = jnp.ones((4, 4))
    return lambda: str(profile(matmul)(x, x))


@walk
def attribute() -> Callable[[], Any]:
    """Attribute the error of a function of JAX in bfloat16."""
    import jax.numpy as jnp

    from supremum.numerics import attribute

    x = jnp.ones((4, 4), "bfloat16")
    return lambda: str(attribute(matmul)(x, x))


@walk
def explain() -> Callable[[], Any]:
    """Run `supremum explain`."""
    from supremum.cli import main

    sys.argv = ["supremum", "explain", "int8", "float32"]
    return main


def count(call: Callable[[], Any]) -> Counter[str]:
    """Return the number of calls into each file of the library, in the order in which the files are entered.

    Args:
        call: what to call. What it prints is dropped.
    """
    calls: Counter[str] = Counter()
    imports: list[FrameType] = []

    def note(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_name == "<module>":
            imports.append(frame)
        elif event == "return" and imports and imports[-1] is frame:
            imports.pop()
        elif event == "call" and not imports and code.co_filename.startswith(OURS):
            calls[code.co_filename.removeprefix(OURS)] += 1

    with contextlib.redirect_stdout(io.TextIOWrapper(io.BytesIO())), contextlib.suppress(SystemExit):
        sys.setprofile(note)
        try:
            call()
        finally:
            sys.setprofile(None)
    return calls


def measure(name: str) -> tuple[Counter[str], Counter[str]]:
    """Return the counts of the first call of a walk, and those of the second call.

    Args:
        name: the name of the walk.
    """
    call = WALKS[name]()
    return count(call), count(call)


def main(arguments: list[str] | None = None) -> None:
    """Print a line for each walk.

    Args:
        arguments: the names of walks, and options.
    """
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("walks", nargs="*", metavar="WALK", default=[*WALKS], help=f"one of {', '.join(WALKS)}")
    parser.add_argument("--files", action="store_true", help="print the files of each walk")
    options = parser.parse_args(arguments)
    if unknown := [name for name in options.walks if name not in WALKS]:
        parser.error(f"unknown walk {unknown[0]!r}; use one of {', '.join(WALKS)}")
    print(f"{'walk':15} {'files':>6} {'calls':>6}   {'again':>6} {'calls':>6}")
    with ProcessPoolExecutor(1, get_context("spawn"), max_tasks_per_child=1) as processes:
        for name, (first, again) in zip(options.walks, processes.map(measure, options.walks), strict=True):
            print(f"{name:15} {len(first):6} {first.total():6}   {len(again):6} {again.total():6}")
            if options.files:
                print(*(f"    {calls:6} {file}" for file, calls in first.items()), sep="\n")


if __name__ == "__main__":
    main()
