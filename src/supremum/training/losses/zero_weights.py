"""Examples of weight 0: numbers in place of their inf and NaN, which would make every gradient NaN.

A gradient of 0 does not end there: on its way back it is multiplied by what was computed, and 0 times NaN is NaN.
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

# Between 0 and 1, so that logarithms and roots have a slope, those of a difference too.
IN_Y_TRUE, IN_Y_PRED, IN_X = 0.5, 0.25, 0.5


def finite_where_left_out(tree: Any, weights: Any, value: float, axes: tuple[int, ...] = ()) -> Any:
    """Arrays with a number in place of inf and NaN where the weight is 0; all else is as it was.

    Probabilities are still known to come from a softmax or sigmoid, of logits that are treated alike.

    Args:
        tree: arrays; integers and what is not an array are left alone.
        weights: bools or real numbers of the first axes of the arrays, not counting `axes`; arrays that they do not fit
            are left alone.
        value: the number.
        axes: axes of the arrays that the weights do not have.

    >>> finite_where_left_out(jnp.asarray([[jnp.nan, 3.0], [jnp.nan, 3.0]]), jnp.asarray([1.0, 0.0]), 0.5).tolist()
    [[nan, 3.0], [0.5, 3.0]]
    """

    def replaced(leaf: Any) -> Any:
        if not is_inexact(leaf) or leaf.ndim == 0:
            return leaf
        # What a plain function is given stays an array of NumPy, in its dtype.
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
    """A batch with a number in place of inf and NaN in the inputs of examples whose weights are all 0.

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
