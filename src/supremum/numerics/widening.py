"""Floating-point values in other dtypes than those that a program declares."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend.core import Literal, Var

from supremum.formats import DType, as_format
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


def is_floating(aval: Any) -> bool:
    """Whether a type has floating values, real or complex."""
    dtype = getattr(aval, "dtype", None)
    return isinstance(dtype, np.dtype) and as_format(dtype).is_inexact  # the dtypes of random keys are not NumPy's


def floating_avals(atoms: Iterable[Var | Literal]) -> list[Any]:
    """The types of the operands or results that have floating values."""
    return [aval for aval in map(aval_of, atoms) if is_floating(aval)]


def widest(values: Sequence[Any]) -> DType | None:
    """The widest real floating dtype among values; None without one."""
    found = {as_format(value.dtype).component.dtype for value in values if is_floating(value)}
    return result_type(*found, rules="jax-x64") if found else None


def component(dtype: DType) -> DType:
    """The dtype of the real part."""
    return as_format(dtype).component.dtype


def in_dtype(value: Any, dtype: DType) -> Any:
    """A floating value in another floating dtype; complex values keep their kind. Other values stay as they are."""
    if not is_floating(value):
        return value
    target = np.result_type(dtype, np.complex64) if jnp.issubdtype(value.dtype, jnp.complexfloating) else dtype
    return value if value.dtype == target else lax.convert_element_type(value, target)


def literal_value(literal: Literal) -> Any:
    """The value of a literal, with the dtype that the program declares."""
    dtype = aval_of(literal).dtype
    return np.asarray(literal.val).astype(dtype) if isinstance(dtype, np.dtype) else literal.val
