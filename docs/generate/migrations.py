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
