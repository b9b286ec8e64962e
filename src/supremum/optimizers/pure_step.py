"""The pure half of an optimizer: the first slots of variables, and a step from gradients to new values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jax

from supremum.errors import ArgumentError
from supremum.mixed_precision import StoredWeights, one_more
from supremum.optimizers import transformations
from supremum.optimizers.accumulation import accumulate, no_gradients
from supremum.optimizers.gradients import constrain, process, wide_gradients
from supremum.optimizers.hyperparameters import Hyperparameter, numbers_of_step
from supremum.optimizers.state import OptimizerState
from supremum.optimizers.weight_averages import with_average
from supremum.typing import ArrayLike


def initial_slots(
    optimizer: Any,
    hyperparameters: Sequence[Hyperparameter],
    dtypes: Mapping[str, Any],
    state: OptimizerState,
    values: Mapping[str, jax.Array],
) -> Any:
    """Make the slots of an optimizer for variables.

    Args:
        optimizer: the `Optimizer`.
        hyperparameters: all of its hyperparameters.
        dtypes: how each field of the slots is stored; other fields keep the dtype of the computation.
        state: the state that the numbers of the hyperparameters are read from.
        values: the values of the variables, by key.
    """
    transformation = _transformation(optimizer, numbers_of_step(hyperparameters, state, values))
    names = [each.name for each in hyperparameters]
    slots = transformations.initial_slots(transformation, values, names, dtypes, type(optimizer).__name__)
    slots = slots, StoredWeights(dict(values), optimizer.weights).initial_extra()
    return slots if optimizer.gradient_accumulation_steps is None else (no_gradients(values), slots)


def take_step(
    optimizer: Any,
    hyperparameters: Sequence[Hyperparameter],
    gradients: Mapping[str, Any],
    state: OptimizerState,
    values: Mapping[str, jax.Array],
    aggregates: bool,
    seed: ArrayLike | None,
) -> tuple[dict[str, jax.Array], OptimizerState]:
    """Take a step of an optimizer.

    Args:
        optimizer: the `Optimizer`.
        hyperparameters: all of its hyperparameters.
        gradients: the gradients by key; None where there is none.
        state: the state of the optimizer.
        values: the values of the variables, by key.
        aggregates: whether gradients are passed to `gradient_aggregator`.
        seed: the seed of stochastic rounding.

    Returns:
        The new values and the new state.
    """
    variables = optimizer.built_for
    keys = frozenset(variables or values)
    weights, name = StoredWeights(dict(values), optimizer.weights, seed), type(optimizer).__name__
    narrow = {path for path, is_narrow in zip(weights.paths, weights.is_narrow, strict=True) if is_narrow}
    aggregator = optimizer.gradient_aggregator if aggregates else None

    def step(gradients: dict[str, jax.Array], state: OptimizerState) -> tuple[dict[str, jax.Array], OptimizerState]:
        numbers = numbers_of_step(hyperparameters, state, values)
        processed = process(gradients, values, variables, numbers, aggregator, optimizer.gradient_transformers)
        if not processed:
            raise ArgumentError("at least one gradient must not be None, got None for every variable of this step")
        transformation, (slots, extra) = _transformation(optimizer, numbers), state.slots
        wide, slots = transformations.take_step(
            transformation, processed, slots, weights.wide(extra), keys, numbers, name
        )
        # Constraints get the wide values of variables that are stored specially, and the stored values of others.
        wide |= constrain({key: value for key, value in wide.items() if key in narrow}, variables)
        stored, extra = weights.store({key: wide.get(key) for key in values}, extra, state.iterations)
        stored |= constrain({key: stored[key] for key in wide if key not in narrow}, variables)
        return stored, OptimizerState(one_more(state.iterations), state.hyperparameters, (slots, extra))

    gradients, count = wide_gradients(gradients, keys & values.keys()), optimizer.gradient_accumulation_steps
    return step(gradients, state) if count is None else accumulate(count, step, gradients, state, values)


def _transformation(optimizer: Any, numbers: Mapping[str, Any]) -> Any:
    """Return the transformation of a step, with the moving average of `use_ema`."""
    step = optimizer.make_transformation(**numbers)
    average = optimizer.ema_momentum, optimizer.ema_overwrite_frequency
    return with_average(step, *average) if optimizer.use_ema else step
