"""Fixes of refusals, typed into the installed libraries: the code runs, and the library then gives the result that the
rules say."""

import collections
import itertools
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
from optional_packages import import_or_skip
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


CASES = {each.rules: each for each in (ArrayLibrary, Jax, Torch, *LIBRARIES.values(), Mlx)}
WORDS = {"polars": "pl.", "pyarrow": "pa.", "mlx": "mx.", "tinygrad": "dtypes.", "torch": "torch."}
"""What is in the code of every fix for a library whose casts are not those of NumPy."""


def names_of(rules):
    """What users of a library have imported."""
    if rules == "tinygrad":
        tinygrad = import_or_skip("tinygrad")
        return {"dtypes": tinygrad.dtypes, "Tensor": tinygrad.Tensor}
    module = {"mlx": "mlx.core"}.get(rules, rules)
    return {WORDS[rules].rstrip("."): import_or_skip(module)} if rules in WORDS else {"np": np}


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


@pytest.mark.parametrize("stride", [37, exhaustive(1)])
@for_each("rules", [*CASES])
@pytest.mark.filterwarnings("ignore")
def test_fixes_work_as_typed_into_the_library(rules, stride):
    library, known = CASES[rules](), names_of(rules)
    tried, wrong = collections.Counter(), {}
    for name, operands, decision in refusals(library, stride):
        fix = decision.fix
        after = explain(*fix.apply(decision.operands), operation=name, rules=rules)
        shown = (name, *operands, str(fix))
        assert all(WORDS.get(rules, "") in text for text in fix.expressions().values()), shown
        library.begin()
        try:
            arguments = typed(library, operands, fix, known)
            found = library.where(*arguments, 1) if name == "where" else library.calls[name](*arguments)
            dtype = library.result(found).dtype
        except library.errors as error:
            wrong[shown] = f"{type(error).__name__}: {str(error)[:150]}"
        else:
            tried[name] += 1
            if dtype != str(after.dtype):
                wrong[shown] = f"{dtype}, not {after.dtype}"
    text = "\n".join(f"{call}: {why}" for call, why in list(wrong.items())[:40])
    assert not wrong, f"{len(wrong)} of {tried.total() + len(wrong)} fixes do not work:\n{text}"
    assert tried.total() >= 600 // stride, tried
