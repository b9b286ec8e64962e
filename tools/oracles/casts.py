"""Documents FRAMEWORK-casts: what casts of arrays do to values.

In addition to the framework and its version, a document has:

    processor  the architecture, such as "x86_64": some results depend on it
    values     {"float": TEXT, "integer": TEXT, ...}: the values that are cast, by the category of their dtype; floats
               in hexadecimal
    casts      {SOURCE: {TARGET: TEXT}}: for each value what it becomes; `.` if the source does not hold the value,
               and several results with `|` between them if they depend on the length of the array or the position in
               it. One word instead stands for all: `refused`, or `aborts` for a cast that ends the process

A complex value is written as its real part; its imaginary part is 2.
"""

from __future__ import annotations

import math
import platform
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from oracles.tables import Framework

# The code for a vector register and that for the rest of an array may give different results.
LENGTHS = (1, 3, 8, 67)


def _powers(*exponents: int) -> list[float]:
    return [2.0**exponent for exponent in exponents]


# Values around the limits of the formats, and such that rounding twice differs from rounding once: half of the last
# place of one format more than a number, and a little more.
_TWICE = [
    1 + 2.0**-half + 2.0**-little
    for half, little in ((4, 9), (4, 12), (4, 30), (3, 9), (3, 12), (3, 30), (8, 12), (8, 30), (11, 30), (24, 50))
]
_LIMITS = [
    0.5, -0.5, 1.5, -1.5, 3.0, 6.0, 7.0, -7.0, 15.5, 30.0, 127.5, 128.0, -128.5, -129.0, 240.0, 248.0, 255.5, 256.0,
    300.0, -300.0, 448.0, 464.0, 465.0, 480.0, 32767.5, 32768.0, -32769.0, 40000.0, 57344.0, 61440.0, 61441.0, 65504.0,
    65519.0, 65520.0, 65536.0, 70000.0, 2.0**31 - 128, 2.0**31, 3e9, -3e9, 2.0**32, 5e9, 2.0**63, -(2.0**63), 1e19,
    2.0**64, 2.0**66, -(2.0**66), 2.0**100, 3.3895313892515355e38, 3.39e38, 3.4028234663852886e38,
    3.4028235677973366e38, 1e300, -1e300,
]  # fmt: skip
_SMALL = [
    *_powers(-1, -2, -3, -6, -7, -8, -9, -10, -11, -14, -15, -16, -17, -18, -24, -25),
    *_powers(-126, -127, -133, -134, -140, -149),
    2.0**-25 * (1 + 2.0**-10), 2.0**-17 * (1 + 2.0**-9), 2.0**-150 * (1 + 2.0**-20), 1e-7, 1e-300, -0.0,
]  # fmt: skip
FLOATS: list[float] = [0.0, 1.0, *_LIMITS, *_SMALL, *_TWICE, math.inf, -math.inf, math.nan]
_BITS = (7, 8, 15, 16, 31, 32, 63, 64)
INTEGERS: list[int] = [
    0, 1, -1, 3, 7, -7, 8, 100, 200, 300, -129, 449, 500, 40000, 61441, 65519, 65520, 70000, 10**9,
    *(2**bits + more for bits in _BITS for more in (-1, 0)),
    *(-(2**bits) - more for bits in _BITS[::2] for more in (0, 1)),
    2**24 + 1, 2**53 + 1, 2**30 + 2**22 + 1, 2**60 + 2**36 + 1, 2**60 + 2**52 + 1, 2**60 + 2**49 + 1, 2**62 + 2**9 + 1,
]  # fmt: skip
VALUES: Mapping[str, Sequence[Any]] = {
    "bool": [False, True],
    "integer": sorted(set(INTEGERS)),
    "float": FLOATS,
    "complex": FLOATS,
}

OWN = [
    *("bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64"),
    *("float16", "float32", "float64", "complex64", "complex128"),
]
"""The names of NumPy's own dtypes."""


def category(dtype: str) -> str:
    """The category of a dtype of a framework, by its name."""
    words = {"bool": "bool", "int": "integer", "uint": "integer", "float": "float", "bfloat": "float"}
    return words.get(dtype.rstrip("0123456789").split("_")[0].rstrip("0123456789"), "complex")


def text(value: Any) -> str:
    """A value as the document has it, `null` for one that a cast refuses; a string stands for what is not a value."""
    if value is None:
        return "null"
    if isinstance(value, str):
        return value
    if isinstance(value, complex):
        value = value.real
    return value.hex() if isinstance(value, float) else str(int(value))


def casts_document(
    framework: Framework,
    cast: Callable[[Any, str], Any],
    dtypes: Iterable[str] | None = None,
    lengths: Sequence[int] = LENGTHS,
) -> dict[str, Any]:
    """Measure all casts between some dtypes.

    Args:
        framework: the framework; its `make` may raise.
        cast: casts an array to the dtype of a name; it may raise.
        dtypes: the names of the dtypes; None for all dtypes of the framework.
        lengths: each value is cast in arrays of these lengths, which hold nothing else; if there are none, in one array
            of all values.
    """
    names, casts = [*(framework.codes.values() if dtypes is None else dtypes)], dict[str, dict[str, str]]()
    for source in names:
        is_complex = category(source) == "complex"
        wanted = [complex(number, 2.0) if is_complex else number for number in VALUES[category(source)]]
        held = [number for number in wanted if _holds(framework, number, source)]
        batches = [[number] * length for number in held for length in lengths] or [held]
        arrays = [framework.make(batch, source) for batch in batches]
        row = casts[source] = {}
        for target in names:
            try:
                results = [framework.numbers(cast(array, target)) for array in arrays]
            except Exception:  # frameworks refuse with many kinds of exceptions
                row[target] = "refused"
                continue
            found = defaultdict[str, set[str]](set)
            for batch, numbers in zip(batches, results, strict=True):
                for number, result in zip(batch, numbers, strict=False):
                    found[_key(number)].add(text(result))
            row[target] = " ".join("|".join(sorted(found.get(_key(number), {"."}))) for number in wanted)
    return {
        "framework": framework.name,
        "version": framework.version,
        "processor": platform.machine(),
        "values": {name: " ".join(map(text, numbers)) for name, numbers in VALUES.items()},
        "casts": casts,
    }


def _key(number: Any) -> str:
    return repr(number)  # -0.0 equals 0.0, and NaN does not equal itself


def _holds(framework: Framework, number: Any, dtype: str) -> bool:
    try:
        return text(framework.numbers(framework.make([number], dtype))[0]) == text(number)
    except (OverflowError, ValueError, TypeError, RuntimeError):
        return False


def torch_casts() -> dict[str, Any]:
    """Measure PyTorch on CPU."""
    import torch

    eights = ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu")
    names = (*OWN, "bfloat16", "complex32", *eights)
    # Each value of a narrow format is one of the widest of its category, so that these casts are exact.
    widest = {"float": "float64", "complex": "complex128"}

    def make(numbers: list[Any], name: str) -> Any:
        wide = getattr(torch, widest.get(category(name), name))
        return torch.tensor(numbers, dtype=wide).to(getattr(torch, name))

    def name_of(tensor: Any) -> str:
        return str(tensor.dtype).removeprefix("torch.")

    def values(tensor: Any) -> list[Any]:
        return tensor.to(getattr(torch, widest.get(category(name_of(tensor)), name_of(tensor)))).tolist()

    framework = Framework("torch", torch.__version__, {name: name for name in names}, make, name_of, values)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return casts_document(framework, lambda tensor, to: tensor.to(getattr(torch, to)))


def jax_casts(dtypes: str, *, compiled: bool) -> dict[str, Any]:
    """Measure JAX on CPU, with 64 bits if they are on.

    Args:
        dtypes: the names of the dtypes, separated by blanks.
        compiled: whether the cast is inside of `jax.jit`.
    """
    import jax
    import jax.numpy as jnp
    import numpy as np

    def make(numbers: list[Any], name: str) -> Any:
        # NumPy makes float64 of a list of ints if one of them is not an int64.
        return jnp.asarray(np.array(numbers, name if name in OWN else None).astype(name))

    def cast(array: Any, to: str) -> Any:
        return array.astype(to)

    def values(array: Any) -> list[Any]:
        found = np.asarray(array)
        wide = {"float": "float64", "integer": "int64" if "u" not in found.dtype.name else "uint64"}
        return found.astype(wide.get(category(found.dtype.name), found.dtype)).tolist()

    codes = {name: name for name in dtypes.split()}
    framework = Framework("jax", jax.__version__, codes, make, lambda array: array.dtype.name, values)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return casts_document(framework, jax.jit(cast, static_argnums=1) if compiled else cast, lengths=())
