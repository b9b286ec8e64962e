"""The methods of optimizers that change variables, for loops that are not jitted."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import jax

from supremum.argument_checks import flag
from supremum.nn import Variable
from supremum.optimizers.eager_step import Stepper
from supremum.optimizers.variable_registry import Variables


class Stateful:
    """`minimize`, `get_gradients` and `apply_gradients`."""

    _stepper: Stepper

    def minimize(self, loss_fn: Callable[..., Any], variables: Variables, *args: Any) -> jax.Array:
        """Take a step: compute the loss, its gradients, and change the variables.

        With `args` the whole step is compiled, once for each loss function: pass the same function again, not a new
        lambda, and whatever changes from step to step in `args`; of what it closes over only `nn.Variable` objects
        may change. Without `args` the gradients are computed as they are, operation by operation, because anything
        might have changed, and only the update is compiled.

        In `with training.DataParallel().scope():` `args` are cut along their first axis, and each device computes the
        loss of a part. Gradients are averaged as they come out of the backward pass, still scaled.

        What `loss_fn` assigns to other variables, such as running statistics, is carried out, unless the step is
        skipped. Random numbers come from `with nn.random_key(key):`, a key of its own for each step.

        Args:
            loss_fn: a function of `args` that reads variables and returns a real floating scalar.
            variables: those to change: `model.trainable_variables`, or variables.
            args: arrays, and trees of them.

        Returns:
            The loss, before the step and unscaled.

        Raises:
            OperandError: for a loss that is no function, or gives no real floating scalar; a `TypeError`.
            ArgumentError: for a loss function that assigns to the variables that are being trained, or where JAX is
                tracing: there are `value_and_grad` and `update`.
        """
        return self._stepper.minimize(loss_fn, variables, args)

    def get_gradients(self, loss_fn: Callable[..., Any], variables: Variables, *args: Any) -> list[jax.Array]:
        """The gradients of a loss, unscaled, for `apply_gradients`.

        Args:
            loss_fn: as for `minimize`; compiled likewise.
            variables: as for `minimize`.
            args: as for `minimize`.

        Returns:
            A gradient for each variable, in their order; across devices with a first axis for those of each device,
            which saw a part of `args`.
        """
        return self._stepper.get_gradients(loss_fn, variables, args)

    def apply_gradients(self, pairs: Iterable[tuple[Any, Variable]], *, aggregate_gradients: bool = True) -> None:
        """Change variables by gradients.

        Args:
            pairs: (gradient, variable) pairs; those whose gradient is None, and variables that are not there, keep
                their values and slots. Gradients are in their variables' own dtypes, and unscaled. Across devices each
                has a first axis with one for each of them, as `get_gradients` gives them, which are averaged.
            aggregate_gradients: whether they are averaged across devices, and go through `gradient_aggregator`; False
                for gradients that were.

        Raises:
            OperandError: for what are no such pairs, or a gradient of another dtype; a `TypeError`.
            ArgumentError: for another shape, a variable that is there twice, or no gradient at all.
        """
        self._stepper.apply_gradients(pairs, flag("aggregate_gradients", aggregate_gradients))
