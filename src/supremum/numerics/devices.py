"""How devices multiply float32 matrices: one row for each device, with the source of each fact.

The names of dot algorithms say what is computed, so they mean the same on every device; a row says which ones the
device's compiler accepts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from supremum.errors import UnknownNameError
from supremum.formats import Format, as_format


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """How a product of matrices is computed: what its operands are rounded to, and in how many passes.

    Args:
        name: the name that reports show.
        exponent: the exponent bits of a rounded operand.
        mantissa: its mantissa bits.
        passes: how many products of parts of the operands are added. With 1, an operand is rounded; with 3 it is split
            into 2 parts, with 6 and 9 into 3 parts.
        truncates: whether the parts are split off by cutting bits, and not by rounding.
        accumulator: the name of the format that the result is rounded to.

    >>> BFLOAT16_X3.mantissa, BFLOAT16_X3.passes
    (7, 3)
    """

    name: str
    exponent: int
    mantissa: int
    passes: int = 1
    truncates: bool = False
    accumulator: str = "float32"


_FLOAT32: Final = as_format("float32")


def _of(row: Format, passes: int = 1, *, truncates: bool = False, accumulator: str = "float32") -> Arithmetic:
    name = row.name if passes == 1 else f"{row.name} x {passes}"
    return Arithmetic(name, row.exponent, row.mantissa, passes, truncates, accumulator)


_HALF, _BRAIN = as_format("float16"), as_format("bfloat16")

FLOAT32: Final = _of(_FLOAT32)
TF32: Final = Arithmetic("tf32", 8, 10)
"""NVIDIA's TensorFloat-32, the exponent of float32 and the mantissa of float16; no array has this format."""
BFLOAT16: Final = _of(_BRAIN)
BFLOAT16_X3: Final = _of(_BRAIN, 3)
BFLOAT16_X6: Final = _of(_BRAIN, 6)


@dataclass(frozen=True, slots=True)
class Algorithm:
    """What a `jax.lax.DotAlgorithmPreset` computes.

    Args:
        operands: the formats that operands may keep; others are cast to the first one. Empty if they must be float8.
        arithmetic: how the product is computed; None if in the formats of the operands.
    """

    operands: tuple[str, ...]
    arithmetic: Arithmetic | None


_SPLIT = ("float32",)
# All products of float8 numbers fit into float32.
_FLOAT8 = Arithmetic("float8", _FLOAT32.exponent, _FLOAT32.mantissa)
ALGORITHMS: Final[Mapping[str, Algorithm]] = MappingProxyType(
    {
        "F16_F16_F16": Algorithm(("float16",), _of(_HALF, accumulator="float16")),
        "F16_F16_F32": Algorithm(("float16",), _of(_HALF)),
        "BF16_BF16_BF16": Algorithm(("bfloat16", "float32"), _of(_BRAIN, accumulator="bfloat16")),
        "BF16_BF16_F32": Algorithm(("bfloat16", "float32"), BFLOAT16),
        "BF16_BF16_F32_X3": Algorithm(_SPLIT, _of(_BRAIN, 3, truncates=True)),
        "BF16_BF16_F32_X6": Algorithm(_SPLIT, _of(_BRAIN, 6, truncates=True)),
        "BF16_BF16_F32_X9": Algorithm(_SPLIT, _of(_BRAIN, 9, truncates=True)),
        "TF32_TF32_F32": Algorithm(_SPLIT, TF32),
        "TF32_TF32_F32_X3": Algorithm(_SPLIT, Arithmetic("tf32 x 3", 8, 10, 3, truncates=True)),
        "F32_F32_F32": Algorithm(_SPLIT, FLOAT32),
        "F64_F64_F64": Algorithm(("float64",), None),
        "ANY_F8_ANY_F8_F32": Algorithm((), _FLOAT8),
        "ANY_F8_ANY_F8_F32_FAST_ACCUM": Algorithm((), _FLOAT8),
        "ANY_F8_ANY_F8_ANY": Algorithm((), _FLOAT8),
        "ANY_F8_ANY_F8_ANY_FAST_ACCUM": Algorithm((), _FLOAT8),
    }
)
"""The presets of JAX by name, except `DEFAULT`, which is no algorithm.

Sources: `supported_lhs_types` and `accumulation_type` of `jax.lax.DotAlgorithmPreset`; the split into parts and the
order of their sums are those of XLA for GPUs, `xla/service/gpu/transforms/dot_algorithm_rewriter.cc`.
"""


@dataclass(frozen=True, slots=True)
class Device:
    """A device, and how it computes float32 products.

    Args:
        name: its name.
        aliases: other names for it.
        default: how products without a precision are computed, and those with `jax.lax.Precision.DEFAULT`.
        high: the same for `Precision.HIGH`.
        highest: the same for `Precision.HIGHEST`.
        algorithms: the dot algorithms that its compiler accepts; None if no source says which.
        vectors_in_float32: whether products with a vector run in float32, whatever the precision.
        complex_by_parts: whether complex64 products round real and imaginary parts like float32; False if no source
            says so.
        emulated: whether anything is computed differently from the CPU that runs the program.
        exact: the names of operand formats whose products are computed as on this CPU.
        sources: where these facts come from.

    >>> from supremum.numerics import DEVICES
    >>> print(
    ...     *(f"{row.name}: {row.default.name}" for row in DEVICES.values()), sep=", "
    ... )
    cpu: float32, p100: float32, v100: float32, t4: float32, a100: tf32, h100: tf32, tpu: bfloat16
    >>> DEVICES["tpu"].highest.passes, DEVICES["tpu"].vectors_in_float32
    (6, True)
    """

    name: str
    aliases: tuple[str, ...]
    default: Arithmetic
    high: Arithmetic
    highest: Arithmetic
    algorithms: frozenset[str] | None
    vectors_in_float32: bool
    complex_by_parts: bool
    emulated: bool
    exact: frozenset[str]
    sources: tuple[str, ...]


_PRECISION = "jax.lax.Precision, its documentation"
_BLAS = "GetBlasComputationType in xla/stream_executor/gpu/gpu_blas_lt.cc, for float32 and complex64"
_SUPPORT = "IsSupportedDotAlgorithmOnGpu in xla/service/gpu/algorithm_util.cc"
_ON_EVERY_GPU = frozenset({"F16_F16_F32", "F32_F32_F32", "F64_F64_F64"})
_FROM_AMPERE = _ON_EVERY_GPU | {
    "BF16_BF16_F32", "BF16_BF16_F32_X3", "BF16_BF16_F32_X6", "BF16_BF16_F32_X9", "TF32_TF32_F32", "TF32_TF32_F32_X3",
}  # fmt: skip
_FROM_ADA = _FROM_AMPERE | {name for name in ALGORITHMS if name.startswith("ANY_F8")}
_ON_GPUS = frozenset({"float16", "bfloat16", "float64", "complex128"})


def _gpu(
    name: str, arithmetic: Arithmetic, algorithms: frozenset[str], source: str, aliases: tuple[str, ...] = ()
) -> Device:
    sources = (_PRECISION, _BLAS, _SUPPORT, source)
    return Device(name, aliases, arithmetic, arithmetic, FLOAT32, algorithms, False, True, True, _ON_GPUS, sources)


_ROWS = (
    Device("cpu", (), FLOAT32, FLOAT32, FLOAT32, None, False, False, False, frozenset(), (_PRECISION,)),
    _gpu("p100", FLOAT32, _ON_EVERY_GPU, "jax#11628, which compares P100, V100 and T4 with A100"),
    _gpu("v100", FLOAT32, _ON_EVERY_GPU, "jax#11628, which compares P100, V100 and T4 with A100"),
    _gpu("t4", FLOAT32, _ON_EVERY_GPU, "jax#11628, which compares P100, V100 and T4 with A100"),
    _gpu("a100", TF32, _FROM_AMPERE, "jax#11628; tensorflow#127346 for the size of the error", ("rtx3090",)),
    _gpu("h100", TF32, _FROM_ADA, "the documentation of jax.lax.Precision names the H100"),
    Device(
        "tpu", (), BFLOAT16, BFLOAT16_X3, BFLOAT16_X6, None, True, False, True, frozenset({"bfloat16"}),
        (_PRECISION, "jax#9973 for DEFAULT, digit by digit", "jax#16349 for products with vectors"),
    ),
)  # fmt: skip

DEVICES: Final[Mapping[str, Device]] = MappingProxyType({row.name: row for row in _ROWS})
"""The known devices by name.

>>> DEVICES["h100"].default.name, DEVICES["h100"].highest.name
('tf32', 'float32')
"""

_BY_NAME: Final = MappingProxyType({name: row for row in _ROWS for name in (row.name, *row.aliases)})


def as_device(device: object) -> Device:
    """Find a device by its name or an alias, in upper or lower case.

    Raises:
        UnknownNameError: for an unknown name; the message suggests similar ones; a `ValueError`.

    >>> as_device("H100").name
    'h100'
    >>> as_device("a1000")
    Traceback (most recent call last):
        ...
    supremum.errors.UnknownNameError: unknown device 'a1000': did you mean 'a100'?
    """
    if isinstance(device, Device):
        return device
    row = _BY_NAME.get(device.lower()) if isinstance(device, str) else None
    if row is None:
        raise UnknownNameError("device", device, _BY_NAME)
    return row
