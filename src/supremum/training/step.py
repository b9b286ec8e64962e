"""The training step as a pure function: forward, backward, unscale, finite check, update or skip, new scale."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import partial
from types import MappingProxyType
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp

from supremum.argument_checks import function, instance, mapping
from supremum.mixed_precision import LossScaleState, widen
from supremum.nn import Layer, as_layer, collected_losses, functional_call, split_variables
from supremum.nn.functional import as_key
from supremum.optimizers import Optimizer
from supremum.training.data import Batch
from supremum.training.distributed import DataParallel
from supremum.training.losses import without_left_out
from supremum.training.metrics import Mean, Metric
from supremum.training.step_log import StepLog

LossFunction: TypeAlias = Callable[..., jax.Array]
"""A function of labels, outputs and sample weights (or None) that returns a floating-point scalar."""
BatchLoss: TypeAlias = Callable[[Batch, Any, bool], jax.Array]
"""A function of a batch, the outputs and whether the model trains that returns a floating-point scalar."""


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
    """

    trainable: dict[str, jax.Array]
    other: dict[str, jax.Array]
    optimizer: Any
    loss: Any
    metrics: dict[str, Any]
    log: StepLog
    key: jax.Array
    count: jax.Array


TrainStep: TypeAlias = Callable[[TrainState, Batch], TrainState]
"""A pure training step: a function of state and batch that returns the next state."""


LOSS_MEAN = Mean("loss")
"""The mean of the losses of an epoch."""


def init_state(
    model: Layer,
    optimizer: Optimizer,
    metrics: Mapping[str, Metric] = MappingProxyType({}),
    *,
    seed: int = 0,
) -> TrainState:
    """Create the state before the first step, in separate memory that a step may reuse.

    Args:
        model: a built model.
        optimizer: the optimizer, which is built for the model's trainable variables.
        metrics: the metrics by name.
        seed: the seed for random numbers in layers.
    """
    _check_optimizer(optimizer).build(as_layer(model).trainable_variables)
    for each in mapping("metrics", metrics, "{'mae': as_metric('mae')}").values():
        instance("each of metrics", each, Metric, "a metric, such as as_metric('mae')")
    trainable, other, state = jax.tree.map(jnp.copy, (*split_variables(model), optimizer.state))
    return TrainState(
        trainable,
        other,
        state,
        LOSS_MEAN.init(),
        {name: metric.init() for name, metric in metrics.items()},
        StepLog.empty(),
        jax.random.key_data(as_key(seed)),
        jnp.zeros((), jnp.int32),
    )


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
    """
    as_layer(model)
    function("loss", loss, "lambda y_true, y_pred, sample_weight: jnp.mean((y_true - y_pred) ** 2)")
    _check_optimizer(optimizer)
    if distribution is not None:
        instance("distribution", distribution, DataParallel, "a DataParallel, or None for one device")

    def of_batch(batch: Batch, outputs: Any, _: bool) -> jax.Array:
        return loss(batch.y, outputs, batch.sample_weight)

    return step_of(model, of_batch, optimizer, metrics, distribution)


def _check_optimizer(optimizer: Any) -> Optimizer:
    return instance("optimizer", optimizer, Optimizer, "an optimizer, such as Adam(1e-3)")


def step_of(
    model: Layer,
    loss: BatchLoss,
    optimizer: Optimizer,
    metrics: Mapping[str, Metric],
    distribution: DataParallel | None,
) -> TrainStep:
    """Create a step function as `train_step` does, with a loss that receives the whole `Batch`."""
    backward = _backward(model, loss, optimizer, distribution)
    if distribution is not None:
        backward = distribution.on_each_device(backward)

    def step(state: TrainState, batch: Batch) -> TrainState:
        key = jax.random.fold_in(jax.random.wrap_key_data(state.key), state.count)
        value, other, outputs, gradients = backward(state.optimizer, state.trainable, state.other, batch, key)
        examples = jax.tree.leaves(batch.x)[0].shape[0]
        gathered = {
            name: metric.update(state.metrics[name], batch.y, outputs, batch.sample_weight)
            for name, metric in metrics.items()
        }
        updated = optimizer.update(
            gradients,
            state.optimizer,
            state.trainable,
            after=other,
            before=state.other,
        )
        losses = LOSS_MEAN.update(state.loss, value, examples)
        log = state.log.add(value, scale_of(state.optimizer), updated.skipped)
        after = TrainState(
            updated.values, updated.alongside, updated.state, losses, gathered, log, state.key, state.count + 1
        )
        return after if distribution is None else _moved_state(after, distribution.held, distribution.everywhere)

    return step


def _backward(
    model: Layer, loss: BatchLoss, optimizer: Optimizer, distribution: DataParallel | None
) -> Callable[..., Any]:
    """Return a function for loss, other values, outputs and gradients of a batch or one device's part of it."""

    def backward(state: Any, trainable: dict[str, Any], other: dict[str, Any], batch: Batch, key: jax.Array) -> Any:
        batch = without_left_out(batch)
        shapes = {path: variable.shape for path, variable in model.variables.items()}
        reduce_dtype = optimizer.reduce_dtype(model.dtype_policy.reduce_dtype)

        def loss_of(trainable: dict[str, Any], other: dict[str, Any]) -> tuple[jax.Array, Any]:
            laid = trainable if distribution is None else distribution.laid(trainable, shapes, reduce_dtype)
            with collected_losses() as penalties:
                outputs, values = functional_call(model, laid | other, batch.x, training=True, random_key=key)
            value = penalised(loss(batch, outputs, True), penalties)
            # Dividing here keeps float16 gradients as large as on one device, and makes their sum the mean.
            part = value if distribution is None else value / distribution.replicas
            return part, (value, {path: values[path] for path in other}, outputs)

        aggregate = None if distribution is None else distribution.aggregate(reduce_dtype, shapes)
        differentiate = optimizer.value_and_grad(loss_of, has_aux=True, aggregate=aggregate)
        (_, (value, after, outputs)), gradients = differentiate(state, trainable, other)
        return value, after, outputs, gradients

    return backward


def placed(distribution: DataParallel, state: TrainState) -> TrainState:
    """Place a state on the devices of a distribution.

    Args:
        distribution: the devices.
        state: the state, which must be the same on all processes.
    """
    return _moved_state(state, distribution.placed, partial(distribution.placed, whole=True))


def _moved_state(state: TrainState, cut: Callable[[Any], Any], whole: Callable[[Any], Any]) -> TrainState:
    """Apply one function to the parts of a state that may be sharded, and another to the rest."""
    named = {field.name: getattr(state, field.name) for field in fields(state)}
    apart = {name: named.pop(name) for name in ("trainable", "optimizer")}
    return TrainState(**cut(apart), **whole(named))


def penalised(value: jax.Array, penalties: list[jax.Array]) -> jax.Array:
    """Add the losses of layers to a loss, in at least float32, because a sum of squares overflows in float16."""
    for penalty in penalties:
        wide = widen(value)
        value = wide + penalty.astype(wide.dtype)
    return value


def scale_of(optimizer_state: Any) -> jax.Array:
    """Return the loss scale in the state of an optimizer, or 1 if there is none."""
    scaling = scaling_of(optimizer_state)
    return jnp.ones((), jnp.float32) if scaling is None else scaling.loss_scale


def scaling_of(optimizer_state: Any) -> LossScaleState | None:
    """Return the state of the loss scale in the state of an optimizer, or None."""
    leaves = jax.tree.leaves(optimizer_state, is_leaf=lambda node: isinstance(node, LossScaleState))
    return next((leaf for leaf in leaves if isinstance(leaf, LossScaleState)), None)
