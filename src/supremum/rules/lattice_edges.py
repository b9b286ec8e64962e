"""Edges that the lattices of several frameworks share: the formats of one category, from narrow to wide."""

from __future__ import annotations

UNSIGNED: dict[str, tuple[str, ...]] = {
    "uint8": ("int16", "uint16"),
    "uint16": ("int32", "uint32"),
    "uint32": ("int64", "uint64"),
}
"""Unsigned integers, each below the next wider one and the narrowest signed one that holds it; uint64 has no entry."""
SIGNED: dict[str, tuple[str, ...]] = {"int8": ("int16",), "int16": ("int32",), "int32": ("int64",)}
"""Signed integers; frameworks differ in what they put above int64."""
FLOATS: dict[str, tuple[str, ...]] = {
    "bfloat16": ("float32",),
    "float16": ("float32",),
    "float32": ("float64", "complex64"),
    "float64": ("complex128",),
}
"""Floats of at least 16 bits, below the complex formats that have them as components."""
