"""Optimizers: optax transformations under Keras' names."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, Self

import jax
import jax.numpy as jnp
import numpy as np

from supremum.argument_checks import flag, mapping, text
from supremum.errors import ArgumentError, OperandError, UnknownNameError, shown
from supremum.formats import DType, at_least_float32
from supremum.keyword_signature import KeywordSignature
from supremum.mixed_precision import all_reduce_gradients, one_more, widen
from supremum.nn import Variable
from supremum.optimizers import slot_trees
from supremum.optimizers.checkpoint_arrays import checked_arrays, checked_weights, named_arrays, without_scale
from supremum.optimizers.eager_step import Stepper
from supremum.optimizers.gradients import Aggregate, Transformer, checked_loss, process
from supremum.optimizers.hashable import hashable
from supremum.optimizers.hyperparameters import NON_NEGATIVE, POSITIVE_OR_NONE, Hyper, Hyperparameters, Rule
from supremum.optimizers.injected_hyperparameters import checked_transformation, numbers_of
from supremum.optimizers.settings import CHECKS
from supremum.optimizers.state import OptimizerState, Update
from supremum.optimizers.traced_state import copied, current_state, use_state
from supremum.optimizers.transformation_step import apply_transformation, initial_slots
from supremum.optimizers.variable_registry import Variables, register


class Optimizer:
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
        OperandError: for anything that is not an optax transformation; a `TypeError`.
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

    __signature__ = KeywordSignature()
    # Attributes that are not compiled into a step.
    _INTERNAL: ClassVar = frozenset({"_hyper", "_state", "_key_of", "_stepper", "_key", "_is_stale"})
    # The constructor's arguments besides hyperparameters, and, by field of the slots, the argument with its dtype.
    _settings: ClassVar[tuple[str, ...]] = ("gradient_transformers", "gradient_aggregator")
    _slot_dtypes: ClassVar[Mapping[str, str]] = {}

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
        self._key_of: dict[Variable, str] = {}
        self._stepper = Stepper(self)
        self._key: Any = None
        self._is_stale = False
        self._state = OptimizerState(jnp.asarray(np.zeros((), jax.dtypes.canonicalize_dtype(int))), {}, None)
        if sum(each is not None for each in (clipnorm, clipvalue, global_clipnorm)) > 1:
            raise ArgumentError("clipnorm, clipvalue and global_clipnorm exclude each other: give one of them")
        for name, limit in (("clipnorm", clipnorm), ("clipvalue", clipvalue), ("global_clipnorm", global_clipnorm)):
            self.add_hyperparameter(name, limit, POSITIVE_OR_NONE)
        self.gradient_transformers = gradient_transformers
        self.gradient_aggregator = gradient_aggregator
        self.transformation = None
        if type(self).make_transformation is Optimizer.make_transformation:
            self._adopt(transformation, injected_hyperparameters)
        elif transformation is not None or injected_hyperparameters:
            extra = next(iter(injected_hyperparameters), "transformation")
            raise UnknownNameError("argument", extra, inspect.signature(type(self)).parameters, type(self).__name__)

    def _adopt(self, transformation: Any, numbers: Mapping[str, Hyper]) -> None:
        if isinstance(transformation, Optimizer):
            raise OperandError(f"{shown(transformation)} is an optimizer already: use the optimizer as it is")
        self.transformation = checked_transformation(transformation)
        found = numbers_of(self.transformation)
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

    # Hyperparameters and settings

    def add_hyperparameter(self, name: str, value: Any, rule: Rule = NON_NEGATIVE) -> None:
        """Make an attribute a hyperparameter; for the constructors of subclasses.

        Args:
            name: the attribute.
            value: a number, a schedule, or None where the rule allows it.
            rule: what it may be.
        """
        self._hyper.rules[name] = rule
        self._set_hyperparameter(name, value)

    @property
    def hyperparameters(self) -> tuple[str, ...]:
        """The names of the hyperparameters."""
        return tuple(self._hyper.rules)

    @property
    def trace_key(self) -> Any:
        """A hashable key that differs whenever something that is compiled into a step differs."""
        if self._key is None:
            settings = {name: value for name, value in vars(self).items() if name not in self._INTERNAL}
            self._key = (type(self), hashable(settings), hashable(self._hyper.key()))
        return self._key

    def _set_hyperparameter(self, name: str, value: Any) -> None:
        before = self._hyper.key()
        numbers = self._hyper.set(name, value, self._state.hyperparameters)
        self._state = self._state._replace(hyperparameters=numbers)
        if self._hyper.key() != before:
            self._invalidate()

    def _invalidate(self) -> None:
        self._key, self._is_stale = None, True

    def __getattr__(self, name: str) -> Any:
        self._check_made()
        if name not in self._hyper.rules:
            raise AttributeError(f"{shown(type(self).__name__)} object has no attribute {shown(name)}")

        def read() -> jax.Array:
            state = current_state(self, self._state)
            return self._hyper.read(name, state.hyperparameters, state.iterations)

        if name not in self._hyper.schedules and name not in self._state.hyperparameters:
            return None
        return self._hyper.variable(name, read, lambda value: self._set_hyperparameter(name, value))

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self._INTERNAL or isinstance(getattr(type(self), name, None), property):
            object.__setattr__(self, name, value)
            return
        self._check_made()
        if name in self._hyper.rules:
            self._set_hyperparameter(name, value)
        else:
            object.__setattr__(self, name, CHECKS[name](value) if name in CHECKS else value)
            self._invalidate()

    def _check_made(self) -> None:
        if "_hyper" not in vars(self):
            raise AttributeError(f"{type(self).__name__}.__init__ must begin with super().__init__()")

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self.hyperparameters})

    # State

    @property
    def state(self) -> Any:
        """All that a step changes, a pytree of arrays; a jitted step takes it and gives the next one."""
        if self._is_stale and self._key_of and self._state.slots is not None:
            # Settings have changed: slots that have no place any more are dropped, and new ones are made.
            slots = slot_trees.carry_over(self._state.slots, self._fresh_slots(self._key_of))
            self._state = self._state._replace(slots=slots)
        self._is_stale = False
        return current_state(self, self._state)

    @state.setter
    def state(self, state: Any) -> None:
        self._state = state

    @property
    def iterations(self) -> jax.Array:
        """How many steps were applied; skipped ones were not."""
        return copied(current_state(self, self._state).iterations)

    @property
    def skips(self) -> bool:
        """Whether steps may be skipped."""
        return False

    @property
    def built_for(self) -> dict[str, Variable]:
        """The variables that there are slots for, by key."""
        return {key: variable for variable, key in self._key_of.items()}

    def build(self, variables: Variables) -> None:
        """Make the slots for variables; those that have some keep them.

        Args:
            variables: those of a model by path, as `model.trainable_variables`, or only variables, or one. A path
                becomes the key of its variable.

        Raises:
            OperandError: for anything that is not a variable.
            ArgumentError: for a variable that is not real floating, or is given twice, or a path that another has.
            UninitializedError: for a variable without a value.
        """
        key_of = register(self._key_of, variables)
        if self._state.slots is not None and key_of == self._key_of:
            return
        old = self.state
        new_keys = {key: key_of[variable] for variable, key in self._key_of.items()}
        held = None if old.slots is None else slot_trees.rename(old.slots, new_keys)
        if len(new_keys) < len(key_of):
            fresh = self._fresh_slots(key_of)
            # What there is already stays, also what belongs to no variable.
            held = (
                fresh if held is None else slot_trees.merge(fresh, set(key_of.values()), held, set(new_keys.values()))
            )
        self._key_of = key_of
        self._state = old._replace(slots=held)

    def _fresh_slots(self, key_of: Mapping[Variable, str]) -> Any:
        values = {key: variable.read_stored() for variable, key in key_of.items()}
        return jax.jit(self._initial_slots)(self._state._replace(slots=None), values)

    def _initial_slots(self, state: OptimizerState, values: Mapping[str, jax.Array]) -> Any:
        transformation = self.make_transformation(**self._numbers(state, values))
        dtypes = {field: getattr(self, name) for field, name in self._slot_dtypes.items()}
        return initial_slots(transformation, values, self._hyper.rules, dtypes, type(self).__name__)

    def _numbers(self, state: OptimizerState, values: Mapping[str, jax.Array]) -> dict[str, Any]:
        """The hyperparameters of a step, in the widest dtype of what is computed with them."""
        dtypes = (at_least_float32(each.dtype) for each in values.values())
        dtype = max(dtypes, key=lambda dtype: dtype.itemsize, default=jnp.float32)
        numbers = self._hyper.at(state.hyperparameters, state.iterations)
        return {name: None if number is None else number.astype(dtype) for name, number in numbers.items()}

    # Pure functions, for use inside jit

    def init(self, values: Mapping[str, jax.Array]) -> Any:
        """A state for a step on these values, with the numbers there are now; the optimizer itself keeps its own.

        Args:
            values: the variables' values, by key.
        """
        own = current_state(self, self._state)
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
            and the gradients. It raises an `OperandError` for a loss that is not a real floating scalar.
        """
        differentiate = jax.value_and_grad(checked_loss(loss_fn, has_aux), has_aux=has_aux)

        def value_and_grad(state: Any, values: Any, *args: Any) -> Any:
            with use_state(self, state):
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

        If there is a loss scale, they are scaled before the sum, in the dtype of `reduce_dtype`, and unscaled after it.

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
        given = {key: widen(each) for key, each in gradients.items() if each is not None}
        keys = frozenset(self._key_of.values() or values)
        for key in given:
            if key not in keys or key not in values:
                raise UnknownNameError("variable", key, keys & values.keys(), "the gradients of a step")
        with use_state(self, state):
            numbers = self._numbers(state, values)
            aggregator = self.gradient_aggregator if aggregate_gradients else None
            transformers = tuple(self.gradient_transformers)
            processed = process(given, values, self.built_for, numbers, aggregator, transformers)
            transformation = self.make_transformation(**numbers)
        if not processed:
            raise ArgumentError("no variable has a gradient in this step: give at least one that is not None")
        new_values, slots = apply_transformation(
            transformation, processed, state.slots, values, keys, numbers, type(self).__name__
        )
        new_state = OptimizerState(one_more(state.iterations), state.hyperparameters, slots)
        return Update(new_values, new_state, after, jnp.asarray(False))

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
            OperandError: for a loss that is not a function, or gives no real floating scalar; a `TypeError`.
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
            A gradient for each variable, in order; across devices with a first axis for the gradients of each device.
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
            OperandError: for anything but such pairs, or a gradient of another dtype; a `TypeError`.
            ArgumentError: for another shape, a variable that is there twice, or no gradient at all.
        """
        self._stepper.apply_gradients(pairs, flag("aggregate_gradients", aggregate_gradients))

    # Checkpoints and configurations

    @property
    def variables(self) -> dict[str, jax.Array]:
        """The arrays of a checkpoint by name, such as `"iterations"`, `"learning_rate"` and `"mu/dense/kernel"`."""
        return named_arrays(self.state, self.hyperparameters)

    def load_variables(self, saved: Mapping[str, Any]) -> None:
        """Take over what `variables` gave, all of it or nothing.

        Args:
            saved: arrays by name. Those of a loss scale, `"loss_scale/..."`, are passed over.

        Raises:
            UnknownNameError: for a name that is not known.
            ArgumentError: for one that is missing, or a value of another shape or dtype.
        """
        arrays = checked_arrays(without_scale(saved), self.variables)
        numbers = {name: arrays.pop(name) for name in self._state.hyperparameters}
        for name, number in numbers.items():
            self._hyper.rules[name].check(name, number)
        slots = slot_trees.with_leaves(self._state.slots, arrays)
        self._state = OptimizerState(arrays["iterations"], self._state.hyperparameters, slots)
        for name, number in numbers.items():
            self._set_hyperparameter(name, number)

    def get_weights(self) -> list[np.ndarray[Any, Any]]:
        """The values of `variables`, on the host, in their order."""
        return [np.asarray(each) for each in self.variables.values()]

    def set_weights(self, weights: Iterable[Any]) -> None:
        """Take over what `get_weights` gave, all of it or nothing.

        Raises:
            ArgumentError: for another number of arrays, or one of another shape or dtype.
        """
        self.load_variables(checked_weights(weights, self.variables))

    def get_config(self) -> dict[str, Any]:
        """The arguments that make an optimizer like this one; schedules and functions are there as they are."""
        config = self._hyper.config(self._state.hyperparameters)
        config |= {name: getattr(self, name) for name in (*self._settings, *self._slot_dtypes.values())}
        return config if self.transformation is None else {**config, "transformation": self.transformation}

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self:
        """A fresh optimizer of the arguments that `get_config` gave."""
        for name in mapping("config", config, "optimizer.get_config()"):
            text("each name in config", name)
        return cls(**config)

    def __repr__(self) -> str:
        if "_hyper" not in vars(self):
            return object.__repr__(self)
        config = {name: value for name, value in self.get_config().items() if value not in (None, ())}
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in config.items())})"
