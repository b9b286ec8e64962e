"""The share of gradient entries that underflow to zero in float16, by layer and by weight of the loss."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import jax

from supremum import nn
from supremum.demo.classifier import BATCH, SCALE, network
from supremum.demo.digits import Digits
from supremum.mixed_precision import FixedLossScale, Policy, scaled_value_and_grad
from supremum.training import SparseCategoricalCrossentropy

UNDERFLOW_WEIGHTS: tuple[float, ...] = (1.0, 1e-2, 1e-4, 1e-5, 4e-6, 2e-6, 1e-6)
"""The weights of the loss, from those that float16 can train with to those that it cannot.

>>> max(UNDERFLOW_WEIGHTS), min(UNDERFLOW_WEIGHTS)
(1.0, 1e-06)
"""
_Zeros: TypeAlias = dict[str, tuple[int, int]]


class Shares(NamedTuple):
    """Shares of gradient entries that are exactly zero.

    Args:
        float32: in float32.
        float16: in mixed float16 without loss scaling.
        float16_scaled: in mixed float16 with loss scaling.

    >>> shares = Shares(float32=0.0, float16=0.75, float16_scaled=0.0)
    >>> f"{shares.float16:.0%} of the gradient entries are zero without loss scaling"
    '75% of the gradient entries are zero without loss scaling'
    """

    float32: float
    float16: float
    float16_scaled: float


@dataclass(frozen=True)
class Underflow:
    """The shares of zeros on the first batch, before any training.

    Args:
        weight: the weight of the loss in `layers`.
        layers: the shares in each layer.
        weights: the shares over all layers, for each weight.

    >>> shares = Shares(float32=0.0, float16=0.75, float16_scaled=0.0)
    >>> Underflow(1e-6, {"dense": shares}, {1e-6: shares}).figures()["layers"]
    {'dense': {'float32': 0.0, 'float16': 0.75, 'float16_scaled': 0.0}}
    """

    weight: float
    layers: dict[str, Shares]
    weights: dict[float, Shares]

    def figures(self) -> dict[str, Any]:
        """The shares as plain data for JSON."""
        return {
            "weight": self.weight,
            "layers": {layer: shares._asdict() for layer, shares in self.layers.items()},
            "weights": [{"weight": weight} | shares._asdict() for weight, shares in self.weights.items()],
        }


def measure_underflow(
    digits: Digits, *, weight: float, seed: int = 0, weights: Sequence[float] = UNDERFLOW_WEIGHTS
) -> Underflow:
    """Differentiate the network once per weight and count the zeros.

    Args:
        digits: the data; only the first batch is used.
        weight: the weight to report by layer.
        seed: the seed of the network's weights.
        weights: the weights to report over all layers.
    """
    unscaled, scaled = FixedLossScale(1.0), FixedLossScale(SCALE.initial_loss_scale)
    narrow = _zero_counter(digits, Policy("mixed_float16"), seed)
    wide = _zero_counter(digits, Policy("float32"), seed)

    def zeros_of_runs(weight: float) -> tuple[_Zeros, _Zeros, _Zeros]:
        return wide(unscaled, weight), narrow(unscaled, weight), narrow(scaled, weight)

    by_weight = {each: zeros_of_runs(each) for each in sorted({*weights, weight}, reverse=True)}
    here = by_weight[weight]
    return Underflow(
        weight,
        {layer: _shares([run[layer]] for run in here) for layer in here[0]},
        {each: _shares(run.values() for run in runs) for each, runs in by_weight.items()},
    )


def _shares(runs: Iterable[Iterable[tuple[int, int]]]) -> Shares:
    totals = [tuple(map(sum, zip(*counts, strict=True))) for counts in runs]
    return Shares(*(zeros / entries for zeros, entries in totals))


def _zero_counter(digits: Digits, policy: Policy, seed: int) -> Callable[[FixedLossScale, float], _Zeros]:
    """A function of loss scale and weight that counts the zeros and the entries of each layer's gradients."""
    model = network(policy)
    nn.initialize(model, digits.x_train[:1], seed=seed)
    trainable, other = nn.split_variables(model)
    loss = SparseCategoricalCrossentropy(from_logits=True)
    x, y = digits.x_train[:BATCH], digits.y_train[:BATCH]

    def loss_of(variables: dict[str, jax.Array], weight: float) -> jax.Array:
        return loss(y, nn.functional_call(model, variables | other, x, training=True)[0]) * weight

    # The compiled function works for every fixed scale, because the factor is part of the state.
    differentiate = jax.jit(scaled_value_and_grad(loss_of, FixedLossScale(1.0)))

    def count(settings: FixedLossScale, weight: float) -> _Zeros:
        counts: _Zeros = {}
        for path, gradient in differentiate(settings.init(), trainable, weight).grads.items():
            layer = path.rpartition("/")[0]
            zeros, entries = counts.get(layer, (0, 0))
            counts[layer] = (zeros + int((gradient == 0).sum()), entries + gradient.size)
        return counts

    return count
