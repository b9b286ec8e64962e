"""The time to make a model and its weights compared with Flax nnx.

make bench
"""

import os
import subprocess
import sys
import time

import jax
import pytest

from optional_packages import import_or_skip
from supremum import nn
from transformer import HEADS, LENGTH, WIDTH, Block

nnx = import_or_skip("flax.nnx")

CLASSES = 10
SHAPES = {"mlp": (1, 64), "convolutional": (1, 32, 32, 3), "transformer": (1, LENGTH, WIDTH)}
UNITS, FILTERS, BLOCKS = (256, 256, 256, CLASSES), (16, 32, 64), 4
GLOROT, LECUN = jax.nn.initializers.glorot_uniform(), jax.nn.initializers.lecun_normal()


class FlaxBlock(nnx.Module):
    def __init__(self, rngs):
        self.norms = nnx.List([nnx.LayerNorm(WIDTH, rngs=rngs) for _ in range(2)])
        self.attention = nnx.MultiHeadAttention(HEADS, WIDTH, decode=False, kernel_init=LECUN, rngs=rngs)
        self.up = nnx.Linear(WIDTH, 4 * WIDTH, kernel_init=GLOROT, rngs=rngs)
        self.down = nnx.Linear(4 * WIDTH, WIDTH, kernel_init=GLOROT, rngs=rngs)


def ours(kind):
    """Return the values of a model's weights."""
    if kind == "mlp":
        layers = [layer for units in UNITS for layer in (nn.Dense(units), nn.ReLU())]
    elif kind == "transformer":
        layers = [*(Block() for _ in range(BLOCKS)), nn.Flatten(), nn.Dense(CLASSES)]
    else:
        layers = [each for size in FILTERS for each in (nn.Conv(size, (3, 3)), nn.BatchNorm(), nn.MaxPool((2, 2)))]
        layers += [nn.Flatten(), nn.Dense(CLASSES)]
    model = nn.SequentialNetwork(layers)
    nn.initialize(model, jax.ShapeDtypeStruct(SHAPES[kind], "float32"), seed=0)
    return [variable.value for variable in model.variables.values()]


def flax(kind):
    """Return the same with the same layers and initializers of Flax."""
    rngs = nnx.Rngs(0)
    if kind == "mlp":
        sizes = zip((SHAPES[kind][-1], *UNITS), UNITS, strict=False)
        layers = [each for size in sizes for each in (nnx.Linear(*size, kernel_init=GLOROT, rngs=rngs), nnx.relu)]
    elif kind == "transformer":
        head = nnx.Linear(LENGTH * WIDTH, CLASSES, kernel_init=GLOROT, rngs=rngs)
        layers = [*(FlaxBlock(rngs) for _ in range(BLOCKS)), head]
    else:
        layers = []
        for size in zip((SHAPES[kind][-1], *FILTERS), FILTERS, strict=False):
            layers += [nnx.Conv(*size, (3, 3), kernel_init=GLOROT, rngs=rngs), nnx.BatchNorm(size[1], rngs=rngs)]
        layers.append(nnx.Linear(4 * 4 * FILTERS[-1], CLASSES, kernel_init=GLOROT, rngs=rngs))
    state = nnx.state(nnx.Sequential(*layers), (nnx.Param, nnx.BatchStat))
    return jax.tree.leaves(state)


MODELS = {"ours": ours, "Flax nnx": flax}


def seconds(name, kind):
    """Return how long it takes to make a model."""
    start = time.perf_counter()
    jax.block_until_ready(MODELS[name](kind))
    return time.perf_counter() - start


@pytest.mark.parametrize("kind", SHAPES)
def test_a_model_in_a_process_that_has_made_one_compared_with_flax(benchmark, figures, kind):
    shapes = [sorted(value.shape for value in make(kind)) for make in MODELS.values()]
    assert shapes[0] == shapes[1]
    taken = {name: [] for name in MODELS}

    def measure():
        for name in MODELS:
            taken[name].append(seconds(name, kind))

    benchmark.pedantic(measure, rounds=41, warmup_rounds=3)
    figures.compare(f"a {kind} model", *taken.values(), "Flax nnx")


@pytest.mark.parametrize("kind", SHAPES)
def test_the_first_model_of_a_process_compared_with_flax(benchmark, figures, kind):
    """Imports are not measured, only tracing, compilation and the rest of making the model."""
    taken = {name: [] for name in MODELS}
    # An installed package is compiled to bytecode.
    paths = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    paths |= {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = "import sys, test_initialization; print(test_initialization.seconds(*sys.argv[1:]))"

    def measure():
        for name in MODELS:
            run = [sys.executable, "-c", command, name, kind]
            made = subprocess.run(run, capture_output=True, check=True, text=True, env=paths)
            taken[name].append(float(made.stdout))

    benchmark.pedantic(measure, rounds=7)
    figures.compare(f"the first {kind} model of a process", *taken.values(), "Flax nnx")
