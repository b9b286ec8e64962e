"""Functions of the NumPy backend that take fewer steps than NumPy's own give the same arrays and the same errors."""

import itertools

import ml_dtypes
import numpy as np

from supremum.arrays.backends.numpy import _FASTER

SHAPES = [(), (0,), (1,), (4,), (3, 1), (1, 4), (3, 4), (0, 4), (2, 3, 4)]
DTYPES = ["bool", "int8", "uint64", "float16", "float32", "complex64", "bfloat16", "int4"]
LAYOUTS = {
    "as it is": lambda array: array,
    "transposed": lambda array: array.T,
    "reversed": lambda array: array[..., ::-1] if array.ndim else array,
    "read-only": lambda array: np.broadcast_to(array, array.shape),
}
TARGETS = [(-1,), (4, 3), (2, -1), 12, (0,), "ab"]


def arrays():
    for shape, dtype, layout in itertools.product(SHAPES, DTYPES, LAYOUTS.values()):
        count = int(np.prod(shape))
        values = np.resize([1, 0, 3, 2, 7, 5], count).astype(getattr(ml_dtypes, dtype, dtype))
        yield layout(values.reshape(shape))


def outcome(function, array, args, options):
    try:
        found = np.asarray(function(array, *args, **options))
    except Exception as error:
        return type(error)
    shares = np.shares_memory(found, array)
    strides = found.strides if found.size else ()
    return found.shape, strides, found.dtype, shares, shares and found.flags.writeable, found.tobytes()


def test_reshape_in_fewer_steps_matches_that_of_numpy():
    for array, shape in itertools.product(arrays(), TARGETS):
        ours, theirs = (outcome(each, array, (shape,), {}) for each in (_FASTER["reshape"], np.reshape))
        assert ours == theirs, (array.shape, array.dtype, array.strides, shape)
