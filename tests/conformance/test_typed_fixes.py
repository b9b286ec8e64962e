"""Fixes of refusals, typed into the installed libraries: the code runs, and the library then gives the result that the
rules say."""

import itertools
import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np
import pytest

from conformance import live_libraries
from conformance.live_libraries import (
    BINARY_OPERATORS,
    LIBRARIES,
    MASK,
    REVERSED,
    UNARY_OPERATORS,
    Library,
    Result,
    named,
)
from optional_packages import import_or_skip, skip_without
from slowly import exhaustive, for_each
from supremum import explain
from supremum.formats import as_format

NUMBERS = (True, 3, -1, 300, 2**40, 2.5, 1e300, 1 + 1j)
_FUNCTIONS = "sqrt exp sign floor ceil round isnan isfinite sum prod min max any all mean"


class ArrayLibrary(Library):
    """NumPy, JAX and PyTorch, whose functions have the names of the standard."""

    rules = "numpy"
    dtypes: ClassVar = [*Library.dtypes, "complex64"]

    def __init__(self) -> None:
        self.xp = self.import_module()
        binary = named(self.xp, "maximum minimum")
        super().__init__(UNARY_OPERATORS | named(self.xp, _FUNCTIONS), BINARY_OPERATORS | binary)

    def import_module(self) -> Any:
        """Import the library."""
        return np

    def make(self, array: np.ndarray) -> Any:
        """Make an array."""
        return self.xp.asarray(array)

    def where(self, left: Any, right: Any, ndim: int) -> Any:
        """Choose between two arrays."""
        return self.xp.where(self.make(np.array(MASK if ndim else True)), left, right)

    def result(self, found: Any) -> Result:
        """Read the dtype."""
        return Result(found, as_format(found.dtype).name, None, tuple(found.shape))


class Jax(ArrayLibrary):
    """JAX as it starts."""

    rules = "jax-x32"
    dtypes: ClassVar = ["bool", "uint8", "int32", "float16", "float32", "complex64", "float8_e4m3fn"]

    def import_module(self) -> Any:
        """Import JAX."""
        return jnp


class Torch(ArrayLibrary):
    """PyTorch."""

    rules = "torch"
    dtypes: ClassVar = [*ArrayLibrary.dtypes, "bfloat16", "float8_e4m3fn"]

    def import_module(self) -> Any:
        """Import PyTorch."""
        return import_or_skip("torch")

    def make(self, array: np.ndarray) -> Any:
        """Make a tensor."""
        return self.xp.asarray(array.astype("float32")).to(getattr(self.xp, str(array.dtype)))


class Mlx(live_libraries.Mlx):
    """MLX, whose operators of bits need an array on the left."""

    def __init__(self) -> None:
        super().__init__()
        self.calls |= named(self.mlx, "bitwise_and bitwise_or bitwise_xor")


def _with_number_on(side: int, call: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """A commutative call that gets a Python number on one side only: 0 for the left, 1 for the right."""

    def swapped(*operands: Any) -> Any:
        is_number = type(operands[1 - side]) in (bool, int, float, complex)
        return call(*reversed(operands)) if is_number else call(*operands)

    return swapped


def _bits_with_number_on(side: int) -> dict[str, Callable[[Any, Any], Any]]:
    names = ("bitwise_and", "bitwise_or", "bitwise_xor")
    return {name: _with_number_on(side, BINARY_OPERATORS[name]) for name in names}


class TensorFlow(Library):
    """TensorFlow's operators and functions without promotion."""

    rules = "tf-off"
    mode = ""
    dtypes: ClassVar = [*Library.dtypes, "bfloat16", "complex64", "complex128"]

    def __init__(self) -> None:
        self.tf = tf = import_or_skip("tensorflow")
        if self.mode:
            tf.experimental.numpy.experimental_enable_numpy_behavior(dtype_conversion_mode=self.mode)
        unary = named(
            tf.math,
            "sqrt exp sign floor ceil round isnan:is_nan isfinite:is_finite sum:reduce_sum prod:reduce_prod"
            " min:reduce_min max:reduce_max any:reduce_any all:reduce_all mean:reduce_mean",
        )
        binary = named(tf.math, "maximum minimum")
        # In a mode, operators of bits need a tensor on the left.
        super().__init__(UNARY_OPERATORS | unary, BINARY_OPERATORS | binary | _bits_with_number_on(1))

    def make(self, array: np.ndarray) -> Any:
        """Make a tensor."""
        return self.tf.constant(array)

    def where(self, left: Any, right: Any, ndim: int) -> Any:
        """Choose between two tensors."""
        return self.tf.where(self.make(np.array(MASK if ndim else True)), left, right)

    def result(self, found: Any) -> Result:
        """Read the dtype."""
        return Result(found, found.dtype.name, None, tuple(found.shape))


class TensorFlowAll(TensorFlow):
    """The same in a mode, which a process cannot leave."""

    rules = "tf-all"
    mode = "all"


class TensorFlowSafe(TensorFlow):
    """The same in the other mode."""

    rules = "tf-safe"
    mode = "safe"


class Paddle(Library):
    """Operators and functions of Paddle's CPU build."""

    rules = "paddle"
    dtypes: ClassVar = [
        *("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64", "bfloat16"),
        *("complex64", "complex128", "float8_e4m3fn", "float8_e5m2"),
    ]

    def __init__(self) -> None:
        self.paddle = paddle = import_or_skip("paddle")
        # Operators of bits take a number on the left only.
        binary = BINARY_OPERATORS | named(paddle, "maximum minimum") | _bits_with_number_on(0)
        super().__init__(UNARY_OPERATORS | named(paddle, _FUNCTIONS), binary)

    def make(self, array: np.ndarray) -> Any:
        """Make a tensor; NumPy does not have all formats."""
        name = str(array.dtype)
        return self.paddle.to_tensor(array.astype("float32")).astype(name)

    @staticmethod
    def lacks_kernel(error: BaseException) -> bool:
        """Whether the CPU build alone refuses; the rules are those of all builds."""
        return "is not registered" in str(error)

    def where(self, left: Any, right: Any, ndim: int) -> Any:
        """Choose between two tensors."""
        return self.paddle.where(self.make(np.array(MASK if ndim else True)), left, right)

    def result(self, found: Any) -> Result:
        """Read the dtype."""
        return Result(found, str(found.dtype).removeprefix("paddle."), None, tuple(found.shape))


class Keras(Library):
    """Keras' operations on its JAX backend, which has no arrays of 64 bits."""

    rules = "keras"
    dtypes: ClassVar = [*Jax.dtypes, "int8", "uint16", "bfloat16", "float8_e5m2"]

    def __init__(self) -> None:
        os.environ["KERAS_BACKEND"] = "jax"
        self.ops = ops = import_or_skip("keras").ops
        binary = named(
            ops,
            "add subtract multiply divide floor_divide remainder:mod pow:power less less_equal greater equal not_equal"
            " bitwise_and bitwise_or bitwise_xor maximum minimum",
        )
        super().__init__(named(ops, f"negative abs {_FUNCTIONS}"), binary)

    def make(self, array: np.ndarray) -> Any:
        """Make an array."""
        return jnp.asarray(array)

    @staticmethod
    def lacks_kernel(error: BaseException) -> bool:
        """Whether JAX refuses, which the rules leave out."""
        return any(part in str(error) for part in ("not support complex", "not accept dtype complex"))

    def where(self, left: Any, right: Any, ndim: int) -> Any:
        """Choose between two arrays."""
        return self.ops.where(self.make(np.array(MASK if ndim else True)), left, right)

    def result(self, found: Any) -> Result:
        """Read the dtype."""
        return Result(found, str(found.dtype), None, tuple(found.shape))


TENSORFLOW = (TensorFlow, TensorFlowAll, TensorFlowSafe)
CASES = {each.rules: each for each in (ArrayLibrary, Jax, Torch, *LIBRARIES.values(), Mlx, *TENSORFLOW, Paddle, Keras)}
MODULES = {
    "polars": ("pl", "polars"), "pyarrow": ("pa", "pyarrow"), "mlx": ("mx", "mlx.core"), "torch": ("torch", "torch"),
    "tinygrad": ("dtypes", "tinygrad.dtypes"), "paddle": ("paddle", "paddle"), "keras": ("ops", "keras.ops"),
    **{each.rules: ("tf", "tensorflow") for each in TENSORFLOW},
}  # fmt: skip
"""The name in the code of every fix for a library whose casts differ from NumPy's, and the module of that name. Casts
of Paddle are methods."""


def names_of(rules):
    """What users of a library have imported."""
    known = {"np": np}
    if rules in MODULES:
        name, module = MODULES[rules]
        package, _, attribute = module.partition(".")
        imported = import_or_skip(module if rules == "mlx" else package)
        known[name] = getattr(imported, attribute) if rules in ("tinygrad", "keras") else imported
    return known | ({"Tensor": import_or_skip("tinygrad").Tensor} if rules == "tinygrad" else {})


def refusals(library, stride):
    """Every nth of the calls with arrays, or with arrays and a number, if our rules refuse and fix it."""
    sides = [*library.dtypes, *NUMBERS]
    calls = (
        (name, operands)
        for name in library.names
        if not name.startswith(REVERSED)
        for operands in itertools.product(sides, repeat=1 if name in library.unary else 2)
        if any(isinstance(each, str) for each in operands)
    )
    for name, operands in itertools.islice(calls, 0, None, stride):
        decision = explain(*operands, operation=name, rules=library.rules)
        if not decision and decision.fix is not None:
            yield name, operands, decision


def typed(library, operands, fix, known):
    """The operands of a call after its fix is typed."""
    arrays = [
        library.make(np.ones(3).astype(as_format(each).dtype)) if isinstance(each, str) else each for each in operands
    ]
    written, bound = fix.expressions(), dict(zip("ab", arrays, strict=False))
    return [eval(written[letter], known | bound) if letter in written else bound[letter] for letter in bound]


def attempts(rules, stride):
    """Type the fixes of every nth call; return the number of those that ran, and why others do not work."""
    library, known = CASES[rules](), names_of(rules)
    name_in_fixes = f"{MODULES[rules][0]}." if rules in MODULES and rules != "paddle" else ""
    tried, wrong = 0, {}
    for name, operands, decision in refusals(library, stride):
        fix = decision.fix
        after = explain(*fix.apply(decision.operands), operation=name, rules=rules)
        shown = (name, *operands, str(fix))
        assert all(name_in_fixes in text for text in fix.expressions().values()), shown
        library.begin()
        try:
            arguments = typed(library, operands, fix, known)
            found = library.where(*arguments, 1) if name == "where" else library.calls[name](*arguments)
            dtype = library.result(found).dtype
        except library.errors as error:
            if not library.lacks_kernel(error):
                wrong[shown] = f"{type(error).__name__}: {str(error)[:150]}"
        else:
            tried += 1
            if dtype != str(after.dtype):
                wrong[shown] = f"{dtype}, not {after.dtype}"
    return tried, wrong


ALONE = {each.rules: "tensorflow" for each in TENSORFLOW} | {"paddle": "paddle", "keras": "keras"}
"""Libraries that need a process of their own: none can leave a mode of TensorFlow, and Paddle crashes beside others."""


def attempts_alone(rules, stride):
    """The same in a new process."""
    skip_without(ALONE[rules])
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return pool.submit(attempts, rules, stride).result()


@pytest.mark.parametrize("stride", [37, exhaustive(1)])
@for_each("rules", [*CASES])
@pytest.mark.filterwarnings("ignore")
def test_fixes_work_as_typed_into_the_library(rules, stride):
    tried, wrong = (attempts_alone if rules in ALONE else attempts)(rules, stride)
    text = "\n".join(f"{call}: {why}" for call, why in list(wrong.items())[:40])
    assert not wrong, f"{len(wrong)} of {tried + len(wrong)} fixes do not work:\n{text}"
    assert tried >= 600 // stride


@pytest.mark.parametrize(
    ("rules", "operation", "operands", "fix"),
    [
        ("keras", "add", (2**40, "float32"), "ops.convert_to_tensor(np.asarray(a, 'float32'))"),
        ("keras", "add", ("float8_e4m3fn", "complex128"), "ops.cast(a, 'complex64') and ops.cast(b, 'complex64')"),
        ("paddle", "maximum", ("float8_e5m2", 3), "paddle.full([], b, 'float8_e5m2')"),
        ("tf-off", "not_equal", ("bfloat16", True), "tf.constant(np.asarray(b, 'bfloat16'))"),
        ("tf-off", "pow", ("uint8", "uint32"), "tf.cast(a, 'int64') and tf.cast(b, 'int64')"),
        ("tf-safe", "pow", ("uint8", "uint8"), "tf.cast(a, 'int16') and tf.cast(b, 'int16')"),
        ("tf-all", "abs", ("uint8",), "tf.cast(a, 'int16')"),
    ],
)  # fmt: skip
def test_fixes_avoid_what_the_library_cannot_convert_or_compute(rules, operation, operands, fix):
    assert str(explain(*operands, operation=operation, rules=rules).fix) == fix
