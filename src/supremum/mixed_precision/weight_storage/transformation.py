"""Optimizers of narrow weights, around any optax transformation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple, NoReturn

import jax
import jax.numpy as jnp

from supremum.argument_checks import whole_number
from supremum.errors import ArgumentError, OperandError, shown
from supremum.formats import as_format
from supremum.mixed_precision.pytrees import OptaxOptimizer, as_optax, check_state, described, is_inexact, native, widen
from supremum.mixed_precision.weight_storage.moments import check_moments, read_moments, store_first, store_moments
from supremum.mixed_precision.weight_storage.weights import ExtraWeights, StoredWeights, storage_of_weights
from supremum.typing import ArrayLike, PyTree


class NarrowWeightsState(NamedTuple):
    """The state of `narrow_weights`: a pytree of arrays, for checkpoints of any library.

    Args:
        steps: the number of steps, int32, which chooses the random bits of the next step.
        inner: the state of the wrapped optimizer, with its moments as they are stored.
        extra: what is stored beside the weights.

    >>> import optax
    >>> optimizer = narrow_weights(optax.sgd(0.1), "master")
    >>> state = optimizer.init({"w": jnp.ones(2, "bfloat16")})
    >>> state.steps, state.extra.master["w"].dtype
    (Array(0, dtype=int32), dtype('float32'))
    """

    steps: jax.Array
    inner: Any
    extra: ExtraWeights


class NarrowStep(NamedTuple):
    """The result of a step.

    Args:
        params: the new parameters, in the dtypes of the old ones.
        state: the new state.

    >>> import optax
    >>> params, optimizer = jnp.ones(1, "bfloat16"), narrow_weights(optax.sgd(0.5))
    >>> optimizer.step(params, optimizer.init(params), params).params
    Array([0.5], dtype=bfloat16)
    """

    params: Any
    state: NarrowWeightsState


@dataclass(frozen=True, slots=True, repr=False)
class NarrowWeights:
    """An optimizer of narrow weights, made by `narrow_weights`.

    Args:
        transformation: the wrapped optax transformation.
        weights: how weights are stored: `"stochastic"`, `"kahan"` or `"master"`.
        moments: how moments are stored, by pattern.
        seed: the seed of stochastic rounding.

    >>> import optax
    >>> narrow_weights(optax.adam(1e-3), "kahan", moments={"mu": "bfloat16"})
    NarrowWeights('kahan', moments={'mu': 'bfloat16'}, seed=0)
    """

    transformation: Any
    weights: str
    moments: Mapping[str, Any]
    seed: int

    def init(self, params: PyTree) -> NarrowWeightsState:
        """Make the state for parameters.

        Args:
            params: any pytree of arrays. Weights narrower than float32 are stored as `weights` says; float32, float64
                and complex weights are updated as optax does; other leaves stay as they are.

        Raises:
            ArgumentError: if no weight is narrower than float32, or a pattern of `moments` matches nothing.
            OperandError: for a weight in a format that has no zero, sign or NaN.
        """
        stored = StoredWeights(params, self.weights)
        if not any(stored.is_narrow):
            raise ArgumentError(
                "narrow_weights found no weight narrower than float32: use the optimizer itself, or cast the weights "
                "with cast_floating(params, 'bfloat16')"
            )
        extra = stored.initial_extra()
        wide = stored.wide(extra)
        inner = jax.tree.map(jnp.asarray, self.transformation.init(wide))
        return NarrowWeightsState(jnp.zeros((), jnp.int32), store_first(inner, wide, self.moments), extra)

    def step(
        self,
        grads: PyTree,
        state: NarrowWeightsState,
        params: PyTree,
        *,
        seed: ArrayLike | None = None,
        **extra_args: object,
    ) -> NarrowStep:
        """Take a step: update the moments, and apply the update to the weights.

        A pure function for `jax.jit`, `jax.lax.scan` and `jax.lax.cond`. The wrapped optimizer gets gradients, weights
        and moments in at least float32. A skipped step is one that is not called; the state then stays the same, and
        with it the random bits of the next step.

        Args:
            grads: the gradients, a tree like `params`, of any floating dtypes; None for a weight that stays as it is.
            state: the state before the step.
            params: the parameters before the step.
            seed: the seed of stochastic rounding, an integer scalar; None for that of `narrow_weights`. The members of
                an ensemble need one each: `jax.vmap(optimizer.step)(grads, state, params, seed=jnp.arange(4))`.
            extra_args: further arguments of the wrapped transformation's `update`, such as `value`.

        Returns:
            The parameters and the state, in the dtypes of the old ones.

        Raises:
            ArgumentError: for gradients whose structure or shapes differ from those of the parameters, and for the
                members of an ensemble without seeds, which would all round with the same random bits.
            OperandError: for a state that `init` did not make, and gradients that are not floating.

        >>> import optax
        >>> optimizer = narrow_weights(optax.sgd(2.0**-10), "kahan")
        >>> params = {"w": jnp.ones(1, "bfloat16")}
        >>> state = optimizer.init(params)
        >>> for _ in range(4):
        ...     params, state = optimizer.step({"w": jnp.ones(1)}, state, params)
        >>> params["w"], state.extra.compensation["w"]  # 1 - 4 / 1024
        (Array([0.996094], dtype=bfloat16), Array([0], dtype=int16))
        """
        check_state("narrow_weights", state, NarrowWeightsState)
        stored = StoredWeights(params, self.weights, seed, self.seed)
        wide = stored.wide(state.extra)
        gradients = map(_gradient, stored.leaves_of(grads, "the gradients"), stored.leaves, stored.paths)
        inner = read_moments(state.inner)
        updates, inner = self.transformation.update(stored.tree(gradients), inner, wide, **extra_args)

        def move(value: Any, update: Any, narrow: bool) -> Any:
            if update is None:
                return None
            return value + (jnp.asarray(update, jnp.float32) if narrow else update)

        updates = stored.leaves_of(updates, "the updates")
        moved = stored.tree(map(move, stored.leaves_of(wide, "the weights"), updates, stored.is_narrow))
        weights, after = stored.store(moved, state.extra, state.steps)
        return NarrowStep(weights, NarrowWeightsState(state.steps + 1, _store(inner, state.inner), after))

    def update(self, *args: object, **extra_args: object) -> NoReturn:
        """Raise: updates of narrow weights cannot be added by `optax.apply_updates`, which would round them away.

        Raises:
            OperandError: always, with the code to use instead; a `TypeError`.
        """
        del args, extra_args
        raise OperandError(
            "narrow_weights has no update(): optax.apply_updates would round small updates away. Use "
            "params, state = optimizer.step(grads, state, params), and put other transformations inside: "
            "narrow_weights(optax.chain(optax.clip_by_global_norm(1.0), optax.adam(1e-3)))"
        )

    def __repr__(self) -> str:
        moments = f", moments={dict(self.moments)}" if self.moments else ""
        return f"{type(self).__name__}({self.weights!r}{moments}, seed={self.seed})"


def _gradient(gradient: Any, leaf: Any, path: str) -> Any:
    if gradient is None or not is_inexact(leaf):
        return None
    gradient, where = native(gradient), shown(path)
    if not is_inexact(gradient):
        raise OperandError(f"gradients must be floating-point arrays, got {described(gradient)} at {where}")
    if gradient.shape != leaf.shape:
        raise ArgumentError(
            f"a gradient must have the shape of its weight, got {described(gradient)} for {described(leaf)} at {where}"
        )
    return widen(gradient)


def _store(after: Any, before: Any) -> Any:
    try:
        return store_moments(after, before)
    except ValueError as error:
        raise ArgumentError(
            f"a step must not change the structure of the optimizer's state: give every weight a gradient, or use "
            f"optax.masked for weights that stay as they are ({error})"
        ) from error


def narrow_weights(
    optimizer: OptaxOptimizer,
    weights: str = "stochastic",
    moments: Mapping[str, Any] = MappingProxyType({}),
    *,
    seed: int = 0,
) -> NarrowWeights:
    """Wrap an optax optimizer so that weights in 16 or 8 bits learn from updates smaller than half their last place.

    | `weights` | stored | bits per bfloat16 weight |
    |---|---|---|
    | `"stochastic"` | the weight, rounded up or down at random so that its mean is exact | 16 |
    | `"kahan"` | the weight, and what rounding took from it (Kahan, 1965), which together are float32 | 32 |
    | `"master"` | the weight, and the weight in float32 | 48 |

    All computation is in at least float32: gradients, weights and moments are widened for the wrapped optimizer, so
    weight decay, clipping and averages inside it work as with float32 weights. Everything that changes updates must be
    inside, as in `narrow_weights(optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-3)))`. There is no
    `update`, because `optax.apply_updates` would round: `step` returns new parameters.

    `narrow` is for inference: it casts the arrays of a checkpoint once.

    Random bits are a hash of the seed, the number of the step, the path of the weight and the index in the whole array.
    They are the same in each replay, on every replica and under any sharding by `jax.jit`. Inside `jax.shard_map` each
    device sees its part as the whole array. Under `jax.vmap` each member of an ensemble needs a seed, an argument of
    `step`.

    Args:
        optimizer: any optax transformation, including the learning rate and the sign.
        weights: how weights narrower than float32 are stored.
        moments: how the moments are stored, by pattern: a field of the optimizer's state such as `"mu"`, or a field and
            the path of a weight such as `"nu/.*/kernel"`. A pattern is a regular expression that must match the whole,
            or a whole scope that contains it; the first that matches wins. The storage is a dtype, or `"dynamic8"` for
            the 8-bit map of 8-bit Adam (arXiv:2110.02861). That map and float8 dtypes have a float32 scale for each
            block of 256 elements. Other moments are at least float32.
        seed: the seed of stochastic rounding.

    Returns:
        An optimizer with `init(params)` and `step(grads, state, params)`.

    Raises:
        OperandError: for anything that is not an optax transformation; a `TypeError`.
        UnknownNameError: for unknown `weights`.
        ArgumentError: for a dtype that cannot hold moments.

    >>> import optax
    >>> params = {"w": jnp.ones(1000, "bfloat16")}
    >>> optimizer = narrow_weights(optax.sgd(1e-4), "stochastic")
    >>> state = optimizer.init(params)
    >>> for _ in range(10):
    ...     params, state = optimizer.step({"w": jnp.ones(1000)}, state, params)
    >>> f"{float(params['w'].astype('float32').mean()):.3f}", params["w"].dtype
    ('0.999', dtype(bfloat16))
    """
    transformation = as_optax("narrow_weights", optimizer)
    storage_of_weights(weights)
    seed = whole_number("seed", seed, 0, int(as_format("uint32").max))
    return NarrowWeights(transformation, weights, MappingProxyType(check_moments(moments)), seed)
