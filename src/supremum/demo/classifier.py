"""A small convolutional network, trained under one policy."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax

from supremum import nn
from supremum.demo.digits import Digits
from supremum.errors import ArgumentError
from supremum.mixed_precision import DynamicLossScale, HardwareWarning, LossScale, Policy
from supremum.optimizers import SGD, Adam, Optimizer
from supremum.training import History, Sequential, SparseCategoricalCrossentropy

POLICIES: tuple[str, ...] = ("float32", "mixed_bfloat16", "mixed_float16")
# Training without float32 variables is worse, which is worth showing. Other formats do not suit this network.
_TRAINABLE = (*POLICIES, "bfloat16", "float16")
# By default the scale rises after 2,000 good steps, which is longer than a demonstration.
SCALE = DynamicLossScale(increment_period=50)
BATCH = 64


@dataclass(frozen=True)
class Case:
    """A demonstration that can be trained.

    Args:
        summary: a description in a sentence.
        runs: pairs of policy and loss scale, `"auto"` for that of the policy, in the order to run them.
        weight: the weight of the loss.
        optimizer: makes the optimizer from that weight.
        epochs: the default number of epochs.
        network: makes the network.
        picture: the name of the file for the picture.
        steps_per_execution: the number of steps to send to the device at once.
    """

    summary: str
    runs: tuple[tuple[str, LossScale | str | None], ...]
    weight: float
    optimizer: Callable[[float], Optimizer]
    epochs: int
    network: Callable[[Policy], Sequential]
    picture: str
    steps_per_execution: int = 1


def network(policy: Policy) -> Sequential:
    """Two blocks of convolution, batch normalisation, ReLU and pooling, and a dense layer on top."""
    layers: list[nn.Layer] = []
    for filters in (16, 32):
        layers += [nn.Conv(filters, (3, 3), use_bias=False), nn.BatchNorm(momentum=0.9), nn.ReLU(), nn.MaxPool((2, 2))]
    return Sequential([*layers, nn.Flatten(), nn.Dense(10)], dtype=policy)


def perceptron(policy: Policy) -> Sequential:
    """Two dense layers with ReLU, and one on top, without normalisation, which would hide how weights move."""
    layers: list[nn.Layer] = [nn.Flatten()]
    for _ in range(2):
        layers += [nn.Dense(256), nn.ReLU()]
    return Sequential([*layers, nn.Dense(10)], dtype=policy)


CASES: dict[str, Case] = {
    "policies": Case(
        "one network under three dtype policies",
        tuple((policy, "auto") for policy in POLICIES),
        1.0,
        lambda _: Adam(3e-3),
        15,
        network,
        "training.png",
    ),
    "underflow": Case(
        "a loss with a small weight, which float16 gradients survive only when it is scaled",
        (("float32", None), ("mixed_float16", None), ("mixed_float16", "auto")),
        1e-6,
        lambda weight: SGD(0.2 / weight),
        10,
        network,
        "underflow.png",
    ),
    # Each step changes a weight by less than half a unit in the last place of float16, which float16 weights lose.
    "master-weights": Case(
        "small steps, which float16 weights round away and float32 weights add up",
        (("float32", None), ("mixed_float16", DynamicLossScale()), ("float16", DynamicLossScale())),
        1.0,
        lambda _: SGD(5e-4),
        700,
        perceptron,
        "master-weights.png",
        steps_per_execution=22,
    ),
}
"""The cases of `supremum demo --case`.

>>> list(CASES), CASES["underflow"].weight
(['policies', 'underflow', 'master-weights'], 1e-06)
>>> [policy for policy, _ in CASES["policies"].runs]
['float32', 'mixed_bfloat16', 'mixed_float16']
"""


def label_of(policy: Policy) -> str:
    """The name of a policy, and whether its loss scaling is turned off.

    >>> label_of(Policy("mixed_float16")), label_of(Policy("mixed_float16", None))
    ('mixed_float16', 'mixed_float16, unscaled')
    """
    turned_off = policy.loss_scale is None and Policy(policy.name).loss_scale is not None
    return f"{policy}, unscaled" if turned_off else policy.name


@dataclass(frozen=True)
class Report:
    """The results of one training run.

    Args:
        policy: the policy.
        test_accuracy: the share of test digits that are classified correctly.
        loss_scale: the scale after the last step; None without scaling.
        variable_bytes: the bytes of all variables, including running statistics.
        seconds_per_epoch: the median time of an epoch, without compilation.
        seed: the seed of weights and shuffling.
        history: the history of the training.

    >>> history = History([0], {"loss": [0.5]}, [0.5], [1.0], [False], [0.1])
    >>> report = Report(Policy("float32"), 0.97, None, 4096, 0.1, seed=0, history=history)
    >>> report.label, report.figures()["final_loss"]
    ('float32', 0.5)
    """

    policy: Policy
    test_accuracy: float
    loss_scale: float | None
    variable_bytes: int
    seconds_per_epoch: float
    seed: int
    history: History

    @property
    def label(self) -> str:
        """The name of the run in tables and pictures."""
        return label_of(self.policy)

    def figures(self) -> dict[str, Any]:
        """The results as plain data for JSON."""
        return {
            "policy": self.policy.name,
            "loss_scaling": self.policy.loss_scale is not None,
            "test_accuracy": self.test_accuracy,
            "skipped_steps": self.history.skipped_steps,
            "loss_scale": self.loss_scale,
            "variable_bytes": self.variable_bytes,
            "seconds_per_epoch": self.seconds_per_epoch,
            "seed": self.seed,
            "epochs": len(self.history.seconds),
            "steps": len(self.history.loss),
            "final_loss": self.history.loss[-1],
        }


def train_classifier(
    digits: Digits,
    policy: Policy,
    case: Case,
    *,
    seed: int,
    epochs: int,
    weight: float,
    on_epoch: Callable[[int, Mapping[str, float]], None] | None = None,
) -> Report:
    """Train the network from scratch and measure it.

    Args:
        digits: the data.
        policy: the dtypes and the loss scale.
        case: the network and the optimizer.
        seed: the seed of weights and shuffling.
        epochs: the number of epochs.
        weight: the weight of the loss; the learning rate is divided by it.
        on_epoch: called after every epoch with its number, from 0, and its results.
    """
    model, loss = case.network(policy), SparseCategoricalCrossentropy(from_logits=True)

    def weighted(y_true: Any, y_pred: Any) -> jax.Array:
        return loss(y_true, y_pred) * weight

    model.compile(
        case.optimizer(weight), weighted, ["accuracy"],
        steps_per_execution=case.steps_per_execution, seed=seed,
    )  # fmt: skip
    with warnings.catch_warnings():
        # The demonstration compares how policies learn on any machine; their speed does not matter here.
        warnings.simplefilter("ignore", HardwareWarning)
        history = model.fit(
            digits.x_train, digits.y_train, batch_size=BATCH, epochs=epochs,
            steps_per_epoch=len(digits.x_train) // BATCH,  # a smaller last batch would have to be compiled too
            callbacks=[] if on_epoch is None else [on_epoch], verbose=0,
        )  # fmt: skip
        test = model.evaluate(digits.x_test, digits.y_test, batch_size=len(digits.x_test), verbose=0)
    return Report(
        policy=policy,
        test_accuracy=test["accuracy"],
        loss_scale=history.history.get("loss_scale", [None])[-1],
        variable_bytes=sum(variable.nbytes for variable in model.variables.values()),
        seconds_per_epoch=history.seconds_per_epoch,
        seed=seed,
        history=history,
    )


def demonstration_policy(name: str, loss_scale: LossScale | str | None) -> Policy:
    """The policy of a run. If the policy scales by default, its scale rises soon enough for a demonstration.

    Args:
        name: name of the policy.
        loss_scale: `"auto"` for the default of the policy, or a loss scale.

    Raises:
        UnknownNameError: for an unknown policy.
        ArgumentError: for a policy that the network cannot be trained under.

    >>> demonstration_policy("mixed_float16", "auto").loss_scale.increment_period
    50
    """
    policy = Policy(name, loss_scale)
    if policy.name not in _TRAINABLE:
        raise ArgumentError(f"The policy of the demonstration must be one of {', '.join(_TRAINABLE)}, got {policy}.")
    return Policy(name, SCALE) if loss_scale == "auto" and policy.loss_scale is not None else policy
