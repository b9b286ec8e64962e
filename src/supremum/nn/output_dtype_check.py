"""Check that a layer's outputs are in its compute dtype.

Keras RFC 293, mixed precision, "TypeErrors": if an array in `call` has a different dtype, TensorFlow raises. JAX
promotes instead, and the rest of the network is silently float32.
"""

from __future__ import annotations

from typing import Any
from weakref import WeakSet

import jax

from supremum.errors import ArgumentError, shown
from supremum.formats import DType, Kind, as_format
from supremum.jaxprs import aval_of, line_of, walk
from supremum.mixed_precision import PolicyWarning
from supremum.nn.array_arguments import split_arrays
from supremum.nn.call_stack import CallFrame, running_path
from supremum.nn.input_casting import floating_dtypes
from supremum.nn.scopes import declaring
from supremum.user_frame import warn_user


class MixedDtypeError(ArgumentError):
    """A strict layer returned a real floating dtype that differs from its compute dtype."""


class MixedDtypeWarning(PolicyWarning):
    """A layer returned a real floating dtype that differs from its compute dtype."""


_warned: WeakSet[Any] = WeakSet()


def check_output_dtype(layer: Any, frame: CallFrame, args: Any, kwargs: dict[str, Any], outputs: Any) -> None:
    """Warn, once for each layer, about outputs that are not in the compute dtype.

    Args:
        layer: the layer that has just returned from `call`.
        frame: its call.
        args: its positional inputs.
        kwargs: its keyword inputs.
        outputs: its outputs. Integers, bools and complex numbers may have any dtype.

    Raises:
        MixedDtypeError: instead of the warning, if the layer or one around it is strict.
    """
    compute = layer.dtype_policy.compute_dtype
    if compute is None or as_format(compute).kind is not Kind.FLOAT:
        return
    others = floating_dtypes(outputs) - {compute, layer.dtype_policy.output_dtype}
    if not others or (layer in _warned and not frame.strict):
        return
    other = others.pop()
    line = _line_of_mixing(layer, args, kwargs, compute, other)
    message = (
        f"the layer must return its compute dtype {as_format(compute)}, got {as_format(other)}"
        f"{f' because {line}' if line else ''}; make arrays with self.zeros, self.constant, ..., or return "
        f"x.astype(self.compute_dtype); if this is intended, use the policy "
        f"'variable={as_format(layer.variable_dtype)},compute={as_format(compute)},output={as_format(other)}'"
    )
    if frame.strict:
        raise MixedDtypeError(message)
    _warned.add(layer)
    warn_user(f"{running_path()} ({shown(layer)}): {message}", MixedDtypeWarning)


def _line_of_mixing(layer: Any, args: Any, kwargs: dict[str, Any], compute: DType, other: DType) -> str:
    """Find the user's line that first produced the other dtype; empty if it cannot be found.

    This traces `call` once more, which happens once for each layer.
    """
    call, arrays = split_arrays(layer.call, (args, kwargs), lambda leaf: isinstance(leaf, jax.Array))
    try:
        with declaring():
            program = jax.make_jaxpr(call)(arrays)
    except Exception:
        return ""
    made = ""
    for site in walk(program):
        equation = site.equation
        if not any(getattr(aval_of(v), "dtype", None) == other for v in equation.outvars):
            continue
        made = made or line_of(equation)
        if any(getattr(aval_of(v), "dtype", None) == compute for v in equation.invars):
            return f"{line_of(equation)} turns {as_format(compute)} into {as_format(other)}"
    return f"{made} makes {as_format(other)}" if made else ""
