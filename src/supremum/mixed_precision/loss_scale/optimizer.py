"""An optax optimizer that takes gradients of a scaled loss."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp

from supremum.argument_checks import pytree
from supremum.errors import ArgumentError, OperandError, shown
from supremum.mixed_precision.loss_scale.finite import all_finite
from supremum.mixed_precision.loss_scale.loss_scales import LossScale, as_loss_scale
from supremum.mixed_precision.loss_scale.scaling import as_loss, unscale
from supremum.mixed_precision.loss_scale.state import LossScaleState, as_state
from supremum.mixed_precision.tree_casting import is_floating, is_floating_dtype, widen

if TYPE_CHECKING:
    import optax  # pyright: ignore[reportMissingTypeStubs] (it ships no types)

T = TypeVar("T")


class ScaledOptimizerState(NamedTuple):
    """The state of `loss_scaled`.

    Args:
        inner: the state of the optimizer inside.
        scaling: the state of the loss scale.
    """

    inner: Any
    scaling: LossScaleState


def apply_or_skip(
    settings: LossScale, state: LossScaleState, gradients: Any, apply: Callable[[], T], skip: Callable[[], T]
) -> tuple[T, LossScaleState]:
    """Apply a step or skip it, and take the loss scale to its next state.

    Args:
        settings: the settings of the loss scale; if they never skip, no check is compiled.
        state: the state of the loss scale.
        gradients: the gradients of the step, scaled or not.
        apply: gives the result of the step.
        skip: gives a result of the same structure for a step whose gradients are not finite.

    Returns:
        The result and the state for the next step.
    """
    if not settings.skips:
        return apply(), settings.update(state, jnp.asarray(True))
    finite = all_finite(gradients)
    # cond, not where: a where over all variables costs a third of a step (width 1024).
    return jax.lax.cond(finite, apply, skip), settings.update(state, finite)


def loss_scaled(
    optimizer: optax.GradientTransformation | optax.MultiSteps, loss_scale: LossScale | str | float = "dynamic"
) -> optax.GradientTransformationExtraArgs:
    """An optimizer that unscales its gradients, skips those that are not finite, and adjusts the scale.

    Two lines in any program that uses optax: this one, and `scale_loss(loss, opt_state)` on the loss before it is
    differentiated. The state of the scale is part of the optimizer's, and is saved and restored with it. On a skipped
    step the updates are zero and nothing inside changes, neither moments nor counts; `num_skipped_steps` says how many
    there were. Jit the step: outside of `jax.jit` the `lax.cond` that skips is compiled anew in every call.

    Everything that looks at gradients belongs inside, where they are unscaled and finite: clipping outside would clip
    them scaled, and accumulating outside would add up gradients of different scales and keep an infinite one for ever.

        loss_scaled(optax.chain(optax.clip_by_global_norm(1.0), optax.adam(1e-3)))
        loss_scaled(optax.MultiSteps(optax.adam(1e-3), every_k_schedule=4))

    With `supremum.training` this is not needed: its step does the same with the loss scale of the policy.

    Args:
        optimizer: any optax transformation.
        loss_scale: the settings: a `LossScale`, `"dynamic"` or a number. A fixed one applies every step unchecked.

    Returns:
        A transformation whose `update` takes gradients of the scaled loss. They are unscaled in float32; updates have
        the dtypes that the optimizer itself would give, and its state keeps those it began with.

    Raises:
        OperandError: for anything that is not an optax transformation, and for no loss scale.

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
        raise OperandError("there is nothing to scale without a loss scale: use the optimizer as it is")
    given: Any = optimizer.gradient_transformation() if isinstance(optimizer, optax.MultiSteps) else optimizer
    if not isinstance(given, optax.GradientTransformation):
        raise OperandError(
            f"loss_scaled wraps an optax transformation such as optax.adam(1e-3), got {shown(optimizer)}"
        )
    inside = optax.with_extra_args_support(given)

    def init(params: Any) -> ScaledOptimizerState:
        return ScaledOptimizerState(inside.init(params), settings.init())

    def update(updates: Any, state: Any, params: Any = None, **extra: Any) -> tuple[Any, ScaledOptimizerState]:
        if not isinstance(state, ScaledOptimizerState):
            raise OperandError(
                f"the state of loss_scaled must be a ScaledOptimizerState, as its init makes it, got {shown(state)}"
            )
        scaling = as_state(state.scaling)

        def native() -> Any:
            return inside.update(updates, state.inner, params, **extra)[0]

        like = jax.eval_shape(native)  # the updates as the optimizer gives them for gradients in these dtypes

        def apply() -> tuple[Any, Any]:
            grads = unscale(updates, scaling.loss_scale)
            applied, inner = inside.update(grads, state.inner, params, **extra)
            return _cast_like(applied, like), _cast_like(inner, state.inner)

        def skip() -> tuple[Any, Any]:
            return jax.tree.map(jnp.zeros_like, like), state.inner

        (applied, inner), scaling = apply_or_skip(settings, scaling, updates, apply, skip)
        return applied, ScaledOptimizerState(inner, scaling)

    return optax.GradientTransformationExtraArgs(init, update)


def _cast_like(tree: Any, like: Any) -> Any:
    def cast(leaf: Any, model: Any) -> Any:
        dtype = getattr(model, "dtype", None)
        return leaf.astype(dtype) if is_floating(leaf) and is_floating_dtype(dtype) else leaf

    return jax.tree.map(cast, tree, like)


def scale_loss(loss: Any, opt_state: Any) -> jax.Array:
    """A loss times the scale in the state of an optimizer, in at least float32.

    The gradient that enters a float16 loss is the scale in float16, which holds no more than 65504: the RFC's initial
    scale, but not twice that. Return a float32 loss, as `supremum.training`'s losses do.

    Args:
        loss: a real floating scalar.
        opt_state: a state that holds the state of one `loss_scaled`, at any depth: of an `optax.chain`, a
            `TrainState`, ...

    Raises:
        OperandError: for a loss that is not real floating.
        ArgumentError: where there is no state of a loss scale, or more than one; a `ValueError`.

    >>> import jax.numpy as jnp, optax
    >>> from supremum.mixed_precision import loss_scaled
    >>> scale_loss(jnp.float16(3), loss_scaled(optax.sgd(0.1)).init(jnp.ones(2)))
    Array(98304., dtype=float32)
    """
    wide = widen(as_loss(loss))
    return wide * find_loss_scale_state(opt_state).loss_scale.astype(wide.dtype)


def find_loss_scale_state(opt_state: Any) -> LossScaleState:
    """The one state of a loss scale in the state of an optimizer, to look at its scale and counts.

    Args:
        opt_state: as for `scale_loss`.

    Raises:
        ArgumentError: where there is none, or more than one; a `ValueError`.

    >>> import jax.numpy as jnp, optax
    >>> from supremum.mixed_precision import loss_scaled
    >>> find_loss_scale_state(loss_scaled(optax.sgd(0.1)).init(jnp.ones(2))).num_skipped_steps
    Array(0, dtype=int32)
    """

    def is_state(node: Any) -> bool:
        return isinstance(node, LossScaleState)

    nodes = jax.tree.leaves(pytree("the optimizer state", opt_state), is_leaf=is_state)
    found = [node for node in nodes if is_state(node)]
    if len(found) != 1:
        raise ArgumentError(
            f"the optimizer state holds {len(found)} states of a loss scale instead of one: "
            "wrap the whole optimizer once, as in loss_scaled(optax.adam(1e-3))"
        )
    return as_state(found[0])
