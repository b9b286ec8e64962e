"""The time of a step of `fit` with a `NumericsMonitor`, compared with `fit` alone.

make bench
"""

import time
from statistics import median

import numpy as np
import pytest

from supremum import nn
from supremum.mixed_precision import use_policy
from supremum.optimizers import Adam
from supremum.training import NumericsMonitor, Sequential, SparseCategoricalCrossentropy
from transformer import LENGTH, WIDTH, Block

BATCH, CLASSES, STEPS, ROUNDS = 128, 10, 200, 9
MOST = 1.03
"""The most that `every=100` may cost."""


def layers(kind):
    if kind == "mlp":
        return [nn.Dense(512), nn.ReLU(), nn.Dense(512), nn.ReLU(), nn.Dense(CLASSES)]
    return [*(Block() for _ in range(2)), nn.Flatten(), nn.Dense(CLASSES)]


@pytest.mark.parametrize("policy", ["float32", "mixed_bfloat16"])
@pytest.mark.parametrize("kind", ["mlp", "transformer"])
def test_monitor(kind, policy):
    """Interleaved repeats in one process, each of `STEPS` steps, of which two are measured."""
    with use_policy(policy):
        model = Sequential(layers(kind))
    model.compile(Adam(1e-3), SparseCategoricalCrossentropy(from_logits=True), steps_per_execution=1)
    random, steps = np.random.default_rng(0), STEPS if kind == "mlp" else STEPS // 2
    shape = (512,) if kind == "mlp" else (LENGTH, WIDTH)
    x = random.normal(size=(4 * BATCH, *shape)).astype("float32")
    y = random.integers(CLASSES, size=4 * BATCH).astype("int32")
    batches = [(x[place : place + BATCH], y[place : place + BATCH]) for place in range(0, 4 * BATCH, BATCH)]
    data = [batches[number % 4] for number in range(steps)]
    monitor = NumericsMonitor(every=100)

    def seconds(callbacks):
        start = time.perf_counter()
        model.fit(data, callbacks=callbacks, verbose=0)
        return time.perf_counter() - start

    seconds(monitor), seconds(())
    pairs = [(seconds(monitor), seconds(())) for _ in range(ROUNDS)]
    ratio = median(one / other for one, other in pairs)
    least = min(one for one, _ in pairs) / min(other for _, other in pairs)
    print(f"\n{kind} {policy}: median of ratios {ratio:.3f}, ratio of least {least:.3f}")
    assert min(ratio, least) < MOST
