"""Checks, clipping and transformation of gradients before the update."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from typing import Any, TypeAlias, cast

import jax
import jax.numpy as jnp

from supremum.argument_checks import is_iterable
from supremum.errors import ArgumentError, OperandError, shown
from supremum.formats import as_format
from supremum.mixed_precision import described, is_array, is_floating, split_loss, widen
from supremum.nn import Variable, overlay
from supremum.optimizers.variable_registry import check_variable

Pairs: TypeAlias = list[tuple[Any, Variable]]
Transformer: TypeAlias = Callable[[Pairs], Iterable[tuple[Any, Variable]]]
"""A function of (gradient, variable) pairs that gives such pairs."""
Aggregate: TypeAlias = Callable[[dict[str, Any]], dict[str, Any]]
"""A function of gradients by key, still scaled, that gives such gradients."""

_NOT_COMPUTED = """minimize takes a function that computes the loss, got {what}: JAX has no tape that would know how a \
loss already computed came about. Give it the function, as in
    optimizer.minimize(loss_fn, variables)
or differentiate yourself:
    def scaled_loss(values):
        return optimizer.get_scaled_loss(loss_of(values))  # with a LossScaleOptimizer
    gradients = jax.grad(scaled_loss)([variable.value for variable in variables])
    gradients = optimizer.get_unscaled_gradients(gradients)  # with a LossScaleOptimizer
    optimizer.apply_gradients(zip(gradients, variables))"""


def check_function(loss_fn: Any) -> None:
    """Raise if a loss is not a function."""
    if not callable(loss_fn):
        raise OperandError(_NOT_COMPUTED.format(what=described(loss_fn)))


def checked_loss(loss_fn: Callable[..., Any], has_aux: bool) -> Callable[..., Any]:
    """A loss function that gives a real floating scalar, or raises an `OperandError`."""

    @wraps(loss_fn)
    def checked(*args: Any, **kwargs: Any) -> Any:
        loss, aux = split_loss(loss_fn(*args, **kwargs), has_aux)
        return (loss, aux) if has_aux else loss

    return checked


def checked_pairs(
    pairs: Any, dtypes_of: Callable[[Variable], tuple[Any, ...]], devices: tuple[int, ...] = ()
) -> dict[Variable, Any]:
    """The gradient of each variable; those whose gradient is None are left out.

    Args:
        pairs: (gradient, variable) pairs.
        dtypes_of: the dtypes that the gradient of a variable may have, the usual one first.
        devices: the length of a first axis that gradients have for those of each device; () for none.

    Raises:
        OperandError: for anything but such pairs, or a gradient of another dtype than its variable.
        ArgumentError: for another shape, a variable that is there twice, or no gradient at all.
    """
    found: dict[Variable, Any] = {}
    for gradient, variable in _as_pairs(pairs):
        check_variable(variable)
        if variable in found:
            raise ArgumentError(
                f"{shown(variable)} has two gradients: add them up, an optimizer changes it once in a step"
            )
        found[variable] = gradient
        if gradient is not None:
            _check_gradient(gradient, variable, dtypes_of(variable), devices)
    found = {variable: gradient for variable, gradient in found.items() if gradient is not None}
    if not found:
        raise ArgumentError(
            "no variable has a gradient: give (gradient, variable) pairs of which at least one gradient is not None"
        )
    return found


def _check_gradient(gradient: Any, variable: Variable, dtypes: tuple[Any, ...], devices: tuple[int, ...]) -> None:
    if not is_array(gradient):
        raise OperandError(f"the gradient of {shown(variable)} must be an array, got {shown(gradient)}: use jax.grad")
    if gradient.dtype not in dtypes:
        found, wanted = as_format(gradient.dtype), as_format(dtypes[0])
        part = ".real" if found.category == "complex" != wanted.category else ""
        raise OperandError(
            f"the gradient of {shown(variable)} is {found}, but must be {wanted} like the variable: use "
            f"gradient{part}.astype('{wanted}')"
        )
    shape = (*devices, *variable.shape)
    if gradient.shape != shape:
        averaged = ", or, if they are averaged already, aggregate_gradients=False" if devices else ""
        raise ArgumentError(
            f"the gradient of {shown(variable)} has shape {gradient.shape}, but must have {shape}: give what "
            f"get_gradients gave{averaged}"
        )


def _as_pairs(pairs: Any) -> list[tuple[Any, Any]]:
    found = list(pairs) if is_iterable(pairs) and not isinstance(pairs, Mapping) else None
    if found is None or not all(isinstance(pair, (tuple, list)) and len(cast("Any", pair)) == 2 for pair in found):
        raise OperandError(
            f"gradients are applied as (gradient, variable) pairs, not {type(pairs).__name__}: use "
            "apply_gradients(zip(gradients, variables))"
        )
    return cast("list[tuple[Any, Any]]", found)


def process(
    gradients: dict[str, Any],
    values: Mapping[str, Any],
    variables: Mapping[str, Variable],
    numbers: Mapping[str, Any],
    aggregator: Transformer | None,
    transformers: Sequence[Transformer],
) -> dict[str, Any]:
    """Gradients as an optax transformation gets them: aggregated, clipped and transformed.

    Args:
        gradients: by key, at least float32.
        values: the values of the variables, by key.
        variables: the variables by key; functions of (gradient, variable) pairs need them.
        numbers: the hyperparameters of the step, by name.
        aggregator: a function that aggregates gradients; None for no such function.
        transformers: the functions that change gradients after clipping.
    """
    if not variables and (transformers or aggregator is not None):
        raise ArgumentError("gradient transformers are given variables: call optimizer.build(variables) first")
    if aggregator is not None:
        gradients = transform(gradients, values, variables, [aggregator])
    gradients = clip(gradients, *(numbers[name] for name in ("clipvalue", "clipnorm", "global_clipnorm")))
    return transform(gradients, values, variables, transformers) if transformers else gradients


def transform(
    gradients: dict[str, Any],
    values: Mapping[str, Any],
    variables: Mapping[str, Variable],
    functions: Iterable[Transformer],
) -> dict[str, Any]:
    """Gradients by key after functions of (gradient, variable) pairs, in which variables read as `values`.

    Args:
        gradients: by key.
        values: the values of the variables, likewise.
        variables: the variables, likewise.
        functions: what changes the gradients, in order.

    Raises:
        OperandError: for a function that gives no pairs, or a gradient that is not floating.
        ArgumentError: for a variable that was not among them, or another shape.
    """
    key_of = {variables[key]: key for key in gradients}
    pairs: Pairs = [(gradient, variables[key]) for key, gradient in gradients.items()]
    with overlay({variables[key]: value for key, value in values.items()}):
        for function in functions:
            pairs = _as_pairs(function(list(pairs)))
            for gradient, variable in pairs:
                _check_transformed(function, gradient, variable, key_of)
    return {key_of[variable]: widen(gradient) for gradient, variable in pairs if gradient is not None}


def _check_transformed(function: Any, gradient: Any, variable: Any, key_of: Mapping[Variable, str]) -> None:
    check_variable(variable)
    if variable not in key_of:
        raise ArgumentError(f"{shown(function)} gave a gradient for {shown(variable)}, for which it was given none")
    if gradient is not None and not is_floating(gradient):
        raise OperandError(
            f"{shown(function)} gave {described(gradient)} as the gradient of {shown(variable)}: give a floating array"
        )
    if gradient is not None and gradient.shape != variable.shape:
        raise ArgumentError(
            f"{shown(function)} gave {shown(variable)} a gradient of shape {gradient.shape}: {variable.shape}"
        )


def clip(
    gradients: dict[str, jax.Array],
    clipvalue: jax.Array | None,
    clipnorm: jax.Array | None,
    global_clipnorm: jax.Array | None,
) -> dict[str, jax.Array]:
    """Gradients by key, clipped as Keras' arguments of these names have it; norms do not overflow.

    Args:
        gradients: floating arrays, at least float32.
        clipvalue: the largest magnitude of an element; None for any.
        clipnorm: the largest norm of a gradient; None for any.
        global_clipnorm: the largest norm of all together; None for any.
    """
    if clipvalue is not None:
        gradients = {key: jnp.clip(each, -clipvalue, clipvalue).astype(each.dtype) for key, each in gradients.items()}
    if clipnorm is not None:
        gradients = {key: each * _shrinking([each], clipnorm).astype(each.dtype) for key, each in gradients.items()}
    if global_clipnorm is not None:
        factor = _shrinking(list(gradients.values()), global_clipnorm)
        gradients = {key: each * factor.astype(each.dtype) for key, each in gradients.items()}
    return gradients


def _shrinking(arrays: list[jax.Array], largest: jax.Array) -> jax.Array:
    """The factor that brings arrays to a norm, at most 1."""
    # Squares are taken of quotients by the largest element: those of finite gradients would overflow themselves.
    peak = jnp.max(jnp.stack([jnp.max(jnp.abs(array), initial=0.0) for array in arrays]))
    unit = jnp.where(peak > 0, peak, 1)
    norm = unit * jnp.sqrt(sum(jnp.sum(jnp.square(array / unit)) for array in arrays))
    return largest / jnp.maximum(norm, largest)
