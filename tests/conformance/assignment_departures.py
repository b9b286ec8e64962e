"""Where less or more is stored in an array than its framework stores, on purpose: one row per reason, with its cells.

The tests hold all differing cells against these rows, as those of `departures` are held.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Departure:
    """Cells in which a rule set and its framework differ about what is stored, all for one reason.

    Args:
        rules: names of the rule sets, separated by spaces.
        form: what it was compared with, such as `"in_place"`.
        ours: `"stored"` or `"refused"`; the framework does the other.
        says: what the decision says in these cells.
        cells: how many cells it covers, by operation.
        reason: why ours is as it is.
    """

    rules: str
    form: str
    ours: str
    says: str
    cells: Mapping[str, int]
    reason: str


_FRACTION, _IMAGINARY, _TRUTH = "lose the fraction", "lose the imaginary part", "lose all but whether it is zero"
_NOT_SILENT = "nothing is lost without a word: a cast by hand says that it is meant"
_HIGHEST_KIND = (
    "NumPy takes the formats of ml_dtypes for its highest kind, in which anything may be stored; these rules look at "
    "what they hold"
)
_FIRST_THAT_FITS = (
    "among the loops for formats of ml_dtypes NumPy looks for one whose result may be stored, in float16 for integers: "
    "these rules decide where the operands meet, with out= and without"
)
_METHODS = (
    "Paddle's methods such as `add_` take tensors only, and those without dimensions as all others; these rules are "
    "those of its operators"
)
DEPARTURES: tuple[Departure, ...] = (
    # Values that are assigned: frameworks cast whatever there is.
    *(
        Departure(rules, form, "refused", says, {"assign": count}, _NOT_SILENT)
        for rules, form, counts in (
            ("numpy", "item", (105, 632, 342)),
            ("numpy-legacy", "item", (45, 88, 66)),
            ("torch", "item", (66, 232, 153)),
            ("paddle", "item", (28, 65, 36)),
            ("keras", "variable", (15, 36, 12)),
        )
        for says, count in zip((_TRUTH, _FRACTION, _IMAGINARY), counts, strict=True)
    ),
    Departure(
        "numpy", "item", "refused", "is out of range of int1", {"assign": 4},
        "ml_dtypes wraps numbers around in its narrow integers, 1 to -1 in int1",
    ),
    # Results of operations.
    Departure("keras", "variable", "refused", _TRUTH, {"add": 13, "subtract": 13}, _NOT_SILENT),
    Departure("keras", "variable", "refused", _FRACTION, {"add": 24, "subtract": 24}, _NOT_SILENT),
    Departure("keras", "variable", "refused", _IMAGINARY, {"add": 18, "subtract": 18}, _NOT_SILENT),
    Departure(
        "keras", "variable", "refused", "Keras converts no float8 implicitly", {"add": 36, "subtract": 36},
        "the sum is JAX's, which joins float8 with integers; Keras' own rules do not",
    ),
    Departure(
        "numpy", "in_place", "refused", _FRACTION,
        dict.fromkeys(("add", "subtract", "multiply", "floor_divide", "remainder"), 135) | {"divide": 576, "pow": 291},
        _HIGHEST_KIND,
    ),
    Departure(
        "numpy", "in_place", "refused", _IMAGINARY,
        dict.fromkeys(("add", "subtract", "multiply", "divide", "pow"), 238), _HIGHEST_KIND,
    ),
    Departure(
        "numpy", "in_place", "refused", "is cast within its kind",
        dict.fromkeys(("add", "subtract", "multiply", "floor_divide", "remainder"), 18), _FIRST_THAT_FITS,
    ),
    Departure(
        "paddle", "in_place", "stored", "",
        {
            "add": 169, "subtract": 169, "multiply": 169, "divide": 109, "floor_divide": 150, "remainder": 168,
            "bitwise_and": 24, "bitwise_left_shift": 20,
        },
        _METHODS,
    ),
    Departure(
        "tf-all", "item", "stored", "", {"assign": 93},
        "tf.tensor_scatter_nd_update promotes nothing in any mode; these rules are those of variables",
    ),
    Departure(
        "tf-safe", "item", "stored", "", {"assign": 69},
        "tf.tensor_scatter_nd_update promotes nothing in any mode; these rules are those of variables",
    ),
    Departure(
        "jax-x64 jax-x32", "at", "stored", "the operands already have this dtype", {"add": 2, "multiply": 2},
        "JAX has no kernel for adding bools to elements; it is decided as `a + b` is, which gives bool",
    ),
    Departure(
        "jax-x64 jax-x32", "eager at", "stored", "the operands already have this dtype", {"add": 2},
        "JAX has no kernel for adding bools to elements; it is decided as `a + b` is, which gives bool",
    ),
)  # fmt: skip
