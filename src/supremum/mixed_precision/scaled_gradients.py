"""The gradients of scaled losses: a transformation of loss functions, and an optax wrapper."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, Concatenate, NamedTuple, ParamSpec, TypeAlias, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from supremum.argument_checks import chosen, pytree, whole_number
from supremum.errors import ArgumentError, OperandError, shown
from supremum.formats import as_format
from supremum.mixed_precision.all_reduce import as_reduce_dtype, replica_mean, varying
from supremum.mixed_precision.loss_scales import LossScale, LossScaleState, as_loss_scale, as_state
from supremum.mixed_precision.pytrees import (
    KEEP_SAVED_STATE,
    OptaxOptimizer,
    all_finite,
    as_loss,
    as_optax,
    cast_like,
    check_state,
    described,
    select_tree,
    unscale,
    widen,
)
from supremum.typing import ArrayLike, DTypeLike, PyTree

if TYPE_CHECKING:
    import optax  # pyright: ignore[reportMissingTypeStubs] (it ships no types)

P = ParamSpec("P")
T = TypeVar("T")

MAX_RETRIES = 16
"""The default limit on how often one step is computed again: 15 halvings from 2**15 to 1, and one more."""


def split_loss(out: object, has_aux: bool) -> tuple[jax.Array, Any]:
    """Split the result of a loss function into the loss and the auxiliary data, and check the loss.

    Args:
        out: the loss; with `has_aux`, a pair of the loss and auxiliary data.
        has_aux: whether the function returns auxiliary data; without it they are None.

    Raises:
        OperandError: if the loss is not a real floating scalar, or `out` is not a pair with `has_aux`.
    """
    if not has_aux:
        return _scalar(out), None
    if not (isinstance(out, (tuple, list)) and len(out) == 2):
        raise OperandError(
            f"with has_aux=True the loss function must return a pair of loss and auxiliary data, got {described(out)}"
        )
    return _scalar(out[0]), out[1]


def _scalar(loss: object) -> jax.Array:
    if isinstance(loss, (tuple, list)):
        raise OperandError(
            f"the loss must be a real floating scalar, got {described(loss)}: pass has_aux=True if the function "
            "returns auxiliary data too"
        )
    loss = as_loss(loss)
    if np.shape(loss) != ():
        raise OperandError(f"the loss must be a real floating scalar, got {described(loss)}: return loss.mean()")
    return loss


class ScaledGradients(NamedTuple):
    """What a differentiated step returns.

    Args:
        value: the loss, unscaled; with `has_aux` the pair of loss and auxiliary data, as `jax.value_and_grad` has it.
        grads: the gradients, unscaled, at least float32.
        finite: bool scalar, whether all gradients are finite; always true if the loss scale never skips.
        state: the state of the loss scale for the next step.

    >>> import jax.numpy as jnp
    >>> from supremum.mixed_precision import DynamicLossScale
    >>> settings = DynamicLossScale(initial_loss_scale=1024.0)
    >>> found = scaled_value_and_grad(lambda w: (w * w).sum(), settings)(
    ...     settings.init(), jnp.full(1, 300.0, "float16")
    ... )
    >>> found.value, bool(found.finite), float(found.state.loss_scale)
    (Array(inf, dtype=float16), False, 512.0)
    """

    value: Any
    grads: Any
    finite: jax.Array
    state: LossScaleState


class _ScaledStep(NamedTuple):
    scaled: Any  # the gradients of the scaled loss, averaged over replicas
    value: Any
    scale: jax.Array  # the factor of the scaled loss


_Carry: TypeAlias = tuple[_ScaledStep, jax.Array, LossScaleState, jax.Array]
"""The last attempt, whether its gradients are finite, the state with its scale, and the number of retries."""


def scaled_value_and_grad(
    loss_fn: Callable[P, Any],
    loss_scale: LossScale | str | float,
    argnums: int | Sequence[int] = 0,
    *,
    has_aux: bool = False,
    on_overflow: str = "skip",
    max_retries: int = MAX_RETRIES,
    axis_name: Hashable | None = None,
    reduce_dtype: DTypeLike | None = None,
) -> Callable[Concatenate[LossScaleState, P], ScaledGradients]:
    """Transform a loss function as `jax.value_and_grad` does, with the loss scaled and the gradients unscaled.

    The loss is scaled in float32; a float16 loss cannot overflow in the scaling itself. The gradients are divided by
    the scale of the same step. The gradient that enters a float16 loss is float16 too, which limits the scale of a
    float16 loss to `2.0**15`, the largest power of two in float16. Return a float32 loss for larger scales.

    With `on_overflow="retry"` no step is lost to a scale that is too high. The loss is computed again at a lower scale
    until the gradients are finite, in a `lax.while_loop` outside the common path. If the gradients are still not finite
    at the floor or after `max_retries`, the scale is not the cause (the data may hold a NaN). Then skip the step; the
    scale is lowered once, as if there had been no retry. Jit the step: outside `jax.jit` every call compiles the loop
    again. The result cannot be differentiated again in reverse mode.

    With an `axis_name` the gradients are the mean over the replicas along that axis. They are summed while they still
    carry the scale, and checked after the sum: all replicas take the step, skip it or compute it again together, and
    the state stays the same on all of them. Each replica keeps its own value and auxiliary data;
    `jax.lax.pmean(value, axis_name)` is the mean. The differentiated arguments may be the same on all replicas; no
    `pcast` is needed.

    Args:
        loss_fn: a function that returns a scalar loss, or with `has_aux` a pair of it and auxiliary data.
        loss_scale: the settings: a `LossScale`, `"dynamic"` or a number.
        argnums: which positional arguments of `loss_fn` to differentiate, as in `jax.value_and_grad`.
        has_aux: whether `loss_fn` returns auxiliary data; with `"retry"` they must be arrays.
        on_overflow: `"skip"`, if the caller skips steps whose gradients are not finite, or `"retry"`.
        max_retries: the largest number of times that one step is computed again.
        axis_name: the replica axis of a `jax.shard_map` or `jax.vmap`, or a tuple of several axes.
        reduce_dtype: the dtype in which gradients are summed over replicas, as in `all_reduce_gradients`; None for the
            dtype of each gradient, at least float32.

    Returns:
        A function of the loss scale's state and `loss_fn`'s arguments, which returns `ScaledGradients`. Value and
        auxiliary data come from the last attempt. It raises a `TypeError` for a loss that is not a real floating
        scalar, and a `ValueError` for an unknown axis.

    Raises:
        OperandError: if `loss_scale` is None.
        ValueError: for an unknown `on_overflow`, `"retry"` with a fixed loss scale, or a `reduce_dtype` that has no
            `axis_name` or that gradients cannot be reduced in.

    >>> import jax.numpy as jnp
    >>> from supremum.mixed_precision import DynamicLossScale
    >>> scale = DynamicLossScale(initial_loss_scale=1024.0)
    >>> step = scaled_value_and_grad(lambda w: (w * w).sum(), scale)
    >>> value, grads, finite, state = step(scale.init(), jnp.full(1, 3e-5, jnp.float16))
    >>> grads.dtype, bool(finite), f"{float(grads[0]):.1e}"
    (dtype('float32'), True, '6.0e-05')
    >>> step = scaled_value_and_grad(
    ...     lambda w: (w * w).sum(), scale, on_overflow="retry"
    ... )
    >>> value, grads, finite, state = step(
    ...     scale.init(), jnp.full(1, 200.0, jnp.float16)
    ... )
    >>> (
    ...     float(grads[0]),
    ...     bool(finite),
    ...     float(state.loss_scale),
    ...     int(state.num_skipped_steps),
    ...     int(state.num_retries),
    ... )
    (400.0, True, 128.0, 0, 3)
    """
    settings = as_loss_scale(loss_scale)
    if settings is None:
        raise OperandError("scaled_value_and_grad needs a loss scale, got None: use jax.value_and_grad")
    chosen("on_overflow", on_overflow, ("skip", "retry"))
    if on_overflow == "retry" and not settings.skips:
        raise ArgumentError(f"{settings} does not check for overflows and cannot retry: use on_overflow='skip'")
    max_retries = whole_number("max_retries", max_retries, 0, int(as_format("int32").max))
    reduced = as_reduce_dtype(reduce_dtype)
    if axis_name is None and reduced is not None:
        raise ArgumentError(f"reduce_dtype={str(reduced)!r} needs an axis: pass axis_name, such as 'data'")
    mean = None if axis_name is None else partial(replica_mean, axis_name=axis_name, dtype=reduced)
    retries = max_retries if on_overflow == "retry" else None
    differentiate = differentiate_scaled(
        loss_fn, settings, argnums, has_aux=has_aux, aggregate=mean, max_retries=retries
    )
    if axis_name is None:
        return differentiate

    def of_replicas(state: LossScaleState, /, *args: P.args, **kwargs: P.kwargs) -> ScaledGradients:
        count = len(args)
        chosen = {number % count for number in np.ravel(argnums).tolist() if -count <= number < count}
        varied: Any = (varying(arg, axis_name) if number in chosen else arg for number, arg in enumerate(args))
        return differentiate(state, *varied, **kwargs)

    return of_replicas


def differentiate_scaled(
    loss_fn: Callable[P, Any],
    settings: LossScale,
    argnums: int | Sequence[int] = 0,
    *,
    has_aux: bool = False,
    aggregate: Callable[[Any], Any] | None = None,
    max_retries: int | None = None,
) -> Callable[Concatenate[LossScaleState, P], ScaledGradients]:
    """Implement `scaled_value_and_grad`, for arguments that are already checked.

    Args:
        loss_fn: as for `scaled_value_and_grad`, like `argnums` and `has_aux`.
        settings: the loss scale; it must be dynamic for retries.
        argnums: the arguments to differentiate.
        has_aux: whether `loss_fn` returns auxiliary data.
        aggregate: a function that turns the scaled gradients of one replica into the scaled gradients of all replicas,
            in at least float32; its result is checked for overflows. None for one replica.
        max_retries: how often a step that overflows is computed again; None to return its gradients.
    """

    def attempt(scale: jax.Array, args: Any, kwargs: Any) -> _ScaledStep:
        @wraps(loss_fn)
        def scaled_loss(*args: Any, **kwargs: Any) -> tuple[jax.Array, Any]:
            out = loss_fn(*args, **kwargs)
            loss, _ = split_loss(out, has_aux)
            factor = _limit_scale(scale, loss)
            loss = widen(loss)
            return loss * factor.astype(loss.dtype), (out, factor)

        scaled, (value, factor) = jax.grad(scaled_loss, argnums, has_aux=True)(*args, **kwargs)
        value = value if max_retries is None else _as_arrays(value)
        return _ScaledStep(scaled if aggregate is None else aggregate(scaled), value, factor)

    def value_and_grad(state: LossScaleState, /, *args: P.args, **kwargs: P.kwargs) -> ScaledGradients:
        state = as_state(state)
        last = attempt(state.loss_scale, args, kwargs)
        finite = jnp.asarray(True)
        if settings.skips:
            # Check the scaled gradients: division cannot make an infinity finite, and would cost another pass.
            finite = all_finite(last.scaled)
            state = state._replace(loss_scale=last.scale)
        if max_retries is None:
            return ScaledGradients(last.value, unscale(last.scaled, last.scale), finite, settings.update(state, finite))
        limit = max_retries

        def retry(carry: _Carry) -> _Carry:
            *_, tried, count = carry
            tried = settings.back_off(tried)
            last = attempt(tried.loss_scale, args, kwargs)
            return last, all_finite(last.scaled), tried, count + 1

        def can_retry(carry: _Carry) -> jax.Array:
            _, finite, tried, count = carry
            lower = settings.back_off(tried).loss_scale < tried.loss_scale
            return ~finite & lower & (count < limit)

        start = (last, finite, state, jnp.zeros((), jnp.int32))
        last, finite, tried, _ = jax.lax.while_loop(can_retry, retry, start)
        # A step that failed at every scale lowers the original scale once: the retries lowered a copy of it.
        skipped = settings.update(state, jnp.asarray(False))._replace(num_retries=tried.num_retries)
        good = settings.update(tried, jnp.asarray(True))
        return ScaledGradients(last.value, unscale(last.scaled, last.scale), finite, select_tree(finite, good, skipped))

    return value_and_grad


def _limit_scale(scale: jax.Array, loss: jax.Array) -> jax.Array:
    # The cotangent of a narrow loss is the scale in the dtype of the loss.
    row = as_format(loss.dtype)
    return jnp.minimum(scale, 2.0**row.max_exponent) if row.bits < as_format(scale.dtype).bits else scale


def _as_arrays(tree: PyTree) -> Any:
    def as_array(path: Any, leaf: Any) -> jax.Array:
        try:
            return jnp.asarray(leaf)
        except TypeError:
            where = jax.tree_util.keystr(path, simple=True, separator="/")
            raise OperandError(
                f"with on_overflow='retry' the loss and auxiliary data must be arrays, got {described(leaf)} "
                f"(at {shown(where)}): do not return it from the loss function"
            ) from None

    return jax.tree_util.tree_map_with_path(as_array, tree)


class ScaledOptimizerState(NamedTuple):
    """The state of `loss_scaled`.

    Args:
        inner: the state of the wrapped optimizer.
        scaling: the state of the loss scale.

    >>> import jax.numpy as jnp, optax
    >>> state = loss_scaled(optax.sgd(0.1)).init(jnp.ones(2))
    >>> float(state.scaling.loss_scale), int(state.scaling.num_skipped_steps)
    (32768.0, 0)
    """

    inner: Any
    scaling: LossScaleState


def apply_or_skip(
    settings: LossScale, state: LossScaleState, gradients: PyTree, apply: Callable[[], T], skip: Callable[[], T]
) -> tuple[T, LossScaleState]:
    """Apply or skip a step, and update the state of the loss scale.

    Args:
        settings: the loss scale; no check is compiled if it never skips.
        state: the state of the loss scale.
        gradients: the gradients of the step, scaled or not.
        apply: a function that returns the result of the step.
        skip: a function that returns a result of the same structure, for a step with non-finite gradients.

    Returns:
        The result and the state for the next step.
    """
    if not settings.skips:
        return apply(), settings.update(state, jnp.asarray(True))
    finite = all_finite(gradients)
    # A `where` over all variables would cost a third of a step (width 1024).
    return jax.lax.cond(finite, apply, skip), settings.update(state, finite)


def loss_scaled(
    optimizer: OptaxOptimizer, loss_scale: LossScale | str | float = "dynamic"
) -> optax.GradientTransformationExtraArgs:
    """Wrap an optax optimizer: unscale its gradients, skip steps with non-finite gradients, and adjust the scale.

    A program that uses optax needs two lines: this call, and `scale_loss(loss, opt_state)` on the loss before it is
    differentiated. The state of the scale is part of the optimizer's state, and is saved and restored with it. On a
    skipped step the updates are zero, and the moments and counts of the wrapped optimizer stay as they are;
    `num_skipped_steps` counts the skipped steps. Jit the step: outside `jax.jit` every call compiles the `lax.cond`
    again.

    Put clipping and accumulation inside the wrapper, where gradients are unscaled and finite. Outside, clipping would
    see scaled gradients, and accumulation would add gradients of different scales and keep an infinity forever.

        loss_scaled(optax.chain(optax.clip_by_global_norm(1.0), optax.adam(1e-3)))
        loss_scaled(optax.MultiSteps(optax.adam(1e-3), every_k_schedule=4))

    `supremum.training` does not need it: its training step applies the loss scale of the policy.

    Args:
        optimizer: any optax transformation.
        loss_scale: a `LossScale`, `"dynamic"` or a number. A fixed scale applies every step without a check.

    Returns:
        A transformation. Its `update` takes the gradients of the scaled loss and unscales them in float32. The updates
        have the dtypes that the wrapped optimizer returns, and the dtypes of its state do not change.

    Raises:
        OperandError: for anything that is not an optax transformation, and for None as loss scale.

    >>> import jax, jax.numpy as jnp, optax
    >>> from supremum.mixed_precision import scale_loss
    >>> params = jnp.full(2, 3.0, jnp.float32)
    >>> optimizer = loss_scaled(optax.sgd(0.5))
    >>> state = optimizer.init(params)
    >>> grads = jax.grad(lambda w: scale_loss((w * w).sum(), state))(params)
    >>> updates, state = optimizer.update(grads, state, params)
    >>> grads, updates
    (Array([196608., 196608.], dtype=float32), Array([-3., -3.], dtype=float32))
    """
    import optax  # pyright: ignore[reportMissingTypeStubs] (it takes 0.2 s, and not every user of this package needs it)

    settings = as_loss_scale(loss_scale)
    if settings is None:
        raise OperandError("loss_scaled needs a loss scale, got None: use the optimizer without loss_scaled")
    wrapped = as_optax("loss_scaled", optimizer)

    def init(params: Any) -> ScaledOptimizerState:
        return ScaledOptimizerState(wrapped.init(params), settings.init())

    def update(updates: Any, state: Any, params: Any = None, **extra: Any) -> tuple[Any, ScaledOptimizerState]:
        check_state("loss_scaled", state, ScaledOptimizerState)
        scaling = as_state(state.scaling)

        def step(grads: Any) -> Any:
            return wrapped.update(grads, state.inner, params, **extra)

        like = jax.eval_shape(lambda: step(updates)[0])  # the updates in the dtypes that the optimizer itself returns

        def apply() -> tuple[Any, Any]:
            applied, inner = step(unscale(updates, scaling.loss_scale))
            return cast_like(applied, like), cast_like(inner, state.inner)

        def skip() -> tuple[Any, Any]:
            return jax.tree.map(jnp.zeros_like, like), state.inner

        (applied, inner), scaling = apply_or_skip(settings, scaling, updates, apply, skip)
        return applied, ScaledOptimizerState(inner, scaling)

    return optax.GradientTransformationExtraArgs(init, update)


def scale_loss(loss: ArrayLike, opt_state: PyTree) -> jax.Array:
    """Multiply a loss by the scale in the state of an optimizer, in at least float32.

    The gradient that enters a float16 loss is the scale in float16, which holds at most 65504: enough for the RFC's
    initial scale, but not for twice that. Return a float32 loss, as `supremum.training`'s losses do.

    Args:
        loss: a real floating scalar.
        opt_state: a state that contains the state of one `loss_scaled` at any depth, such as the state of an
            `optax.chain` or a `TrainState`.

    Raises:
        OperandError: for a loss that is not real floating.
        ArgumentError: if `opt_state` contains no state of a loss scale, or more than one; a `ValueError`.

    >>> import jax.numpy as jnp, optax
    >>> from supremum.mixed_precision import loss_scaled
    >>> scale_loss(jnp.float16(3), loss_scaled(optax.sgd(0.1)).init(jnp.ones(2)))
    Array(98304., dtype=float32)
    """
    wide = widen(as_loss(loss))
    return wide * find_loss_scale_state(opt_state).loss_scale.astype(wide.dtype)


def find_loss_scale_state(opt_state: PyTree) -> LossScaleState:
    """Find the state of the loss scale in the state of an optimizer, with its scale and counts.

    Args:
        opt_state: as for `scale_loss`.

    Raises:
        ArgumentError: if `opt_state` contains no state of a loss scale, or more than one; a `ValueError`.

    >>> import jax.numpy as jnp, optax
    >>> from supremum.mixed_precision import loss_scaled
    >>> find_loss_scale_state(
    ...     loss_scaled(optax.sgd(0.1)).init(jnp.ones(2))
    ... ).num_skipped_steps
    Array(0, dtype=int32)
    """

    def is_state(node: Any) -> bool:
        return isinstance(node, LossScaleState)

    nodes = jax.tree.leaves(pytree("the optimizer state", opt_state), is_leaf=is_state)
    states = [node for node in nodes if is_state(node)]
    if len(states) != 1:
        raise ArgumentError(
            f"the optimizer state must contain one LossScaleState, got {len(states)}: wrap the whole optimizer once, "
            f"as in loss_scaled(optax.adam(1e-3)); {KEEP_SAVED_STATE}"
        )
    return as_state(states[0])
