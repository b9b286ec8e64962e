"""Deliberate differences in what may be stored in an array: one row per reason, with the number of cells it covers.

The tests compare all differing cells with these rows, as they do with the rows of `departures`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Departure:
    """Cells in which a rule set and its framework differ about what may be stored, all for one reason.

    Args:
        rules: names of the rule sets, separated by spaces.
        form: what the rule set was compared with, such as `"in_place"`.
        ours: `"stored"` or `"refused"`; the framework does the opposite.
        says: a part of the decision's reason in these cells.
        cells: how many cells the row covers, by operation.
        reason: why our rules differ.
    """

    rules: str
    form: str
    ours: str
    says: str
    cells: Mapping[str, int]
    reason: str


_FRACTION, _IMAGINARY = "drop the fraction", "drop the imaginary part"
_TRUTH = "drop everything except whether it is zero"
_NOT_SILENT = "the framework silently loses information; these rules require an explicit cast"
_HIGHEST_KIND = (
    "NumPy treats the formats of ml_dtypes as its highest kind, in which anything may be stored; these rules check "
    "what each format can hold"
)
_FIRST_THAT_FITS = (
    "NumPy chooses a loop for the formats of ml_dtypes by whether its result may be stored, which is float16 for "
    "integers; these rules give the same promoted dtype with and without out="
)
_METHODS = (
    "Paddle's methods such as `add_` accept tensors only and treat 0-d tensors like all others; these rules follow its "
    "operators"
)
DEPARTURES: tuple[Departure, ...] = (
    # Assigned values: frameworks cast any value.
    *(
        Departure(rules, form, "refused", says, {"assign": count}, _NOT_SILENT)
        for rules, forms, counts in (
            ("numpy", "item", (105, 632, 342)),
            ("numpy-legacy", "item", (45, 88, 66)),
            ("torch", "item", (66, 232, 153)),
            ("paddle", "item", (28, 65, 36)),
            ("mlx", "item slice indices mask", (16, 40, 24)),
            ("keras", "variable", (15, 36, 12)),
            ("polars", "item indices frame", (15, 40)),
            ("polars-1", "item indices frame", (13, 24)),
        )
        for form in forms.split()
        for says, count in zip((_TRUTH, _FRACTION, _IMAGINARY), counts, strict=False)  # Polars has no complex numbers
    ),
    Departure(
        "mlx", "ellipsis", "stored", "", {"assign": 126},
        "`a[...] = b` gives MLX's array the dtype of `b`; these rules follow other indices, with which MLX casts `b`",
    ),
    *(
        Departure(
            rules, "mask", "stored", "", {"assign": count},
            "with a mask, Polars stores Python numbers, but no Series; these rules follow assignment to indices",
        )
        for rules, count in (("polars", 153), ("polars-1", 117))
    ),
    *(
        Departure(
            rules, "in_place", "stored", "int128 and ",
            dict.fromkeys(("add", "subtract", "multiply", "remainder"), count),
            "an operator of a Series converts the number itself, and has no conversion to 128 bits; expressions do",
        )
        for rules, count in (("polars", 4), ("polars-1", 2))
    ),
    *(
        Departure(
            "polars-1", form, "stored", "the framework casts every stored value", {"assign": 12},
            "Polars 1 does not assign to elements of an Int128 Series, which Polars 2 does",
        )
        for form in ("item", "indices", "frame")
    ),
    Departure("pyarrow", "item", "refused", _FRACTION, {"assign": 8}, _NOT_SILENT),
    Departure(
        "numpy", "item", "refused", "is out of range of int1", {"assign": 4},
        "ml_dtypes wraps numbers in its narrow integers, for example 1 to -1 in int1",
    ),
    *(
        Departure(
            "tinygrad", form, "refused", "these rules store only results of that dtype", {"assign": 10},
            "tinygrad casts assigned Python numbers, even 1.5 to int8, but no tensors; these rules require an explicit "
            "cast where a number would lose something",
        )
        for form in ("item", "variable")
    ),
    *(
        Departure(
            rules, "item", "refused", "these rules store only results of that dtype", {"assign": count},
            "pandas stores a column or a number of another dtype if nothing is lost, and raises otherwise; these rules "
            "decide by dtype, and require an explicit cast",
        )
        for rules, count in (("pandas", 71), ("pandas-nullable", 67))
    ),
    Departure(
        "pandas-nullable", "item", "refused", "pandas does not store bool", {"assign": 10},
        "pandas stores a nullable bool column in a column of numbers, but no Python bool; these rules refuse both",
    ),
    # Results of operations.
    *(
        Departure(
            rules, "in_place", "refused", "bitwise_and has no loop", {"bitwise_and": count},
            "pandas gives bool for a bool column with a float column on the right, and raises in the other order; "
            "decisions do not depend on the order of the operands",
        )
        for rules, count in (("pandas", 5), ("pandas-nullable", 2))
    ),
    *(
        Departure(
            rules, "in_place", "refused", "", dict.fromkeys(("bitwise_and", "bitwise_or", "bitwise_xor"), count),
            "the bitwise operators of a Series of integers cast the right operand, even a float, to the type of the "
            "left one; these rules follow expressions, which promote both",
        )
        for rules, count in (("polars", 119), ("polars-1", 73))
    ),
    Departure("keras", "variable", "refused", _TRUTH, {"add": 13, "subtract": 13}, _NOT_SILENT),
    Departure("keras", "variable", "refused", _FRACTION, {"add": 24, "subtract": 24}, _NOT_SILENT),
    Departure("keras", "variable", "refused", _IMAGINARY, {"add": 18, "subtract": 18}, _NOT_SILENT),
    Departure(
        "keras", "variable", "refused", "Keras does not convert float8 implicitly", {"add": 36, "subtract": 36},
        "JAX computes the sum and promotes float8 with integers; Keras' own rules refuse that",
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
        "numpy", "in_place", "refused", "casts results within their kind",
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
        "tf.tensor_scatter_nd_update does not promote in any mode; these rules follow variables, which do",
    ),
    Departure(
        "tf-safe", "item", "stored", "", {"assign": 69},
        "tf.tensor_scatter_nd_update does not promote in any mode; these rules follow variables, which do",
    ),
    Departure(
        "jax-x64 jax-x32", "at", "stored", "the operands already have this dtype", {"add": 2, "multiply": 2},
        "JAX has no kernel for adding bools to elements; these rules decide as for `a + b`, which gives bool",
    ),
    Departure(
        "jax-x64 jax-x32", "eager at", "stored", "the operands already have this dtype", {"add": 2},
        "JAX has no kernel for adding bools to elements; these rules decide as for `a + b`, which gives bool",
    ),
)  # fmt: skip
