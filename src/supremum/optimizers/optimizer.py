"""Optimizers: optax transformations under Keras' names."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax  # pyright: ignore[reportMissingTypeStubs] (it ships no types)

from supremum.errors import ArgumentError, OperandError, UnknownNameError, listed, shown
from supremum.formats import DType, as_format
from supremum.mixed_precision import all_reduce_gradients
from supremum.mixed_precision.loss_scale.state import one_more
from supremum.mixed_precision.tree_casting import at_least_float32
from supremum.nn import Variable
from supremum.nn.functional.dtype_promotion import FLOAT32
from supremum.optimizers import optax_hyperparameters, slots
from supremum.optimizers.eager_step import Stepper
from supremum.optimizers.gradients import Aggregate, Transformer, checked_loss, clipped, transformed
from supremum.optimizers.hyperparameters import (
    NON_NEGATIVE,
    POSITIVE_OR_NONE,
    Hyper,
    Hyperparameters,
    Rule,
)
from supremum.optimizers.saving import Saved
from supremum.optimizers.scopes import handed_out, reading, state_in_force
from supremum.optimizers.state import OptimizerState, Update
from supremum.optimizers.stateful import Stateful
from supremum.optimizers.variable_registry import Registry, Variables


class Optimizer(Stateful, Saved):
    """An optax transformation as an optimizer of `nn.Variable` objects; the base of all optimizers.

    Hyperparameters are attributes: `optimizer.learning_rate` is read with `float`, and set to a number, which acts on
    the next step without a new trace, or to a schedule. Setting any other attribute acts on the next step too, which is
    then traced again; change it by setting it, not in place.

    What is computed is computed in at least float32, whatever the dtype of the variables, and rounded to it once. What
    the transformation keeps is at least float32 too, unless it or an argument such as `mu_dtype` says otherwise.

    A subclass adds its hyperparameters with `add_hyperparameter` and makes the transformation of them in
    `make_transformation`, which runs while a step is traced.

    Args:
        transformation: any `optax.GradientTransformation`; it does the learning rate and the sign too. Parameters are
            a flat dict by path to it. The numbers of `optax.inject_hyperparams` are hyperparameters.
        clipnorm: the largest norm of a gradient, of those unscaled; None for any.
        clipvalue: the largest magnitude of an element of one; None for any.
        global_clipnorm: the largest norm of all gradients together; None for any. One of these three may be given.
        gradient_transformers: functions, each of a list of (gradient, variable) pairs, that give such lists. They see
            unscaled gradients, aggregated and clipped, inside the compiled step.
        gradient_aggregator: a function of such a list too, before all others, that aggregates across devices.
        injected_hyperparameters: numbers in place of those that were injected, by name.

    Raises:
        OperandError: for what is no optax transformation; a `TypeError`.
        UnknownNameError: for a hyperparameter that was not injected.
        ArgumentError: for numbers out of bounds.

    >>> import optax
    >>> from supremum import nn
    >>> w = nn.Variable([1.0, 2.0], "w")
    >>> optimizer = Optimizer(optax.inject_hyperparams(optax.sgd)(learning_rate=0.5))
    >>> optimizer.learning_rate = 0.25
    >>> optimizer.apply_gradients([(w.value, w)])
    >>> w.value, int(optimizer.iterations)
    (Array([0.75, 1.5 ], dtype=float32), 1)
    """

    def __init__(
        self,
        transformation: Any = None,
        *,
        clipnorm: Hyper | None = None,
        clipvalue: Hyper | None = None,
        global_clipnorm: Hyper | None = None,
        gradient_transformers: Iterable[Transformer] = (),
        gradient_aggregator: Transformer | None = None,
        **injected_hyperparameters: Hyper,
    ) -> None:
        self._hyper = Hyperparameters()
        self._registry = Registry()
        self._stepper = Stepper(self)
        self._key: Any = None
        self._is_stale = False
        self._state = OptimizerState(jnp.asarray(np.zeros((), _default_int())), {}, None)
        if sum(each is not None for each in (clipnorm, clipvalue, global_clipnorm)) > 1:
            raise ArgumentError("clipnorm, clipvalue and global_clipnorm exclude each other: give one of them")
        self.add_hyperparameter("clipnorm", clipnorm, POSITIVE_OR_NONE)
        self.add_hyperparameter("clipvalue", clipvalue, POSITIVE_OR_NONE)
        self.add_hyperparameter("global_clipnorm", global_clipnorm, POSITIVE_OR_NONE)
        self.gradient_transformers = gradient_transformers
        self.gradient_aggregator = gradient_aggregator
        self.transformation = None
        if type(self).make_transformation is Optimizer.make_transformation:
            self._adopt(transformation, injected_hyperparameters)
        elif transformation is not None or injected_hyperparameters:
            extra = [*injected_hyperparameters, *([] if transformation is None else ["transformation"])]
            raise UnknownNameError("argument", extra[0], inspect.signature(type(self)).parameters, type(self).__name__)

    def _adopt(self, transformation: Any, numbers: Mapping[str, Hyper]) -> None:
        given: Any = transformation
        if isinstance(given, optax.MultiSteps):
            given = given.gradient_transformation()
        if not isinstance(given, optax.GradientTransformation):
            fix = "it is an optimizer as it is" if isinstance(given, Optimizer) else "such as optax.adam(1e-3)"
            raise OperandError(f"an Optimizer is made of an optax transformation, not {shown(given)}: {fix}")
        self.transformation = given
        found = optax_hyperparameters.numbers_of(given)
        for name in numbers:
            if name not in found:
                raise UnknownNameError("hyperparameter", name, found, repr(type(self).__name__))
        for name, number in {**found, **numbers}.items():
            self.add_hyperparameter(name, number, Rule(low=-NON_NEGATIVE.high))

    def make_transformation(self, **hyperparameters: Any) -> Any:
        """The optax transformation of a step; called while it is traced, and by `build`.

        Args:
            hyperparameters: every one by name, a traced float32 scalar, or None where there is none.
        """
        del hyperparameters
        return self.transformation

    # State

    @property
    def state(self) -> Any:
        """All that a step changes, a pytree of arrays; a jitted step takes it and gives the next one."""
        if self._is_stale:
            self._refresh()
        return state_in_force(self, self._state)

    @state.setter
    def state(self, state: Any) -> None:
        self._state = state

    @property
    def iterations(self) -> jax.Array:
        """How many steps were applied; skipped ones were not."""
        return handed_out(state_in_force(self, self._state).iterations)

    @property
    def skips(self) -> bool:
        """Whether steps may be skipped."""
        return False

    @property
    def built_for(self) -> dict[str, Variable]:
        """The variables that there are slots for, by key."""
        return self._registry.by_key

    def build(self, variables: Variables) -> None:
        """Make the slots for variables; those that have some keep them.

        Args:
            variables: those of a model by path, as `model.trainable_variables`, or only variables, or one. A path
                becomes the key of its variable.

        Raises:
            OperandError: for what is no variable.
            ArgumentError: for a variable that is not real floating, or is given twice, or a path that another has.
            UninitializedError: for a variable without a value.
        """
        registry = self._registry.with_variables(variables)
        if self._state.slots is not None and registry.key_of == self._registry.key_of:
            return
        old = self.state
        kept = registry.renamed_from(self._registry)
        held = None if old.slots is None else slots.rename(old.slots, kept)
        if len(kept) < len(registry.key_of):
            fresh = self._fresh(registry.by_key)
            held = fresh if held is None else slots.extend(held, frozenset(kept.values()), fresh, registry.keys())
        self._registry = registry
        self._state = old._replace(slots=held)

    def _fresh(self, variables: Mapping[str, Variable]) -> Any:
        """The slots that variables start with."""
        values = {key: variable.read_stored() for key, variable in variables.items()}
        return jax.jit(self._initial_slots)(self._state._replace(slots=None), values)

    def _initial_slots(self, state: OptimizerState, values: Mapping[str, jax.Array]) -> Any:
        wide = {key: at_least_float32(value) for key, value in values.items()}
        try:
            made = self._transformation(self._numbers(state, values)).init(wide)
        except (KeyError, TypeError, ValueError) as error:
            raise ArgumentError(
                f"the transformation of {type(self).__name__} makes no state for the variables {listed(wide)}, "
                f"which it is given as a flat dict by these keys: {error}"
            ) from error
        dtypes = {field: getattr(self, name) for field, name in self._stored_dtypes.items()}
        return slots.stored(optax_hyperparameters.taken(made, self._hyper.rules)[0], dtypes)

    def _refresh(self) -> None:
        """Bring the slots in line with what was set since; what has no place any more is dropped."""
        if self._registry.key_of and self._state.slots is not None:
            fresh = self._fresh(self._registry.by_key)
            self._state = self._state._replace(slots=slots.carry_over(self._state.slots, fresh))
        self._is_stale = False

    def _transformation(self, numbers: Mapping[str, Any]) -> Any:
        return optax.with_extra_args_support(self.make_transformation(**numbers))

    def _numbers(self, state: OptimizerState, values: Mapping[str, jax.Array]) -> dict[str, Any]:
        """The hyperparameters of a step, in the widest dtype of what is computed with them."""
        dtype = max([FLOAT32, *(as_format(each.dtype) for each in values.values())], key=lambda row: row.bits).dtype
        numbers = self._hyper.at(state.hyperparameters, state.iterations)
        return {name: None if number is None else number.astype(dtype) for name, number in numbers.items()}

    # Pure functions, for use inside jit

    def init(self, values: Mapping[str, jax.Array]) -> Any:
        """A state for a step on these values, with the numbers there are now; the optimizer itself keeps its own.

        Args:
            values: the variables' values, by key.
        """
        own = state_in_force(self, self._state)
        # Buffers of its own: steps may donate them.
        iterations, numbers = jax.tree.map(jnp.copy, (own.iterations, own.hyperparameters))
        return OptimizerState(iterations, numbers, self._initial_slots(own, values))

    def value_and_grad(
        self, loss_fn: Callable[..., Any], *, has_aux: bool = False, aggregate: Aggregate | None = None
    ) -> Callable[..., Any]:
        """`jax.value_and_grad`, with the loss scaled and the gradients unscaled where there is a loss scale.

        Args:
            loss_fn: a function of the variables' values, a dict by key, and more, that returns a real floating scalar;
                with `has_aux` a pair of it and auxiliary data.
            has_aux: whether it returns auxiliary data.
            aggregate: a function of the gradients, by key, as they come out of the backward pass, scaled where there is
                a loss scale, that gives such gradients: their means over devices, say. None for no such function.

        Returns:
            A pure function of the optimizer's state and the arguments of `loss_fn`, which gives the value, unscaled,
            and the gradients. It raises an `OperandError` for a loss that is no real floating scalar.
        """
        differentiate = jax.value_and_grad(checked_loss(loss_fn, has_aux), has_aux=has_aux)

        def value_and_grad(state: Any, values: Any, *args: Any) -> Any:
            with reading(self, state):
                value, gradients = differentiate(values, *args)
            return value, gradients if aggregate is None else aggregate(gradients)

        return value_and_grad

    def reduce_dtype(self, asked: DType | None) -> DType | None:
        """The dtype that gradients travel between devices in; None for their own, at least float32.

        Args:
            asked: what the policy asks for, likewise.
        """
        return asked

    def all_reduce(self, gradients: Mapping[str, Any], state: Any, axis_name: str) -> dict[str, Any]:
        """The mean of unscaled gradients over devices, for `update`; runs in `jax.shard_map`.

        Where there is a loss scale they are scaled for the journey, in the dtype of `reduce_dtype`, and unscaled after.

        Args:
            gradients: by key, of a part of a batch.
            state: the optimizer's.
            axis_name: the axis that the devices lie along.

        spec/keras-rfc-293-mixed-precision.md, "All-reducing in float16".
        """
        del state
        return all_reduce_gradients(dict(gradients), axis_name, self.reduce_dtype(None))

    def update(
        self,
        gradients: Mapping[str, Any],
        state: Any,
        values: Mapping[str, jax.Array],
        *,
        after: Any = None,
        before: Any = None,
        aggregate_gradients: bool = True,
    ) -> Update:
        """A step as a pure function: new values and a new state, or, where it is skipped, the old ones.

        Args:
            gradients: by key, unscaled; variables whose gradient is None or missing keep their values and slots.
            state: the state before.
            values: the variables' values before, by key.
            after: what else the step would change, such as running statistics: any tree of arrays.
            before: what that was before; the same structure and dtypes.
            aggregate_gradients: whether the gradients go through `gradient_aggregator`.
        """
        del before  # nothing is skipped here
        given = {key: at_least_float32(each) for key, each in gradients.items() if each is not None}
        keys = self._registry.keys() or frozenset(values)
        for key in given:
            if key not in keys or key not in values:
                raise UnknownNameError("variable", key, keys & values.keys(), "the gradients of a step")
        with reading(self, state):
            numbers = self._numbers(state, values)
            steered = self._steered(given, values, numbers, aggregate_gradients)
            inner = self._transformation(numbers)
        if not steered:
            raise ArgumentError("no variable has a gradient in this step: give at least one that is not None")
        wide = {key: at_least_float32(values[key]) for key in steered}
        held = optax_hyperparameters.given(state.slots, numbers)
        part = slots.restrict(held, keys, steered.keys())
        try:
            updates, part_after = inner.update(steered, slots.widened(part), wide)
        except (KeyError, TypeError, ValueError) as error:
            raise ArgumentError(
                f"the transformation of {type(self).__name__} cannot take a step on the variables {listed(wide)}. "
                "It is given gradients and values as flat dicts by these keys, and nothing else, such as the loss; "
                f"where not all variables have a gradient, a mask has to be a function of the dict: {error}"
            ) from error
        held_after = slots.graft(held, keys, slots.narrowed(part_after, part), steered.keys())
        changed = {key: (wide[key] + updates[key]).astype(values[key].dtype) for key in steered}
        next_state = OptimizerState(
            one_more(state.iterations),
            state.hyperparameters,
            optax_hyperparameters.taken(held_after, self._hyper.rules)[0],
        )
        return Update({**values, **changed}, next_state, after, jnp.asarray(False))

    def _steered(self, gradients: dict[str, Any], values: Any, numbers: Any, aggregates: bool) -> Any:
        """Gradients as the transformation gets them: aggregated, clipped and transformed."""
        variables = self._registry.by_key
        if not variables and (self.gradient_transformers or self.gradient_aggregator is not None):
            raise ArgumentError("gradient transformers are given variables: call optimizer.build(variables) first")
        if aggregates and self.gradient_aggregator is not None:
            gradients = transformed(gradients, values, variables, [self.gradient_aggregator])
        gradients = clipped(gradients, *(numbers[name] for name in ("clipvalue", "clipnorm", "global_clipnorm")))
        if self.gradient_transformers:
            gradients = transformed(gradients, values, variables, self.gradient_transformers)
        return gradients

    def kept_alongside(self, gradients: Any, after: Any, before: Any) -> Any:
        """What a loss function assigned, or what was there before where these gradients would be skipped.

        Args:
            gradients: unscaled.
            after: the values that were assigned.
            before: those there were.
        """
        del gradients, before
        return after

    def gradient_dtypes(self, variable: Variable) -> tuple[DType, ...]:
        """The dtypes that `apply_gradients` takes for a variable, the usual one first."""
        return (variable.true_dtype,)


def _default_int() -> Any:
    return jax.dtypes.canonicalize_dtype(int)
