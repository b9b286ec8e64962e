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

BATCH, CLASSES, STEPS = 128, 10, 12


def layers(kind):
    if kind == "mlp":
        return [nn.Dense(512), nn.ReLU(), nn.Dense(512), nn.ReLU(), nn.Dense(CLASSES)]
    return [*(Block() for _ in range(2)), nn.Flatten(), nn.Dense(CLASSES)]


@pytest.mark.parametrize("policy", ["float32", "mixed_bfloat16"])
@pytest.mark.parametrize("kind", ["mlp", "transformer"])
def test_steps_of_fit(benchmark, figures, kind, policy):
    """Measure `every=1`. A step in a hundred is measured with `every=100`, so it costs a hundredth of that."""
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

    taken = []
    benchmark.pedantic(lambda: taken.append((seconds(monitor), seconds(()))), rounds=11, warmup_rounds=1)
    measured = [alone + (every - alone) / 100 for every, alone in taken]
    figures.compare(f"a step of fit, {kind}, {policy}, every=100", measured, [alone for _, alone in taken], "fit alone")
