"""Deliberate differences in what may be stored in an array: one row per reason, with the number of cells it covers.

The tests compare all differing cells with these rows, as they do with the rows of `departures`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from conformance.departures import rows_by_reason


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


_TABLE = """\
the framework silently loses information; these rules require an explicit cast
  numpy | item | refused | drop everything except whether it is zero | assign 105
  numpy | item | refused | drop the fraction | assign 632
  numpy | item | refused | drop the imaginary part | assign 342
  numpy-legacy | item | refused | drop everything except whether it is zero | assign 45
  numpy-legacy | item | refused | drop the fraction | assign 88
  numpy-legacy | item | refused | drop the imaginary part | assign 66
  torch | item | refused | drop everything except whether it is zero | assign 66
  torch | item | refused | drop the fraction | assign 232
  torch | item | refused | drop the imaginary part | assign 153
  paddle | item | refused | drop everything except whether it is zero | assign 28
  paddle | item | refused | drop the fraction | assign 65
  paddle | item | refused | drop the imaginary part | assign 36
  mlx | item, slice, indices, mask | refused | drop everything except whether it is zero | assign 16
  mlx | item, slice, indices, mask | refused | drop the fraction | assign 40
  mlx | item, slice, indices, mask | refused | drop the imaginary part | assign 24
  keras | variable | refused | drop everything except whether it is zero | assign 15
  keras | variable | refused | drop the fraction | assign 36
  keras | variable | refused | drop the imaginary part | assign 12
  polars | item, indices, frame | refused | drop everything except whether it is zero | assign 15
  polars | item, indices, frame | refused | drop the fraction | assign 40
  polars-1 | item, indices, frame | refused | drop everything except whether it is zero | assign 13
  polars-1 | item, indices, frame | refused | drop the fraction | assign 24
  pyarrow | item | refused | drop the fraction | assign 8
  keras | variable | refused | drop everything except whether it is zero | add subtract 13
  keras | variable | refused | drop the fraction | add subtract 24
  keras | variable | refused | drop the imaginary part | add subtract 18
`a[...] = b` gives MLX's array the dtype of `b`; these rules follow other indices, with which MLX casts `b`
  mlx | ellipsis | stored | - | assign 126
with a mask, Polars stores Python numbers, but no Series; these rules follow assignment to indices
  polars | mask | stored | - | assign 153
  polars-1 | mask | stored | - | assign 117
an operator of a Series converts the number itself, and has no conversion to 128 bits; expressions do
  polars | in_place | stored | int128 and  | add subtract multiply remainder 4
  polars-1 | in_place | stored | int128 and  | add subtract multiply remainder 2
Polars 1 does not assign to elements of an Int128 Series, which Polars 2 does
  polars-1 | item, indices, frame | stored | the framework casts every stored value | assign 12
ml_dtypes wraps numbers in its narrow integers, for example 1 to -1 in int1
  numpy | item | refused | is out of range of int1 | assign 4
tinygrad casts assigned Python numbers, even 1.5 to int8, but no tensors; these rules require an explicit cast where a
number would lose something
  tinygrad | item, variable | refused | these rules store only results of that dtype | assign 10
pandas stores a column or a number of another dtype if nothing is lost, and raises otherwise; these rules decide by
dtype, and require an explicit cast
  pandas | item | refused | these rules store only results of that dtype | assign 71
  pandas-nullable | item | refused | these rules store only results of that dtype | assign 67
pandas stores a nullable bool column in a column of numbers, but no Python bool; these rules refuse both
  pandas-nullable | item | refused | pandas does not store bool | assign 10
pandas gives bool for a bool column with a float column on the right, and raises in the other order; decisions do not
depend on the order of the operands
  pandas | in_place | refused | bitwise_and has no loop | bitwise_and 5
  pandas-nullable | in_place | refused | bitwise_and has no loop | bitwise_and 2
the bitwise operators of a Series of integers cast the right operand, even a float, to the type of the left one; these
rules follow expressions, which promote both
  polars | in_place | refused | - | bitwise_and bitwise_or bitwise_xor 119
  polars-1 | in_place | refused | - | bitwise_and bitwise_or bitwise_xor 73
JAX computes the sum and promotes float8 with integers; Keras' own rules refuse that
  keras | variable | refused | Keras does not convert float8 implicitly | add subtract 36
NumPy treats the formats of ml_dtypes as its highest kind, in which anything may be stored; these rules check what each
format can hold
  numpy | in_place | refused | drop the fraction | add subtract multiply floor_divide remainder 135, divide 576, pow 291
  numpy | in_place | refused | drop the imaginary part | add subtract multiply divide pow 238
NumPy chooses a loop for the formats of ml_dtypes by whether its result may be stored, which is float16 for integers;
these rules give the same promoted dtype with and without out=
  numpy | in_place | refused | casts results within their kind | add subtract multiply floor_divide remainder 18
Paddle's methods such as `add_` accept tensors only and treat 0-d tensors like all others; these rules follow its
operators
  paddle | in_place | stored | -
    | add subtract multiply 169, divide 109, floor_divide 150, remainder 168, bitwise_and 24, bitwise_left_shift 20
tf.tensor_scatter_nd_update does not promote in any mode; these rules follow variables, which do
  tf-all | item | stored | - | assign 93
  tf-safe | item | stored | - | assign 69
JAX has no kernel for adding bools to elements; these rules decide as for `a + b`, which gives bool
  jax-x64 jax-x32 | at | stored | the operands already have this dtype | add multiply 2
  jax-x64 jax-x32 | eager at | stored | the operands already have this dtype | add 2
"""
"""The departures: for each reason its rows, with the fields of `Departure`; several forms are separated by commas.

The last field has operations and the number of cells of each, for one list of operations after another.
"""


def _departures() -> Iterator[Departure]:
    for reason, (rules, forms, ours, says, cells) in rows_by_reason(_TABLE):
        counted = [part.split() for part in cells.split(", ")]
        counts = {name: int(count) for *names, count in counted for name in names}
        for form in forms.split(", "):
            yield Departure(rules, form, ours, "" if says == "-" else says, counts, reason)


DEPARTURES: tuple[Departure, ...] = (*_departures(),)
