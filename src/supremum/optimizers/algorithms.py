"""The optimizers under Keras' names, each a chain of optax transformations."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar, TypedDict, Unpack

import jax
import jax.numpy as jnp
import optax  # pyright: ignore[reportMissingTypeStubs] (it ships no types)

from supremum.argument_checks import flag
from supremum.optimizers.gradients import Transformer
from supremum.optimizers.hyperparameters import DECAY, MOMENTUM, NON_NEGATIVE, WEIGHT_DECAY, Hyper
from supremum.optimizers.optimizer import Optimizer
from supremum.optimizers.settings import Setting, check_moment_dtype
from supremum.typing import DTypeLike


class GradientDescentOptions(TypedDict, total=False):
    """The keyword arguments of every optimizer with a learning rate; `Optimizer` documents the others."""

    weight_decay: Hyper | None
    clipnorm: Hyper | None
    clipvalue: Hyper | None
    global_clipnorm: Hyper | None
    gradient_transformers: Iterable[Transformer]
    gradient_aggregator: Transformer | None
    use_ema: bool
    ema_momentum: float
    ema_overwrite_frequency: int | None
    gradient_accumulation_steps: int | None
    weights: str | None


class GradientDescent(Optimizer):
    """The base class of optimizers with a learning rate and a weight decay.

    Args:
        learning_rate: a number or a schedule: a function of the number of steps taken.
        weight_decay: the fraction of each variable, times the learning rate, that every step subtracts; None for none.
        options: as for `Optimizer`.
    """

    def __init__(self, learning_rate: Hyper, *, weight_decay: Hyper | None = None, **options: Any) -> None:
        super().__init__(**options)
        self.add_hyperparameter("learning_rate", learning_rate)
        self.add_hyperparameter("weight_decay", weight_decay, WEIGHT_DECAY)

    def direction(self, **hyperparameters: Any) -> Any:
        """Return the transformation of gradients into steps, before weight decay and the learning rate.

        Args:
            hyperparameters: as for `make_transformation`.
        """
        raise NotImplementedError

    def make_transformation(self, *, learning_rate: jax.Array, weight_decay: jax.Array | None, **others: Any) -> Any:
        """The transformation of a step."""
        return optax.chain(
            self.direction(**others), decay_weights(weight_decay), optax.scale_by_learning_rate(learning_rate)
        )


def decay_weights(share: jax.Array | None) -> Any:
    """Return the transformation that adds a fraction of the variables to the gradients; None adds nothing."""
    return optax.identity() if share is None else optax.add_decayed_weights(share)


def scale_by_amsgrad(b1: jax.Array, b2: jax.Array, eps: jax.Array) -> Any:
    """Return the transformation of `Adam` with `amsgrad`: `optax.scale_by_adam` with the largest mean of squares.

    Args:
        b1: the decay of the mean of gradients.
        b2: the decay of the mean of their squares.
        eps: a number added to the root.
    """
    adam = optax.scale_by_adam(b1=b1, b2=b2, eps=eps)

    def update(updates: Any, state: Any, params: Any = None) -> Any:
        after: Any = adam.update(updates, state, params)[1]
        largest = jax.tree.map(jnp.maximum, state.nu_max, after.nu)
        mean_share, square_share = (1 - decay**after.count for decay in (b1, b2))

        def step(mean: Any, square: Any) -> Any:
            return (mean / mean_share) / (jnp.sqrt(square / square_share) + eps)

        steps = jax.tree.map(step, after.mu, largest)
        return steps, optax.ScaleByAmsgradState(after.count, after.mu, after.nu, largest)

    return optax.GradientTransformation(optax.scale_by_amsgrad().init, update)


class SGD(GradientDescent):
    """Stochastic gradient descent, with momentum (Sutskever et al., 2013), as `optax.sgd`.

    Args:
        learning_rate: a number or a schedule.
        momentum: the fraction of the last step that is repeated, from 0 to 1. At 0 there is no slot for it.
        nesterov: whether to use Nesterov momentum, which looks one step ahead.
        mu_dtype: the dtype in which the momentum is stored; None for the dtype of its computation, at least float32.
        options: `weight_decay` as for `AdamW`, and as for `Optimizer`.

    >>> optimizer = SGD(0.1, momentum=0.9)
    >>> optimizer.momentum = 0.5
    >>> optimizer
    SGD(learning_rate=0.1, momentum=0.5)
    """

    _slot_dtypes: ClassVar = {"trace": "mu_dtype"}
    nesterov: Setting = Setting(flag)
    mu_dtype: Setting = Setting(check_moment_dtype)

    def __init__(
        self,
        learning_rate: Hyper = 0.01,
        momentum: Hyper = 0.0,
        nesterov: bool = False,
        *,
        mu_dtype: DTypeLike | None = None,
        **options: Unpack[GradientDescentOptions],
    ) -> None:
        super().__init__(learning_rate, **options)
        self.mu_dtype = mu_dtype
        self.add_hyperparameter("momentum", momentum, MOMENTUM)
        self.nesterov = nesterov

    def direction(self, *, momentum: jax.Array | None, **_: object) -> Any:
        """The sum of the gradient and the momentum."""
        return optax.identity() if momentum is None else optax.trace(momentum, self.nesterov)


class Adam(GradientDescent):
    """Adaptive moments (Kingma and Ba, 2014, Algorithm 1), as `optax.adam`.

    Args:
        learning_rate: a number or a schedule.
        beta_1: the decay of the mean of gradients.
        beta_2: the decay of the mean of their squares.
        epsilon: a number added to the root of the mean of squares. In Keras it is the paper's "epsilon hat", which acts
            more strongly in the first steps.
        amsgrad: whether to divide by the root of the largest mean of squares so far (Reddi and others, 2018), as in
            PyTorch: the largest is taken before the bias is corrected. `optax.amsgrad` takes it afterwards.
        mu_dtype: the dtype in which the mean is stored; None for the dtype of its computation, at least float32.
        nu_dtype: the dtype in which the mean of squares and its largest value are stored. With a `beta_2` near 1 a
            narrow mean hardly changes: bfloat16 rounds away changes below a 256th of the mean.
        options: `weight_decay` as for `AdamW`, and as for `Optimizer`.

    >>> Adam(1e-3, mu_dtype="bfloat16").mu_dtype
    'bfloat16'
    """

    _slot_dtypes: ClassVar = {"mu": "mu_dtype", "nu": "nu_dtype", "nu_max": "nu_dtype"}
    amsgrad: Setting = Setting(flag)
    mu_dtype: Setting = Setting(check_moment_dtype)
    nu_dtype: Setting = Setting(check_moment_dtype)

    def __init__(
        self,
        learning_rate: Hyper = 0.001,
        beta_1: Hyper = 0.9,
        beta_2: Hyper = 0.999,
        epsilon: Hyper = 1e-7,
        amsgrad: bool = False,
        *,
        mu_dtype: DTypeLike | None = None,
        nu_dtype: DTypeLike | None = None,
        **options: Unpack[GradientDescentOptions],
    ) -> None:
        super().__init__(learning_rate, **options)
        self.mu_dtype = mu_dtype
        self.nu_dtype = nu_dtype
        self.add_hyperparameter("beta_1", beta_1, DECAY)
        self.add_hyperparameter("beta_2", beta_2, DECAY)
        self.add_hyperparameter("epsilon", epsilon)
        self.amsgrad = amsgrad

    def direction(self, *, beta_1: jax.Array, beta_2: jax.Array, epsilon: jax.Array, **_: object) -> Any:
        """The mean of gradients divided by the root of the mean of their squares."""
        scale = scale_by_amsgrad if self.amsgrad else optax.scale_by_adam
        return scale(b1=beta_1, b2=beta_2, eps=epsilon)


class AdamW(Adam):
    """Adam with decoupled weight decay (Loshchilov and Hutter, 2019), as `optax.adamw`.

    Args:
        learning_rate: a number or a schedule.
        weight_decay: the fraction of each variable, times the learning rate, that every step subtracts.
        options: as for `Adam`.

    >>> float(AdamW().weight_decay) == float(AdamW(weight_decay=0.004).weight_decay)
    True
    """

    def __init__(self, learning_rate: Hyper = 0.001, weight_decay: Hyper = 0.004, **options: Any) -> None:
        super().__init__(learning_rate, weight_decay=weight_decay, **options)


class RMSprop(GradientDescent):
    """RMSprop (Hinton, 2012; centered: Graves, 2013), as `optax.rmsprop`.

    Args:
        learning_rate: a number or a schedule.
        rho: the decay of the mean of squares.
        momentum: the fraction of the last step that is repeated, from 0 to 1. At 0 there is no slot for it.
        epsilon: a number added to the mean of squares, under the root.
        centered: whether to divide by the standard deviation instead of the root mean square.
        mu_dtype: the dtype in which momentum and, if centered, the mean are stored; None for the dtype of their
            computation, at least float32.
        nu_dtype: the dtype in which the mean of squares is stored.
        options: `weight_decay` as for `AdamW`, and as for `Optimizer`.

    >>> RMSprop(centered=True).centered
    True
    """

    _slot_dtypes: ClassVar = {"nu": "nu_dtype", "mu": "mu_dtype", "trace": "mu_dtype"}
    centered: Setting = Setting(flag)
    mu_dtype: Setting = Setting(check_moment_dtype)
    nu_dtype: Setting = Setting(check_moment_dtype)

    def __init__(
        self,
        learning_rate: Hyper = 0.001,
        rho: Hyper = 0.9,
        momentum: Hyper = 0.0,
        epsilon: Hyper = 1e-7,
        centered: bool = False,
        *,
        mu_dtype: DTypeLike | None = None,
        nu_dtype: DTypeLike | None = None,
        **options: Unpack[GradientDescentOptions],
    ) -> None:
        super().__init__(learning_rate, **options)
        self.mu_dtype = mu_dtype
        self.nu_dtype = nu_dtype
        self.add_hyperparameter("rho", rho, DECAY)
        self.add_hyperparameter("momentum", momentum, MOMENTUM)
        self.add_hyperparameter("epsilon", epsilon)
        self.centered = centered

    def make_transformation(
        self,
        *,
        learning_rate: jax.Array,
        weight_decay: jax.Array | None,
        rho: jax.Array,
        momentum: jax.Array | None,
        epsilon: jax.Array,
        **_: object,
    ) -> Any:
        """The transformation of a step."""
        scale = optax.scale_by_stddev if self.centered else optax.scale_by_rms
        return optax.chain(
            scale(rho, epsilon),
            optax.scale_by_learning_rate(learning_rate),
            # Momentum repeats steps including the learning rate, but without the weight decay.
            optax.identity() if momentum is None else optax.trace(momentum),
            decay_weights(None if weight_decay is None else jnp.negative(weight_decay * learning_rate)),
        )


class Adagrad(GradientDescent):
    """Adagrad (Duchi et al., 2011), as `optax.adagrad`.

    Args:
        learning_rate: a number or a schedule.
        initial_accumulator_value: the initial value of the sums of squares.
        epsilon: a number added to the sum of squares, under the root.
        nu_dtype: the dtype in which the sums are stored; None for the dtype of their computation, at least float32. A
            narrow sum stops growing early.
        options: `weight_decay` as for `AdamW`, and as for `Optimizer`.

    >>> Adagrad(0.1).initial_accumulator_value
    0.1
    """

    _slot_dtypes: ClassVar = {"sum_of_squares": "nu_dtype"}
    initial_accumulator_value: Setting = Setting(NON_NEGATIVE.check)
    nu_dtype: Setting = Setting(check_moment_dtype)

    def __init__(
        self,
        learning_rate: Hyper = 0.001,
        initial_accumulator_value: float = 0.1,
        epsilon: Hyper = 1e-7,
        *,
        nu_dtype: DTypeLike | None = None,
        **options: Unpack[GradientDescentOptions],
    ) -> None:
        super().__init__(learning_rate, **options)
        self.nu_dtype = nu_dtype
        self.add_hyperparameter("epsilon", epsilon)
        self.initial_accumulator_value = initial_accumulator_value

    def direction(self, *, epsilon: jax.Array, **_: object) -> Any:
        """The gradient divided by the root of the sum of the squares of all gradients."""
        return optax.scale_by_rss(self.initial_accumulator_value, epsilon)


class Lion(GradientDescent):
    """Lion (Chen et al., 2023, Algorithm 2), as `optax.lion`.

    Args:
        learning_rate: a number or a schedule; a third to a tenth of a learning rate for Adam.
        beta_1: the weight of the momentum in a step.
        beta_2: the decay of the momentum.
        mu_dtype: the dtype in which the momentum is stored; None for the dtype of its computation, at least float32.
        options: `weight_decay` as for `AdamW`, and as for `Optimizer`.

    >>> float(Lion(weight_decay=0.5).weight_decay)
    0.5
    """

    _slot_dtypes: ClassVar = {"mu": "mu_dtype"}
    mu_dtype: Setting = Setting(check_moment_dtype)

    def __init__(
        self,
        learning_rate: Hyper = 0.001,
        beta_1: Hyper = 0.9,
        beta_2: Hyper = 0.99,
        *,
        mu_dtype: DTypeLike | None = None,
        **options: Unpack[GradientDescentOptions],
    ) -> None:
        super().__init__(learning_rate, **options)
        self.mu_dtype = mu_dtype
        self.add_hyperparameter("beta_1", beta_1, DECAY)
        self.add_hyperparameter("beta_2", beta_2, DECAY)

    def direction(self, *, beta_1: jax.Array, beta_2: jax.Array, **_: object) -> Any:
        """The sign of the mean of the momentum and the gradient."""
        return optax.scale_by_lion(b1=beta_1, b2=beta_2)
