"""Cross entropies as functions of arrays, from logits where they can be, and from probabilities.

Their sums are in at least float32, and rounded once by who calls them. A label that is 0 takes no part, so that a logit
of `-inf`, which rules a class out, costs nothing where the class is not the label.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from supremum.formats import at_least_float32
from supremum.nn.functional import log_softmax
from supremum.training.losses.regression import weight_times


def categorical_log_probabilities(y_pred: jax.Array, axis: int, *, from_logits: bool, eps: float) -> jax.Array:
    """The logarithms of probabilities, in at least float32.

    Args:
        y_pred: logits, or probabilities, which are brought to a sum of 1 and kept at least `eps` away from 0 and 1, as
            in Keras: float32 knows nothing between 1 and 1 - 6e-8, nor between 0 and a logarithm of `-inf`.
        axis: of the classes.
        from_logits: which of them it is.
        eps: how far probabilities are kept away.
    """
    wide = y_pred.astype(at_least_float32(y_pred.dtype))
    if from_logits:
        return log_softmax(wide, axis)
    total = jnp.sum(wide, axis, keepdims=True)
    return jnp.log(jnp.clip(wide / jnp.where(total == 0, jnp.ones_like(total), total), eps, 1 - eps))


def categorical_cross_entropy(y_true: jax.Array, log_probabilities: jax.Array, axis: int = -1) -> jax.Array:
    """`-sum(y_true * log_probabilities)` over the classes.

    Args:
        y_true: probabilities, or one-hot labels.
        log_probabilities: of the same shape.
        axis: of the classes.

    >>> categorical_cross_entropy(jnp.asarray([0.0, 1.0]), jnp.asarray([-jnp.inf, -0.5]))
    Array(0.5, dtype=float32)
    """
    return -jnp.sum(weight_times(y_true.astype(log_probabilities.dtype), log_probabilities), axis)


def sparse_categorical_cross_entropy(y_true: jax.Array, log_probabilities: jax.Array) -> jax.Array:
    """`-log_probabilities` at the labels, and NaN at a label that there is no class for.

    Args:
        y_true: integers, shape (...).
        log_probabilities: shape (..., classes).

    >>> sparse_categorical_cross_entropy(jnp.asarray([1, -1, 2]), jnp.full((3, 2), -0.5, "float32"))
    Array([0.5, nan, nan], dtype=float32)
    """
    classes = log_probabilities.shape[-1]
    is_class = (y_true >= 0) & (y_true < classes)
    place = jnp.where(is_class, y_true, jnp.zeros_like(y_true))
    found = jnp.take_along_axis(log_probabilities, place[..., None], -1)[..., 0]
    return jnp.where(is_class, -found, jnp.full_like(found, jnp.nan))


def binary_cross_entropy(y_true: jax.Array, y_pred: jax.Array, *, from_logits: bool, eps: float) -> jax.Array:
    """`-y_true * log(p) - (1 - y_true) * log(1 - p)` of each element, in at least float32.

    Args:
        y_true: probabilities, or labels of 0 and 1.
        y_pred: of the same shape: logits, of which `p` is the sigmoid, or `p` itself, which is kept at least `eps` away
            from 0 and 1.
        from_logits: which of them it is.
        eps: how far.

    >>> binary_cross_entropy(jnp.ones(2), jnp.asarray([100.0, -100.0]), from_logits=True, eps=0).tolist()
    [0.0, 100.0]
    """
    wide = y_pred.astype(at_least_float32(y_pred.dtype))
    y_true = y_true.astype(wide.dtype)
    if from_logits:
        return weight_times(y_true, jax.nn.softplus(-wide)) + weight_times(1 - y_true, jax.nn.softplus(wide))
    wide = jnp.clip(wide, eps, 1 - eps)
    return -y_true * jnp.log(wide) - (1 - y_true) * jnp.log1p(-wide)
