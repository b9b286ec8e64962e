"""The training step as a pure function: forward, backward, unscale, finite check, update or skip, new scale."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from supremum.argument_checks import function, instance, mapping
from supremum.mixed_precision import LossScaleState, widen
from supremum.nn import Layer, as_layer, collected_losses, functional_call, split_variables
from supremum.nn.functional import as_key
from supremum.optimizers import Optimizer
from supremum.training.data import Batch
from supremum.training.distributed import DataParallel
from supremum.training.losses import replace_left_out
from supremum.training.metrics import Mean, Metric, OutputLoss
from supremum.typing import ArrayLike, PyTree

LossFunction: TypeAlias = Callable[..., jax.Array]
"""A function of labels, outputs and sample weights (or None) that returns a floating-point scalar.

>>> def error(y_true, y_pred, weights):
...     return jnp.max(jnp.abs(y_true - y_pred))
>>> largest_error: LossFunction = error
>>> largest_error(jnp.ones(2), jnp.zeros(2), None).dtype
dtype('float32')
"""
BatchLoss: TypeAlias = Callable[[Batch, Any, bool], tuple[jax.Array, dict[str, jax.Array]]]
"""A function of a batch, the outputs and whether the model trains that returns a loss and the parts of it to report.

All are floating-point scalars; the parts are those of several outputs, by name.
"""

CAPACITY = 1024
"""How many steps are kept before they are fetched, unless more are sent at once."""


class StepLog(NamedTuple):
    """A log with a row for each step: the unscaled loss, its scale, and whether the step was skipped.

    Attributes:
        rows: shape (capacity, 3), floating-point.
        length: how many rows are used, an integer scalar.

    >>> log = StepLog.empty(4).add(
    ...     jnp.float32(0.5), jnp.float32(1024), jnp.asarray(False)
    ... )
    >>> log.fetch()
    array([[5.000e-01, 1.024e+03, 0.000e+00]])
    """

    rows: jax.Array
    length: jax.Array

    @classmethod
    def empty(cls, capacity: int = CAPACITY) -> StepLog:
        """Create an empty log.

        Args:
            capacity: how many steps it has room for.
        """
        return cls(jnp.zeros((capacity, 3), float), jnp.zeros((), "int32"))

    def add(self, loss: jax.Array, loss_scale: jax.Array, skipped: jax.Array) -> StepLog:
        """Return the log with one more step.

        Args:
            loss: the loss before the step, unscaled, a scalar.
            loss_scale: the factor it was scaled by.
            skipped: whether the step was skipped because its gradients were not finite.
        """
        row = jnp.stack([each.astype(self.rows.dtype) for each in (loss, loss_scale, skipped)])
        return StepLog(jax.lax.dynamic_update_index_in_dim(self.rows, row, self.length, 0), self.length + 1)

    def fetch(self) -> Any:
        """Fetch the used rows as a NumPy array, shape (steps, 3)."""
        rows, length = jax.device_get(tuple(self))
        return np.asarray(rows[: int(length)], np.float64)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class TrainState:
    """Everything that a training step changes.

    Attributes:
        trainable: values of the variables that the optimizer changes, by path.
        other: values of the other variables, such as running statistics.
        optimizer: the optimizer's state, including any loss scale.
        loss: the state of the mean of this epoch's losses.
        metrics: the states of the metrics, by name.
        log: the loss and the loss scale of each step, and whether it was skipped.
        key: the source of the random numbers of all steps. It is the data of a `jax.random` key, because a key itself
            would double the time of a dispatch.
        count: how many steps were taken, including skipped ones.

    >>> from supremum import nn, optimizers, training
    >>> model, optimizer = nn.Dense(1), optimizers.SGD(0.1)
    >>> nn.initialize(model, jnp.ones((1, 3)))
    >>> state = init_state(model, optimizer)
    >>> jax.tree.map(jnp.shape, state.trainable), len(jax.tree.leaves(state.log))
    ({'bias': (1,), 'kernel': (3, 1)}, 2)
    """

    trainable: dict[str, jax.Array]
    other: dict[str, jax.Array]
    optimizer: Any
    loss: Any
    metrics: dict[str, Any]
    log: StepLog
    key: jax.Array
    count: jax.Array


class TrainStep(Protocol):
    """A pure training step: a function of state and batch that returns the next state.

    >>> def run(step: TrainStep, state: TrainState, batches: list[Batch]) -> TrainState:
    ...     for batch in batches:
    ...         state = step(state, batch)
    ...     return state
    """

    def __call__(self, state: TrainState, batch: Batch, *, seed: ArrayLike | None = None) -> TrainState:
        """Take a step.

        Args:
            state: the state before the step.
            batch: the batch.
            seed: as for `Optimizer.update`; the members of an ensemble of narrow weights need one each.
        """
        ...


LOSS_MEAN = Mean("loss")
"""The mean of the losses of an epoch."""


def init_state(
    model: Layer, optimizer: Optimizer, metrics: Mapping[str, Metric] = MappingProxyType({}), *, seed: int = 0
) -> TrainState:
    """Create the state before the first step, in separate memory that a step may reuse.

    Args:
        model: a built model.
        optimizer: the optimizer, which is built for the model's trainable variables.
        metrics: the metrics by name.
        seed: the seed for random numbers in layers.

    >>> from supremum import nn, optimizers, training
    >>> model, optimizer = nn.Dense(1), optimizers.SGD(0.1)
    >>> nn.initialize(model, jnp.ones((1, 3)))
    >>> state = init_state(model, optimizer)
    >>> list(state.trainable), int(state.count)
    (['bias', 'kernel'], 0)
    """
    _check_optimizer(optimizer).build(as_layer(model).trainable_variables)
    for each in mapping("metrics", metrics, "{'mae': as_metric('mae')}").values():
        instance("each of metrics", each, Metric, "a metric, such as as_metric('mae')")
    trainable, other, state = jax.tree.map(jnp.copy, (*split_variables(model), optimizer.state))
    key, count = jax.random.key_data(as_key(seed)), jnp.zeros((), jnp.int32)
    return TrainState(trainable, other, state, *initial_means(metrics), StepLog.empty(), key, count)


def train_step(
    model: Layer,
    loss: LossFunction,
    optimizer: Optimizer,
    metrics: Mapping[str, Metric] = MappingProxyType({}),
    distribution: DataParallel | None = None,
) -> TrainStep:
    """Create the step function of a model; it is pure, so it can be jitted or scanned.

    A skipped step leaves variables, running statistics and the optimizer unchanged, except for the loss scale and the
    step count. Its loss and metrics enter the averages like those of any other step, even if they are inf or NaN. With
    several devices, each runs forward and backward for its part of the batch; the rest of the step uses the whole
    batch, so all devices skip, scale and count alike.

    Args:
        model: a built model.
        loss: the loss, to which the losses of layers are added.
        optimizer: the optimizer that updates the variables.
        metrics: the metrics by name.
        distribution: how to use several devices; None for one.

    Returns:
        A function of state and batch that returns the next state.

    >>> from supremum import nn, optimizers, training
    >>> model, optimizer = nn.Dense(1), optimizers.SGD(0.1)
    >>> nn.initialize(model, jnp.ones((1, 3)))
    >>> state = init_state(model, optimizer)
    >>> step = jax.jit(train_step(model, training.as_loss("mse"), optimizer))
    >>> batch = Batch(jnp.ones((8, 3)), jnp.ones((8, 1)))
    >>> for _ in range(3):
    ...     state = step(state, batch)
    >>> int(state.count), state.log.fetch().shape
    (3, (3, 3))
    """
    as_layer(model)
    function("loss", loss, "lambda y_true, y_pred, sample_weight: jnp.mean((y_true - y_pred) ** 2)")
    _check_optimizer(optimizer)
    if distribution is not None:
        instance("distribution", distribution, DataParallel, "a DataParallel, or None for one device")

    def of_batch(batch: Batch, outputs: PyTree, _: bool) -> tuple[jax.Array, dict[str, jax.Array]]:
        return loss(batch.y, outputs, batch.sample_weight), {}

    return step_of(model, of_batch, optimizer, metrics, distribution)


def _check_optimizer(optimizer: object) -> Optimizer:
    return instance("optimizer", optimizer, Optimizer, "an optimizer, such as Adam(1e-3)")


def step_of(
    model: Layer,
    loss: BatchLoss,
    optimizer: Optimizer,
    metrics: Mapping[str, Metric],
    distribution: DataParallel | None,
) -> TrainStep:
    """Create a step function as `train_step` does, with a loss that receives the whole `Batch`."""
    backward = backward_of(model, loss, optimizer, distribution)
    if distribution is not None:
        backward = distribution.on_each_device(backward)

    def step(state: TrainState, batch: Batch, *, seed: ArrayLike | None = None) -> TrainState:
        key = key_of_step(state)
        losses, other, outputs, gradients = backward(state.optimizer, state.trainable, state.other, batch, key)
        mean, states = update_means(metrics, (state.loss, state.metrics), batch, outputs, losses)
        updated = optimizer.update(
            gradients, state.optimizer, state.trainable, after=other, before=state.other, seed=seed
        )
        scaling = scaling_of(state.optimizer)
        scale = jnp.ones((), jnp.float32) if scaling is None else scaling.loss_scale
        log = state.log.add(losses[0], scale, updated.skipped)
        after = TrainState(
            updated.values, updated.alongside, updated.state, mean, states, log, state.key, state.count + 1
        )
        return after if distribution is None else _move_state(after, distribution.constrain)

    return step


def key_of_step(state: TrainState) -> jax.Array:
    """Return the key of the random numbers of the step that starts from a state."""
    return jax.random.fold_in(jax.random.wrap_key_data(state.key), state.count)


def backward_of(
    model: Layer,
    loss: BatchLoss,
    optimizer: Optimizer,
    distribution: DataParallel | None,
    see: Callable[[dict[str, Any]], None] | None = None,
) -> Callable[..., Any]:
    """Return a function for losses, other values, outputs and gradients of a batch or one device's part of it.

    Args:
        model: the model.
        loss: the loss of a batch.
        optimizer: the optimizer, which scales the loss and unscales the gradients.
        distribution: the devices; None for one.
        see: called, while JAX traces, with the averaged gradients before they are unscaled, by path.
    """

    def backward(state: Any, trainable: dict[str, Any], other: dict[str, Any], batch: Batch, key: jax.Array) -> Any:
        batch = replace_left_out(batch)
        shapes: dict[str, tuple[int, ...]] = {}
        if distribution is not None:
            shapes = {path: variable.shape for path, variable in model.variables.items()}
            distribution.check_layout(shapes)
        reduce_dtype = optimizer.reduce_dtype(model.dtype_policy.reduce_dtype)

        def loss_of(trainable: dict[str, Any], other: dict[str, Any]) -> tuple[jax.Array, Any]:
            if distribution is not None:
                trainable = distribution.replica_values(trainable, shapes, reduce_dtype)
            losses, outputs, values = loss_of_batch(model, loss, trainable | other, batch, key, training=True)
            # Dividing here keeps float16 gradients as large as on one device, and makes their sum the mean.
            part = losses[0] if distribution is None else losses[0] / distribution.replicas
            return part, (losses, {path: values[path] for path in other}, outputs)

        def aggregate(gradients: dict[str, Any]) -> dict[str, Any]:
            if distribution is not None:
                gradients = distribution.aggregate(gradients, reduce_dtype, shapes)
            if see is not None:
                see(gradients)
            return gradients

        differentiate = optimizer.value_and_grad(loss_of, has_aux=True, aggregate=aggregate)
        (_, (losses, after, outputs)), gradients = differentiate(state, trainable, other)
        return losses, after, outputs, gradients

    return backward


def place_state(distribution: DataParallel, state: TrainState) -> TrainState:
    """Place a state on the devices of a distribution.

    Args:
        distribution: the devices.
        state: the state, which must be the same on all processes.
    """
    return _move_state(state, distribution.place)


def _move_state(state: TrainState, move: Callable[..., Any]) -> TrainState:
    """Apply a function to the parts of a state that replicas may share, and with `whole=True` to the rest."""
    named = {field.name: getattr(state, field.name) for field in fields(state)}
    apart = {name: named.pop(name) for name in ("trainable", "optimizer")}
    return TrainState(**move(apart), **move(named, whole=True))


def loss_of_batch(
    model: Layer, loss: BatchLoss, values: dict[str, Any], batch: Batch, key: jax.Array, *, training: bool
) -> tuple[tuple[jax.Array, dict[str, jax.Array]], Any, dict[str, Any]]:
    """Call a model on a batch, and compute the loss, including the losses of layers.

    Args:
        model: the model.
        loss: the loss of a batch.
        values: the values of the model's variables, by path.
        batch: the batch.
        key: the source of the random numbers of layers.
        training: whether the model trains.

    Returns:
        The loss and its parts, the outputs, and the values of the variables after the call.
    """
    with collected_losses() as penalties:
        outputs, after = functional_call(model, values, batch.x, training=training, random_key=key)
    value, parts = loss(batch, outputs, training)
    for penalty in penalties:
        wide = widen(value)  # at least float32, because a sum of squares overflows in float16
        value = wide + penalty.astype(wide.dtype)
    return (value, parts), outputs, after


def initial_means(metrics: Mapping[str, Metric]) -> tuple[Any, dict[str, Any]]:
    """Return the states of the mean of the losses and of the metrics before the first batch."""
    return LOSS_MEAN.init(), {name: metric.init() for name, metric in metrics.items()}


def update_means(
    metrics: Mapping[str, Metric],
    means: tuple[Any, dict[str, Any]],
    batch: Batch,
    outputs: PyTree,
    losses: tuple[jax.Array, dict[str, jax.Array]],
) -> tuple[Any, dict[str, Any]]:
    """Return the states of the mean of the losses and of the metrics after one more batch.

    Args:
        metrics: the metrics by name.
        means: the states before.
        batch: the batch.
        outputs: the outputs of the model.
        losses: the loss of the batch, and its parts.
    """
    loss, parts = losses
    examples = jax.tree.leaves(batch.x)[0].shape[0]

    def update(name: str, metric: Metric) -> Any:
        if isinstance(metric, OutputLoss):  # NaN if an overridden `compute_loss` does not compute it
            return metric.update(means[1][name], parts.get(name, jnp.nan), examples)
        return metric.update(means[1][name], batch.y, outputs, batch.sample_weight)

    after = {name: update(name, metric) for name, metric in metrics.items()}
    return LOSS_MEAN.update(means[0], loss, examples), after


def results_of_means(metrics: Mapping[str, Metric], means: tuple[Any, dict[str, Any]]) -> list[jax.Array]:
    """Return the mean of the losses, and then the value of each metric, from their states."""
    return [LOSS_MEAN.result_of(means[0]), *(metric.result_of(means[1][name]) for name, metric in metrics.items())]


def scaling_of(optimizer_state: PyTree) -> LossScaleState | None:
    """Return the state of the loss scale in the state of an optimizer, or None."""
    leaves = jax.tree.leaves(optimizer_state, is_leaf=lambda node: isinstance(node, LossScaleState))
    return next((leaf for leaf in leaves if isinstance(leaf, LossScaleState)), None)
