"""What the installed NumPy stores in arrays."""

import itertools
import multiprocessing
import warnings

import numpy as np

from conformance.assignment_judge import IN_PLACE, NUMBERS, REFUSED, STORED, UNKNOWN, pairs
from supremum.formats import FORMATS, as_format

NAMES = [row.name for row in FORMATS]
NUMPY_NAMES = {"bitwise_left_shift": "left_shift", "bitwise_right_shift": "right_shift"}


def array(name):
    """Of ones; `"int8[]"` has no dimension."""
    return np.ones(() if name.endswith("[]") else (1,), as_format(name.removesuffix("[]")).dtype)


def stores(write, into, value):
    """Whether NumPy stores what a function writes into an array."""
    target = array(into)
    try:
        result = write(target, NUMBERS[value] if value in NUMBERS else array(value))
    except (TypeError, OverflowError):
        return REFUSED
    except ValueError:
        return UNKNOWN  # the one of int1 is -1, an exponent that is refused when it is seen
    return STORED if result is target else REFUSED


def stored_in_place(name):
    """The cells of an in-place operator, asked in a process of its own.

    Which of ml_dtypes' loops NumPy takes for `out=` depends on what the process has computed before.
    """
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_stored_in_place, (name,))


def _stored_in_place(name):
    # An array without dimensions becomes a scalar of NumPy's by `+=`: its function is asked, which does the same.
    ufunc = getattr(np, NUMPY_NAMES.get(name, name))
    with warnings.catch_warnings(action="ignore"):
        cells = {
            (name, into, value): stores(lambda target, other: ufunc(target, other, out=target), into, value)
            for into, value in pairs(NAMES)
        }
        for into, value in itertools.product(NAMES[::3], NAMES[::4]):
            assert stores(IN_PLACE[name], into, value) == cells[name, into, value], (into, value)
    return cells
