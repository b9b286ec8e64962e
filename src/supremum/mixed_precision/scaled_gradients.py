"""Gradients of a scaled loss, unscaled again, with the state of the scale carried along."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from supremum.argument_checks import chosen, whole_number
from supremum.errors import ArgumentError, OperandError, shown
from supremum.formats import as_format
from supremum.mixed_precision.all_reduce import checked_reduce_dtype, replica_mean
from supremum.mixed_precision.loss_scale.finite import all_finite
from supremum.mixed_precision.loss_scale.loss_scales import LossScale, as_loss_scale
from supremum.mixed_precision.loss_scale.scaling import split_loss, unscale
from supremum.mixed_precision.loss_scale.state import LossScaleState, as_state
from supremum.mixed_precision.replicas import varying
from supremum.mixed_precision.select import select_tree
from supremum.mixed_precision.tree_casting import described, widen

# Halvings from the RFC's initial scale, 2**15, to its floor, and one more.
MAX_RETRIES = 16
"""The default limit on how often one step is computed again."""


class ScaledGradients(NamedTuple):
    """What a differentiated step returns.

    Args:
        value: the loss, unscaled; with `has_aux` the pair of loss and auxiliary data, as `jax.value_and_grad` has it.
        grads: the gradients, unscaled, at least float32.
        finite: bool scalar, whether all gradients are finite; always true where the scale never skips.
        state: the state of the loss scale for the next step.
    """

    value: Any
    grads: Any
    finite: jax.Array
    state: LossScaleState


class _Attempt(NamedTuple):
    scaled: Any  # the gradients of the scaled loss, of all replicas
    value: Any
    scale: jax.Array  # the factor that scaled it

    def unscaled(self) -> Any:
        return unscale(self.scaled, self.scale)


def scaled_value_and_grad(
    loss_fn: Callable[..., Any],
    loss_scale: LossScale | str | float,
    argnums: int | Sequence[int] = 0,
    *,
    has_aux: bool = False,
    on_overflow: str = "skip",
    max_retries: int = MAX_RETRIES,
    axis_name: Any = None,
    reduce_dtype: Any = None,
) -> Callable[..., ScaledGradients]:
    """`jax.value_and_grad` through a scaled loss.

    The loss is scaled in float32, so that a float16 loss does not overflow in the scaling itself, and the gradients
    are unscaled by the very scale that scaled them, not by the one for the next step. The gradient that enters a
    float16 loss is float16 too, so for such a loss the scale is held to `2.0**15`, the largest power of two there is
    in float16; return a float32 loss where more is wanted.

    With `on_overflow="retry"` no step is lost to a scale that is too high: the loss is computed again at a lower one
    until the gradients are finite, in a `lax.while_loop` outside the common path. Where that does not help down to
    the floor or within `max_retries`, the scale is not to blame (a NaN in the data, say): the step is to be skipped,
    and the scale is lowered from where it stood as if there had been no retry. Jit the step: outside of `jax.jit` the
    loop is compiled anew in every call. It cannot be differentiated again in reverse.

    With an `axis_name` the gradients are the mean over the replicas along that axis. They are summed while they still
    carry the scale, and looked at after that: all replicas skip a step or none, or all compute it again, and the state
    stays the same everywhere. Value and auxiliary data stay those of each replica; `jax.lax.pmean(value, axis_name)`
    is the mean. The arguments to differentiate may be the same on all replicas, no `pcast` is needed.

    Args:
        loss_fn: a function that returns a scalar loss, or with `has_aux` a pair of it and auxiliary data.
        loss_scale: the settings: a `LossScale`, `"dynamic"` or a number.
        argnums: which positional arguments of `loss_fn` to differentiate, as in `jax.value_and_grad`.
        has_aux: whether `loss_fn` returns auxiliary data; with `"retry"` they have to be arrays.
        on_overflow: `"skip"`, for the caller not to apply gradients that are not finite, or `"retry"`.
        max_retries: how often one step is computed again at most.
        axis_name: the axis of a `jax.shard_map` or `jax.vmap` that replicas lie along, or a tuple of several.
        reduce_dtype: what gradients are summed over replicas in, as in `all_reduce_gradients`; None for their own
            dtype, at least float32.

    Returns:
        A function of the loss scale's state and `loss_fn`'s arguments, which returns `ScaledGradients`. Value and
        auxiliary data are those of the last attempt. It raises a `TypeError` for a loss that is not a real floating
        scalar, and a `ValueError` where there is no such axis.

    Raises:
        OperandError: where there is no loss scale.
        ValueError: for an unknown `on_overflow`, `"retry"` with a loss scale that never checks, or a `reduce_dtype`
            without an `axis_name` or that gradients are not reduced in.

    >>> import jax.numpy as jnp
    >>> from supremum.mixed_precision import DynamicLossScale
    >>> scale = DynamicLossScale(initial_loss_scale=1024.0)
    >>> step = scaled_value_and_grad(lambda w: (w * w).sum(), scale)
    >>> value, grads, finite, state = step(scale.init(), jnp.full(1, 3e-5, jnp.float16))
    >>> grads.dtype, bool(finite), f"{float(grads[0]):.1e}"
    (dtype('float32'), True, '6.0e-05')
    >>> step = scaled_value_and_grad(lambda w: (w * w).sum(), scale, on_overflow="retry")
    >>> value, grads, finite, state = step(scale.init(), jnp.full(1, 200.0, jnp.float16))
    >>> float(grads[0]), bool(finite), float(state.loss_scale), int(state.num_skipped_steps), int(state.num_retries)
    (400.0, True, 128.0, 0, 3)
    """
    settings = as_loss_scale(loss_scale)
    if settings is None:
        raise OperandError("there is nothing to scale without a loss scale: use jax.value_and_grad")
    chosen("on_overflow", on_overflow, ("skip", "retry"))
    if on_overflow == "retry" and not settings.skips:
        raise ArgumentError(f"{settings} never looks for overflows, so it cannot retry: use on_overflow='skip'")
    max_retries = whole_number("max_retries", max_retries, 0, int(as_format("int32").max))
    reduced = checked_reduce_dtype(reduce_dtype)
    choices: dict[str, Any] = {"has_aux": has_aux, "on_overflow": on_overflow, "max_retries": max_retries}
    if axis_name is None:
        if reduced is not None:
            raise ArgumentError(f"there is nothing to reduce in {reduced} without an axis: give axis_name='data', say")
        return differentiate_scaled(loss_fn, settings, argnums, **choices)

    def mean(grads: Any) -> Any:
        return replica_mean(grads, axis_name, reduced)

    differentiate = differentiate_scaled(loss_fn, settings, argnums, **choices, aggregate=mean)

    def of_replicas(state: LossScaleState, /, *args: Any, **kwargs: Any) -> ScaledGradients:
        count = len(args)
        chosen = {number % count for number in np.ravel(argnums).tolist() if -count <= number < count}
        args = tuple(varying(arg, axis_name) if number in chosen else arg for number, arg in enumerate(args))
        return differentiate(state, *args, **kwargs)

    return of_replicas


def differentiate_scaled(
    loss_fn: Callable[..., Any],
    settings: LossScale,
    argnums: int | Sequence[int] = 0,
    *,
    has_aux: bool = False,
    aggregate: Callable[[Any], Any] | None = None,
    on_overflow: str = "skip",
    max_retries: int = MAX_RETRIES,
) -> Callable[..., ScaledGradients]:
    """`scaled_value_and_grad` for settings that are already checked.

    Args:
        loss_fn: as there.
        settings: those of the loss scale; `"retry"` is for those that check.
        argnums: as there.
        has_aux: as there.
        aggregate: makes of still scaled gradients of one replica still scaled gradients of all, in at least float32;
            whether they are finite is asked of those. None where there is one replica.
        on_overflow: as there.
        max_retries: as there.
    """

    def attempt(scale: jax.Array, args: Any, kwargs: Any) -> _Attempt:
        @wraps(loss_fn)
        def scaled_loss(*args: Any, **kwargs: Any) -> tuple[jax.Array, Any]:
            out = loss_fn(*args, **kwargs)
            loss, _ = split_loss(out, has_aux)
            held = _held(scale, loss)
            loss = widen(loss)
            return loss * held.astype(loss.dtype), (out, held)

        scaled, (value, held) = jax.grad(scaled_loss, argnums, has_aux=True)(*args, **kwargs)
        return _Attempt(scaled if aggregate is None else aggregate(scaled), value, held)

    def value_and_grad(state: LossScaleState, /, *args: Any, **kwargs: Any) -> ScaledGradients:
        state = as_state(state)
        made = attempt(state.loss_scale, args, kwargs)
        if not settings.skips:
            finite = jnp.asarray(True)
            return ScaledGradients(made.value, made.unscaled(), finite, settings.update(state, finite))
        # The scaled gradients are the ones asked: dividing can turn no infinity into a number, but would cost a pass.
        finite = all_finite(made.scaled)
        state = state._replace(loss_scale=made.scale)
        if on_overflow == "skip":
            return ScaledGradients(made.value, made.unscaled(), finite, settings.update(state, finite))
        made = made._replace(value=_as_arrays(made.value))

        def again(carry: tuple[_Attempt, jax.Array, LossScaleState, jax.Array]) -> Any:
            *_, tried, retries = carry
            tried = settings.back_off(tried)
            made = attempt(tried.loss_scale, args, kwargs)
            made = made._replace(value=_as_arrays(made.value))
            return made, all_finite(made.scaled), tried, retries + 1

        def worthwhile(carry: tuple[_Attempt, jax.Array, LossScaleState, jax.Array]) -> jax.Array:
            _, finite, tried, retries = carry
            lower = settings.back_off(tried).loss_scale < tried.loss_scale
            return ~finite & lower & (retries < max_retries)

        start = (made, finite, state, jnp.zeros((), jnp.int32))
        made, finite, tried, _ = jax.lax.while_loop(worthwhile, again, start)
        # A step that no scale could save lowers the scale once, from where it stood: each retry lowered its own copy.
        skipped = settings.update(state, jnp.asarray(False))._replace(num_retries=tried.num_retries)
        good = settings.update(tried, jnp.asarray(True))
        return ScaledGradients(made.value, made.unscaled(), finite, select_tree(finite, good, skipped))

    return value_and_grad


def _held(scale: jax.Array, loss: jax.Array) -> jax.Array:
    # The cotangent of a narrow loss is the scale in the loss's own dtype.
    row = as_format(loss.dtype)
    return jnp.minimum(scale, 2.0**row.max_exponent) if row.bits < as_format(scale.dtype).bits else scale


def _as_arrays(tree: Any) -> Any:
    def as_array(path: Any, leaf: Any) -> jax.Array:
        try:
            return jnp.asarray(leaf)
        except TypeError:
            where = jax.tree_util.keystr(path, simple=True, separator="/")
            raise OperandError(
                f"on_overflow='retry' carries loss and auxiliary data through a loop, so they must be arrays, "
                f"got {described(leaf)} (at {shown(where)}): leave it out of what the function returns"
            ) from None

    return jax.tree_util.tree_map_with_path(as_array, tree)
