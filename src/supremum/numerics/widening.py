"""Running an equation in another floating-point dtype than the one it was traced in.

The program is not traced again: a new trace under 64 bits would draw other random numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import eval_jaxpr
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var

from supremum.formats import DType, as_format
from supremum.jax_compat import open_jaxpr, with_constants
from supremum.jax_compat import primitives as p
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
_ROUNDS: Final = frozenset({p.reduce_precision_p.name})
_IDENTITIES: Final = frozenset({"stop_gradient"})


def is_floating(aval: Any) -> bool:
    """Whether a type has floating values, real or complex."""
    dtype = getattr(aval, "dtype", None)
    return isinstance(dtype, np.dtype) and as_format(dtype).is_inexact  # the dtypes of random keys are not NumPy's


def stays_narrow(equation: JaxprEqn) -> bool:
    """Whether an equation must run in the dtypes that it declares."""
    return equation.primitive.name in READS_BITS or equation.primitive.name in KERNELS


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
    return value if value.dtype == target else lax_convert(value, target)


def lax_convert(value: Any, dtype: DType) -> Any:
    """Convert an array to a dtype."""
    return jax.lax.convert_element_type(value, dtype)


def literal_value(literal: Literal) -> Any:
    """The value of a literal, with the dtype that the program declares."""
    dtype = aval_of(literal).dtype
    return np.asarray(literal.val).astype(dtype) if isinstance(dtype, np.dtype) else literal.val


def evaluate_as_declared(jaxpr: Jaxpr, equation: JaxprEqn, operands: Sequence[Any]) -> list[Any]:
    """Run an equation in the dtypes that it declares.

    Args:
        jaxpr: the function that contains it.
        equation: the equation.
        operands: the values of its operands, literals included; floating ones are cast to the declared dtypes.
    """
    given = [
        in_dtype(value, component(aval_of(atom).dtype)) if is_floating(aval_of(atom)) else value
        for value, atom in zip(operands, equation.invars, strict=True)
    ]
    return _evaluate(jaxpr, equation, given, equation.params)


def evaluate_cast(jaxpr: Jaxpr, equation: JaxprEqn, operands: Sequence[Any]) -> list[Any]:
    """Run a cast, or another rounding, of a value that may be wider than declared."""
    return _evaluate(jaxpr, equation, operands, equation.params)


def evaluate_in(jaxpr: Jaxpr, equation: JaxprEqn, operands: Sequence[Any], dtype: DType) -> list[Any]:
    """Run an equation in a dtype that is at least as wide as those that it declares.

    Roundings to a narrower dtype (casts, `reduce_precision`) round to this dtype only. What reads the bits of its
    operands, and what runs code that expects its dtypes, runs as declared; its results are then cast.

    Args:
        jaxpr: the function that contains it.
        equation: the equation.
        operands: the values of its operands, literals included.
        dtype: the real floating dtype.
    """
    if stays_narrow(equation):
        return [in_dtype(value, dtype) for value in evaluate_as_declared(jaxpr, equation, operands)]
    given = [in_dtype(value, dtype) for value in operands]
    if equation.primitive.name in _ROUNDS or equation.primitive.name in _IDENTITIES:
        return given[:1]
    return _evaluate(jaxpr, equation, given, _params_in(equation.params, dtype))


def _evaluate(jaxpr: Jaxpr, equation: JaxprEqn, operands: Sequence[Any], params: Mapping[str, Any]) -> list[Any]:
    """Evaluate with these operands, also in place of literals, in the context that the equation was traced in."""
    variables: list[Any] = [Var(aval_of(atom)) for atom in equation.invars]
    changed = equation.replace(invars=variables, params=dict(params))
    alone = jaxpr.replace(constvars=[], invars=variables, outvars=equation.outvars, eqns=[changed])
    return eval_jaxpr(alone, [], *operands)


def _params_in(params: Mapping[str, Any], dtype: DType) -> dict[str, Any]:
    return {name: _param_in(value, dtype) for name, value in params.items()}


def _param_in(value: Any, dtype: DType) -> Any:
    if isinstance(value, (Jaxpr, ClosedJaxpr)):
        return _function_in(value, dtype)
    if isinstance(value, tuple) and any(isinstance(each, (Jaxpr, ClosedJaxpr)) for each in value):
        made = [_param_in(each, dtype) for each in value]
        return type(value)(*made) if hasattr(value, "_fields") else tuple(made)
    if isinstance(value, (jax.lax.DotAlgorithm, jax.lax.DotAlgorithmPreset)):
        return None
    if isinstance(value, np.dtype) and as_format(value).is_inexact:
        wide = result_type(component(value), dtype, rules="jax-x64")
        return np.result_type(wide, np.complex64) if value.kind == "c" else wide
    return value


def _function_in(function: Jaxpr | ClosedJaxpr, dtype: DType) -> Any:
    """A function that an equation passes to its primitive, with its floating values in a dtype."""
    jaxpr = open_jaxpr(function)
    constants = list(function.consts) if isinstance(function, ClosedJaxpr) else []

    def run(*operands: Any) -> list[Any]:
        values: dict[Any, Any] = dict(zip(jaxpr.constvars, (in_dtype(each, dtype) for each in constants), strict=False))
        values.update(zip(jaxpr.invars, operands, strict=True))

        def read(atom: Any) -> Any:
            return in_dtype(literal_value(atom), dtype) if isinstance(atom, Literal) else values[atom]

        for equation in jaxpr.eqns:
            results = evaluate_in(jaxpr, equation, [read(atom) for atom in equation.invars], dtype)
            values.update(zip(equation.outvars, results, strict=True))
        return [read(atom) for atom in jaxpr.outvars]

    def type_of(var: Any) -> Any:
        aval = aval_of(var)
        if not is_floating(aval):
            return aval
        target = np.result_type(dtype, np.complex64) if aval.dtype.kind == "c" else dtype
        return jax.ShapeDtypeStruct(aval.shape, target)

    made = jax.make_jaxpr(run)(*map(type_of, jaxpr.invars))
    if isinstance(function, ClosedJaxpr):
        return with_constants(open_jaxpr(made), made.consts)
    return open_jaxpr(made)
