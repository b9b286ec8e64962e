"""The gradients of a small loss, and how many of them float16 rounds to zero."""

from __future__ import annotations

import jax
import numpy as np

from supremum import nn
from supremum.demo.classifier import BATCH, Experiment, weighted_loss
from supremum.demo.digits import Digits, Floats
from supremum.formats import as_format
from supremum.mixed_precision import Policy


def first_gradients(digits: Digits, case: Experiment, *, seed: int) -> Floats:
    """The magnitudes of the float32 gradients of the first batch, before any training, without those that are zero.

    Args:
        digits: the data.
        case: the network and the weight of the loss.
        seed: the seed of the network's weights.

    >>> from supremum.demo import CASES, load_digits
    >>> magnitudes = first_gradients(load_digits(), CASES["underflow"], seed=0)
    >>> bool(magnitudes.max() < 1e-6), underflowing(magnitudes) > 0.99
    (True, True)
    """
    model, loss = case.network(Policy("float32")), weighted_loss(case.weight)
    x, y = digits.x_train[:BATCH], digits.y_train[:BATCH]
    nn.initialize(model, x, seed=seed)
    trainable, other = nn.split_variables(model)

    @jax.jit
    @jax.grad
    def gradients(variables: dict[str, jax.Array]) -> jax.Array:
        return loss(y, nn.functional_call(model, variables | other, x, training=True)[0])

    magnitudes = np.abs(np.concatenate([np.asarray(leaf).ravel() for leaf in gradients(trainable).values()]))
    return magnitudes[magnitudes > 0]


def underflowing(magnitudes: Floats, scale: float = 1.0) -> float:
    """The share of gradients that become zero in float16.

    Args:
        magnitudes: their magnitudes, none of which is zero.
        scale: the loss scale.

    >>> (
    ...     underflowing(np.float32([1e-9, 1e-3])),
    ...     underflowing(np.float32([1e-9, 1e-3]), 2.0**15),
    ... )
    (0.5, 0.0)
    """
    return float(np.mean((magnitudes * np.float32(scale)).astype(as_format("float16").dtype) == 0))
