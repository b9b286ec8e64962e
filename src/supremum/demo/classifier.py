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
from supremum.training import History, LossFunction, Sequential, SparseCategoricalCrossentropy

POLICIES: tuple[str, ...] = ("float32", "mixed_bfloat16", "mixed_float16")
# Without float32 variables training is worse, which is worth seeing; other formats this network has no use for.
_TRAINABLE = (*POLICIES, "bfloat16", "float16")
# The RFC's scale waits 2,000 good steps before it rises; a demonstration is over by then, so it waits 50.
SCALE = DynamicLossScale(increment_period=50)
_BATCH = 64


@dataclass(frozen=True)
class Case:
    """What is trained.

    Args:
        summary: what it shows, in a sentence.
        runs: pairs of policy and loss scale, `"auto"` for the policy's own, in the order to run them.
        weight: the factor the loss is weighted by.
        optimizer: makes the optimizer from that weight.
        epochs: how long to train unless asked otherwise.
        network: makes the network.
        picture: the name of the file that is drawn.
        steps_per_execution: how many steps are sent to the device at once.
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
    return Sequential(
        [
            nn.Conv(16, (3, 3), use_bias=False),
            nn.BatchNorm(momentum=0.9),
            nn.ReLU(),
            nn.MaxPool((2, 2)),
            nn.Conv(32, (3, 3), use_bias=False),
            nn.BatchNorm(momentum=0.9),
            nn.ReLU(),
            nn.MaxPool((2, 2)),
            nn.Flatten(),
            nn.Dense(10),
        ],
        dtype=policy,
    )


def perceptron(policy: Policy) -> Sequential:
    """Two dense layers with ReLU, and one on top; without norms, so that what counts is how weights move."""
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
    # Each step moves a weight by less than half a unit of float16, in which nothing then moves.
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
"""What `supremum demo --case` takes."""


def label_of(policy: Policy) -> str:
    """The name of a policy, and whether the scaling it would have is turned off."""
    turned_off = policy.loss_scale is None and Policy(policy.name).loss_scale is not None
    return f"{policy}, unscaled" if turned_off else policy.name


@dataclass(frozen=True)
class Report:
    """The figures of one training.

    Args:
        policy: the policy.
        test_accuracy: share of test digits named right.
        loss_scale: the scale after the last step; None without one.
        variable_bytes: bytes of all variables, running statistics included.
        seconds_per_epoch: median time of an epoch, compilation left out.
        seed: where weights and shuffling started from.
        history: the course of the training.
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
        """What the training is called in tables and pictures."""
        return label_of(self.policy)

    def figures(self) -> dict[str, Any]:
        """The figures as plain data for JSON."""
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


def weighted_loss(weight: float) -> LossFunction:
    """Cross entropy times a weight."""
    loss = SparseCategoricalCrossentropy(from_logits=True)

    def weighted(y_true: Any, y_pred: Any) -> jax.Array:
        return loss(y_true, y_pred) * weight

    return weighted


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
        policy: its dtypes and loss scale.
        case: which optimizer to use.
        seed: where weights and shuffling start from.
        epochs: how often to go through the data.
        weight: the factor the loss is weighted by; it is divided out of the optimizer's learning rate.
        on_epoch: called after every epoch with its number, from 0, and what it came to.
    """
    model = case.network(policy)
    model.compile(
        case.optimizer(weight), weighted_loss(weight), ["accuracy"],
        steps_per_execution=case.steps_per_execution, seed=seed,
    )  # fmt: skip
    with warnings.catch_warnings():
        # It shows that policies learn alike, on whatever machine; nobody chose one here for its speed.
        warnings.simplefilter("ignore", HardwareWarning)
        history = model.fit(
            digits.x_train, digits.y_train, batch_size=_BATCH, epochs=epochs,
            steps_per_epoch=len(digits.x_train) // _BATCH,  # a batch of what is left over would be compiled too
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
    """The policy of a run; where it scales by itself, with a scale that rises within a demonstration's length.

    Args:
        name: name of the policy.
        loss_scale: `"auto"` for the policy's own, or another.

    Raises:
        UnknownNameError: for an unknown policy.
        ArgumentError: for one the network cannot be trained under.
    """
    policy = Policy(name, loss_scale)
    if policy.name not in _TRAINABLE:
        raise ArgumentError(f"policy {policy}: the demonstration trains under {', '.join(_TRAINABLE)}")
    return Policy(name, SCALE) if loss_scale == "auto" and policy.loss_scale is not None else policy
