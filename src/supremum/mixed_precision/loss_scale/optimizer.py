"""An optax wrapper that takes the gradients of a scaled loss."""

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
        inner: the state of the wrapped optimizer.
        scaling: the state of the loss scale.
    """

    inner: Any
    scaling: LossScaleState


def apply_or_skip(
    settings: LossScale, state: LossScaleState, gradients: Any, apply: Callable[[], T], skip: Callable[[], T]
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
    optimizer: optax.GradientTransformation | optax.MultiSteps, loss_scale: LossScale | str | float = "dynamic"
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
    given: Any = optimizer.gradient_transformation() if isinstance(optimizer, optax.MultiSteps) else optimizer
    if not isinstance(given, optax.GradientTransformation):
        raise OperandError(f"loss_scaled needs an optax transformation, got {shown(optimizer)}: use optax.adam(1e-3)")
    wrapped = optax.with_extra_args_support(given)

    def init(params: Any) -> ScaledOptimizerState:
        return ScaledOptimizerState(wrapped.init(params), settings.init())

    def update(updates: Any, state: Any, params: Any = None, **extra: Any) -> tuple[Any, ScaledOptimizerState]:
        if not isinstance(state, ScaledOptimizerState):
            raise OperandError(
                f"the state of loss_scaled must be a ScaledOptimizerState, got {shown(state)}: use init(params)"
            )
        scaling = as_state(state.scaling)

        def step(grads: Any) -> Any:
            return wrapped.update(grads, state.inner, params, **extra)

        like = jax.eval_shape(lambda: step(updates)[0])  # the updates in the dtypes that the optimizer itself returns

        def apply() -> tuple[Any, Any]:
            applied, inner = step(unscale(updates, scaling.loss_scale))
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


def find_loss_scale_state(opt_state: Any) -> LossScaleState:
    """Find the state of the loss scale in the state of an optimizer, with its scale and counts.

    Args:
        opt_state: as for `scale_loss`.

    Raises:
        ArgumentError: if `opt_state` contains no state of a loss scale, or more than one; a `ValueError`.

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
            f"the optimizer state must contain one LossScaleState, got {len(found)}: wrap the whole optimizer once, as "
            "in loss_scaled(optax.adam(1e-3))"
        )
    return as_state(found[0])
