"""The time of a step of `fit` with a `NumericsMonitor`, compared with `fit` alone.

make bench
"""

import time

import numpy as np
import pytest

from supremum import nn
from supremum.mixed_precision import use_policy
from supremum.optimizers import Adam
from supremum.training import NumericsMonitor, Sequential, SparseCategoricalCrossentropy
from transformer import LENGTH, WIDTH, Block

BATCH, CLASSES, STEPS, ROUNDS = 128, 10, 12, 7
MOST = 1.03
"""The most that `every=100` may cost."""


def layers(kind):
    if kind == "mlp":
        return [nn.Dense(512), nn.ReLU(), nn.Dense(512), nn.ReLU(), nn.Dense(CLASSES)]
    return [*(Block() for _ in range(2)), nn.Flatten(), nn.Dense(CLASSES)]


@pytest.mark.parametrize("policy", ["float32", "mixed_bfloat16"])
@pytest.mark.parametrize("kind", ["mlp", "transformer"])
def test_monitor(kind, policy):
    """The cost of a measured step, from `every=1`, is that of a hundred steps with `every=100`.

    Interleaved repeats in one process; the least of both sides.
    """
    with use_policy(policy):
        model = Sequential(layers(kind))
    model.compile(Adam(1e-3), SparseCategoricalCrossentropy(from_logits=True), steps_per_execution=1)
    random = np.random.default_rng(0)
    shape = (512,) if kind == "mlp" else (LENGTH, WIDTH)
    x = random.normal(size=(BATCH, *shape)).astype("float32")
    y = random.integers(CLASSES, size=BATCH).astype("int32")
    monitor = NumericsMonitor(every=1)

    def seconds(callbacks):
        start = time.perf_counter()
        model.fit([(x, y)] * STEPS, callbacks=callbacks, verbose=0)
        return (time.perf_counter() - start) / STEPS

    seconds(monitor), seconds(())
    pairs = [(seconds(monitor), seconds(())) for _ in range(ROUNDS)]
    measured, alone = (min(each) for each in zip(*pairs, strict=True))
    ratio = 1 + (measured / alone - 1) / 100
    print(f"\n{kind} {policy}: a measured step takes {measured / alone:.2f} steps; every=100 takes {ratio:.4f}")
    assert ratio < MOST
