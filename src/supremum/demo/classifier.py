"""A small classifier, trained under one policy."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from supremum import nn
from supremum.demo.digits import Digits, Floats
from supremum.mixed_precision import DynamicLossScale, HardwareWarning, Policy, weight_memory
from supremum.optimizers import SGD, Adam, Optimizer
from supremum.training import History, Sequential, SparseCategoricalCrossentropy

# By default the scale rises after 2,000 good steps, which is longer than a demonstration.
SCALE = DynamicLossScale(increment_period=50)
BATCH = 64


def adam(learning_rate: float, loss_weight: float) -> Optimizer:
    """Adam, whose steps do not depend on the weight of the loss if its epsilon is weighted, too."""
    return Adam(learning_rate, epsilon=1e-7 * loss_weight)


def sgd(learning_rate: float, loss_weight: float) -> Optimizer:
    """Stochastic gradient descent, whose steps do not depend on the weight of the loss."""
    return SGD(learning_rate / loss_weight)


@dataclass(frozen=True)
class Experiment:
    """A network, how it is trained, and the policies to train it under.

    Args:
        summary: a description in a sentence.
        runs: the policies by the name of the run, in the order to run them.
        weight: the weight of the loss.
        learning_rate: the learning rate.
        epochs: the default number of epochs.
        network: makes the network.
        steps_per_execution: the number of steps to send to the device at once.
        optimizer: makes the optimizer from the learning rate and the weight of the loss.
        narrow_weights: how the optimizer stores narrow weights, by the name of the run; to nearest in other runs.
        by_default: whether `supremum demo` shows it if no case is named; those that take long it does not.

    >>> CASES["digits"].summary
    'a convolutional network in float32 and in mixed precision'
    """

    summary: str
    runs: Mapping[str, Policy]
    weight: float
    learning_rate: float
    epochs: int
    network: Callable[[Policy], Sequential]
    steps_per_execution: int = 1
    optimizer: Callable[[float, float], Optimizer] = adam
    narrow_weights: Mapping[str, str] = field(default_factory=dict[str, str])
    by_default: bool = True


def convolutions(policy: Policy) -> Sequential:
    """Two blocks of convolution, batch normalisation, ReLU and pooling, and a dense layer on top."""
    layers: list[nn.Layer] = []
    for filters in (16, 32):
        layers += [nn.Conv(filters, (3, 3), use_bias=False), nn.BatchNorm(momentum=0.9), nn.ReLU(), nn.MaxPool((2, 2))]
    return Sequential([*layers, nn.Flatten(), nn.Dense(10)], dtype=policy)


def perceptron(policy: Policy) -> Sequential:
    """A hidden layer, without normalisation, which would hide how weights move."""
    return Sequential([nn.Flatten(), nn.Dense(512), nn.ReLU(), nn.Dense(10)], dtype=policy)


def deep_perceptron(policy: Policy) -> Sequential:
    """Two hidden layers, whose weights start at the same numbers under every policy, rounded to its dtype."""
    hidden = [layer for _ in range(2) for layer in (nn.Dense(256, kernel_initializer=float32_kernel), nn.ReLU())]
    return Sequential([nn.Flatten(), *hidden, nn.Dense(10, kernel_initializer=float32_kernel)], dtype=policy)


def float32_kernel(key: jax.Array, shape: tuple[int, ...], dtype: np.dtype[Any]) -> jax.Array:
    """Draw in float32, because JAX draws other numbers in other dtypes."""
    return jax.nn.initializers.glorot_uniform()(key, shape, jnp.float32).astype(dtype)


UNSCALED, REMEDY, NARROW_WEIGHTS = "float16, not scaled", "float16, loss scaled", "float16 weights too"
"""The runs of the case `"underflow"` that fail, and the one with the remedy."""
STOCHASTIC, KAHAN, MASTER = "stochastic rounding", "Kahan sum", "float32 beside"
"""The runs of the case `"master-weights"` whose optimizer keeps small steps."""
CASES: dict[str, Experiment] = {
    # The loss is small, as those of long sequences and of one task among several are. The learning rate is common for
    # fine-tuning; a step is then smaller than half the distance between most neighbouring weights in float16.
    "underflow": Experiment(
        "a small loss and small steps, which float16 cannot hold without help",
        {
            "float32": Policy("float32"),
            UNSCALED: Policy("mixed_float16", None),
            REMEDY: Policy("mixed_float16", SCALE),
            "bfloat16": Policy("mixed_bfloat16"),
            NARROW_WEIGHTS: Policy("float16", SCALE),
        },
        weight=1e-6,
        learning_rate=1e-5,
        epochs=60,
        network=perceptron,
        steps_per_execution=22,
    ),
    "digits": Experiment(
        "a convolutional network in float32 and in mixed precision",
        {"float32": Policy("float32"), REMEDY: Policy("mixed_float16", SCALE)},
        weight=1.0,
        learning_rate=3e-3,
        epochs=12,
        network=convolutions,
    ),
    # Each step moves a weight by less than half the distance to the next number of bfloat16.
    "master-weights": Experiment(
        "small steps, which bfloat16 weights round away unless the optimizer keeps them",
        {
            "float32 weights": Policy("mixed_bfloat16"),
            "bfloat16 weights": Policy("bfloat16"),
            STOCHASTIC: Policy("bfloat16"),
            KAHAN: Policy("bfloat16"),
            MASTER: Policy("bfloat16"),
        },
        weight=1.0,
        learning_rate=5e-4,
        epochs=700,
        network=deep_perceptron,
        steps_per_execution=22,
        optimizer=sgd,
        narrow_weights={STOCHASTIC: "stochastic", KAHAN: "kahan", MASTER: "master"},
        by_default=False,
    ),
}
"""The cases of `supremum demo --case`.

>>> list(CASES), CASES["underflow"].weight
(['underflow', 'digits', 'master-weights'], 1e-06)
>>> list(CASES["underflow"].runs)
['float32', 'float16, not scaled', 'float16, loss scaled', 'bfloat16', 'float16 weights too']
"""


@dataclass(frozen=True)
class DemoRun:
    """The results of one training run.

    Args:
        label: the name of the run.
        policy: the policy.
        test_accuracy: the share of test digits that are classified correctly.
        loss_scale: the scale after the last step; None without scaling.
        initial_weights: the trainable weights before the training, in one row.
        final_weights: the trainable weights after the training.
        variable_bytes: the bytes of all variables, including running statistics.
        bytes_per_parameter: the bytes of trainable weights and of the optimizer's slots, for each weight.
        seed: the seed of weights and shuffling.
        history: the history of the training.

    >>> history = History(
    ...     [0], {"loss": [0.5]}, [2.3, 0.5], [1.0, 1.0], [False, False], [0.1]
    ... )
    >>> before, after = np.float32([0.5, 0.25]), np.float32([0.5, 0.26])
    >>> report = DemoRun(
    ...     "float32",
    ...     Policy("float32"),
    ...     0.97,
    ...     None,
    ...     before,
    ...     after,
    ...     8,
    ...     4.0,
    ...     seed=0,
    ...     history=history,
    ... )
    >>> report.moved, report.figures()["final_loss"]
    (0.5, 0.5)
    """

    label: str
    policy: Policy
    test_accuracy: float
    loss_scale: float | None
    initial_weights: Floats
    final_weights: Floats
    variable_bytes: int
    bytes_per_parameter: float
    seed: int
    history: History

    @property
    def moved(self) -> float:
        """The share of weights that the training changed."""
        return float(np.mean(self.final_weights != self.initial_weights))

    def figures(self) -> dict[str, Any]:
        """The results as plain data for JSON."""
        return {
            "run": self.label,
            "policy": self.policy.name,
            "loss_scaling": self.policy.loss_scale is not None,
            "test_accuracy": self.test_accuracy,
            "weights_moved": self.moved,
            "skipped_steps": self.history.skipped_steps,
            "loss_scale": self.loss_scale,
            "variable_bytes": self.variable_bytes,
            "bytes_per_parameter": self.bytes_per_parameter,
            "seconds_per_epoch": self.history.seconds_per_epoch,
            "seed": self.seed,
            "epochs": len(self.history.seconds),
            "steps": len(self.history.loss),
            "final_loss": self.history.loss[-1],
        }


def weighted_loss(weight: float) -> Callable[[Any, Any], jax.Array]:
    """The cross entropy of logits, times a weight."""
    loss = SparseCategoricalCrossentropy(from_logits=True)
    return lambda y_true, y_pred: loss(y_true, y_pred) * weight


def train_classifier(
    digits: Digits,
    case: Experiment,
    label: str,
    *,
    seed: int,
    epochs: int,
    on_epoch: Callable[[int, Mapping[str, float]], None] | None = None,
) -> DemoRun:
    """Train the network from scratch and measure it.

    Args:
        digits: the data.
        case: the network and how it is trained.
        label: the name of the run, a key of `case.runs`.
        seed: the seed of weights and shuffling.
        epochs: the number of epochs.
        on_epoch: called after every epoch with its number, from 0, and its results.
    """
    policy = case.runs[label]
    optimizer = case.optimizer(case.learning_rate, case.weight)
    optimizer.weights = case.narrow_weights.get(label)
    with warnings.catch_warnings():
        # The demonstration compares how policies learn on any machine; their speed does not matter here.
        warnings.simplefilter("ignore", HardwareWarning)
        model = case.network(policy)
        nn.initialize(model, digits.x_train[:1], seed=seed)
        model.compile(
            optimizer, weighted_loss(case.weight), ["accuracy"],
            steps_per_execution=case.steps_per_execution, seed=seed,
        )  # fmt: skip
        before = _weights(model)
        history = model.fit(
            digits.x_train, digits.y_train, batch_size=BATCH, epochs=epochs,
            steps_per_epoch=len(digits.x_train) // BATCH,  # a smaller last batch would have to be compiled too
            callbacks=[] if on_epoch is None else [on_epoch], verbose=0,
        )  # fmt: skip
        test = model.evaluate(digits.x_test, digits.y_test, batch_size=len(digits.x_test), verbose=0, return_dict=True)
    return DemoRun(
        label=label,
        policy=policy,
        test_accuracy=test["accuracy"],
        loss_scale=history.history.get("loss_scale", [None])[-1],
        initial_weights=before,
        final_weights=_weights(model),
        variable_bytes=sum(variable.nbytes for variable in model.variables.values()),
        bytes_per_parameter=weight_memory(nn.split_variables(model)[0], optimizer.state.slots).bytes_per_parameter,
        seed=seed,
        history=history,
    )


def _weights(model: Sequential) -> Floats:
    trainable, _ = nn.split_variables(model)
    return np.concatenate([np.asarray(value, np.float32).ravel() for value in trainable.values()])
