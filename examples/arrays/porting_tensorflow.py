"""A TensorFlow program under the rules of TensorFlow RFC 431: what mode SAFE refuses, why, and what to type instead.

python examples/arrays/porting_tensorflow.py
"""

import numpy as np
import supremum
from supremum import ArrayVariable, asarray

# tf.constant(...) became asarray(..., dtype=...), and tf.Variable(...) became ArrayVariable(...); nothing else changed.
supremum.set_default_rules("tf-rfc-safe")

weights = ArrayVariable(np.ones(3, "float32"), name="weights")
counts = asarray([1, 2, 3], dtype="int32")
labels = asarray([0, 1, 1], dtype="uint8")


def attempt(what, compute):
    """Print the result, or the error."""
    try:
        print(f"{what}: {compute()!r}")
    except (supremum.PromotionError, supremum.arrays.InPlaceError) as refusal:
        print(f"{what}: {refusal}")


attempt("weights * 2", lambda: weights * 2)  # a Python number takes the dtype of the tensor
attempt("labels + 1", lambda: labels + 1)
attempt("labels + 1000", lambda: labels + 1000)  # wraps around silently in shipped TensorFlow
attempt("counts * 0.5", lambda: counts * 0.5)
attempt("counts.astype('float32') * 0.5", lambda: counts.astype("float32") * 0.5)
attempt("labels + counts", lambda: labels + counts)  # int32 holds every uint8
attempt("weights + counts", lambda: weights + counts)  # float32 does not hold every int32
attempt("weights.assign_add(np.array(1.5))", lambda: weights.assign_add(np.array(1.5)))  # a float64 array
attempt("weights.assign_add(1.5)", lambda: weights.assign_add(1.5))
