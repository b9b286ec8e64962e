"""The stateful methods of optimizers, around the pure functions `value_and_grad` and `update`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

import jax
from jax.core import Tracer

from supremum.errors import ArgumentError, OperandError, shown
from supremum.mixed_precision import all_finite, is_array
from supremum.nn import Variable, next_random_key, overlay, random_key
from supremum.optimizers.gradients import Variables, check_function, check_pairs
from supremum.optimizers.settings import hashable
from supremum.optimizers.state import Update, value_of
from supremum.scoped_values import BlockValue
from supremum.user_frame import warn_user

_PROGRAMS = 32
_devices: BlockValue[Any] = BlockValue("devices", None)


def across(devices: Any) -> AbstractContextManager[None]:
    """Make optimizers use several devices inside a block.

    Args:
        devices: several devices, each with a part of a batch. They have the attributes `replicas` and `axis_name` and
            the methods `place`, `batch`, `aggregate`, `on_each_device` and `over_replicas` of `training.DataParallel`.
    """
    return _devices.holding(devices)


class RetraceWarning(UserWarning):
    """A function is compiled repeatedly although compiling it once would do.

    >>> import warnings
    >>> from supremum import nn
    >>> from supremum.optimizers import SGD
    >>> w, optimizer = nn.Variable([1.0], "w"), SGD(0.25)
    >>> with warnings.catch_warnings():
    ...     # a loop that makes its loss function in every step fails
    ...     warnings.simplefilter("error", RetraceWarning)
    ...     loss = optimizer.minimize(lambda: (w.value**2).sum(), w)
    >>> float(loss)
    1.0
    """


class RecordedValues(dict[Variable, jax.Array]):
    """Values that replace the values of variables; records written variables, and read variables without a value here.

    It is given to `nn.overlay`.
    """

    def __init__(self, values: dict[Variable, jax.Array]) -> None:
        super().__init__(values)
        self.missing: dict[Variable, None] = {}
        self.written: dict[Variable, None] = {}

    def __missing__(self, variable: Variable) -> jax.Array:
        self.missing[variable] = None
        raise KeyError(variable)

    def __setitem__(self, variable: Variable, value: jax.Array) -> None:
        if variable not in self:
            self.missing[variable] = None
        self.written[variable] = None
        super().__setitem__(variable, value)

    def check_not_written(self, trained: Iterable[Variable]) -> None:
        """Raise if the loss function assigned to a variable that is trained."""
        for variable in trained:
            if variable in self.written:
                raise ArgumentError(
                    f"the loss function must not assign to {shown(variable)}, which the optimizer trains: assign to it "
                    "after the step"
                )


class _MissingVariablesError(Exception):
    """The traced loss reads variables that are not inputs of the step yet."""


class LossProgram:
    """The compiled step of one loss function; every variable that the loss function reads is an input of the step.

    Args:
        optimizer: the `Optimizer`.
        loss_fn: the loss function.
        applies: whether gradients are applied, or only computed.
        devices: the devices, which compute a part of the batch each; None for one device.
    """

    def __init__(self, optimizer: Any, loss_fn: Callable[..., Any], applies: bool, devices: Any) -> None:
        self._optimizer = optimizer
        self._loss_fn = loss_fn
        self._applies = applies
        self._devices = devices
        self._others: dict[Variable, None] = {}
        self._jitted = jax.jit(self._step, static_argnames="trace_key")

    def __call__(self, values: dict[str, Any], args: tuple[Any, ...]) -> Any:
        """Run the step; trace it again until all variables that the loss function reads are inputs.

        Returns:
            The loss and the `Update`; if gradients are only computed, the loss, the gradients and the assigned values.
        """
        key = _drawn_key()
        if self._devices is not None:
            args = self._devices.batch(args)
        while True:
            others = [variable.read_stored() for variable in self._others]
            state, trace_key = self._optimizer.state, self._optimizer.trace_key
            if self._devices is not None:
                state, values, others = self._devices.place((state, values, others))
            try:
                return self._jitted(state, values, others, key, args, trace_key=trace_key)
            except _MissingVariablesError:
                continue

    def assign(self, alongside: dict[int, jax.Array]) -> None:
        """Assign the values that the loss function assigned while it was traced."""
        variables = list(self._others)
        for place, value in alongside.items():
            variables[place].assign(value)

    def _step(self, state: Any, values: Any, others: list[Any], key: Any, args: Any, *, trace_key: Any) -> Any:
        del trace_key  # a static argument: the step is traced again when it changes
        backward: Callable[..., Any] = self._backward
        if self._devices is not None:
            backward = self._devices.on_each_device(backward, keeps_gradients_apart=not self._applies)
        loss, after, _, gradients = backward(state, values, others, args, key)
        before = {place: others[place] for place in after}
        if self._applies:
            return loss, self._optimizer.update(gradients, state, values, after=after, before=before)
        return loss, gradients, _after_step(self._optimizer, gradients, after, before)

    def _backward(self, state: Any, values: Any, others: Any, args: Any, key: Any) -> Any:
        def aggregate(gradients: dict[str, Any]) -> dict[str, Any]:
            """Sum the scaled gradients of the devices."""
            if self._devices is None or not self._applies:
                return gradients
            shapes = {key: value.shape for key, value in values.items()}
            return self._devices.aggregate(gradients, self._optimizer.reduce_dtype(None), shapes)

        differentiate = self._optimizer.value_and_grad(self._loss_of, has_aux=True, aggregate=aggregate)
        (_, (loss, after)), gradients = differentiate(state, values, others, args, key)
        return loss, after, (), gradients

    def _loss_of(self, values: dict[str, Any], others: list[Any], args: Any, key: Any) -> Any:
        places = {variable: place for place, variable in enumerate(self._others)}
        trained = {self._optimizer.built_for[key]: value for key, value in values.items()}
        recorded = RecordedValues({**trained, **dict(zip(self._others, others, strict=True))})
        with overlay(recorded), nullcontext() if key is None else random_key(key):
            loss = value_of(self._loss_fn(*args))
        if recorded.missing:
            self._others.update({variable: None for variable in recorded.missing if variable not in trained})
            raise _MissingVariablesError
        recorded.check_not_written(trained)
        # The division turns the sum of the devices' gradients into their mean.
        part = loss / self._devices.replicas if self._devices is not None and self._applies else loss
        return part, (loss, {places[variable]: recorded[variable] for variable in recorded.written})


def _drawn_key() -> Any:
    """Draw a key for this step inside `nn.random_key`; a key drawn while tracing would be the same in every step."""
    try:
        return next_random_key()
    except ArgumentError:
        return None


class Stepper:
    """The stateful methods of one optimizer.

    Args:
        optimizer: the `Optimizer`.
    """

    def __init__(self, optimizer: Any) -> None:
        self._optimizer = optimizer
        self._programs: dict[Any, LossProgram] = {}
        self._has_warned = False
        self._update = jax.jit(self._pure_update, static_argnames="fixed")

    def __reduce__(self) -> Any:
        # Compiled programs belong to one optimizer; a copied or unpickled optimizer has none yet.
        return Stepper, (self._optimizer,)

    def minimize(self, loss_fn: Callable[..., Any], variables: Variables, args: tuple[Any, ...]) -> jax.Array:
        """See `Optimizer.minimize`."""
        check_function(loss_fn)
        trained = self._variables_by_key(variables)
        if args:
            program = self._program(loss_fn, args, applies=True)
            loss, update = program(_values(trained), args)
            self._store(update, trained)
            program.assign(update.alongside)
            return loss
        loss, gradients = self._differentiate(loss_fn, trained)
        self._update_variables(gradients, trained, True, None)
        return loss

    def get_gradients(
        self, loss_fn: Callable[..., Any], variables: Variables, args: tuple[Any, ...]
    ) -> list[jax.Array]:
        """See `Optimizer.get_gradients`."""
        check_function(loss_fn)
        trained = self._variables_by_key(variables)
        if args:
            program = self._program(loss_fn, args, applies=False)
            loss, gradients, alongside = program(_values(trained), args)
            _check_concrete(loss)
            program.assign(alongside)
        else:
            _, gradients = self._differentiate(loss_fn, trained)
        return [gradients[key] for key in trained]

    def apply_gradients(self, pairs: object, aggregates: bool) -> None:
        """See `Optimizer.apply_gradients`."""
        devices = _devices.value if aggregates else None
        by_variable = check_pairs(
            pairs, self._optimizer.gradient_dtypes, () if devices is None else (devices.replicas,)
        )
        trained = self._variables_by_key(list(by_variable))
        gradients = dict(zip(trained, by_variable.values(), strict=True))
        self._update_variables(gradients, trained, aggregates, devices)

    def _update_variables(self, gradients: Any, trained: dict[str, Variable], aggregates: bool, devices: Any) -> None:
        """Take a step and store the result."""
        state, values = self._optimizer.state, _values(trained)
        if devices is not None:
            state, values = devices.place((state, values))
        fixed = (aggregates, devices, self._optimizer.trace_key)
        self._store(self._update(gradients, state, values, fixed=fixed), trained)

    def _pure_update(self, gradients: Any, state: Any, values: Any, *, fixed: Any) -> Update:
        aggregates, devices, _ = fixed  # with the trace key: the update is traced again when it changes
        if devices is not None:
            mean = devices.over_replicas(partial(self._optimizer.all_reduce, axis_name=devices.axis_name))
            gradients = mean(gradients, state)
        return self._optimizer.update(gradients, state, values, aggregate_gradients=aggregates)

    def _variables_by_key(self, variables: Variables) -> dict[str, Variable]:
        self._optimizer.build(variables)
        key_of = {variable: key for key, variable in self._optimizer.built_for.items()}
        if isinstance(variables, Variable):
            return {key_of[variables]: variables}
        several = variables.values() if isinstance(variables, Mapping) else variables
        return {key_of[variable]: variable for variable in several}

    def _program(self, loss_fn: Any, args: tuple[Any, ...], *, applies: bool) -> LossProgram:
        for leaf in jax.tree.leaves(args):
            if not is_array(leaf) and not isinstance(leaf, (int, float, complex)):
                raise OperandError(
                    f"the arguments of a compiled loss function must be arrays, got {shown(leaf)}: use "
                    "functools.partial or a closure, made once before the loop"
                )
        devices = _devices.value
        key = (applies, hashable(loss_fn), devices)
        if key not in self._programs:
            if len(self._programs) >= _PROGRAMS:
                self._programs.pop(next(iter(self._programs)))
                if not self._has_warned:
                    self._has_warned = True
                    warn_user(
                        f"{_PROGRAMS} loss functions were compiled for one optimizer; a lambda or functools.partial in "
                        "the training loop is a new function in every step: make it once, before the loop",
                        RetraceWarning,
                    )
            self._programs[key] = LossProgram(self._optimizer, loss_fn, applies, devices)
        return self._programs[key]

    def _differentiate(self, loss_fn: Any, trained: dict[str, Variable]) -> Any:
        """Differentiate without compiling, and assign what the loss function assigned: the loss and the gradients."""
        if _devices.value is not None:
            raise ArgumentError(
                "on several devices the loss function must take the batch as arguments, to split it: use "
                "optimizer.minimize(loss_fn, variables, x, y), with loss_fn(x, y)"
            )
        written: list[Variable] = []

        def loss_of(values: dict[str, Any]) -> Any:
            recorded = RecordedValues({trained[key]: value for key, value in values.items()})
            with overlay(recorded):
                loss = value_of(loss_fn())
            recorded.check_not_written(trained.values())
            written[:] = recorded.written
            return loss, [recorded[variable] for variable in written]

        differentiate = self._optimizer.value_and_grad(loss_of, has_aux=True)
        (loss, after), gradients = differentiate(self._optimizer.state, _values(trained))
        _check_concrete(loss)
        before = [variable.read_stored() for variable in written]
        for variable, value in zip(written, _after_step(self._optimizer, gradients, after, before), strict=True):
            variable.assign(value)
        return loss, gradients

    def _store(self, update: Update, trained: dict[str, Variable]) -> None:
        _check_concrete(update.skipped)
        for key, variable in trained.items():
            variable.assign(update.values[key])
        self._optimizer.state = update.state


def _after_step(optimizer: Any, gradients: Any, after: Any, before: Any) -> Any:
    """Return the values that a loss function assigned, or the old ones if the step would be skipped."""
    if not optimizer.skips or not jax.tree.leaves(after):
        return after
    return jax.lax.cond(all_finite(gradients), lambda: after, lambda: before)


def _values(trained: dict[str, Variable]) -> dict[str, jax.Array]:
    return {key: variable.read_stored() for key, variable in trained.items()}


def _check_concrete(leaf: Any) -> None:
    if isinstance(leaf, Tracer):
        raise ArgumentError(
            "an optimizer cannot change its state while JAX is tracing: inside jax.jit use optimizer.value_and_grad "
            "and optimizer.update, which take a state and return the next state"
        )
