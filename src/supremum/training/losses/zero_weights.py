"""Replacement of inf and NaN in examples of weight 0, where they would make every gradient NaN.

A gradient of 0 is not enough: the backward pass multiplies it by computed values, and 0 times NaN is NaN.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from supremum.mixed_precision import is_array, is_inexact
from supremum.nn import origin_of, record
from supremum.training.data import Batch

# All are between 0 and 1, and the first two differ: logarithms and roots of them and of their difference have a slope.
IN_Y_TRUE, IN_Y_PRED, IN_X = 0.5, 0.25, 0.5


def finite_where_left_out(tree: Any, weights: Any, value: float, axes: tuple[int, ...] = ()) -> Any:
    """Replace inf and NaN by a number where the weight is 0; everything else stays as it is.

    Probabilities are still known to come from a softmax or sigmoid; their logits are replaced in the same way.

    Args:
        tree: arrays; integers and leaves that are not arrays are not changed.
        weights: bools or real numbers for the first axes of the arrays, not counting `axes`; arrays that they do not
            fit are not changed.
        value: the number.
        axes: axes of the arrays that the weights lack.

    >>> finite_where_left_out(jnp.asarray([[jnp.nan, 3.0], [jnp.nan, 3.0]]), jnp.asarray([1.0, 0.0]), 0.5).tolist()
    [[nan, 3.0], [0.5, 3.0]]
    """

    def replaced(leaf: Any) -> Any:
        if not is_inexact(leaf) or leaf.ndim == 0:
            return leaf
        # A plain loss function gets NumPy arrays as NumPy arrays, in their dtype.
        xp: Any = np if isinstance(leaf, np.ndarray) and not isinstance(weights, Tracer) else jnp
        spread = xp.asarray(weights)
        for axis in sorted(axes):
            spread = xp.expand_dims(spread, axis) if axis <= spread.ndim else spread
        if spread.ndim > leaf.ndim or any(a not in (1, b) for a, b in zip(spread.shape, leaf.shape, strict=False)):
            return leaf
        spread = spread.reshape(*spread.shape, *(1 for _ in leaf.shape[spread.ndim :]))
        made = xp.where((spread != 0) | xp.isfinite(leaf), leaf, xp.asarray(value, leaf.dtype))
        origin = origin_of(leaf)
        return made if origin is None else record(made, origin._replace(logits=replaced(origin.logits)))

    return jax.tree.map(replaced, tree)


def without_left_out(batch: Batch) -> Batch:
    """Replace inf and NaN by a number in the inputs of examples whose weights are all 0.

    Args:
        batch: the batch.

    >>> x, weights = jnp.asarray([[1.0], [jnp.inf]]), jnp.asarray([1.0, 0.0])
    >>> without_left_out(Batch(x, None, weights)).x.tolist()
    [[1.0], [0.5]]
    """
    weights = batch.sample_weight
    if not is_array(weights) or weights.ndim == 0:
        return batch
    counts = jnp.any(jnp.asarray(weights) != 0, axis=tuple(range(1, np.ndim(weights))))
    return batch._replace(x=finite_where_left_out(batch.x, counts, IN_X))
