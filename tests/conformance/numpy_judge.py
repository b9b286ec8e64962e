"""Which results the installed NumPy stores in arrays."""

import itertools
import multiprocessing
import warnings

import numpy as np

from conformance.assignment_judge import IN_PLACE, NUMBERS, REFUSED, STORED, UNKNOWN, pairs
from supremum.formats import FORMATS, as_format

NAMES = [row.name for row in FORMATS]
NUMPY_NAMES = {"bitwise_left_shift": "left_shift", "bitwise_right_shift": "right_shift"}


def array(name):
    """An array of ones; `"int8[]"` gives a 0-d array."""
    return np.ones(() if name.endswith("[]") else (1,), as_format(name.removesuffix("[]")).dtype)


def stores(write, into, value):
    """Whether NumPy stores the value that a function writes into an array."""
    target = array(into)
    try:
        result = write(target, NUMBERS[value] if value in NUMBERS else array(value))
    except (TypeError, OverflowError):
        return REFUSED
    except ValueError:
        return UNKNOWN  # in int1, 1 is -1, and NumPy refuses negative exponents by value
    return STORED if result is target else REFUSED


def stored_in_place(name):
    """The cells of an in-place operator, measured in a separate process.

    Which of ml_dtypes' loops NumPy chooses for `out=` depends on what the process has computed before.
    """
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_stored_in_place, (name,))


def _stored_in_place(name):
    # `+=` turns a 0-d array into a NumPy scalar, so this calls the ufunc with `out=`, which decides in the same way.
    ufunc = getattr(np, NUMPY_NAMES.get(name, name))
    with warnings.catch_warnings(action="ignore"):
        cells = {
            (name, into, value): stores(lambda target, other: ufunc(target, other, out=target), into, value)
            for into, value in pairs(NAMES)
        }
        for into, value in itertools.product(NAMES[::3], NAMES[::4]):
            assert stores(IN_PLACE[name], into, value) == cells[name, into, value], (into, value)
    return cells
