"""The variables and gradients of an optimizer: keys and checks, and the clipping and transformation of gradients."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import wraps
from itertools import chain, count
from typing import Any, TypeAlias, cast

import jax
import jax.numpy as jnp

from supremum.argument_checks import is_iterable
from supremum.errors import ArgumentError, OperandError, UnknownNameError, shown
from supremum.formats import Kind, as_format
from supremum.mixed_precision import described, is_array, is_floating, split_loss, widen
from supremum.nn import Variable, overlay

Variables: TypeAlias = "Mapping[str, Variable] | Sequence[Variable] | Variable"
"""The argument of optimizers: one variable, several variables, or the variables of a model by path."""
Transformer: TypeAlias = Callable[[list[tuple[Any, Variable]]], Iterable[tuple[Any, Variable]]]
"""A function from (gradient, variable) pairs to (gradient, variable) pairs."""
Aggregate: TypeAlias = Callable[[dict[str, Any]], dict[str, Any]]
"""A function from scaled gradients by key to scaled gradients by key."""

_NOT_A_FUNCTION = """minimize needs a function that computes the loss, got {what}: JAX has no tape, and cannot \
differentiate a loss that is already computed. Pass the function:
    optimizer.minimize(loss_fn, variables)
or compute the gradients with jax.grad:
    def scaled_loss(values):
        return optimizer.get_scaled_loss(loss_of(values))  # with a LossScaleOptimizer
    gradients = jax.grad(scaled_loss)([variable.value for variable in variables])
    gradients = optimizer.get_unscaled_gradients(gradients)  # with a LossScaleOptimizer
    optimizer.apply_gradients(zip(gradients, variables))"""


def register(key_of: Mapping[Variable, str], variables: Variables) -> dict[Variable, str]:
    """Give each variable a key: its path in a model, or an unused name if there is no path.

    Args:
        key_of: the keys of the known variables; paths replace earlier names.
        variables: the variables to add.

    Raises:
        OperandError: for anything that is not a variable.
        ArgumentError: for a variable that occurs twice or is not real floating, and for a path that another variable
            already has.
    """
    keys = dict(key_of)
    if isinstance(variables, Mapping):
        keys.update(zip(check_variables(variables.values()), variables, strict=True))
    else:
        names = set(keys.values())
        for variable in check_variables(variables):
            if variable not in keys:
                keys[variable] = _free_name(variable.name, names)
                names.add(keys[variable])
    for key, times in Counter(keys.values()).items():
        if times > 1:
            raise ArgumentError(
                f"two variables are called {shown(key)}, because this optimizer has trained another model: make one "
                "optimizer for each model, with type(optimizer).from_config(optimizer.get_config())"
            )
    return keys


def check_variables(variables: Variable | Iterable[Any]) -> list[Variable]:
    """Check variables, and return them as a list.

    Raises:
        OperandError: for anything that is not a variable.
        ArgumentError: for a variable that occurs twice, or is not real floating.
    """
    if isinstance(variables, Variable):
        return [variables]
    if not is_iterable(variables):
        raise _not_a_variable(variables)
    unique: dict[Variable, None] = {}
    for variable in variables:
        check_variable(variable)
        if variable in unique:
            raise ArgumentError(f"{shown(variable)} must occur only once: an optimizer changes it once in a step")
        unique[variable] = None
    if not unique:
        raise ArgumentError("an optimizer needs at least one variable, got none: pass model.trainable_variables")
    return list(unique)


def check_variable(variable: object) -> None:
    """Raise if a value is not a real floating variable."""
    if not isinstance(variable, Variable):
        raise _not_a_variable(variable)
    if as_format(variable.true_dtype).kind is not Kind.FLOAT:
        raise ArgumentError(
            f"trained variables must be real floating, got {shown(variable)}: leave it out, or make it with "
            "trainable=False"
        )


def _not_a_variable(value: object) -> OperandError:
    if isinstance(value, str):
        return OperandError(
            f"an optimizer needs supremum.nn.Variable objects, got the name {shown(value)}: model.trainable_variables "
            "is a dict by path, so use zip(gradients, model.trainable_variables.values())"
        )
    return OperandError(
        f"an optimizer needs supremum.nn.Variable objects, got {type(value).__name__}: pass "
        "model.trainable_variables, or nn.Variable(array)"
    )


def _free_name(name: str, names: set[str]) -> str:
    numbered = (f"{name}_{number}" for number in count(1))
    return next(free for free in chain([name], numbered) if free not in names)


def check_function(loss_fn: object) -> None:
    """Raise if a loss is not a function."""
    if not callable(loss_fn):
        raise OperandError(_NOT_A_FUNCTION.format(what=described(loss_fn)))


def check_loss(loss_fn: Callable[..., Any], has_aux: bool) -> Callable[..., Any]:
    """Wrap a loss function: raise an `OperandError` unless it returns a real floating scalar."""

    @wraps(loss_fn)
    def checked(*args: Any, **kwargs: Any) -> Any:
        loss, aux = split_loss(loss_fn(*args, **kwargs), has_aux)
        return (loss, aux) if has_aux else loss

    return checked


def check_pairs(
    pairs: object, dtypes_of: Callable[[Variable], tuple[Any, ...]], devices: tuple[int, ...] = ()
) -> dict[Variable, Any]:
    """Check (gradient, variable) pairs, and return the gradients by variable, without gradients that are None.

    Args:
        pairs: (gradient, variable) pairs.
        dtypes_of: a function from a variable to the allowed dtypes of its gradient, the usual dtype first.
        devices: the length of the first axis, one gradient for each device; () if gradients have no such axis.

    Raises:
        OperandError: for anything but pairs, or a gradient with a wrong dtype.
        ArgumentError: for a gradient with a wrong shape, a variable that occurs twice, or no gradient at all.
    """
    gradients: dict[Variable, Any] = {}
    for gradient, variable in _as_pairs(pairs):
        check_variable(variable)
        if variable in gradients:
            raise ArgumentError(f"{shown(variable)} must have one gradient, got two: add them up")
        gradients[variable] = gradient
        if gradient is not None:
            _check_gradient(gradient, variable, dtypes_of(variable), devices)
    gradients = {variable: gradient for variable, gradient in gradients.items() if gradient is not None}
    if not gradients:
        raise ArgumentError("at least one gradient must not be None, got None for every variable")
    return gradients


def _check_gradient(gradient: Any, variable: Variable, dtypes: tuple[Any, ...], devices: tuple[int, ...]) -> None:
    if not is_array(gradient):
        raise OperandError(f"the gradient of {shown(variable)} must be an array, got {shown(gradient)}: use jax.grad")
    if gradient.dtype not in dtypes:
        row, wanted = as_format(gradient.dtype), as_format(dtypes[0])
        part = ".real" if row.category == "complex" != wanted.category else ""
        raise OperandError(
            f"the gradient of {shown(variable)} must be {wanted}, got {row}: use gradient{part}.astype('{wanted}')"
        )
    shape = (*devices, *variable.shape)
    if gradient.shape != shape:
        averaged = ", or aggregate_gradients=False for gradients that are averaged already" if devices else ""
        raise ArgumentError(
            f"the gradient of {shown(variable)} must have shape {shape}, got {gradient.shape}: pass the result of "
            f"get_gradients{averaged}"
        )


def _as_pairs(pairs: Any) -> list[tuple[Any, Any]]:
    items = list(pairs) if is_iterable(pairs) and not isinstance(pairs, Mapping) else None
    if items is None or not all(isinstance(pair, (tuple, list)) and len(cast("Any", pair)) == 2 for pair in items):
        raise OperandError(
            f"gradients must be (gradient, variable) pairs, got {type(pairs).__name__}: use "
            "apply_gradients(zip(gradients, variables))"
        )
    return cast("list[tuple[Any, Any]]", items)


def wide_gradients(gradients: Mapping[str, Any], keys: AbstractSet[str]) -> dict[str, Any]:
    """Return the gradients of a step that are not None, at least float32.

    Args:
        gradients: the gradients by key.
        keys: the keys of the variables that the step may change.

    Raises:
        UnknownNameError: for another key.
    """
    wide = {key: widen(each) for key, each in gradients.items() if each is not None}
    for key in wide:
        if key not in keys:
            raise UnknownNameError("variable", key, keys, "the gradients of a step")
    return wide


def process(
    gradients: dict[str, Any],
    values: Mapping[str, Any],
    variables: Mapping[str, Variable],
    numbers: Mapping[str, Any],
    aggregator: Transformer | None,
    transformers: Iterable[Transformer],
) -> dict[str, Any]:
    """Aggregate, clip and transform gradients, for an optax transformation.

    Args:
        gradients: the gradients by key, at least float32.
        values: the values of the variables, by key.
        variables: the variables by key, for functions of (gradient, variable) pairs.
        numbers: the hyperparameters of the step, by name.
        aggregator: a function that aggregates gradients; None for no aggregation.
        transformers: functions that change gradients after clipping.
    """
    if not variables and (transformers or aggregator is not None):
        raise ArgumentError("gradient transformers need variables: call optimizer.build(variables) first")
    if aggregator is not None:
        gradients = transform(gradients, values, variables, [aggregator])
    gradients = clip(gradients, numbers)
    return transform(gradients, values, variables, transformers) if transformers else gradients


def transform(
    gradients: dict[str, Any],
    values: Mapping[str, Any],
    variables: Mapping[str, Variable],
    functions: Iterable[Transformer],
) -> dict[str, Any]:
    """Apply functions of (gradient, variable) pairs to gradients; the variables have the values `values` meanwhile.

    Args:
        gradients: the gradients by key.
        values: the values of the variables, by key.
        variables: the variables by key.
        functions: the functions, in order.

    Raises:
        OperandError: for a function that does not return pairs, or returns a gradient that is not floating.
        ArgumentError: for an unknown variable, or a gradient with a wrong shape.
    """
    key_of = {variables[key]: key for key in gradients}
    pairs = [(gradient, variables[key]) for key, gradient in gradients.items()]
    with overlay({variables[key]: value for key, value in values.items()}):
        for function in functions:
            pairs = _as_pairs(function(list(pairs)))
            for gradient, variable in pairs:
                _check_transformed(function, gradient, variable, key_of)
    return {key_of[variable]: widen(gradient) for gradient, variable in pairs if gradient is not None}


def _check_transformed(function: Any, gradient: Any, variable: Any, key_of: Mapping[Variable, str]) -> None:
    check_variable(variable)
    if variable not in key_of:
        raise ArgumentError(f"{shown(function)} returned a gradient for {shown(variable)}, but did not get one")
    if gradient is None:
        return
    if not is_floating(gradient):
        raise OperandError(
            f"{shown(function)} must return a floating-point array as the gradient of {shown(variable)}, got "
            f"{described(gradient)}"
        )
    if gradient.shape != variable.shape:
        raise ArgumentError(
            f"{shown(function)} must return a gradient of shape {variable.shape} for {shown(variable)}, got "
            f"{gradient.shape}"
        )


def constrain(values: dict[str, jax.Array], variables: Mapping[str, Variable]) -> dict[str, jax.Array]:
    """Apply the constraints of variables to their new values.

    Args:
        values: the new values, by key.
        variables: the variables by key; a value without a variable has no constraint.

    Raises:
        ArgumentError: for a constraint that returns a different shape.
    """
    constrained = dict(values)
    for key, variable in variables.items():
        if key in values and variable.constraint is not None:
            value = values[key]
            constrained[key] = jnp.asarray(variable.constraint(value), value.dtype)
            if constrained[key].shape != value.shape:
                raise ArgumentError(
                    f"the constraint of {shown(variable)} must return shape {value.shape}, got {constrained[key].shape}"
                )
    return constrained


def clip(gradients: dict[str, jax.Array], numbers: Mapping[str, Any]) -> dict[str, jax.Array]:
    """Clip gradients by key, as Keras' arguments of the same names do; the norms do not overflow.

    Args:
        gradients: floating arrays, at least float32.
        numbers: the hyperparameters of the step. `clipvalue` is the largest magnitude of an element, `clipnorm` the
            largest norm of a gradient, `global_clipnorm` the largest norm of all gradients together; each may be None.
    """
    clipvalue, clipnorm, global_clipnorm = (numbers[name] for name in ("clipvalue", "clipnorm", "global_clipnorm"))
    if clipvalue is not None:
        gradients = {key: jnp.clip(each, -clipvalue, clipvalue).astype(each.dtype) for key, each in gradients.items()}
    if clipnorm is not None:
        gradients = {key: each * _shrink_factor([each], clipnorm).astype(each.dtype) for key, each in gradients.items()}
    if global_clipnorm is not None:
        factor = _shrink_factor(list(gradients.values()), global_clipnorm)
        gradients = {key: each * factor.astype(each.dtype) for key, each in gradients.items()}
    return gradients


def _shrink_factor(arrays: list[jax.Array], largest: jax.Array) -> jax.Array:
    """Return the factor, at most 1, that limits the norm of arrays."""
    # Divide by the largest element before squaring: the squares of finite gradients may overflow.
    peak = jnp.max(jnp.stack([jnp.max(jnp.abs(array), initial=0.0) for array in arrays]))
    unit = jnp.where(peak > 0, peak, 1)
    norm = unit * jnp.sqrt(sum(jnp.sum(jnp.square(array / unit)) for array in arrays))
    return largest / jnp.maximum(norm, largest)
