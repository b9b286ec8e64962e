"""The dtypes of PyTorch, TensorFlow, Paddle, MLX and tinygrad, recognised by name; none of them is imported."""

from __future__ import annotations

import re

_FRAMEWORKS = {"torch", "tensorflow", "paddle", "mlx", "tinygrad"}
# tinygrad's dtypes print as types of C.
_TINYGRAD_NAMES = {
    "char": "int8", "short": "int16", "int": "int32", "long": "int64",
    "uchar": "uint8", "ushort": "uint16", "uint": "uint32", "ulong": "uint64",
    "half": "float16", "float": "float32", "double": "float64",
    "fp8e4m3": "float8_e4m3fn", "fp8e4m3fnuz": "float8_e4m3fnuz",
    "fp8e5m2": "float8_e5m2", "fp8e5m2fnuz": "float8_e5m2fnuz",
}  # fmt: skip
TINYGRAD_NAME_OF: dict[str, str] = {name: theirs for theirs, name in _TINYGRAD_NAMES.items()}
"""tinygrad's names of dtypes that it does not call like the formats.

>>> TINYGRAD_NAME_OF["int8"]
'char'
"""
_WEAK = {"weakint": "int32", "weakfloat": "float32"}


def framework_dtype_name(thing: object) -> str:
    """The name of the format of a framework's dtype; empty for anything else.

    Args:
        thing: any object.

    >>> framework_dtype_name("float32"), framework_dtype_name(3)
    ('', '')
    """
    name = _own_name(thing)
    return _TINYGRAD_NAMES.get(name) or _WEAK.get(name, name)


def is_weak_dtype(thing: object) -> bool:
    """Whether an object is the dtype of tinygrad's weak tensors, such as `Tensor(1)`.

    >>> is_weak_dtype("weakint")
    False
    """
    return _own_name(thing) in _WEAK


def _own_name(thing: object) -> str:
    kind = type(thing)
    package = str(kind.__module__).partition(".")[0]  # a class may have anything as its `__module__`
    if package not in _FRAMEWORKS or kind.__name__.lower() not in ("dtype", "datatype"):
        return ""
    return re.findall(r"\w+", str(thing))[-1]  # torch.int8, mlx.core.int8, <dtype: 'int8'> or dtypes.char
