"""The moves from one framework to another that have a page, and the introductions of these pages."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Migration:
    """A move from one framework to another.

    Args:
        title: the title of the page.
        before: name of the rule set of the old framework.
        after: name of the rule set of the new framework.
        settings: other rule sets of the new framework, and when they apply.
        introduction: the main differences, in Markdown.
        arrays: Python statements that make the arrays of the example.
        expressions: what the example computes under both rule sets.
    """

    title: str
    before: str
    after: str
    settings: tuple[tuple[str, str], ...]
    introduction: str
    arrays: tuple[str, ...]
    expressions: tuple[str, ...]

    @property
    def page(self) -> str:
        """The path of the page below migration/, without its suffix."""
        return self.title.lower().replace(" ", "-")


_X64_OFF = ("jax-x32", "JAX's default, with `jax_enable_x64` off")

MIGRATIONS: tuple[Migration, ...] = (
    Migration(
        "NumPy to JAX", "numpy", "jax-x64", (_X64_OFF,),
        """\
Three things change.

* **Wide results become narrow.** NumPy takes the first float that holds every value of both operands, which for int32
  with a float is float64. JAX keeps the float of the operand: int32 with float16 is float16, which rounds integers
  above 2,048.
* **64 bits are off** unless you set `jax_enable_x64`: int64 and float64 arrays become int32 and float32 when JAX takes
  them.
* **Python ints wrap around.** `uint8_array + 256` raises an `OverflowError` in NumPy 2; JAX adds 0.

On the other hand, 16-bit programs stay in 16 bits, and bfloat16, which NumPy hardly promotes at all, promotes like
other floats.""",
        (
            'pixels = supremum.asarray(np.array([1, 128, 255], "uint8"))',
            'labels = supremum.asarray(np.array([3, 1, 2049], "int32"))',
            'weights = supremum.asarray(np.array([0.5, 0.25, 1.0], "float16"))',
        ),
        ("pixels / 255", "labels * weights", "pixels - 1.5", "labels / pixels.astype('int32')", "pixels + 256"),
    ),
    Migration(
        "torch to JAX", "torch", "jax-x64", (_X64_OFF,),
        """\
These two are similar: both keep the dtype of a float operand. The differences are:

* **0-d arrays count in JAX.** In PyTorch a 0-d float32 tensor never widens a float16 tensor with dimensions; in JAX it
  is an array like any other, and the result is float32. Use Python numbers for such factors.
* **int64 gives float64.** In PyTorch, a quotient of int64 arrays, and an int64 array with a Python float, have the
  default dtype float32. In JAX they are float64 with x64 on; with x64 off nothing has 64 bits, not even int64.
* **uint16, uint32 and uint64 promote.** PyTorch refuses to mix them with other integers.
* **JAX accepts more**: complex numbers are ordered, as in NumPy, and `maximum` takes Python numbers.""",
        (
            'hidden = supremum.asarray(np.array([0.5, 1.5, 2.5], "float16"))',
            'scale = supremum.asarray(np.array(0.125, "float32"))  # no dimensions',
            'tokens = supremum.asarray(np.array([7, 8, 9], "int64"))',
            'ids = supremum.asarray(np.array([1, 2, 3], "uint32"))',
        ),
        ("hidden * scale", "hidden * 0.125", "tokens / tokens", "tokens * 0.5", "tokens + ids"),
    ),
    Migration(
        "TensorFlow to JAX", "tf-off", "jax-x64", (_X64_OFF,),
        """\
A TensorFlow program has no implicit promotion unless it sets a `dtype_conversion_mode`. Existing code keeps its dtypes,
because TensorFlow required all casts. New code behaves differently.

* **Missing casts no longer raise.** `int32 * float16` runs, in float16. `jax-strict`
  (`jax_numpy_dtype_promotion="strict"` in JAX) keeps the errors.
* **Dividing int32** gives float64 in TensorFlow and float32 in JAX.
* **64 bits are off** in JAX unless you set `jax_enable_x64`, even for indices that are int64 in TensorFlow.

Python numbers that do not fit wrap around in both.""",
        (
            'counts = supremum.asarray(np.array([1, 2, 3], "int32"))',
            'totals = supremum.asarray(np.array([4, 4, 4], "int32"))',
            'weights = supremum.asarray(np.array([0.5, 0.25, 0.25], "float16"))',
        ),
        ("counts / totals", "counts * weights", "counts * 0.5", "counts.astype('float16') * weights", "weights + 1"),
    ),
    Migration(
        "Paddle to torch", "paddle", "torch", (),
        """\
If both accept a pair, they nearly always agree on the dtype. The differences are:

* **Integers promote in PyTorch**, with other integers and with floats. In Paddle a missing cast raises; in PyTorch it
  does not, and int64 with float16 is float16.
* **A quotient of bools** is bool in Paddle and float32 in PyTorch.
* **Complex numbers** cannot be ordered in PyTorch; Paddle compares them.
* **uint16, uint32 and uint64** exist in PyTorch, and promote only with floats.""",
        (
            'ids = supremum.asarray(np.array([1, 2, 3], "int64"))',
            'small = supremum.asarray(np.array([4, 5, 6], "int32"))',
            'hidden = supremum.asarray(np.array([0.5, 1.5, 2.5], "float16"))',
            'mask = supremum.asarray(np.array([True, False, True]))',
        ),
        ("ids + small", "ids * hidden", "ids * 0.5", "mask * 2", "hidden + 1"),
    ),
    Migration(
        "NumPy to MLX", "numpy", "mlx", (),
        """\
MLX promotes like JAX. Coming from NumPy, these things change:

* **Wide results become narrow.** int32 with float32 is float64 in NumPy and float32 in MLX. A quotient of integers, and
  an integer array with a Python float, are float32, even for int64.
* **uint64 with a signed integer** is float32, which has 24 bits; in NumPy it is float64.
* **There is no complex128.** Everything promotes with complex64 to complex64, float64 included.
* **Sums of narrow integers** have 32 bits instead of 64, and wrap around beyond them.

Both raise for a Python int that is out of range of an integer array. Next to a bool array, NumPy makes it an int64; MLX
makes it an int32, which wraps around silently. MLX has float64 on the CPU only.""",
        (
            'pixels = supremum.asarray(np.array([1, 128, 255], "uint8"))',
            'labels = supremum.asarray(np.array([3, 1, 2049], "int32"))',
            'weights = supremum.asarray(np.array([0.5, 0.25, 1.0], "float32"))',
            'ids = supremum.asarray(np.array([1, 2, 16777217], "uint64"))',
        ),
        ("pixels / 255", "labels * weights", "pixels - 1.5", "ids + labels", "pixels + 256"),
    ),
    Migration(
        "torch to MLX", "torch", "mlx", (),
        """\
These two are similar: both keep the dtype of a float operand, and make quotients of integers float32. The differences
are:

* **0-d arrays count in MLX.** In PyTorch a 0-d float32 tensor never widens a float16 tensor with dimensions; in MLX it
  is an array like any other, and the result is float32. Use Python numbers for such factors.
* **uint16, uint32 and uint64 promote.** PyTorch refuses to mix them with other integers. uint64 with a signed integer
  is float32 in MLX.
* **There is no complex128.** float64 with complex64 is complex64 in MLX.
* **Python ints out of range raise** in MLX, and wrap around in PyTorch. Next to a bool array it is the other way round:
  PyTorch makes the int an int64, and MLX an int32 that wraps around.
* **Sums of narrow integers** are int32 or uint32 in MLX and int64 in PyTorch, and MLX has no matrix product of
  integers.""",
        (
            'hidden = supremum.asarray(np.array([0.5, 1.5, 2.5], "float16"))',
            'scale = supremum.asarray(np.array(0.125, "float32"))  # no dimensions',
            'tokens = supremum.asarray(np.array([7, 8, 9], "int64"))',
            'ids = supremum.asarray(np.array([1, 2, 3], "uint32"))',
            'mask = supremum.asarray(np.array([True, False, True]))',
        ),
        ("hidden * scale", "hidden * 0.125", "tokens + ids", "ids + 2**32", "mask * 2**32"),
    ),
    Migration(
        "tinygrad to JAX", "tinygrad", "jax-x64", (_X64_OFF,),
        """\
tinygrad took its lattice from JAX, weak types included. The differences are:

* **The defaults have 32 bits in tinygrad.** A quotient of int64 tensors is float32, and a sum of int8 is int32. With
  x64 on, both have 64 bits in JAX; with x64 off nothing has, not even int64.
* **8-bit floats promote with all floats in tinygrad.** JAX refuses to mix them: cast first.
* **`asin`, `acos` and `tanh`** of an integer tensor are weak in tinygrad, because it composes them with Python floats,
  and so is `round`. In JAX they are strong, and `round` keeps integers.
* **Bools** can be subtracted in tinygrad, but not in JAX. Quotients rounded down and remainders of bools are float32 in
  tinygrad and int32 in JAX.
* **The variance of integers** is right in JAX. tinygrad adds up the squares as integers.""",
        (
            'tokens = supremum.asarray(np.array([7, 8, 9], "int64"))',
            'counts = supremum.asarray(np.array([1, 2, 3], "uint64"))',
            'hidden = supremum.asarray(np.array([0.5, 1.5, 2.5], "float16"))',
            'narrow = hidden.astype("float8_e4m3fn")',
        ),
        ("tokens / tokens", "tokens * 0.5", "tokens * hidden", "tokens + counts", "hidden * narrow"),
    ),
    Migration(
        "NumPy to Polars", "numpy", "polars", (("polars-1", "Polars 1, which has no float16"),),
        """\
Both take the first type that holds every value of both operands, so most pairs agree. The differences are:

* **Python ints widen integers.** `uint8_array + 256` raises an `OverflowError` in NumPy 2; in Polars a column takes the
  narrowest type that holds the number, here UInt16.
* **Python floats** make float64 of an integer column in both, and keep the type of a float column.
* **uint64 with signed integers** is float64 in NumPy. Polars 2 makes it Int128, which no NumPy array holds, so
  arrays under these rules refuse it.
* **Functions such as `sqrt`** give float64 for every integer; NumPy gives float16 for 8 bits and float32 for 16.
* **A power has the type of its base**: int8 to the power of an int64 column is int8.
* **Sums of narrow integers** are int64, even of unsigned ones. A sum of bools is uint32; one of int32 stays int32.
* **Assigned integers** that do not fit, as in `int8_column[0] = 1000`, become null in Polars. NumPy raises for a Python
  int and wraps an array around. An `Array` raises.""",
        (
            'pixels = supremum.asarray(np.array([1, 128, 255], "uint8"))',
            'labels = supremum.asarray(np.array([3, 1, 20], "int32"))',
            'weights = supremum.asarray(np.array([0.5, 0.25, 1.0], "float32"))',
            'mask = supremum.asarray(np.array([True, False, True]))',
        ),
        ("pixels + 256", "pixels / 2", "labels * weights", "pixels ** labels", "mask + mask", "weights * 0.5"),
    ),
    Migration(
        "pandas to Polars", "pandas", "polars", (("polars-1", "Polars 1, which has no float16"),),
        """\
Most pairs of columns agree, because both take the first type that holds every value of both. The differences are:

* **Python ints widen integers.** `uint8_column + 256` raises an `OverflowError` in pandas; Polars takes the narrowest
  type that holds the number, here UInt16.
* **A sum of two bool columns** is bool in pandas and counts in UInt32 in Polars. Polars refuses to multiply them.
* **uint64 with signed integers** is float64 in pandas. Polars 2 makes it Int128, which no array here holds, so
  arrays under these rules refuse it.
* **Bools and integers** in `&` and `|` are bool in pandas, and refused in Polars 2. `concat` of bools and integers is a
  column of objects in pandas, which these rules refuse, and integers in Polars.
* **A power has the type of its base** in Polars: int8 to the power of an int64 column is int8.
* **Functions such as `sqrt`** give float64 for every integer in Polars. pandas gives float16 for 8 bits and float32 for
  16; with nullable columns float32 for both.
* **Sums** of uint8 are uint64 in pandas and Int64 in Polars, which also keeps the 32 bits of int32.
* **`diff` of integers** is a float in pandas, because the first value is missing. Polars keeps integers, and so do
  nullable columns.
* **Assigned values** are cast in Polars, which drops fractions, and become null if they do not fit. pandas raises if
  anything would be lost, and so does an `Array`.
* **Missing values** need a nullable dtype in pandas, such as Int8, or become NaN. Next to a column of a NumPy dtype, a
  nullable column makes the result nullable: `explain("Int8", "float32", rules="pandas")` says so. Every column of
  Polars may have nulls, whatever its dtype.""",
        (
            'pixels = supremum.asarray(np.array([1, 128, 255], "uint8"))',
            'labels = supremum.asarray(np.array([3, 1, 20], "int32"))',
            'mask = supremum.asarray(np.array([True, False, True]))',
        ),
        ("pixels + 256", "mask + mask", "mask & labels", "pixels ** labels", "pixels / 2"),
    ),
    Migration(
        "NumPy to PyArrow", "numpy", "pyarrow", (),
        """\
PyArrow's compute functions promote differently from NumPy:

* **Python numbers widen.** They count as int64 and float64, so that an int8 array plus 1 is int64, and a float32 array
  times 0.5 is float64. Make a scalar of the array's type instead: `pa.scalar(1, pa.int8())`.
* **Integers take the dtype of a float.** int32 with float32 is float32, not float64. An integer beyond 2\\*\\*24 raises
  an error there, as one beyond 2\\*\\*53 does next to float64.
* **uint64 with a signed integer** is int64, not float64, and a uint64 that int64 does not hold raises an error.
* **Quotients of integers are integers**: the fraction is cut off.
* **bool and float16** have few functions, and do not mix with other dtypes. Cast them first.

Sums of float32 are float64, and those of integers 64 bits wide, as in NumPy.""",
        (
            'pixels = supremum.asarray(np.array([1, 128, 255], "uint8"))',
            'labels = supremum.asarray(np.array([3, 1, 2049], "int32"))',
            'weights = supremum.asarray(np.array([0.5, 0.25, 1.0], "float32"))',
            'ids = supremum.asarray(np.array([1, 2, 16777217], "uint64"))',
        ),
        ("pixels + 1", "weights * 0.5", "labels * weights", "labels / 2", "ids + labels"),
    ),
)  # fmt: skip
