"""JAX's rules: one lattice with x64 on, one edge different with x64 off.

Source: spec/jax-type-promotion.rst for the first eighteen types, and JAX 0.10 itself (`jax/_src/dtypes.py`,
`_type_promotion_lattice`) for the small formats; the conformance tests hold every pair against the installed JAX.
"""

from __future__ import annotations

from supremum.formats import CATEGORIES, FORMATS, Kind
from supremum.lattice import Lattice
from supremum.rules.lattice_rules import LatticeRuleSet, weak_defaults

_X64_EDGES: dict[str, tuple[str, ...]] = {
    "bool": ("int*",),
    "int*": ("uint8", "int8"),
    "uint8": ("int16", "uint16"),
    "uint16": ("int32", "uint32"),
    "uint32": ("int64", "uint64"),
    "uint64": ("float*",),
    "int8": ("int16",),
    "int16": ("int32",),
    "int32": ("int64",),
    "int64": ("float*",),
    "float*": ("bfloat16", "float16", "complex*"),
    "bfloat16": ("float32",),
    "float16": ("float32",),
    "float32": ("float64", "complex64"),
    "float64": ("complex128",),
    "complex*": ("complex64",),
    "complex64": ("complex128",),
    "complex128": (),
}
# The small formats hang off the weak kind of their category and meet nothing else of it, so that 4 or 8 bits are never
# left behind by accident. (complex32 and bcomplex32 are no JAX dtypes.)
_SMALL_FLOATS = tuple(row.name for row in FORMATS if row.kind is Kind.FLOAT and row.bits < 16)
_SMALL_INTEGERS = tuple(row.name for row in FORMATS if row.category == "integer" and row.bits < 8)


def _with_small_formats(edges: dict[str, tuple[str, ...]]) -> Lattice:
    return Lattice(
        edges
        | {"int*": edges["int*"] + _SMALL_INTEGERS, "float*": edges["float*"] + _SMALL_FLOATS}
        | dict.fromkeys(_SMALL_FLOATS + _SMALL_INTEGERS, ())
    )


_ACCEPTS: dict[str, tuple[str, ...]] = dict.fromkeys(("add", "multiply"), CATEGORIES)

JAX_X64 = LatticeRuleSet(
    name="jax-x64",
    summary="JAX with jax_enable_x64 on",
    source="spec/jax-type-promotion.rst; JAX 0.10",
    lattice=_with_small_formats(_X64_EDGES),
    defaults=weak_defaults("int64", "float64", "complex128"),
    accepts=_ACCEPTS,
)
JAX_X32 = LatticeRuleSet(
    name="jax-x32",
    summary="JAX as it starts, with jax_enable_x64 off: 64-bit dtypes are held in 32 bits",
    source="JAX 0.10",
    # No 64-bit type is made from narrower ones: uint32 meets the signed integers in int32.
    lattice=_with_small_formats(_X64_EDGES | {"uint32": ("int32", "uint64")}),
    defaults=weak_defaults("int64", "float64", "complex128"),
    accepts=_ACCEPTS,
    held_as={"int64": "int32", "uint64": "uint32", "float64": "float32", "complex128": "complex64"},
    held_because="JAX's x64 is off",
)
