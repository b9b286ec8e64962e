"""Edges that the lattices of several frameworks share: the formats of one category, from narrow to wide."""

from __future__ import annotations

UNSIGNED: dict[str, tuple[str, ...]] = {
    "uint8": ("int16", "uint16"),
    "uint16": ("int32", "uint32"),
    "uint32": ("int64", "uint64"),
}
"""Unsigned integers, each below the next one and below the narrowest signed one that holds it; uint64 is apart."""
SIGNED: dict[str, tuple[str, ...]] = {"int8": ("int16",), "int16": ("int32",), "int32": ("int64",)}
"""Signed integers; what is above int64 differs."""
FLOATS: dict[str, tuple[str, ...]] = {
    "bfloat16": ("float32",),
    "float16": ("float32",),
    "float32": ("float64", "complex64"),
    "float64": ("complex128",),
}
"""Floats of 16 bits and more, below the complex formats whose parts they are."""
