"""Deliberate differences between a rule set and its source: one row per reason, with the number of cells it covers.

The conformance tests compare all differing cells with these rows. They fail where no row covers a difference, and where
a row covers more or fewer cells than it says. When a difference disappears, its row must be deleted.
The source of autocast is a list of functions, and its rows are in `autocast_departures`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product

from supremum import formats
from supremum.formats import as_format, is_available
from supremum.operands import WEAK_NAMES

SCALARS = {"bool()", *WEAK_NAMES}
"""The names of Python scalars in cells; `bool()` is a Python bool."""
HAS_EVERY_FORMAT = all(is_available(row.name) for row in formats._ROWS)
"""Whether the installed ml_dtypes has all formats; older versions lack some."""


@dataclass(frozen=True, slots=True)
class Departure:
    """Cells in which a rule set and its source differ, all for one reason.

    Args:
        rules: name of the rule set.
        form: what the rule set was compared with, such as `"static operator"` or `"page"`.
        operations: the operations, separated by spaces, or `"any"`.
        left, right: the operands, separated by spaces: dtypes, categories, `tensor` or `scalar`. After the name of a
            tensor, `[]` selects 0-d tensors and `[:]` tensors with dimensions. `right` is empty for operations with one
            operand.
        ours, theirs: the dtypes that our rules and the source give, or `"refused"`. `"tensor"` is the dtype of the only
            tensor among the operands, `"n-d"` the dtype of the only tensor with dimensions, `"any"` any answer.
        cells: how many cells the row covers, or with form `"number"` how many numbers of
            `tests/test_number_conversion.py`. 0 for a difference that depends on values; a separate test checks it.
        reason: why our rules differ.
        either_order: whether the row also covers left and right swapped.
    """

    rules: str
    form: str
    operations: str
    left: str
    right: str
    ours: str
    theirs: str
    cells: int
    reason: str
    either_order: bool = False

    def covers(self, operation: str, form: str, left: str, right: str, ours: str, theirs: str) -> bool:
        """Whether the row covers a differing cell."""
        orders = [(left, right), (right, left)][: 1 + self.either_order]
        return (
            form == self.form
            and (self.operations == "any" or operation in self.operations.split())
            and any(_matches(self.left, a) and _matches(self.right, b) for a, b in orders)
            and _includes(self.ours, ours, (left, right))
            and _includes(self.theirs, theirs, (left, right))
        )


def departures_of_version(rules: str, version: tuple[int, ...], kind: str = "function") -> list[Departure]:
    """List the rows that apply to one version of a library.

    Args:
        rules: name of the rule set.
        version: the library's version, such as `(0, 12)`.
        kind: `"function"` for rows about functions, `"number"` for rows about converted numbers.
    """
    return [row for row in DEPARTURES if row.rules == rules and applies_to(row.form, kind, version)]


def expected_cells(cells: Mapping[Hashable, int], covered: Mapping[Hashable, int]) -> Counter[Hashable]:
    """Return how many cells rows must cover: as many as they say, or fewer if the installed ml_dtypes lacks formats.

    Args:
        cells: what the rows say, which is about all formats.
        covered: how many cells they cover.
    """
    if HAS_EVERY_FORMAT:
        return Counter(cells)
    return Counter({row: min(count, covered.get(row, 0)) for row, count in cells.items()})


def applies_to(form: str, kind: str, version: tuple[int, ...]) -> bool:
    """Whether a form such as `"function"`, `"function before 0.11"` or `"function from 0.12"` applies to a version."""
    form_kind, *limits = form.split()
    if form_kind != kind or not limits:
        return form_kind == kind
    bound = tuple(map(int, limits[1].split(".")))
    return version < bound if limits[0] == "before" else version >= bound


def _matches(terms: str, operand: str) -> bool:
    if not terms or not operand:
        return terms == operand
    if operand in SCALARS:
        return operand in terms.split() or "scalar" in terms.split()
    dtype = operand.removesuffix("[]").removesuffix("*")
    shape = "[]" if operand.endswith("[]") else "[:]"
    names = (dtype, as_format(dtype, columns=True).category, "tensor")
    return any(name in terms.split() or name + shape in terms.split() for name in names)


def _includes(answers: str, answer: str, operands: tuple[str, str]) -> bool:
    tensors = [operand for operand in operands if operand and operand not in SCALARS]
    placeholders = {
        "tensor": [operand.removesuffix("[]") for operand in tensors if len(tensors) == 1],
        "n-d": [operand for operand in tensors if not operand.endswith("[]")],
        "any": [answer],
    }
    return answer in placeholders.get(answers, answers.split())


_FLOAT8 = "float8_e4m3fn float8_e5m2"
_WEAK = "float32* float64* complex64* complex128*"
_TF_FLOATS = "bfloat16 float16 float32 float64 float32* float64* complex64"
_ARITHMETIC = "add subtract multiply divide remainder pow"
_ORDERED = "less less_equal greater greater_equal"
_COMPARISONS = f"equal not_equal {_ORDERED}"
_PAGE_COMPARISONS = "equal not_equal less_than less_equal greater_than greater_equal"
_LOGICAL = "logical_and logical_or logical_xor"
_BITWISE = "bitwise_and bitwise_or bitwise_xor"
_SHIFTS = "bitwise_left_shift bitwise_right_shift"
_TF_UNPROMOTED = f"{_COMPARISONS} atan2 nextafter {_BITWISE} {_SHIFTS} where"
_TABLE = f"""\
a symbolic comparison gives bool without promoting its operands; result_type refuses them
  keras | symbolic | {_COMPARISONS} {_LOGICAL} | {_FLOAT8} | tensor scalar | refused | bool | 720 | either order
the symbolic form treats a Python number as a float32 tensor, even a complex one; other functions call result_type
  keras | symbolic | atan2 | tensor | scalar | any | float32 | 38 | either order
a single symbolic tensor keeps 64 bits; JAX with x64 off has no 64-bit arrays
  keras | symbolic | abs negative square round sign conj trunc real imag bitwise_invert exp expm1
    | uint64 int64 float64 complex128 | - | uint32 int32 float32 complex64 | tensor | 42
the symbolic form gives complex64; for an array, the function gives float32
  keras | symbolic | abs real imag | complex64 | - | float32 | complex64 | 3
the symbolic form always gives floatx; the function keeps an array's float dtype
  keras | symbolic | reciprocal | tensor | - | any | float32 | 6
the symbolic form gives bool without a check; JAX has no signbit for 8-bit floats
  keras | symbolic | signbit | {_FLOAT8} | - | refused | bool | 2
the symbolic form accepts operands that promote to a float; the function refuses such arrays
  keras | symbolic | {_BITWISE} {_SHIFTS} | tensor scalar | tensor scalar | refused | any | 792
the symbolic form accepts floats; the function refuses float arrays
  keras | symbolic | bitwise_invert | float complex | - | refused | tensor | 8
the symbolic form fails because a Python number has no dtype attribute; the function accepts the number
  keras | symbolic | {_BITWISE} {_SHIFTS} hypot | tensor | scalar | any | refused | 264 | either order
the symbolic form keeps bool; the function shifts bool arrays in int32
  keras | symbolic | {_SHIFTS} | bool | bool bool() int* | int32 | bool | 6
the symbolic form keeps bool; the function computes with bool arrays in int32
  keras | symbolic | floor_divide pow | bool bool() | bool bool() | int32 | bool | 6
the function treats a Python float as a float32 array; result_type and the symbolic logaddexp do not
  keras | eager | atan2 logaddexp | bfloat16 float16 | float* | tensor | float32 | 8 | either order
a symbolic tensor shifted by a number keeps 64 bits; JAX with x64 off has no 64-bit arrays
  keras | symbolic | {_SHIFTS} | uint64 int64 | bool() int* | uint32 int32 | tensor | 8
the symbolic form turns integers into floats but not bools; the function turns both into floats
  keras | symbolic | hypot | bool | bool | float32 | bool | 1
the symbolic form treats a Python number as a float32 tensor; the function keeps the array's dtype
  keras | symbolic | nextafter | bfloat16 float16 | float* | tensor | float32 | 4 | either order
the function passes float8 arrays to JAX, which promotes them; result_type and the symbolic form refuse them
  keras | eager | hypot nextafter fmax fmin floor_divide pow
    | {_FLOAT8} | tensor scalar | refused | {_FLOAT8} | 252 | either order
the function passes float8 arrays to JAX; result_type and the symbolic form refuse them
  keras | eager | log log1p log2 log10 sqrt | {_FLOAT8} | - | refused | tensor | 10
with a bool tensor the operator computes a logical and, and gives bool for any number; the function multiplies
  tf-off tf-all tf-safe | operator | multiply | bool | tensor scalar | any | bool | 31 44 44 | either order
the function converts a number that comes first to a tensor; the operator accepts it in either order
  tf-off | function | add | int* float* complex* | tensor | tensor | refused | 19
decisions do not depend on the order of the operands; TensorFlow accepts the number on the right only
  tf-all tf-safe | operator | {_BITWISE} | bool() int* | bool integer | any | refused | 48
  tf-all tf-safe | function | {_TF_UNPROMOTED} | bool() int* float* | tensor | any | refused | 77
only TensorFlow's NumPy API has this function; it turns integers into floats and Python numbers into arrays, and then
promotes as the mode does. These rules use the decision for the tf.math function that their reason names
  tf-off tf-all tf-safe | numpy | hypot logaddexp | tensor scalar | tensor scalar | refused | any | 14 705 429
  tf-off tf-all tf-safe | numpy | trunc signbit log2 log10 | tensor scalar | - | refused | any | 44 52 52
a composition in TensorFlow's NumPy API, which gives NumPy's dtypes to Python numbers, to bfloat16 and to its own
constants, and keeps weak types weak
  tf-off tf-all tf-safe | numpy | hypot logaddexp | tensor scalar | tensor scalar | {_TF_FLOATS} | any | 20
  tf-off tf-all tf-safe | numpy | trunc log2 log10 | tensor scalar | - | {_TF_FLOATS} | any | 6 13 13
  tf-off | numpy | positive | int* float* | - | int32 float32 | int64 float64 | 2
the function loses the weak type of its operand; the operator keeps it
  tf-all tf-safe | function | bitwise_invert | integer int* | - | int32* int64* | int32 int64 | 3
the function accepts only tensors on the left. Paddle's operator accepts the scalar in either order, and these rules
follow the operator
  paddle | function | floor_divide pow remainder equal | scalar | tensor | any | refused | 432
the function does not accept a complex scalar. Paddle's operator accepts the scalar in either order, and these rules
follow the operator
  paddle | function | pow remainder | tensor | complex* | any | refused | 48
the function casts every scalar to the tensor's type, even 1.5 to int32; the operator does not
  paddle | function | pow remainder | bool integer | int* float* | any | tensor | 28
the function converts the scalar to an int64 or float32 tensor, the operator to the tensor's type
  paddle | function | floor_divide | uint8 int8 int16 int32 bfloat16 float16 | int* float* | tensor | int64 float32 | 12
the function converts the scalar to a tensor, which has no common type with float8; the operator keeps float8
  paddle | function | floor_divide | {_FLOAT8} | scalar | tensor | refused | 12
Paddle fails while it converts float8 to a NumPy dtype, which is not a rule about types
  paddle | function | signbit | {_FLOAT8} | - | bool | refused | 4
the operator accepts bool tensors
  paddle | function | negative | bool | - | bool | refused | 2
decisions do not depend on the order of the operands; what Paddle accepts in one order, these rules accept in both
  paddle | function | copysign | scalar | tensor | any | refused | 84
  paddle | operator | {_BITWISE} | bool integer | bool() int* | tensor | refused | 72
Paddle fails while it converts float8 to a NumPy dtype for the scalar, which is not a rule about types
  paddle | function | copysign | {_FLOAT8} | scalar | tensor | refused | 12
both refuse; Paddle fails later, because it finds no kernel, while these rules refuse first
  paddle | function, operator | {_BITWISE} {_SHIFTS} | float complex | float complex | refused | any | 160
  paddle | function, operator | {_SHIFTS} | bool | bool | refused | bool | 8
Paddle looks up the kernel by the integer types and has none for 8 and 16 bits; its kernels for wider integers give
float64, and so do these rules for all integers
  paddle | function | atan2 | integer | integer | float64 | uint8 int8 int16 | 12
Paddle computes exp(input) in float32 before it promotes; that works for 0-d tensors only, and it refuses n-d tensors
  paddle | function | poisson_nll_loss | integer[] | bool[] integer[] | refused | float32 | 12
Paddle computes exp(input) in float32 before it promotes, which makes the result depend on the order
  paddle | function | poisson_nll_loss | integer[] | bfloat16[] | bfloat16 | float32 | 2
these rules follow eager mode, which differs here from a static program
  paddle | static operator | {_ARITHMETIC} | tensor | complex* | any | complex128 | 228 | either order
  paddle | static operator | {_ARITHMETIC} floor_divide | bool | bool() | bool | int64 float32 | 28 | either order
  paddle | static operator, static function | floor_divide
    | integer[:] float[:] | integer[] float[] | any | n-d | 36 | either order
a static program broadcasts the operands by adding zeros, and the addition promotes. these rules follow eager mode,
which differs here from a static program
  paddle | static function | where | tensor | bool[] integer[] float[] complex[] scalar | any | any | 112 | either order
the page has no entry for two tensors of the same bool or integer type; Paddle keeps the type
  paddle | page tensors | any | bool integer | bool integer | any | refused | 179
a misprint: the page's own row float64, its sample code and Paddle say complex128
  paddle | page tensors | any | complex64 | float64 | complex128 | complex64 | 18
the other half of the same misprint: complex128 is one group of columns off
  paddle | page tensors | any | complex64 | int64 | complex64 | complex128 | 18
the page says that logical calculations with complex types are not supported; Paddle gives bool
  paddle | page tensors | {_PAGE_COMPARISONS} {_LOGICAL} | tensor | complex | bool | refused | 396 | either order
  paddle | page scalars | {_PAGE_COMPARISONS} | tensor | scalar | bool | refused | 108
the page has a Logic Rule for scalars here; Paddle's functions refuse them, and there is no operator
  paddle | page scalars | {_LOGICAL} | tensor | scalar | refused | bool | 90
the loss is an absolute value, which is float32 for complex64
  paddle | page tensors | l1_loss | tensor | complex | float32 float64 | any | 44 | either order
the page says that divide always returns a float; Paddle gives bool for a bool tensor divided by True
  paddle | page scalars | divide | bool | bool() | bool | float32 | 1
the page has the Common Rule here; Paddle refuses floats on either side
  paddle | page scalars | {_BITWISE} | tensor | scalar | refused | any | 108
the page has the Common Rule here; Paddle casts the scalar to the tensor's type
  paddle | page scalars | {_BITWISE} | bool | int* | bool | int64 | 3
the page has the Common Rule here; Paddle first converts the scalar to an int64 or float32 tensor
  paddle | page scalars | where | tensor | scalar | refused float32 | any | 26
tinygrad shifts a weak int by a strong one in a graph that fails its own check, or that stays weak; decisions do not
depend on the order of the operands
  tinygrad | function, operator | {_SHIFTS} | int* | integer | tensor | refused int32* | 32
tinygrad copies the sign to a number that it keeps weak; decisions do not depend on the order of the operands
  tinygrad | function | copysign | int* | integer float | tensor | int32* float32* | 16
tinygrad makes a number beyond the range of an 8-bit float its largest number; ml_dtypes, which holds the arrays of
these rules, makes it infinite or NaN
  tinygrad | number | any | {_FLOAT8} float8_e4m3fnuz float8_e5m2fnuz | int* float* | tensor | tensor | 0
tinygrad compares bools with the number itself; these rules convert a number beyond int32, which the decision says
  tinygrad | number | equal less | bool | int* | bool | bool | 0 | either order
tinygrad refuses a negative int as base or exponent of integers; these rules decide by type, not by value
  tinygrad | operator | pow | bool integer | int* | any | refused | 0 | either order
MLX's result_type accepts arrays and dtypes only; these rules promote Python numbers as functions do
  mlx | function | result_type | scalar | tensor scalar | any | refused | 128 | either order
MLX has no reflected bitwise operators; its functions accept a number on either side
  mlx | operator | {_BITWISE} {_SHIFTS} | bool() int* | bool integer | any | refused | 90
pl.arctan2 needs pl.lit around a number; these rules accept the number as if it had that
  polars polars-1 | expression | atan2 | tensor | scalar | any | refused | 84 72 | either order
Polars' not_ inverts the bits of integers; here that is bitwise_invert, and logical_not takes bools only
  polars polars-1 | expression, series | logical_not | integer | - | refused | tensor | 10 9
  polars polars-1 | expression | logical_not | int* | - | refused | int32 | 1
an operator of a Series converts the number itself, and has no conversion for this type; expressions have one
  polars polars-1 | series | add subtract multiply remainder floor_divide
    | bool() int* | int128 uint128 | int128 uint128 | refused | 36 18 | either order
  polars polars-1 | series | add subtract multiply remainder | bool | bool() int* | any | refused | 10 | either order
  polars polars-1 | series | {_COMPARISONS} | bool | scalar | bool | refused | 32 | either order
an operator of a Series first casts a left operand that is no float to Float64; expressions promote
  polars polars-1 | series | divide | bool integer scalar | float16 float32 | float16 float32 | float64 | 16 8
an operator of a Series casts the right operand to the type of the left one, even a float; expressions promote
  polars polars-1 | series | {_BITWISE} | tensor scalar | tensor scalar | any | any | 396 306
Polars' integer division has no code for Boolean with a number; it fails or even panics
  polars | expression | floor_divide | bool bool() | float* | float64 | refused | 4 | either order
  polars | series | floor_divide | bool | float* | float64 | refused | 1
  polars polars-1 | series | floor_divide | int* | bool | int32 | refused | 1
  polars-1 | expression | floor_divide | bool bool() | int* float* | any | refused | 8 | either order
  polars-1 | series | floor_divide | bool | int* float* | any | refused | 2
Polars 1 refuses a Boolean with a number on its right, but accepts some in the other order, and its optimizer replaces
True or-ed with a number by True; these rules refuse all
  polars-1 | expression | {_BITWISE} | bool() int* float* | bool scalar | refused | bool int32 float64 | 10
PyArrow has no reflected operators; its functions accept a number on either side
  pyarrow | operator | add subtract multiply divide pow {_BITWISE} {_SHIFTS}
    | int* float* | tensor | any | refused | 140
PyArrow's operator is `negate_checked`, which has no kernels for unsigned integers; `negate` wraps around
  pyarrow | operator | negative | uint8 uint16 uint32 uint64 | - | tensor | refused | 4
pandas gives bool for a bool column with a float column on the right, and raises in the other order; decisions do not
depend on the order of the operands
  pandas pandas-nullable | operator, function | {_BITWISE} | bool | float complex | refused | bool | 15 6
columns have no operators for shifts; these rules follow NumPy's functions, which accept columns
  pandas pandas-nullable | operator | {_SHIFTS} | tensor scalar | tensor scalar | any | refused | 218
  pandas | mixed operator | {_SHIFTS} | tensor | tensor | any | refused | 292
pandas gives bool for a nullable bool column with a float column, and raises for a bool column with a nullable float
column; these rules accept no float in a logical operator
  pandas | mixed operator, mixed function | {_BITWISE} | bool | float complex | refused | boolean | 30 | either order
pandas gives a column without a mask if it converts to the common dtype, and raises for a missing bound; these rules
give a nullable column, as for other bounds
  pandas | mixed method | clip | int8 int16 int32 int64 | uint8 uint16 uint32 uint64 | any | any | 4
pandas keeps the integers if they hold every value of the float16 column, and otherwise fails because it has no kernel;
these rules promote as for the other floats
  pandas | method | where clip | integer | float16 | any | any | 16
  pandas | mask | where clip | integer | float16 | any | any | 8
pandas keeps the dtype of the column if it holds the values of the other one; these rules decide by dtype
  pandas pandas-nullable | method | where clip | tensor | tensor scalar | any | any | 0
pandas finds an unsigned integer for the number, and fails; these rules find the narrowest signed one
  pandas | number of a method | where | int8 int16 int32 | int* | int32 int64 | refused | 5
pandas does not convert an int beyond 64 bits to a complex number; these rules do, as for a float
  pandas | number of a method | where | complex | int* | tensor | refused | 4
pandas treats a float without a fraction as an int; these rules decide by its type
  pandas | number of a method | where | integer | float* | float64 | uint32 uint64 int32 int64 | 8
  pandas-nullable | number of a method | where | integer | float* | refused | tensor | 4
pandas treats a float without a fraction as an int, and fails if no integer holds it
  pandas | number of a method | where | integer | float* | float64 | refused | 16
pandas may convert to float64 if a divisor is zero, for infinities and NaN; these rules decide by dtype
  pandas pandas-nullable | operator | floor_divide remainder | tensor | tensor | any | float64 | 0
pandas gives a complex column of NumPy's dtype, without a mask; the document counts such columns as refusals
  pandas-nullable | operator | any | tensor | complex* | complex64 complex128 | refused | 110 | either order
  pandas-nullable | function | any | tensor | complex* | complex64 complex128 | refused | 198 | either order
  pandas-nullable | number of a method | add subtract multiply | tensor | complex* | complex64 complex128 | refused | 33
pandas cannot convert missing values of the integer column to bool; without them, the result is bool
  pandas-nullable | operator | {_BITWISE} | bool | integer | bool | refused | 0
NumPy 1.26 compares an int beyond 64 bits as a Python object with each element; these rules do so for integers
alone, whose answer does not depend on rounding
  numpy-legacy | function | equal | tensor scalar | int* | refused | bool | 188 | either order
  numpy-legacy | function | not_equal | tensor scalar | int* | refused | bool | 188 | either order
  numpy-legacy | function | less | tensor scalar | int* | refused | bool | 168 | either order
  numpy-legacy | function | less_equal | tensor scalar | int* | refused | bool | 168 | either order
  numpy-legacy | function | greater | tensor scalar | int* | refused | bool | 168 | either order
  numpy-legacy | function | greater_equal | tensor scalar | int* | refused | bool | 168 | either order
NumPy before 2.5 silently wraps an int that is out of range. NumPy 2.5 raises OverflowError
(numpy/_core/src/multiarray/multiarraymodule.c, PyArray_Where), and these rules refuse it in every version
  numpy | function | where | uint8 | int* | refused | uint8 | 0
these rules follow the newest NumPy, whose where converts an int through float64 as its other functions do; older
versions round once, from int64
  numpy | number before 2.5 | where | float32 | int* | float32 | float32 | 4
torch reads np.complex64 as a float and drops its imaginary part; these rules read a complex number, as torch reads
np.complex128
  torch | NumPy scalar | any | bool integer float | complex64[] | any | any | 0 | either order
torch reads no np.uint64 beyond int64, though it reads such a Python int; these rules read both alike
  torch | NumPy scalar | any | tensor | uint64[] | any | refused | 0 | either order
NumPy does not treat these formats as complex and returns the array unchanged, with its imaginary part
  numpy | function | real | complex32 bcomplex32 | - | refused | tensor | 4
NumPy does not treat these formats as complex and returns zeros
  numpy | function | imag | complex32 bcomplex32 | - | refused | tensor | 4
array-api-strict checks the category of the array only; the standard requires both operands to be real
  array-api | function | maximum minimum {_ORDERED} | float32 float64 | complex* | refused | any | 24 | either order
JAX has no matching float for 1-bit and 2-bit integers and divides in the integer dtype
  jax | function | divide | uint1 uint2 int1 int2 | bool uint1 uint2 int1 int2 int* | refused | any | 56 | either order
JAX's abs turns int1 into int8, and its copysign then gives an integer
  jax | function | copysign | int1 | bool int1 int* | refused | int8 | 14 | either order
JAX has abs for int1 but not int2 and int4
  jax | function | abs | int1 | - | refused | int8 | 2
these rules follow the newest JAX, whose log2 keeps weak types; older versions lose them
  jax | function before 0.11 | log2 | int* float* complex* | - | {_WEAK} | float32 float64 complex64 complex128 | 12
these rules follow the newest JAX, whose hypot keeps weak types; older versions lose them where only some operands are
weak
  jax | function before 0.12 | hypot
    | bool integer | integer int* float* | {_WEAK} | float32 float64 complex64 complex128 | 80 | either order
JAX creates a constant in float32, and strict promotion then refuses to multiply by it
  jax-strict-explicit-x64 | function from 0.12 | log10
    | float64 complex128 int64 uint64 | - | float64 complex128 | refused | 4
in eager calls, JAX reads the value of a 0-d exponent and multiplies repeatedly; under `jit` it promotes, and so do
these rules, which do not read the values of arrays
  jax | eager | pow | int8 | int32[] | int32 | int8 | 0
"""


def rows_by_reason(table: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the reason and the fields of each row of a table of departures; a line with more indentation goes on."""
    reason, is_complete = "", True
    for line in table.replace("\n    ", " ").splitlines():
        if line.startswith(" "):
            yield reason, [field.strip() for field in line.split("|")]
        else:
            reason = line if is_complete else f"{reason} {line}"
        is_complete = line.startswith(" ")


def departures_of_table(table: str) -> Iterator[Departure]:
    """Yield the departures of a table with the fields of `Departure` in their order, and - for no operand.

    A row may have several rule sets, which have one number of cells or one each, and several forms, after commas.
    """
    for reason, row in rows_by_reason(table):
        rules, forms, operations, left, right, ours, theirs, cells = row[:8]
        names, counts = rules.split(), cells.split()
        counts = counts if counts[1:] else counts * len(names)
        for (name, count), form in product(zip(names, counts, strict=True), forms.split(", ")):
            operands = (left, "" if right == "-" else right)
            yield Departure(name, form, operations, *operands, ours, theirs, int(count), reason, "either order" in row)


DEPARTURES: list[Departure] = [*departures_of_table(_TABLE)]
