"""Optimizers: optax transformations under Keras' names."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, ClassVar, Self

import jax
import jax.numpy as jnp
import numpy as np

from supremum.argument_checks import chosen, flag, mapping, real_within, text
from supremum.errors import ArgumentError, OperandError, UnknownNameError, shown
from supremum.formats import DType
from supremum.keyword_signature import KeywordSignature
from supremum.mixed_precision import OptaxOptimizer, all_reduce_gradients, as_optax
from supremum.nn import Variable
from supremum.optimizers import checkpoint_arrays, transformations
from supremum.optimizers.eager_step import Stepper
from supremum.optimizers.gradients import Aggregate, Transformer, Variables, check_loss, register
from supremum.optimizers.hyperparameters import (
    NON_NEGATIVE,
    POSITIVE_OR_NONE,
    Hyper,
    Hyperparameter,
    HyperparameterAttribute,
    Rule,
    shortest,
)
from supremum.optimizers.pure_step import initial_slots, take_step
from supremum.optimizers.settings import (
    Setting,
    check_aggregator,
    check_count,
    check_transformers,
    check_weights,
    hashable,
)
from supremum.optimizers.state import BuiltState, OptimizerState, Update, copy_state, current_state, use_state
from supremum.optimizers.weight_averages import assign_averages
from supremum.typing import ArrayLike, PyTree


class Optimizer:
    """An optax transformation as an optimizer of `nn.Variable` objects; the base class of all optimizers.

    Hyperparameters with Keras' names are attributes. `float(optimizer.learning_rate)` reads one. Set it to a number,
    which takes effect in the next step without a new trace, or to a schedule. For other names, such as optax's `b1`,
    use `optimizer.hyperparameters` and `optimizer.set_hyperparameter`. Any other attribute takes effect in the next
    step too, which is then traced again; assign a new value, do not change the old one in place.

    Steps compute in at least float32, and round to the dtype of a variable once. Its constraint, such as that of
    `kernel_constraint=`, is then applied. Slots are at least float32 unless the transformation or `mu_dtype` sets less.

    A subclass adds its hyperparameters with `add_hyperparameter` and returns the transformation from
    `make_transformation`, which runs while a step is traced.

    Args:
        transformation: any `optax.GradientTransformation`, including the learning rate and the sign. It gets the
            parameters as a flat dict by path. The numbers of `optax.inject_hyperparams` are hyperparameters.
        clipnorm: the largest norm of an unscaled gradient; None for no limit.
        clipvalue: the largest magnitude of an element of a gradient; None for no limit.
        global_clipnorm: the largest norm of all gradients together; None for no limit. Set at most one of these three.
        gradient_transformers: functions from a list of (gradient, variable) pairs to such a list. They get unscaled
            gradients, aggregated and clipped, inside the compiled step.
        gradient_aggregator: a function of the same kind, which runs first and aggregates across devices.
        use_ema: whether to average the variables over the steps; `fit` assigns the averages to them at its end.
        ema_momentum: the weight of the old average.
        ema_overwrite_frequency: after how many steps the variables are replaced by the averages; None for never.
        gradient_accumulation_steps: how many gradients are averaged for a step; None for 1. Gradients that a loss scale
            skips do not count.
        weights: how variables narrower than float32 keep small updates: `"stochastic"`, `"kahan"` or `"master"`, as in
            `mixed_precision.narrow_weights`; None to round to nearest.
        injected_hyperparameters: numbers that replace injected ones, by name.

    Raises:
        OperandError: for anything but an optax transformation; a `TypeError`.
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

    __signature__: ClassVar[KeywordSignature] = KeywordSignature()
    # With slots, an unknown attribute of a wrapper cannot be set. What subclasses add is compiled into steps.
    __slots__ = ("__weakref__", "_built", "_hyper", "_key", "_settings", "_stepper")
    _slot_dtypes: ClassVar[Mapping[str, str]] = {}  # the settings for the dtypes of slots, by field

    learning_rate: HyperparameterAttribute = HyperparameterAttribute()
    weight_decay: HyperparameterAttribute = HyperparameterAttribute()
    momentum: HyperparameterAttribute = HyperparameterAttribute()
    beta_1: HyperparameterAttribute = HyperparameterAttribute()
    beta_2: HyperparameterAttribute = HyperparameterAttribute()
    rho: HyperparameterAttribute = HyperparameterAttribute()
    epsilon: HyperparameterAttribute = HyperparameterAttribute()
    clipnorm: HyperparameterAttribute = HyperparameterAttribute()
    clipvalue: HyperparameterAttribute = HyperparameterAttribute()
    global_clipnorm: HyperparameterAttribute = HyperparameterAttribute()
    gradient_transformers: Setting = Setting(check_transformers)
    gradient_aggregator: Setting = Setting(check_aggregator)
    use_ema: Setting = Setting(flag)
    ema_momentum: Setting = Setting(partial(real_within, smallest=0, largest=1))
    ema_overwrite_frequency: Setting = Setting(check_count)
    gradient_accumulation_steps: Setting = Setting(check_count)
    weights: Setting = Setting(check_weights)

    def __init__(
        self,
        transformation: OptaxOptimizer | None = None,
        *,
        clipnorm: Hyper | None = None,
        clipvalue: Hyper | None = None,
        global_clipnorm: Hyper | None = None,
        gradient_transformers: Iterable[Transformer] = (),
        gradient_aggregator: Transformer | None = None,
        use_ema: bool = False,
        ema_momentum: float = 0.99,
        ema_overwrite_frequency: int | None = None,
        gradient_accumulation_steps: int | None = None,
        weights: str | None = None,
        **injected_hyperparameters: Hyper,
    ) -> None:
        self._hyper: dict[str, Hyperparameter] = {}
        self._key: Any = None
        self._settings: dict[str, Any] = {}
        self._stepper = Stepper(self)
        iterations = jnp.asarray(np.zeros((), jax.dtypes.canonicalize_dtype(int)))
        self._built = BuiltState(OptimizerState(iterations, {}, None), {}, None)
        limits = {"clipnorm": clipnorm, "clipvalue": clipvalue, "global_clipnorm": global_clipnorm}
        if sum(each is not None for each in limits.values()) > 1:
            raise ArgumentError("only one of clipnorm, clipvalue and global_clipnorm may be set: remove the others")
        for name, limit in limits.items():
            self.add_hyperparameter(name, limit, POSITIVE_OR_NONE)
        self.gradient_transformers = gradient_transformers
        self.gradient_aggregator = gradient_aggregator
        self.use_ema = use_ema
        self.ema_momentum = ema_momentum
        self.ema_overwrite_frequency = ema_overwrite_frequency
        self.gradient_accumulation_steps = gradient_accumulation_steps
        self.weights = weights
        if type(self).make_transformation is Optimizer.make_transformation:
            if isinstance(transformation, Optimizer):
                raise OperandError(
                    f"Optimizer needs an optax transformation, got {shown(transformation)}: use that optimizer as it is"
                )
            checked = self._settings["transformation"] = as_optax("an Optimizer", transformation)
            numbers = transformations.injected_numbers(checked, injected_hyperparameters, type(self).__name__)
            for name, number in numbers.items():
                self.add_hyperparameter(name, number, Rule(low=-NON_NEGATIVE.high))
        elif transformation is not None or injected_hyperparameters:
            extra = next(iter(injected_hyperparameters), "transformation")
            raise UnknownNameError("argument", extra, inspect.signature(type(self)).parameters, type(self).__name__)

    def make_transformation(self, **hyperparameters: Any) -> Any:
        """Return the optax transformation of a step; called while a step is traced, and by `build`.

        Args:
            hyperparameters: all hyperparameters by name, each a traced scalar of at least float32, or None if absent.
        """
        del hyperparameters
        return self._settings["transformation"]

    def add_hyperparameter(self, name: str, value: Hyper | None, rule: Rule = NON_NEGATIVE) -> None:
        """Add a hyperparameter; for the constructors of subclasses.

        Args:
            name: its name. If it is not one of Keras' names, only `set_hyperparameter` sets it.
            value: a number, a schedule, or None if the rule allows it.
            rule: the range of the number.
        """
        self._hyper[name] = Hyperparameter(name, rule, self._read_state, self._put_number)
        self.set_hyperparameter(name, value)

    def _read_state(self) -> Any:
        return current_state(self, self._built.arrays)

    def _put_number(self, name: str, number: jax.Array | None) -> None:
        state = self._built.arrays
        numbers = {key: each for key, each in {**state.hyperparameters, name: number}.items() if each is not None}
        self._built = self._built._replace(arrays=state._replace(hyperparameters=numbers))
        self._key = None

    def set_hyperparameter(self, name: str, value: Hyper | None) -> None:
        """Set a hyperparameter, also one without an attribute; a new number takes effect without a new trace.

        Args:
            name: one of `hyperparameters`.
            value: a number, a schedule, or None if the hyperparameter may be absent.

        Raises:
            UnknownNameError: for a hyperparameter that the optimizer does not have.
            OperandError: for a value of another type; a `TypeError`.
            ArgumentError: for a number out of bounds.
        """
        self._hyper[chosen("hyperparameter", name, self._hyper)].set(value)

    @property
    def hyperparameters(self) -> dict[str, Hyperparameter | None]:
        """The hyperparameters by name; None for those that are absent."""
        numbers = self._built.arrays.hyperparameters
        return {name: each if name in numbers or each.schedule else None for name, each in self._hyper.items()}

    @property
    def settings(self) -> dict[str, Any]:
        """The constructor's arguments that are not hyperparameters, by name."""
        return self._settings

    def set_setting(self, name: str, value: object, check: Callable[[str, Any], Any]) -> None:
        """Set a setting to what a check of its name and value returns; the next step is traced again."""
        self._settings, self._key = {**self.settings, name: check(name, value)}, None

    @property
    def trace_key(self) -> Any:
        """A hashable key that differs whenever something that is compiled into a step differs."""
        if self._key is None:
            numbers = [(each.name, each.schedule, each.is_absent) for each in self._hyper.values()]
            self._key = (type(self), hashable(self._settings), hashable(numbers))
        attributes: dict[str, Any] = getattr(self, "__dict__", {})  # the attributes of subclasses
        for name in attributes.keys() & self._hyper.keys():
            raise ArgumentError(f"{name} is not an attribute: use optimizer.set_hyperparameter({name!r}, ...)")
        return (self._key, hashable(attributes)) if attributes else self._key

    @property
    def state(self) -> Any:
        """A pytree of all arrays that a step changes; a jitted step takes it and returns the next one."""
        built = self._built
        if built.arrays.slots is not None and built.key_of and built.trace_key != self.trace_key:
            # Settings have changed: drop the slots that are not needed any more, and make the new ones.
            slots = transformations.carry_over(built.arrays.slots, self._fresh_slots(built.key_of))
            self._built = BuiltState(built.arrays._replace(slots=slots), built.key_of, self.trace_key)
        return self._read_state()

    @state.setter
    def state(self, state: PyTree) -> None:
        self._built = self._built._replace(arrays=state)

    @property
    def iterations(self) -> jax.Array:
        """The number of applied steps, without skipped ones."""
        return copy_state(self._read_state().iterations)

    @property
    def skips(self) -> bool:
        """Whether steps may be skipped."""
        return False

    @property
    def built_for(self) -> dict[str, Variable]:
        """The variables that have slots, by key."""
        return {key: variable for variable, key in self._built.key_of.items()}

    def build(self, variables: Variables) -> None:
        """Make the slots for variables; existing slots are kept.

        Args:
            variables: the variables of a model by path, such as `model.trainable_variables`, several variables, or one.
                A path becomes the key of its variable.

        Raises:
            OperandError: for anything that is not a variable.
            ArgumentError: for a variable that is not real floating or occurs twice, and for a path that another
                variable already has.
            UninitializedError: for a variable without a value.
        """
        old_key_of = self._built.key_of
        key_of = register(old_key_of, variables)
        if self._built.arrays.slots is not None and key_of == old_key_of:
            return
        state, slots = self.state, self._fresh_slots(key_of)
        if state.slots is not None:
            # Existing leaves are kept, including leaves that belong to no variable.
            new_keys = {key: key_of[variable] for variable, key in old_key_of.items()}
            old = transformations.by_name(transformations.rekey(state.slots, new_keys.keys(), new_keys))
            slots = transformations.replace_leaves(slots, old)
        self._built = BuiltState(state._replace(slots=slots), key_of, self.trace_key)

    def _fresh_slots(self, key_of: Mapping[Variable, str]) -> Any:
        values = {key: variable.read_stored() for variable, key in key_of.items()}
        return jax.jit(self._initial_slots)(self._built.arrays._replace(slots=None), values)

    def _initial_slots(self, state: OptimizerState, values: Mapping[str, jax.Array]) -> Any:
        dtypes = {field: getattr(self, name) for field, name in self._slot_dtypes.items()}
        return initial_slots(self, [*self._hyper.values()], dtypes, state, values)

    def init(self, values: Mapping[str, jax.Array]) -> Any:
        """Make a state for a step on these values, with the current numbers; the optimizer's own state does not change.

        Args:
            values: the variables' values, by key.
        """
        own = self._read_state()
        # Steps may donate the buffers of the state, hence the copies.
        iterations, numbers = jax.tree.map(jnp.copy, (own.iterations, own.hyperparameters))
        return OptimizerState(iterations, numbers, self._initial_slots(own, values))

    def value_and_grad(
        self, loss_fn: Callable[..., Any], *, has_aux: bool = False, aggregate: Aggregate | None = None
    ) -> Callable[..., Any]:
        """Differentiate as `jax.value_and_grad` does; with a loss scale, scale the loss and unscale the gradients.

        Args:
            loss_fn: a function of the variables' values, a dict by key, and other arguments. It returns a real floating
                scalar; with `has_aux`, a pair of the scalar and auxiliary data.
            has_aux: whether it returns auxiliary data.
            aggregate: a function from the gradients of the backward pass, by key, to such gradients, for example their
                means over devices. With a loss scale they are scaled. None for no such function.

        Returns:
            A pure function of the optimizer's state and the arguments of `loss_fn`, which returns the unscaled value
            and the gradients. It raises an `OperandError` for a loss that is not a real floating scalar.
        """
        differentiate = jax.value_and_grad(check_loss(loss_fn, has_aux), has_aux=has_aux)

        def value_and_grad(state: Any, values: Any, *args: Any) -> Any:
            with use_state(self, state):
                value, gradients = differentiate(values, *args)
            return value, gradients if aggregate is None else aggregate(gradients)

        return value_and_grad

    def reduce_dtype(self, asked: DType | None) -> DType | None:
        """Return the dtype in which gradients are summed across devices; None for their own, at least float32.

        Args:
            asked: the dtype of the policy; None for the gradients' own.
        """
        return asked

    def all_reduce(self, gradients: Mapping[str, Any], state: PyTree, axis_name: str) -> dict[str, Any]:
        """Average unscaled gradients over devices, for `update`; call it in `jax.shard_map`.

        With a loss scale, gradients are scaled before the sum, in the dtype of `reduce_dtype`, and unscaled after it
        (Keras RFC 293, mixed precision, "All-reducing in float16").

        Args:
            gradients: the gradients of a part of the batch, by key.
            state: the optimizer's state.
            axis_name: the name of the device axis.
        """
        del state
        return all_reduce_gradients(dict(gradients), axis_name, self.reduce_dtype(None))

    def update(
        self,
        gradients: Mapping[str, Any],
        state: PyTree,
        values: Mapping[str, jax.Array],
        *,
        after: PyTree = None,
        before: PyTree = None,
        aggregate_gradients: bool = True,
        seed: ArrayLike | None = None,
    ) -> Update:
        """Take a step as a pure function: return new values and a new state, or the old ones if it is skipped.

        Args:
            gradients: the unscaled gradients by key; a variable whose gradient is None or missing keeps its value and
                slots.
            state: the state before the step.
            values: the variables' values before the step, by key.
            after: other values that belong to the step, such as running statistics: any tree of arrays.
            before: the old values, with the same structure and dtypes as `after`.
            aggregate_gradients: whether the gradients are passed to `gradient_aggregator`.
            seed: the seed of `weights="stochastic"`, an integer scalar; None for 0. The members of an ensemble need one
                each: `jax.vmap(optimizer.update)(gradients, state, values, seed=jnp.arange(4))`.
        """
        del before  # only for optimizers that skip steps
        with use_state(self, state):
            hyperparameters = [*self._hyper.values()]
            step = take_step(self, hyperparameters, gradients, state, values, aggregate_gradients, seed)
        return Update(*step, after, jnp.asarray(False))

    def finalize_variable_values(self) -> None:
        """Assign the averages that `use_ema` keeps to the variables; `fit` does it at its end."""
        if self.use_ema:
            assign_averages(self.state.slots, self.built_for)

    def gradient_dtypes(self, variable: Variable) -> tuple[DType, ...]:
        """Return the dtypes that `apply_gradients` takes for the gradient of a variable, the usual dtype first."""
        return (variable.true_dtype,)

    def minimize(self, loss_fn: Callable[..., Any], var_list: Variables, *args: PyTree) -> jax.Array:
        """Take a step: compute the loss and its gradients, and change the variables.

        With `args` the whole step is compiled, once for each loss function. Pass the same function again, not a new
        lambda, and pass everything that changes from step to step in `args`; of the values that the function closes
        over only `nn.Variable` objects may change. Without `args` any value might change, therefore the gradients are
        computed operation by operation, and only the update is compiled.

        In `with training.DataParallel().scope():` `args` are split along their first axis, and each device computes the
        loss of a part. Gradients are averaged directly after the backward pass, still scaled.

        Assignments of `loss_fn` to other variables, such as running statistics, take effect unless the step is skipped.
        Random numbers come from `with nn.random_key(key):`, with a separate key for each step.

        Args:
            loss_fn: a function of `args` that reads variables and returns a real floating scalar.
            var_list: the variables to change: `model.trainable_variables`, several variables, or one.
            args: arrays, and trees of arrays.

        Returns:
            The loss, before the step and unscaled.

        Raises:
            OperandError: for a loss that is not a function, or does not return a real floating scalar; a `TypeError`.
            ArgumentError: for a loss function that assigns to the trained variables, and while JAX is tracing; use
                `value_and_grad` and `update` there.
        """
        return self._stepper.minimize(loss_fn, var_list, args)

    def get_gradients(self, loss_fn: Callable[..., Any], variables: Variables, *args: PyTree) -> list[jax.Array]:
        """Compute the unscaled gradients of a loss, for `apply_gradients`.

        Args:
            loss_fn: as for `minimize`, including when it is compiled.
            variables: as `var_list` of `minimize`.
            args: as for `minimize`.

        Returns:
            A gradient for each variable, in order. On several devices each gradient has a first axis of the devices.
        """
        return self._stepper.get_gradients(loss_fn, variables, args)

    def apply_gradients(self, pairs: Iterable[tuple[Any, Variable]], *, aggregate_gradients: bool = True) -> None:
        """Change variables by gradients.

        Args:
            pairs: (gradient, variable) pairs. A variable whose gradient is None or missing keeps its value and slots.
                Gradients are unscaled, in the dtypes of their variables. On several devices each gradient has a first
                axis of the devices, as `get_gradients` returns it, over which it is averaged.
            aggregate_gradients: whether gradients are averaged across devices, and passed to `gradient_aggregator`;
                False for gradients that are averaged already.

        Raises:
            OperandError: for anything but pairs, or a gradient with a wrong dtype; a `TypeError`.
            ArgumentError: for a gradient with a wrong shape, a variable that occurs twice, or no gradient at all.
        """
        self._stepper.apply_gradients(pairs, flag("aggregate_gradients", aggregate_gradients))

    @property
    def variables(self) -> dict[str, jax.Array]:
        """The arrays of a checkpoint by name, such as `"iterations"`, `"learning_rate"` and `"mu/dense/kernel"`."""
        return checkpoint_arrays.arrays_by_name(self.state, self.hyperparameters)

    def load_variables(self, saved: Mapping[str, Any]) -> None:
        """Load saved `variables`, all or none.

        Args:
            saved: arrays by name. The arrays of a loss scale, `"loss_scale/..."`, are ignored.

        Raises:
            UnknownNameError: for an unknown name.
            ArgumentError: for a missing name, or a value with a wrong shape or dtype.
        """
        arrays = checkpoint_arrays.check_arrays(checkpoint_arrays.without_scale(saved), self.variables)
        numbers = {name: arrays.pop(name) for name in self._built.arrays.hyperparameters}
        for name, number in numbers.items():
            self._hyper[name].rule.check(name, number)
        slots = transformations.replace_leaves(self._built.arrays.slots, arrays)
        self.state = self._built.arrays._replace(iterations=arrays["iterations"], slots=slots)
        for name, number in numbers.items():
            self.set_hyperparameter(name, number)

    def get_weights(self) -> list[np.ndarray[Any, Any]]:
        """Return the values of `variables` on the host, in order."""
        return [np.asarray(each) for each in self.variables.values()]

    def set_weights(self, weights: Iterable[Any]) -> None:
        """Load the result of `get_weights`, all or nothing.

        Raises:
            ArgumentError: for a wrong number of arrays, or an array with a wrong shape or dtype.
        """
        self.load_variables(checkpoint_arrays.by_name(weights, self.variables))

    def get_config(self) -> dict[str, Any]:
        """Return the constructor arguments; schedules and functions stay as they are."""
        numbers = {name: shortest(number) for name, number in self._built.arrays.hyperparameters.items()}
        schedules = {name: each.schedule for name, each in self._hyper.items() if each.schedule is not None}
        values = {name: schedules.get(name, numbers.get(name)) for name in self._hyper}
        return {**values, **self._settings}

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self:
        """Make a new optimizer from the result of `get_config`."""
        for name in mapping("config", config, "optimizer.get_config()"):
            text("each name in config", name)
        return cls(**config)

    def __repr__(self) -> str:
        return transformations.call_text(type(self).__name__, self.get_config())
