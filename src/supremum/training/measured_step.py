"""A second program beside the training step, which measures the step and trains nothing."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from operator import itemgetter
from typing import Any

import jax
from jax.extend.core import ClosedJaxpr

from supremum.formats import Format
from supremum.jaxprs import Site
from supremum.mixed_precision import is_inexact
from supremum.nn import OUTPUT, Layer, marked_outputs
from supremum.numerics import Measured, NamedTallies, name_at, observe, tallies_of
from supremum.optimizers import Optimizer
from supremum.training.data import Batch
from supremum.training.distributed import DataParallel
from supremum.training.step import BatchLoss, TrainState, backward_of, key_of_step, scaling_of


class StepMeasurement:
    """Measures training steps, from the state and the batch that each step starts from.

    The forward and backward pass of the step run a second time, in a program of their own, with the same values, random
    numbers and loss scale. The program that trains is therefore the same with and without it.

    Args:
        model: a built model.
        loss: the loss of a batch.
        optimizer: the optimizer.
        distribution: the devices; None for one.
    """

    def __init__(self, model: Layer, loss: BatchLoss, optimizer: Optimizer, distribution: DataParallel | None) -> None:
        self._model, self._loss, self._optimizer, self._distribution = model, loss, optimizer, distribution
        self._run = jax.jit(self._measure_step, static_argnums=2)

    def measure(
        self, state: TrainState, batch: Batch, key: Hashable, step: int, formats: tuple[Format, ...]
    ) -> Measured:
        """Measure the step from a state.

        Args:
            state: the state before the step.
            batch: its batch.
            key: everything else that the compiled step depends on.
            step: the number of the step.
            formats: the formats to answer for.

        Returns:
            The tallies of each layer: `"activations"` has its outputs, `"weights"` its variables, `"gradients"` the
            gradients of its trainable variables as the backward pass holds them: averaged over devices, and still
            scaled. With loss scaling, `"unscaled_gradients"` has those that the optimizer gets.
        """
        activations, gradients, scaling = self._run(state, batch, key)
        weights = self._by_layer((state.trainable | state.other).items())
        tallies = activations + tallies_of("weights", weights, ())
        for number, kind in enumerate(("gradients", "unscaled_gradients")):
            named = [(path, each[number]) for path, each in gradients.items() if number < len(each)]
            tallies += tallies_of(kind, self._by_layer(named), formats)
        return Measured(step, scaling, tallies)

    def _by_layer(self, named: Iterable[tuple[str, Any]]) -> list[tuple[str, Any]]:
        """Floating arrays with the paths of the layers that own the variables."""
        return [(path.rpartition("/")[0] or self._model.name, value) for path, value in named if is_inexact(value)]

    def _measure_step(self, state: TrainState, batch: Batch, key: Hashable) -> tuple[NamedTallies, dict[str, Any], Any]:
        del key  # only a part of the cache key
        scaled_gradients: list[dict[str, Any]] = []
        backward = backward_of(self._model, self._loss, self._optimizer, self._distribution, scaled_gradients.append)
        scaling = scaling_of(state.optimizer)

        def gradients_of(*args: Any) -> dict[str, Any]:
            _, _, _, unscaled = backward(*args)
            scaled = scaled_gradients.pop()
            return {path: (each,) if scaling is None else (each, unscaled[path]) for path, each in scaled.items()}

        def counted(*args: Any) -> tuple[tuple[()], tuple[()], NamedTallies, dict[str, Any]]:
            with marked_outputs():
                program, shape = jax.make_jaxpr(gradients_of, return_shape=True)(*args)
            results, activations = _with_activations(program, jax.tree.leaves(args))
            # The tallies take the place of the outputs, which are concatenated along their first axis.
            stacked = jax.tree.map(itemgetter(None), activations)
            return (), (), stacked, jax.tree.unflatten(jax.tree.structure(shape), results)

        run = counted if self._distribution is None else self._distribution.on_each_device(counted)
        *_, activations, gradients = run(state.optimizer, state.trainable, state.other, batch, key_of_step(state))
        if self._distribution is not None:
            activations = self._distribution.replicate(activations)
        return activations, gradients, None if scaling is None else (scaling.loss_scale, scaling.num_skipped_steps)


def _with_activations(program: ClosedJaxpr, operands: list[Any]) -> tuple[list[Any], NamedTallies]:
    def choose(site: Site) -> Iterable[int]:
        name = name_at(site)
        return (0,) if name is not None and name.startswith(OUTPUT) else ()

    def kind_and_name(site: Site) -> tuple[str, str]:
        return "activations", (name_at(site) or "").removeprefix(OUTPUT)

    return observe(program, operands, (), choose, kind_and_name)
