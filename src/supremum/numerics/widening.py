"""Floating-point values in other dtypes than those that a program declares."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any, Final

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend.core import Literal, Var

from supremum.formats import FORMATS, DType, as_format
from supremum.jaxprs import aval_of
from supremum.promotion import result_type

FLOAT64: Final = as_format("float64").dtype
FLOAT32: Final = as_format("float32").dtype

READS_BITS: Final = frozenset(
    {"bitcast_convert_type", "nextafter", "random_bits", "random_gamma_grad", "rng_bit_generator", "rng_uniform",
     "select_and_gather_add"}
)  # fmt: skip
"""Primitives whose result depends on the bits of the dtype: they run in the dtypes that they declare."""
KERNELS: Final = frozenset({"ffi_call", "io_callback", "pallas_call", "pure_callback", "xla_metadata_call"})
"""Primitives that run code which expects the dtypes that it declares."""
MOVES: Final = frozenset(
    {"broadcast_in_dim", "concatenate", "copy", "copy_p", "dynamic_slice", "dynamic_update_slice", "gather", "name",
     "optimization_barrier", "pad", "reshape", "rev", "scatter", "select_n", "slice", "sort", "split", "squeeze",
     "stack", "tile", "top_k", "transpose", "unstack"}
)  # fmt: skip
"""Primitives that move the values of their operands and make none."""
EXACT: Final = MOVES | {
    "abs", "ceil", "clamp", "complex", "conj", "cummax", "cummin", "floor", "imag", "iota", "max", "min", "neg", "real",
    "reduce_max", "reduce_min", "reduce_window_max", "reduce_window_min", "round", "sign", "stop_gradient",
}  # fmt: skip
"""Primitives whose results need no rounding."""


_FLOATING: Final = frozenset(row.dtype for row in FORMATS if row.is_inexact)


def is_floating(aval: object) -> bool:
    """Whether a type has floating values, real or complex."""
    return getattr(aval, "dtype", None) in _FLOATING


def floating_avals(atoms: Iterable[Var | Literal]) -> list[Any]:
    """The types of the operands or results that have floating values."""
    return [aval for aval in map(aval_of, atoms) if is_floating(aval)]


def widest(values: Sequence[Any]) -> DType | None:
    """The widest real floating dtype among values; None without one."""
    dtypes = {component(value.dtype) for value in values if is_floating(value)}
    return widest_of(dtypes) if dtypes else None


def widest_of(dtypes: Collection[DType]) -> DType:
    """The dtype that some real floating dtypes are promoted to."""
    if FLOAT64 in dtypes:  # no dtype is wider
        return FLOAT64
    return result_type(*dtypes, rules="jax-x64")


def component(dtype: DType) -> DType:
    """The dtype of the real part."""
    return as_format(dtype).component.dtype


def in_dtype(value: jax.Array, dtype: DType) -> Any:
    """A floating value in another floating dtype; complex values keep their kind. Other values stay as they are."""
    if not is_floating(value):
        return value
    target = np.result_type(dtype, np.complex64) if jnp.issubdtype(value.dtype, jnp.complexfloating) else dtype
    return value if value.dtype == target else lax.convert_element_type(value, target)


def literal_value(literal: Literal) -> Any:
    """The value of a literal, with the dtype that the program declares."""
    dtype = aval_of(literal).dtype
    return np.asarray(literal.val).astype(dtype) if isinstance(dtype, np.dtype) else literal.val
