"""Deliberate differences between a rule set and its source: one row per reason, with the number of cells it covers.

The conformance tests compare all differing cells with these rows. They fail where no row covers a difference, and where
a row covers more or fewer cells than it says. When a difference disappears, its row must be deleted.
The source of autocast is a list of functions, and its rows are in `autocast_departures`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping
from dataclasses import dataclass

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
    return [row for row in DEPARTURES if row.rules == rules and _applies(row.form, kind, version)]


def expected_cells(cells: Mapping[Hashable, int], covered: Mapping[Hashable, int]) -> Counter[Hashable]:
    """Return how many cells rows must cover: as many as they say, or fewer if the installed ml_dtypes lacks formats.

    Args:
        cells: what the rows say, which is about all formats.
        covered: how many cells they cover.
    """
    if HAS_EVERY_FORMAT:
        return Counter(cells)
    return Counter({row: min(count, covered.get(row, 0)) for row, count in cells.items()})


def _applies(form: str, kind: str, version: tuple[int, ...]) -> bool:
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
_ARITHMETIC = "add subtract multiply divide remainder pow"
_COMPARISONS = "equal not_equal less_than less_equal greater_than greater_equal"
_LOGICAL = "logical_and logical_or logical_xor"
_BITWISE = "bitwise_and bitwise_or bitwise_xor"
_SHIFTS = "bitwise_left_shift bitwise_right_shift"

_OPERATORS_LEAD = "Paddle's operator accepts the scalar in either order, and these rules follow the operator"
_COMMUTES = (
    "decisions do not depend on the order of the operands; what Paddle accepts in one order, these rules accept in both"
)
_NO_BITS = "both refuse; Paddle fails later, because it finds no kernel, while these rules refuse first"
_EAGER = "these rules follow eager mode, which differs here from a static program"
_COMPLEX = "the page says that logical calculations with complex types are not supported; Paddle gives bool"
_COMPARISONS_OF_OURS = "equal not_equal less less_equal greater greater_equal"
_BOOL_TIMES = (
    "with a bool tensor the operator computes a logical and, and gives bool for any number; the function multiplies"
)
_TF_COMMUTES = "decisions do not depend on the order of the operands; TensorFlow accepts the number on the right only"
_TF_UNPROMOTED = f"{_COMPARISONS_OF_OURS} atan2 nextafter {_BITWISE} {_SHIFTS} where"
_TF_FLOATS = "bfloat16 float16 float32 float64 float32* float64* complex64"
_TNP_PROMOTES = (
    "only TensorFlow's NumPy API has this function; it turns integers into floats and Python numbers into arrays, and "
    "then promotes as the mode does. These rules use the decision for the tf.math function that their reason names"
)
_TNP_CONSTANTS = (
    "a composition in TensorFlow's NumPy API, which gives NumPy's dtypes to Python numbers, to bfloat16 and to its own "
    "constants, and keeps weak types weak"
)

_WEAK_SHIFT = (
    "tinygrad shifts a weak int by a strong one in a graph that fails its own check, or that stays weak; decisions do "
    "not depend on the order of the operands"
)
_POLARS_MEETING = f"add subtract multiply floor_divide remainder {_COMPARISONS_OF_OURS}"
_NO_SHIFTS = "columns have no operators for shifts; these rules follow NumPy's functions, which accept columns"
_POLARS_NUMBERS = (
    "an operator of a Series converts the number itself, and has no conversion for this type; expressions have one"
)
_POLARS_FLOOR = "Polars' integer division has no code for Boolean with a number; it fails or even panics"
_POLARS_BITS = (
    "an operator of a Series casts the right operand to the type of the left one, even a float; expressions promote"
)
_POLARS_NOT = "Polars' not_ inverts the bits of integers; here that is bitwise_invert, and logical_not takes bools only"

_WEAK_INEXACT = "float32* float64* complex64* complex128*"

DEPARTURES: list[Departure] = [
    Departure(
        "keras", "symbolic", f"{_COMPARISONS_OF_OURS} {_LOGICAL}", _FLOAT8, "tensor scalar", "refused", "bool", 720,
        "a symbolic comparison gives bool without promoting its operands; result_type refuses them",
        either_order=True,
    ),
    Departure(
        "keras", "symbolic", "atan2", "tensor", "scalar", "any", "float32", 38,
        "the symbolic form treats a Python number as a float32 tensor, even a complex one; other functions call "
        "result_type",
        either_order=True,
    ),
    Departure(
        "keras", "symbolic",
        "abs negative square round sign conj trunc real imag bitwise_invert exp expm1",
        "uint64 int64 float64 complex128", "", "uint32 int32 float32 complex64", "tensor", 42,
        "a single symbolic tensor keeps 64 bits; JAX with x64 off has no 64-bit arrays",
    ),
    Departure(
        "keras", "symbolic", "abs real imag", "complex64", "", "float32", "complex64", 3,
        "the symbolic form gives complex64; for an array, the function gives float32",
    ),
    Departure(
        "keras", "symbolic", "reciprocal", "tensor", "", "any", "float32", 6,
        "the symbolic form always gives floatx; the function keeps an array's float dtype",
    ),
    Departure(
        "keras", "symbolic", "signbit", _FLOAT8, "", "refused", "bool", 2,
        "the symbolic form gives bool without a check; JAX has no signbit for 8-bit floats",
    ),
    Departure(
        "keras", "symbolic", f"{_BITWISE} {_SHIFTS}", "tensor scalar", "tensor scalar", "refused", "any", 792,
        "the symbolic form accepts operands that promote to a float; the function refuses such arrays",
    ),
    Departure(
        "keras", "symbolic", "bitwise_invert", "float complex", "", "refused", "tensor", 8,
        "the symbolic form accepts floats; the function refuses float arrays",
    ),
    Departure(
        "keras", "symbolic", f"{_BITWISE} {_SHIFTS} hypot", "tensor", "scalar", "any", "refused", 264,
        "the symbolic form fails because a Python number has no dtype attribute; the function accepts the number",
        either_order=True,
    ),
    Departure(
        "keras", "symbolic", _SHIFTS, "bool", "bool bool() int*", "int32", "bool", 6,
        "the symbolic form keeps bool; the function shifts bool arrays in int32",
    ),
    Departure(
        "keras", "symbolic", "floor_divide pow", "bool bool()", "bool bool()", "int32", "bool", 6,
        "the symbolic form keeps bool; the function computes with bool arrays in int32",
    ),
    Departure(
        "keras", "eager", "atan2 logaddexp", "bfloat16 float16", "float*", "tensor", "float32", 8,
        "the function treats a Python float as a float32 array; result_type and the symbolic logaddexp do not",
        either_order=True,
    ),
    Departure(
        "keras", "symbolic", _SHIFTS, "uint64 int64", "bool() int*", "uint32 int32", "tensor", 8,
        "a symbolic tensor shifted by a number keeps 64 bits; JAX with x64 off has no 64-bit arrays",
    ),
    Departure(
        "keras", "symbolic", "hypot", "bool", "bool", "float32", "bool", 1,
        "the symbolic form turns integers into floats but not bools; the function turns both into floats",
    ),
    Departure(
        "keras", "symbolic", "nextafter", "bfloat16 float16", "float*", "tensor", "float32", 4,
        "the symbolic form treats a Python number as a float32 tensor; the function keeps the array's dtype",
        either_order=True,
    ),
    Departure(
        "keras", "eager", "hypot nextafter fmax fmin floor_divide pow", _FLOAT8, "tensor scalar",
        "refused", _FLOAT8, 252,
        "the function passes float8 arrays to JAX, which promotes them; result_type and the symbolic form refuse them",
        either_order=True,
    ),
    Departure(
        "keras", "eager", "log log1p log2 log10 sqrt", _FLOAT8, "", "refused", "tensor", 10,
        "the function passes float8 arrays to JAX; result_type and the symbolic form refuse them",
    ),
    Departure(
        "tf-off", "operator", "multiply", "bool", "tensor scalar", "any", "bool", 31, _BOOL_TIMES, either_order=True,
    ),
    Departure(
        "tf-off", "function", "add", "int* float* complex*", "tensor", "tensor", "refused", 19,
        "the function converts a number that comes first to a tensor; the operator accepts it in either order",
    ),
    Departure(
        "tf-all", "operator", "multiply", "bool", "tensor scalar", "any", "bool", 44, _BOOL_TIMES, either_order=True,
    ),
    Departure("tf-all", "operator", _BITWISE, "bool() int*", "bool integer", "any", "refused", 48, _TF_COMMUTES),
    Departure("tf-all", "function", _TF_UNPROMOTED, "bool() int* float*", "tensor", "any", "refused", 77, _TF_COMMUTES),
    Departure(
        "tf-safe", "operator", "multiply", "bool", "tensor scalar", "any", "bool", 44, _BOOL_TIMES, either_order=True,
    ),
    Departure("tf-safe", "operator", _BITWISE, "bool() int*", "bool integer", "any", "refused", 48, _TF_COMMUTES),
    Departure(
        "tf-safe", "function", _TF_UNPROMOTED, "bool() int* float*", "tensor", "any", "refused", 77, _TF_COMMUTES,
    ),
    Departure(
        "tf-off", "numpy", "hypot logaddexp", "tensor scalar", "tensor scalar", "refused", "any", 14, _TNP_PROMOTES,
    ),
    Departure(
        "tf-off", "numpy", "hypot logaddexp", "tensor scalar", "tensor scalar", _TF_FLOATS, "any", 20, _TNP_CONSTANTS,
    ),
    Departure("tf-off", "numpy", "trunc signbit log2 log10", "tensor scalar", "", "refused", "any", 44, _TNP_PROMOTES),
    Departure("tf-off", "numpy", "trunc log2 log10", "tensor scalar", "", _TF_FLOATS, "any", 6, _TNP_CONSTANTS),
    Departure("tf-off", "numpy", "positive", "int* float*", "", "int32 float32", "int64 float64", 2, _TNP_CONSTANTS),
    Departure(
        "tf-all", "function", "bitwise_invert", "integer int*", "", "int32* int64*", "int32 int64", 3,
        "the function loses the weak type of its operand; the operator keeps it",
    ),
    Departure(
        "tf-all", "numpy", "hypot logaddexp", "tensor scalar", "tensor scalar", "refused", "any", 705, _TNP_PROMOTES,
    ),
    Departure(
        "tf-all", "numpy", "hypot logaddexp", "tensor scalar", "tensor scalar", _TF_FLOATS, "any", 20, _TNP_CONSTANTS,
    ),
    Departure("tf-all", "numpy", "trunc signbit log2 log10", "tensor scalar", "", "refused", "any", 52, _TNP_PROMOTES),
    Departure("tf-all", "numpy", "trunc log2 log10", "tensor scalar", "", _TF_FLOATS, "any", 13, _TNP_CONSTANTS),
    Departure(
        "tf-safe", "function", "bitwise_invert", "integer int*", "", "int32* int64*", "int32 int64", 3,
        "the function loses the weak type of its operand; the operator keeps it",
    ),
    Departure(
        "tf-safe", "numpy", "hypot logaddexp", "tensor scalar", "tensor scalar", "refused", "any", 429, _TNP_PROMOTES,
    ),
    Departure(
        "tf-safe", "numpy", "hypot logaddexp", "tensor scalar", "tensor scalar", _TF_FLOATS, "any", 20, _TNP_CONSTANTS,
    ),
    Departure("tf-safe", "numpy", "trunc signbit log2 log10", "tensor scalar", "", "refused", "any", 52, _TNP_PROMOTES),
    Departure("tf-safe", "numpy", "trunc log2 log10", "tensor scalar", "", _TF_FLOATS, "any", 13, _TNP_CONSTANTS),
    Departure(
        "paddle", "function", "floor_divide pow remainder equal", "scalar", "tensor", "any", "refused", 432,
        f"the function accepts only tensors on the left. {_OPERATORS_LEAD}",
    ),
    Departure(
        "paddle", "function", "pow remainder", "tensor", "complex*", "any", "refused", 48,
        f"the function does not accept a complex scalar. {_OPERATORS_LEAD}",
    ),
    Departure(
        "paddle", "function", "pow remainder", "bool integer", "int* float*", "any", "tensor", 28,
        "the function casts every scalar to the tensor's type, even 1.5 to int32; the operator does not",
    ),
    Departure(
        "paddle", "function", "floor_divide", "uint8 int8 int16 int32 bfloat16 float16", "int* float*",
        "tensor", "int64 float32", 12,
        "the function converts the scalar to an int64 or float32 tensor, the operator to the tensor's type",
    ),
    Departure(
        "paddle", "function", "floor_divide", _FLOAT8, "scalar", "tensor", "refused", 12,
        "the function converts the scalar to a tensor, which has no common type with float8; the operator keeps float8",
    ),
    Departure(
        "paddle", "function", "signbit", _FLOAT8, "", "bool", "refused", 4,
        "Paddle fails while it converts float8 to a NumPy dtype, which is not a rule about types",
    ),
    Departure("paddle", "function", "negative", "bool", "", "bool", "refused", 2, "the operator accepts bool tensors"),
    Departure("paddle", "function", "copysign", "scalar", "tensor", "any", "refused", 84, _COMMUTES),
    Departure(
        "paddle", "function", "copysign", _FLOAT8, "scalar", "tensor", "refused", 12,
        "Paddle fails while it converts float8 to a NumPy dtype for the scalar, which is not a rule about types",
    ),
    Departure("paddle", "operator", _BITWISE, "bool integer", "bool() int*", "tensor", "refused", 72, _COMMUTES),
    Departure(
        "paddle", "function", f"{_BITWISE} {_SHIFTS}", "float complex", "float complex", "refused", "any", 160,
        _NO_BITS,
    ),
    Departure(
        "paddle", "operator", f"{_BITWISE} {_SHIFTS}", "float complex", "float complex", "refused", "any", 160,
        _NO_BITS,
    ),
    Departure("paddle", "function", _SHIFTS, "bool", "bool", "refused", "bool", 8, _NO_BITS),
    Departure("paddle", "operator", _SHIFTS, "bool", "bool", "refused", "bool", 8, _NO_BITS),
    Departure(
        "paddle", "function", "atan2", "integer", "integer", "float64", "uint8 int8 int16", 12,
        "Paddle looks up the kernel by the integer types and has none for 8 and 16 bits; its kernels for wider "
        "integers give float64, and so do these rules for all integers",
    ),
    Departure(
        "paddle", "function", "poisson_nll_loss", "integer[]", "bool[] integer[]", "refused", "float32", 12,
        "Paddle computes exp(input) in float32 before it promotes; that works for 0-d tensors only, and it refuses n-d "
        "tensors",
    ),
    Departure(
        "paddle", "function", "poisson_nll_loss", "integer[]", "bfloat16[]", "bfloat16", "float32", 2,
        "Paddle computes exp(input) in float32 before it promotes, which makes the result depend on the order",
    ),
    Departure(
        "paddle", "static operator", _ARITHMETIC, "tensor", "complex*", "any", "complex128", 228, _EAGER,
        either_order=True,
    ),
    Departure(
        "paddle", "static operator", f"{_ARITHMETIC} floor_divide", "bool", "bool()", "bool", "int64 float32", 28,
        _EAGER, either_order=True,
    ),
    Departure(
        "paddle", "static operator", "floor_divide", "integer[:] float[:]", "integer[] float[]", "any", "n-d", 36,
        _EAGER, either_order=True,
    ),
    Departure(
        "paddle", "static function", "floor_divide", "integer[:] float[:]", "integer[] float[]", "any", "n-d", 36,
        _EAGER, either_order=True,
    ),
    Departure(
        "paddle", "static function", "where", "tensor", "bool[] integer[] float[] complex[] scalar", "any", "any", 112,
        f"a static program broadcasts the operands by adding zeros, and the addition promotes. {_EAGER}",
        either_order=True,
    ),
    Departure(
        "paddle", "page tensors", "any", "bool integer", "bool integer", "any", "refused", 179,
        "the page has no entry for two tensors of the same bool or integer type; Paddle keeps the type",
    ),
    Departure(
        "paddle", "page tensors", "any", "complex64", "float64", "complex128", "complex64", 18,
        "a misprint: the page's own row float64, its sample code and Paddle say complex128",
    ),
    Departure(
        "paddle", "page tensors", "any", "complex64", "int64", "complex64", "complex128", 18,
        "the other half of the same misprint: complex128 is one group of columns off",
    ),
    Departure(
        "paddle", "page tensors", f"{_COMPARISONS} {_LOGICAL}", "tensor", "complex", "bool", "refused", 396,
        _COMPLEX, either_order=True,
    ),
    Departure("paddle", "page scalars", _COMPARISONS, "tensor", "scalar", "bool", "refused", 108, _COMPLEX),
    Departure(
        "paddle", "page scalars", _LOGICAL, "tensor", "scalar", "refused", "bool", 90,
        "the page has a Logic Rule for scalars here; Paddle's functions refuse them, and there is no operator",
    ),
    Departure(
        "paddle", "page tensors", "l1_loss", "tensor", "complex", "float32 float64", "any", 44,
        "the loss is an absolute value, which is float32 for complex64", either_order=True,
    ),
    Departure(
        "paddle", "page scalars", "divide", "bool", "bool()", "bool", "float32", 1,
        "the page says that divide always returns a float; Paddle gives bool for a bool tensor divided by True",
    ),
    Departure(
        "paddle", "page scalars", _BITWISE, "tensor", "scalar", "refused", "any", 108,
        "the page has the Common Rule here; Paddle refuses floats on either side",
    ),
    Departure(
        "paddle", "page scalars", _BITWISE, "bool", "int*", "bool", "int64", 3,
        "the page has the Common Rule here; Paddle casts the scalar to the tensor's type",
    ),
    Departure(
        "paddle", "page scalars", "where", "tensor", "scalar", "refused float32", "any", 26,
        "the page has the Common Rule here; Paddle first converts the scalar to an int64 or float32 tensor",
    ),
    Departure("tinygrad", "function", _SHIFTS, "int*", "integer", "tensor", "refused int32*", 32, _WEAK_SHIFT),
    Departure("tinygrad", "operator", _SHIFTS, "int*", "integer", "tensor", "refused int32*", 32, _WEAK_SHIFT),
    Departure(
        "tinygrad", "function", "copysign", "int*", "integer float", "tensor", "int32* float32*", 16,
        "tinygrad copies the sign to a number that it keeps weak; decisions do not depend on the order of the operands",
    ),
    Departure(
        "tinygrad", "number", "any", "float8_e4m3fn float8_e5m2 float8_e4m3fnuz float8_e5m2fnuz", "int* float*",
        "tensor", "tensor", 0,
        "tinygrad makes a number beyond the range of an 8-bit float its largest number; ml_dtypes, which holds the "
        "arrays of these rules, makes it infinite or NaN",
    ),
    Departure(
        "tinygrad", "number", "equal less", "bool", "int*", "bool", "bool", 0,
        "tinygrad compares bools with the number itself; these rules convert a number beyond int32, which the decision "
        "says",
        either_order=True,
    ),
    Departure(
        "tinygrad", "operator", "pow", "bool integer", "int*", "any", "refused", 0,
        "tinygrad refuses a negative int as base or exponent of integers; these rules decide by type, not by value",
        either_order=True,
    ),
    Departure(
        "mlx", "function", "result_type", "scalar", "tensor scalar", "any", "refused", 128,
        "MLX's result_type accepts arrays and dtypes only; these rules promote Python numbers as functions do",
        either_order=True,
    ),
    Departure(
        "mlx", "operator", f"{_BITWISE} {_SHIFTS}", "bool() int*", "bool integer", "any", "refused", 90,
        "MLX has no reflected bitwise operators; its functions accept a number on either side",
    ),
    *(
        row
        for rules, atan2, integers, wide, quotients, bits in (
            ("polars", 84, 10, 36, 16, 396), ("polars-1", 72, 9, 18, 8, 306),
        )
        for row in (
            Departure(
                rules, "expression", "atan2", "tensor", "scalar", "any", "refused", atan2,
                "pl.arctan2 needs pl.lit around a number; these rules accept the number as if it had that",
                either_order=True,
            ),
            Departure(rules, "expression", "logical_not", "integer", "", "refused", "tensor", integers, _POLARS_NOT),
            Departure(rules, "expression", "logical_not", "int*", "", "refused", "int32", 1, _POLARS_NOT),
            Departure(rules, "series", "logical_not", "integer", "", "refused", "tensor", integers, _POLARS_NOT),
            Departure(
                rules, "series", "add subtract multiply remainder floor_divide", "bool() int*", "int128 uint128",
                "int128 uint128", "refused", wide, _POLARS_NUMBERS, either_order=True,
            ),
            Departure(
                rules, "series", "add subtract multiply remainder", "bool", "bool() int*", "any", "refused", 10,
                _POLARS_NUMBERS, either_order=True,
            ),
            Departure(
                rules, "series", _COMPARISONS_OF_OURS, "bool", "scalar", "bool", "refused", 32, _POLARS_NUMBERS,
                either_order=True,
            ),
            Departure(
                rules, "series", "divide", "bool integer scalar", "float16 float32", "float16 float32", "float64",
                quotients,
                "an operator of a Series first casts a left operand that is no float to Float64; expressions promote",
            ),
            Departure(rules, "series", _BITWISE, "tensor scalar", "tensor scalar", "any", "any", bits, _POLARS_BITS),
        )
    ),
    Departure(
        "polars", "expression", "floor_divide", "bool bool()", "float*", "float64", "refused", 4, _POLARS_FLOOR,
        either_order=True,
    ),
    Departure(
        "polars", "series", "floor_divide", "bool", "float*", "float64", "refused", 1, _POLARS_FLOOR,
    ),
    Departure(
        "polars", "series", "floor_divide", "int*", "bool", "int32", "refused", 1, _POLARS_FLOOR,
    ),
    Departure(
        "polars-1", "expression", "floor_divide", "bool bool()", "int* float*", "any", "refused", 8, _POLARS_FLOOR,
        either_order=True,
    ),
    Departure(
        "polars-1", "series", "floor_divide", "bool", "int* float*", "any", "refused", 2, _POLARS_FLOOR,
    ),
    Departure(
        "polars-1", "series", "floor_divide", "int*", "bool", "int32", "refused", 1, _POLARS_FLOOR,
    ),
    Departure(
        "polars-1", "expression", _BITWISE, "bool() int* float*", "bool scalar", "refused", "bool int32 float64", 10,
        "Polars 1 refuses a Boolean with a number on its right, but accepts some in the other order, and its optimizer "
        "replaces True or-ed with a number by True; these rules refuse all",
    ),
    Departure(
        "pyarrow", "operator", f"add subtract multiply divide pow {_BITWISE} {_SHIFTS}", "int* float*", "tensor", "any",
        "refused", 140, "PyArrow has no reflected operators; its functions accept a number on either side",
    ),
    Departure(
        "pyarrow", "operator", "negative", "uint8 uint16 uint32 uint64", "", "tensor", "refused", 4,
        "PyArrow's operator is `negate_checked`, which has no kernels for unsigned integers; `negate` wraps around",
    ),
    *(
        Departure(
            rules, form, _BITWISE, "bool", "float complex", "refused", "bool", cells,
            "pandas gives bool for a bool column with a float column on the right, and raises in the other order; "
            "decisions do not depend on the order of the operands",
        )
        for rules, cells in (("pandas", 15), ("pandas-nullable", 6))
        for form in ("operator", "function")
    ),
    *(
        Departure(
            rules, "operator", _SHIFTS, "tensor scalar", "tensor scalar", "any", "refused", 218,
            _NO_SHIFTS,
        )
        for rules in ("pandas", "pandas-nullable")
    ),
    *(
        Departure(
            "pandas", f"mixed {form}", _BITWISE, "bool", "float complex", "refused", "boolean", 30,
            "pandas gives bool for a nullable bool column with a float column, and raises for a bool column with a "
            "nullable float column; these rules accept no float in a logical operator",
            either_order=True,
        )
        for form in ("operator", "function")
    ),
    Departure(
        "pandas", "mixed operator", _SHIFTS, "tensor", "tensor", "any", "refused", 292,
        _NO_SHIFTS,
    ),
    Departure(
        "pandas", "mixed method", "clip", "int8 int16 int32 int64", "uint8 uint16 uint32 uint64", "any", "any", 4,
        "pandas gives a column without a mask if it converts to the common dtype, and raises for a missing bound; "
        "these rules give a nullable column, as for other bounds",
    ),
    *(
        Departure(
            "pandas", form, "where clip", "integer", "float16", "any", "any", cells,
            "pandas keeps the integers if they hold every value of the float16 column, and otherwise fails because it "
            "has no kernel; these rules promote as for the other floats",
        )
        for form, cells in (("method", 16), ("mask", 8))
    ),
    *(
        Departure(
            rules, "method", "where clip", "tensor", "tensor scalar", "any", "any", 0,
            "pandas keeps the dtype of the column if it holds the values of the other one; these rules decide by dtype",
        )
        for rules in ("pandas", "pandas-nullable")
    ),
    Departure(
        "pandas", "number of a method", "where", "int8 int16 int32", "int*", "int32 int64", "refused", 5,
        "pandas finds an unsigned integer for the number, and fails; these rules find the narrowest signed one",
    ),
    Departure(
        "pandas", "number of a method", "where", "complex", "int*", "tensor", "refused", 4,
        "pandas does not convert an int beyond 64 bits to a complex number; these rules do, as for a float",
    ),
    Departure(
        "pandas", "number of a method", "where", "integer", "float*", "float64", "uint32 uint64 int32 int64", 8,
        "pandas treats a float without a fraction as an int; these rules decide by its type",
    ),
    Departure(
        "pandas", "number of a method", "where", "integer", "float*", "float64", "refused", 16,
        "pandas treats a float without a fraction as an int, and fails if no integer holds it",
    ),
    Departure(
        "pandas-nullable", "number of a method", "where", "integer", "float*", "refused", "tensor", 4,
        "pandas treats a float without a fraction as an int; these rules decide by its type",
    ),
    *(
        Departure(
            rules, "operator", "floor_divide remainder", "tensor", "tensor", "any", "float64", 0,
            "pandas may convert to float64 if a divisor is zero, for infinities and NaN; these rules decide by dtype",
        )
        for rules in ("pandas", "pandas-nullable")
    ),
    Departure(
        "pandas-nullable", "operator", _BITWISE, "bool", "integer", "bool", "refused", 0,
        "pandas cannot convert missing values of the integer column to bool; without them, the result is bool",
    ),
    Departure(
        "numpy", "function", "where", "uint8", "int*", "refused", "uint8", 0,
        "NumPy before 2.5 silently wraps an int that is out of range. NumPy 2.5 raises OverflowError "
        "(numpy/_core/src/multiarray/multiarraymodule.c, PyArray_Where), and these rules refuse it in every version",
    ),
    Departure(
        "numpy", "number before 2.5", "where", "float32", "int*", "float32", "float32", 4,
        "these rules follow the newest NumPy, whose where converts an int through float64 as its other functions do; "
        "older versions round once, from int64",
    ),
    Departure(
        "torch", "NumPy scalar", "any", "bool integer float", "complex64[]", "any", "any", 0,
        "torch reads np.complex64 as a float and drops its imaginary part; these rules read a complex number, as torch "
        "reads np.complex128",
        either_order=True,
    ),
    Departure(
        "torch", "NumPy scalar", "any", "tensor", "uint64[]", "any", "refused", 0,
        "torch reads no np.uint64 beyond int64, though it reads such a Python int; these rules read both alike",
        either_order=True,
    ),
    Departure(
        "numpy", "function", "real", "complex32 bcomplex32", "", "refused", "tensor", 4,
        "NumPy does not treat these formats as complex and returns the array unchanged, with its imaginary part",
    ),
    Departure(
        "numpy", "function", "imag", "complex32 bcomplex32", "", "refused", "tensor", 4,
        "NumPy does not treat these formats as complex and returns zeros",
    ),
    Departure(
        "array-api", "function", "maximum minimum less less_equal greater greater_equal", "float32 float64", "complex*",
        "refused", "any", 24,
        "array-api-strict checks the category of the array only; the standard requires both operands to be real",
        either_order=True,
    ),
    Departure(
        "jax", "function", "divide", "uint1 uint2 int1 int2", "bool uint1 uint2 int1 int2 int*", "refused", "any", 56,
        "JAX has no matching float for 1-bit and 2-bit integers and divides in the integer dtype",
        either_order=True,
    ),
    Departure(
        "jax", "function", "copysign", "int1", "bool int1 int*", "refused", "int8", 14,
        "JAX's abs turns int1 into int8, and its copysign then gives an integer",
        either_order=True,
    ),
    Departure("jax", "function", "abs", "int1", "", "refused", "int8", 2, "JAX has abs for int1 but not int2 and int4"),
    Departure(
        "jax", "function before 0.11", "log2", "int* float* complex*", "",
        _WEAK_INEXACT, _WEAK_INEXACT.replace("*", ""), 12,
        "these rules follow the newest JAX, whose log2 keeps weak types; older versions lose them",
    ),
    Departure(
        "jax", "function before 0.12", "hypot", "bool integer", "integer int* float*", _WEAK_INEXACT,
        _WEAK_INEXACT.replace("*", ""), 80,
        "these rules follow the newest JAX, whose hypot keeps weak types; older versions lose them where only some "
        "operands are weak",
        either_order=True,
    ),
    Departure(
        "jax-strict-explicit-x64", "function from 0.12", "log10", "float64 complex128 int64 uint64", "",
        "float64 complex128", "refused", 4,
        "JAX creates a constant in float32, and strict promotion then refuses to multiply by it",
    ),
    Departure(
        "jax", "eager", "pow", "int8", "int32[]", "int32", "int8", 0,
        "in eager calls, JAX reads the value of a 0-d exponent and multiplies repeatedly; under `jit` it promotes, and "
        "so do these rules, which do not read the values of arrays",
    ),
]  # fmt: skip
