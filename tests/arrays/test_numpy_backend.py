"""Functions of the NumPy backend that take fewer steps than NumPy's own give the same arrays and the same errors."""

import itertools

import array_api_compat.numpy
import ml_dtypes
import numpy as np
import pytest

from supremum.arrays.backends.numpy import _FASTER

SHAPES = [(), (0,), (1,), (4,), (3, 1), (1, 4), (3, 4), (0, 4), (2, 3, 4)]
DTYPES = ["bool", "int8", "uint64", "float16", "float32", "complex64", "bfloat16", "int4"]
LAYOUTS = {
    "as it is": lambda array: array,
    "transposed": lambda array: array.T,
    "reversed": lambda array: array[..., ::-1] if array.ndim else array,
    "read-only": lambda array: np.broadcast_to(array, array.shape),
}
TARGETS = [*SHAPES, (5, 3, 4), (-1,), (3, -1), [3, 4], 4, np.int64(4), (np.int64(3), 4), (2.0,), "ab", None]
CALLS = {
    "broadcast_to": [((shape,), {}) for shape in TARGETS],
    "expand_dims": [((axis,), {}) for axis in (*range(-5, 5), (0, 1), (0, 0), np.int64(0), 1.0, None)],
    "reshape": [((shape,), {}) for shape in ((-1,), (4, 3), (2, -1), 12, (0,), "ab")],
    "sort": [((), {"axis": axis, "descending": down}) for axis in (-1, 0, 1, 5) for down in (False, True)],
    "cumulative_sum": [
        ((), {"axis": axis, "include_initial": first}) for axis in (None, 0, 1) for first in (False, True)
    ],
}
THEIRS = {
    "broadcast_to": np.broadcast_to,
    "expand_dims": np.expand_dims,
    "reshape": np.reshape,
    "sort": lambda x, axis, descending: (
        np.flip(np.sort(x, axis=axis, stable=True), axis) if descending else np.sort(x, axis=axis, stable=True)
    ),
    "cumulative_sum": array_api_compat.numpy.cumulative_sum,  # NumPy has it since 2.1
}


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


@pytest.mark.parametrize("name", CALLS)
def test_faster_functions_of_numpy_match_its_own(name):
    checked = 0
    for array, (args, options) in itertools.product(arrays(), CALLS[name]):
        ours, theirs = (outcome(each, array, args, options) for each in (_FASTER[name], THEIRS[name]))
        assert ours == theirs, (name, array.shape, array.dtype, array.strides, args, options)
        checked += 1
    assert checked == len(SHAPES) * len(DTYPES) * len(LAYOUTS) * len(CALLS[name])


def test_tensordot_of_one_axis_matches_numpy_for_every_pair_of_shapes():
    checked = 0
    for left, right, axes in itertools.product(SHAPES, SHAPES, (0, 1, 2, ([0], [0]), True)):
        a, b = np.arange(1.0, np.prod(left) + 1).reshape(left), np.arange(2.0, np.prod(right) + 2).reshape(right)
        ours = outcome(_FASTER["tensordot"], a, (b,), {"axes": axes})
        theirs = outcome(np.tensordot, a, (b,), {"axes": axes})
        assert ours == theirs, (left, right, axes)
        checked += ours not in (ValueError, IndexError)
    assert checked > 100
