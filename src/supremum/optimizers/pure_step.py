"""The pure half of an optimizer: the first slots of variables, and a step from gradients to new values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import optax  # pyright: ignore[reportMissingTypeStubs] (it ships no types)

from supremum.errors import ArgumentError, listed
from supremum.mixed_precision import StoredWeights, one_more, read_moments, store_moment, store_moments, widen
from supremum.optimizers.accumulation import accumulate, no_gradients
from supremum.optimizers.gradients import constrain, process, wide_gradients
from supremum.optimizers.hyperparameters import Hyperparameter, numbers_of_step
from supremum.optimizers.state import OptimizerState
from supremum.optimizers.transformations import extract_numbers, insert_numbers, merge, rekey
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
    wide = {key: widen(value) for key, value in values.items()}
    try:
        slots = transformation.init(wide)
    except (KeyError, TypeError, ValueError) as error:
        raise ArgumentError(
            f"the transformation of {type(optimizer).__name__} cannot make a state for the variables {listed(wide)}, "
            f"a flat dict with these keys: {error}"
        ) from error

    def store(path: Any, leaf: Any) -> Any:
        array = jnp.asarray(leaf)
        fields = [entry.name for entry in path if isinstance(entry, jax.tree_util.GetAttrKey)]
        field = next((field for field in fields if dtypes.get(field) is not None), None)
        return array if field is None else store_moment(array, dtypes[field], field)

    slots = extract_numbers(slots, [each.name for each in hyperparameters])[0]
    slots = jax.tree_util.tree_map_with_path(store, slots)
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
    """Take a step of an optimizer, computed in at least float32.

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
    weights = StoredWeights(dict(values), optimizer.weights, seed)
    narrow = {path for path, is_narrow in zip(weights.paths, weights.is_narrow, strict=True) if is_narrow}
    aggregator = optimizer.gradient_aggregator if aggregates else None

    def step(gradients: dict[str, jax.Array], state: OptimizerState) -> tuple[dict[str, jax.Array], OptimizerState]:
        numbers = numbers_of_step(hyperparameters, state, values)
        processed = process(gradients, values, variables, numbers, aggregator, optimizer.gradient_transformers)
        if not processed:
            raise ArgumentError("at least one gradient must not be None, got None for every variable of this step")
        transformation, (slots, extra) = _transformation(optimizer, numbers), state.slots
        before = weights.wide(extra)
        before = {key: before[key] for key in processed}
        slots = insert_numbers(slots, numbers)
        part = rekey(slots, keys, {key: key for key in processed})
        update: Any = transformation.update
        try:
            updates, after = update(processed, read_moments(part), before)
        except (KeyError, TypeError, ValueError) as error:
            raise ArgumentError(
                f"the transformation of {type(optimizer).__name__} cannot take a step on the variables "
                f"{listed(before)}. It must work on gradients and values as flat dicts with these keys, without other "
                "arguments such as the loss; if a variable has no gradient, a mask must be a function of the dict: "
                f"{error}"
            ) from error

        # Dtypes must not change from step to step.
        slots = merge(slots, keys, store_moments(after, part), processed.keys())
        slots = extract_numbers(slots, numbers)[0]
        wide = {key: before[key] + updates[key] for key in processed}
        # Constraints get the wide values of variables that are stored specially, and the stored values of others.
        wide |= constrain({key: value for key, value in wide.items() if key in narrow}, variables)
        stored, extra = weights.store({key: wide.get(key) for key in values}, extra, state.iterations)
        stored |= constrain({key: stored[key] for key in wide if key not in narrow}, variables)
        return stored, OptimizerState(one_more(state.iterations), state.hyperparameters, (slots, extra))

    gradients, count = wide_gradients(gradients, keys & values.keys()), optimizer.gradient_accumulation_steps
    return step(gradients, state) if count is None else accumulate(count, step, gradients, state, values)


def _transformation(optimizer: Any, numbers: Mapping[str, Any]) -> optax.GradientTransformationExtraArgs:
    """Return the transformation of a step, with the moving average of `use_ema`."""
    step = optax.with_extra_args_support(optimizer.make_transformation(**numbers))
    average = optimizer.ema_momentum, optimizer.ema_overwrite_frequency
    return with_average(step, *average) if optimizer.use_ema else step
