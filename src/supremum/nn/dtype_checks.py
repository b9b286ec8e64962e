"""Warnings about dtypes in layers: narrowed inputs, variables that are not cast, and outputs in a different dtype.

Keras RFC 293, mixed precision, "TypeErrors": if an array in `call` has a different dtype, TensorFlow raises. JAX
promotes instead, and the rest of the network is silently float32.
"""

from __future__ import annotations

from typing import Any

import jax

from supremum.arrays import ArrayVariable
from supremum.errors import OperandError, shown
from supremum.formats import DType, Kind, as_format
from supremum.jaxprs import aval_of, line_of, split_arrays, walk
from supremum.mixed_precision import PolicyWarning
from supremum.nn.call_stack import CallFrame, running_path
from supremum.nn.functional.dtype_promotion import is_held_by_jax
from supremum.nn.scopes import declaring
from supremum.nn.variables import Variable
from supremum.rules import held_dtype
from supremum.typing import PyTree
from supremum.user_frame import warn_user


def warn_of_narrowing(layer: Any, dtypes: set[DType], target: DType | None) -> None:
    """Warn, once for each layer, about a cast of inputs that loses digits.

    Args:
        layer: the layer that casts them.
        dtypes: the dtypes of inputs that are wider than float32.
        target: the dtype they are cast to; None for the dtype that JAX silently narrows NumPy arrays to.
    """
    for dtype in dtypes:
        source, cast = as_format(dtype), as_format(held_dtype(dtype) if target is None else target)
        if not cast.holds(source) and "narrowing" not in layer._past_warnings:
            layer._past_warnings.add("narrowing")
            follow = f"use dtype='infer' to follow them or dtype='{source}' to always compute in that; "
            enable = "call jax.config.update('jax_enable_x64', True) to let JAX hold them; "
            warn_user(
                f"{running_path()} ({shown(layer)}) narrows its {source} inputs to {cast}: "
                f"{'' if target is None else follow}{'' if is_held_by_jax(dtype) else enable}"
                f"or cast with x.astype('{cast}') if this is intended",
                PolicyWarning,
            )


def warn_if_not_cast(layer: Any, name: str, variable: Variable | ArrayVariable, compute_dtype: DType | None) -> None:
    """Warn about a floating variable that a layer does not cast, although it casts its weights.

    Args:
        layer: the layer.
        name: the attribute of the layer.
        variable: the variable, which was not made by `add_weight`.
        compute_dtype: the dtype that the layer casts its weights to; None if it does not cast them.
    """
    row = as_format(variable.dtype)
    if compute_dtype is not None and row.kind is Kind.FLOAT:
        warn_user(
            f"{shown(layer)}.{name} is a {row} variable that `call` does not cast to {as_format(compute_dtype)}, so "
            f"`call` computes in {row}; make it with self.add_weight({shown(name)}, {tuple(variable.shape)}), or use "
            f"self.{name}.value.astype(self.compute_dtype)",
            PolicyWarning,
        )


class MixedDtypeError(OperandError):
    """A strict layer returned a real floating dtype that differs from its compute dtype.

    >>> import jax.numpy as jnp
    >>> from supremum import nn
    >>> class Careless(nn.Layer):
    ...     def call(self, x):
    ...         return x + jnp.ones(x.shape)
    >>> try:
    ...     Careless(dtype="mixed_bfloat16", strict=True)(jnp.ones(2))
    ... except nn.MixedDtypeError as error:
    ...     print(str(error).partition(":")[0])
    careless (Careless(dtype='mixed_bfloat16')), given float32[2]
    """


class MixedDtypeWarning(PolicyWarning):
    """A layer returned a real floating dtype that differs from its compute dtype.

    >>> import jax.numpy as jnp
    >>> import warnings
    >>> from supremum import nn
    >>> class Careless(nn.Layer):
    ...     def call(self, x):
    ...         return x + jnp.ones(x.shape)
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always", nn.MixedDtypeWarning)
    ...     outputs = Careless(dtype="mixed_bfloat16")(jnp.ones(2))
    >>> outputs.dtype, caught[0].category.__name__
    (dtype('float32'), 'MixedDtypeWarning')
    """


def warn_of_output_dtype(layer: Any, frame: CallFrame, args: PyTree, kwargs: dict[str, Any], other: DType) -> None:
    """Warn, once for each layer, about outputs that are not in the compute dtype.

    Args:
        layer: the layer that has just returned from `call`.
        frame: its call.
        args: its positional inputs.
        kwargs: its keyword inputs.
        other: the real floating dtype of an output, neither the compute dtype nor the policy's output dtype.

    Raises:
        MixedDtypeError: instead of the warning, if the layer or one around it is strict.
    """
    if "output" in layer._past_warnings and not frame.strict:
        return
    compute = layer.compute_dtype
    line = _line_of_mixing(layer, args, kwargs, compute, other)
    message = (
        f"the layer must return its compute dtype {as_format(compute)}, got {as_format(other)}"
        f"{f' because {line}' if line else ''}; make arrays with self.zeros, self.constant, ..., or return "
        f"x.astype(self.compute_dtype); if this is intended, use the policy "
        f"'variable={as_format(layer.variable_dtype)},compute={as_format(compute)},output={as_format(other)}'"
    )
    if frame.strict:
        raise MixedDtypeError(message)
    layer._past_warnings.add("output")
    warn_user(f"{running_path()} ({shown(layer)}): {message}", MixedDtypeWarning)


def _line_of_mixing(layer: Any, args: Any, kwargs: dict[str, Any], compute: DType, other: DType) -> str:
    """Find the user's line that first produced the other dtype; empty if it cannot be found.

    This traces `call` once more, which happens once for each layer.
    """
    arrays, with_arrays = split_arrays((args, kwargs), lambda leaf: isinstance(leaf, jax.Array))

    def call(arrays: list[jax.Array]) -> Any:
        positional, named = with_arrays(arrays)
        return layer.call(*positional, **named)

    try:
        with declaring():
            program = jax.make_jaxpr(call)(arrays)
    except Exception:
        return ""
    origin = ""
    for site in walk(program):
        equation = site.equation
        if not any(getattr(aval_of(v), "dtype", None) == other for v in equation.outvars):
            continue
        origin = origin or line_of(equation)
        if any(getattr(aval_of(v), "dtype", None) == compute for v in equation.invars):
            return f"{line_of(equation)} turns {as_format(compute)} into {as_format(other)}"
    return f"{origin} makes {as_format(other)}" if origin else ""
