"""Where a rule set departs from its source on purpose: one row per reason, with the number of cells it covers.

The conformance tests hold the set of all differing cells against these rows: a difference that no row covers fails, and
so does a row that covers more or fewer cells than it says, so that a departure that disappears has to be struck out.
Autocast, whose source is a list of functions, has rows of its own in `autocast_departures`.
"""

from __future__ import annotations

from dataclasses import dataclass

from supremum.formats import as_format
from supremum.operands import WEAK_NAMES

SCALARS = {"bool()", *WEAK_NAMES}
"""How Python scalars are written in cells; `bool()` is a Python bool."""


@dataclass(frozen=True, slots=True)
class Departure:
    """Cells in which a rule set and what it follows differ, all for one reason.

    Args:
        rules: name of the rule set.
        form: what it was compared with there, such as `"static operator"` or `"page"`.
        operations: the operations, separated by spaces, or `"any"`.
        left, right: the operands, separated by spaces: dtypes, categories, `tensor` or `scalar`; of tensors, `[]` after
            a name leaves only 0-d ones and `[:]` only those with dimensions. For operations with one operand `right`
            is empty.
        ours, theirs: the dtypes either side says, or `"refused"`; `"tensor"` for the dtype of the only tensor among the
            operands, `"n-d"` for that of the only one with dimensions, `"any"` for any answer.
        cells: how many cells it covers, or of form `"number"` how many numbers of `tests/test_number_conversion.py`; 0
            where it is about values, for which a test of its own asks.
        reason: why ours is as it is.
        either_order: whether left and right may change places.
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
        """Whether a differing cell is one of these."""
        orders = [(left, right), (right, left)][: 1 + self.either_order]
        return (
            form == self.form
            and (self.operations == "any" or operation in self.operations.split())
            and any(_matches(self.left, a) and _matches(self.right, b) for a, b in orders)
            and _says(self.ours, ours, (left, right))
            and _says(self.theirs, theirs, (left, right))
        )


def departures_of_version(rules: str, version: tuple[int, ...], kind: str = "function") -> list[Departure]:
    """Rows about the functions of a library, or about what numbers become, as a version of it has them.

    Args:
        rules: the rule set that departs.
        version: the library's, such as `(0, 12)`.
        kind: `"function"` or `"number"`.
    """
    return [row for row in DEPARTURES if row.rules == rules and _is_in(row.form, kind, version)]


def _is_in(form: str, kind: str, version: tuple[int, ...]) -> bool:
    """Whether a form is of this kind, in all versions, `"before 0.11"` or `"from 0.12"`."""
    its_kind, *limits = form.split()
    if its_kind != kind or not limits:
        return its_kind == kind
    bound = tuple(map(int, limits[1].split(".")))
    return version < bound if limits[0] == "before" else version >= bound


def _matches(terms: str, operand: str) -> bool:
    if not terms or not operand:
        return terms == operand
    if operand in SCALARS:
        return operand in terms.split() or "scalar" in terms.split()
    dtype = operand.removesuffix("[]")
    shape = "[]" if operand.endswith("[]") else "[:]"
    names = (dtype, as_format(dtype).category, "tensor")
    return any(name in terms.split() or name + shape in terms.split() for name in names)


def _says(said: str, answer: str, operands: tuple[str, str]) -> bool:
    tensors = [operand for operand in operands if operand and operand not in SCALARS]
    meant = {
        "tensor": [operand.removesuffix("[]") for operand in tensors if len(tensors) == 1],
        "n-d": [operand for operand in tensors if not operand.endswith("[]")],
        "any": [answer],
    }
    return answer in meant.get(said, said.split())


_FLOAT8 = "float8_e4m3fn float8_e5m2"
_ARITHMETIC = "add subtract multiply divide remainder pow"
_COMPARISONS = "equal not_equal less_than less_equal greater_than greater_equal"
_LOGICAL = "logical_and logical_or logical_xor"
_BITWISE = "bitwise_and bitwise_or bitwise_xor"
_SHIFTS = "bitwise_left_shift bitwise_right_shift"

_OPERATORS_LEAD = "Paddle's operator takes the scalar, in either order, and these rules follow it where there is one"
_COMMUTES = "decisions do not depend on the order of the operands: what Paddle takes in one order is taken in both"
_NO_BITS = "neither side does this: Paddle says so by looking for a kernel in vain, these rules before that"
_EAGER = "these rules are those of eager mode, which differs here from a static program"
_COMPLEX = "the page says that logical calculations with complex types are not supported; Paddle gives bool"
_COMPARISONS_OF_OURS = "equal not_equal less less_equal greater greater_equal"
_BOOL_TIMES = (
    "the operator takes a bool tensor for a logical and, and gives bool of any number; the function multiplies"
)
_TF_COMMUTES = "decisions do not depend on the order of operands: TensorFlow takes the number on the right only"
_TF_UNPROMOTED = f"{_COMPARISONS_OF_OURS} atan2 nextafter {_BITWISE} {_SHIFTS} where"
_TF_FLOATS = "bfloat16 float16 float32 float64 float32* float64* complex64"
_TNP_PROMOTES = (
    "only TensorFlow's NumPy API has it, where integers become floats, Python numbers arrays, and what the mode "
    "promotes is promoted; these rules decide it as the function of tf.math that their reason names"
)
_TNP_CONSTANTS = (
    "a composition of TensorFlow's NumPy API, which makes dtypes of NumPy's of Python numbers, of bfloat16 and of its "
    "constants, and keeps weak what is weak"
)

_WEAK_INEXACT = "float32* float64* complex64* complex128*"

DEPARTURES: list[Departure] = [
    Departure(
        "keras", "symbolic", f"{_COMPARISONS_OF_OURS} {_LOGICAL}", _FLOAT8, "tensor scalar", "refused", "bool", 720,
        "a symbolic comparison says bool without asking where its operands meet; result_type refuses them",
        either_order=True,
    ),
    Departure(
        "keras", "symbolic", "atan2", "tensor", "scalar", "any", "float32", 38,
        "its symbolic form takes Python numbers for float32 tensors, and complex ones for real; others ask result_type",
        either_order=True,
    ),
    Departure(
        "keras", "symbolic",
        "abs negative square round sign conj trunc real imag bitwise_invert exp expm1",
        "uint64 int64 float64 complex128", "", "uint32 int32 float32 complex64", "tensor", 42,
        "a lone symbolic tensor keeps 64 bits; on JAX with x64 off there is no array of them",
    ),
    Departure(
        "keras", "symbolic", "abs real imag", "complex64", "", "float32", "complex64", 3,
        "the symbolic form says complex; of an array the function makes float32",
    ),
    Departure(
        "keras", "symbolic", "reciprocal", "tensor", "", "any", "float32", 6,
        "the symbolic form says floatx whatever it is given; the function keeps an array's float",
    ),
    Departure(
        "keras", "symbolic", "signbit", _FLOAT8, "", "refused", "bool", 2,
        "the symbolic form says bool without looking; JAX has no signbit of 8 bits",
    ),
    Departure(
        "keras", "symbolic", f"{_BITWISE} {_SHIFTS}", "tensor scalar", "tensor scalar", "refused", "any", 792,
        "the symbolic form takes operands that meet in a float; the function refuses arrays of them",
    ),
    Departure(
        "keras", "symbolic", "bitwise_invert", "float complex", "", "refused", "tensor", 8,
        "the symbolic form takes floats; the function refuses arrays of them",
    ),
    Departure(
        "keras", "symbolic", f"{_BITWISE} {_SHIFTS} hypot", "tensor", "scalar", "any", "refused", 264,
        "the symbolic form asks a Python number for its dtype and fails; the function takes it", either_order=True,
    ),
    Departure(
        "keras", "symbolic", _SHIFTS, "bool", "bool bool() int*", "int32", "bool", 6,
        "the symbolic form keeps bool; the function shifts arrays of bool in int32",
    ),
    Departure(
        "keras", "symbolic", "floor_divide pow", "bool bool()", "bool bool()", "int32", "bool", 6,
        "the symbolic form keeps bool; the function divides and raises arrays of bool in int32",
    ),
    Departure(
        "keras", "eager", "atan2 logaddexp", "bfloat16 float16", "float*", "tensor", "float32", 8,
        "the function takes a Python float for a float32 array; result_type does not, nor the form of logaddexp",
        either_order=True,
    ),
    Departure(
        "keras", "symbolic", _SHIFTS, "uint64 int64", "bool() int*", "uint32 int32", "tensor", 8,
        "a symbolic tensor shifted by a number keeps 64 bits; on JAX with x64 off there is no array of them",
    ),
    Departure(
        "keras", "symbolic", "hypot", "bool", "bool", "float32", "bool", 1,
        "the symbolic form makes a float of integers and forgets bool; the function does not",
    ),
    Departure(
        "keras", "symbolic", "nextafter", "bfloat16 float16", "float*", "tensor", "float32", 4,
        "the symbolic form takes a Python number for a float32 tensor; the function keeps the array's dtype",
        either_order=True,
    ),
    Departure(
        "keras", "eager", "hypot nextafter fmax fmin floor_divide pow", _FLOAT8, "tensor scalar",
        "refused", _FLOAT8, 252,
        "the function leaves arrays of float8 to JAX, which promotes them; result_type and the symbolic form refuse",
        either_order=True,
    ),
    Departure(
        "keras", "eager", "log log1p log2 log10 sqrt", _FLOAT8, "", "refused", "tensor", 10,
        "the function leaves arrays of float8 to JAX; result_type and the symbolic form refuse",
    ),
    Departure(
        "tf-off", "operator", "multiply", "bool", "tensor scalar", "any", "bool", 31, _BOOL_TIMES, either_order=True,
    ),
    Departure(
        "tf-off", "function", "add", "int* float* complex*", "tensor", "tensor", "refused", 19,
        "the function makes a tensor of a number that comes first; the operator takes it in either order",
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
        "the function forgets that its operand is weak; the operator does not",
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
        "the function forgets that its operand is weak; the operator does not",
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
        f"the function takes tensors only on the left. {_OPERATORS_LEAD}",
    ),
    Departure(
        "paddle", "function", "pow remainder", "tensor", "complex*", "any", "refused", 48,
        f"the function takes no complex scalar. {_OPERATORS_LEAD}",
    ),
    Departure(
        "paddle", "function", "pow remainder", "bool integer", "int* float*", "any", "tensor", 28,
        "the function casts every scalar to the tensor's type, 1.5 to int32 too; the operator does not",
    ),
    Departure(
        "paddle", "function", "floor_divide", "uint8 int8 int16 int32 bfloat16 float16", "int* float*",
        "tensor", "int64 float32", 12,
        "the function makes an int64 or float32 tensor of the scalar, the operator one of the tensor's type",
    ),
    Departure(
        "paddle", "function", "floor_divide", _FLOAT8, "scalar", "tensor", "refused", 12,
        "the function makes a tensor of the scalar, which has no common type with float8; the operator keeps float8",
    ),
    Departure(
        "paddle", "function", "signbit", _FLOAT8, "", "bool", "refused", 4,
        "Paddle fails to name float8 to NumPy on its way to a kernel, which is no rule about types",
    ),
    Departure("paddle", "function", "negative", "bool", "", "bool", "refused", 2, "the operator takes bool tensors"),
    Departure("paddle", "function", "copysign", "scalar", "tensor", "any", "refused", 84, _COMMUTES),
    Departure(
        "paddle", "function", "copysign", _FLOAT8, "scalar", "tensor", "refused", 12,
        "Paddle fails to name float8 to NumPy when it looks at the scalar, which is no rule about types",
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
        "the kernel is looked up for the integers and makes float64 of them; 8 and 16 bits are given the same",
    ),
    Departure(
        "paddle", "function", "poisson_nll_loss", "integer[]", "bool[] integer[]", "refused", "float32", 12,
        "exp(input) is float32 before the operands meet, which works for 0-d tensors only: n-d ones are refused",
    ),
    Departure(
        "paddle", "function", "poisson_nll_loss", "integer[]", "bfloat16[]", "bfloat16", "float32", 2,
        "exp(input) is float32 before the operands meet, so that their order matters to Paddle",
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
        f"a static program makes the operands' shapes fit by adding zeros, and adding promotes. {_EAGER}",
        either_order=True,
    ),
    Departure(
        "paddle", "page tensors", "any", "bool integer", "bool integer", "any", "refused", 179,
        "the page has no entry for tensors of one type, bool or integer; Paddle keeps the type",
    ),
    Departure(
        "paddle", "page tensors", "any", "complex64", "float64", "complex128", "complex64", 18,
        "a misprint: the page's own row float64, its sample code and Paddle say complex128",
    ),
    Departure(
        "paddle", "page tensors", "any", "complex64", "int64", "complex64", "complex128", 18,
        "the other half of the same misprint: the complex128 stands one group of columns off",
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
        "the loss is an absolute value: of complex64 it is float32", either_order=True,
    ),
    Departure(
        "paddle", "page scalars", "divide", "bool", "bool()", "bool", "float32", 1,
        "the page says that divide never returns less than a float; Paddle keeps bool divided by True a bool",
    ),
    Departure(
        "paddle", "page scalars", _BITWISE, "tensor", "scalar", "refused", "any", 108,
        "the page has the Common Rule here; Paddle refuses floats, on either side",
    ),
    Departure(
        "paddle", "page scalars", _BITWISE, "bool", "int*", "bool", "int64", 3,
        "the page has the Common Rule here; Paddle casts the scalar to the tensor's type",
    ),
    Departure(
        "paddle", "page scalars", "where", "tensor", "scalar", "refused float32", "any", 26,
        "the page has the Common Rule here; Paddle makes an int64 or float32 tensor of the scalar first",
    ),
    Departure(
        "numpy", "function", "where", "uint8", "int*", "refused", "uint8", 0,
        "before 2.5 NumPy wraps an int that is out of range in silence; 2.5 raises OverflowError "
        "(numpy/_core/src/multiarray/multiarraymodule.c, PyArray_Where), and nothing here is ever silently wrong",
    ),
    Departure(
        "numpy", "number before 2.5", "where", "float32", "int*", "float32", "float32", 4,
        "these rules follow the newest NumPy, which converts an int by way of float64 there, as in all its functions; "
        "older ones round it once, from int64",
    ),
    Departure(
        "numpy", "function", "real", "complex32 bcomplex32", "", "refused", "tensor", 4,
        "NumPy does not know these formats to be complex and gives the array back as it is, imaginary part and all",
    ),
    Departure(
        "numpy", "function", "imag", "complex32 bcomplex32", "", "refused", "tensor", 4,
        "NumPy does not know these formats to be complex and gives zeros",
    ),
    Departure(
        "array-api", "function", "maximum minimum less less_equal greater greater_equal", "float32 float64", "complex*",
        "refused", "any", 24,
        "array-api-strict looks at the category of the array alone; the standard takes real operands only",
        either_order=True,
    ),
    Departure(
        "jax", "function", "divide", "uint1 uint2 int1 int2", "bool uint1 uint2 int1 int2 int*", "refused", "any", 56,
        "JAX knows no float for integers of one and two bits and divides in the integers themselves",
        either_order=True,
    ),
    Departure(
        "jax", "function", "copysign", "int1", "bool int1 int*", "refused", "int8", 14,
        "JAX's abs makes int8 of int1, and its copysign then gives an integer",
        either_order=True,
    ),
    Departure("jax", "function", "abs", "int1", "", "refused", "int8", 2, "JAX has abs for int1 but not int2 and int4"),
    Departure(
        "jax", "function before 0.11", "log2", "int* float* complex*", "",
        _WEAK_INEXACT, _WEAK_INEXACT.replace("*", ""), 12,
        "these rules follow the newest JAX, whose log2 keeps weakness; older ones forget it",
    ),
    Departure(
        "jax", "function before 0.12", "hypot", "bool integer", "integer int* float*", _WEAK_INEXACT,
        _WEAK_INEXACT.replace("*", ""), 80,
        "these rules follow the newest JAX, whose hypot keeps weakness; older ones forget it where only some are weak",
        either_order=True,
    ),
    Departure(
        "jax-strict-explicit-x64", "function from 0.12", "log10", "float64 complex128 int64 uint64", "",
        "float64 complex128", "refused", 4,
        "JAX multiplies by a constant that it makes in float32, and then refuses its own product",
    ),
    Departure(
        "jax", "eager", "pow", "int8", "int32[]", "int32", "int8", 0,
        "called eagerly JAX looks at the value of a 0-d exponent and multiplies; jitted it promotes, and so do these "
        "rules, which know no values of arrays",
    ),
]  # fmt: skip
