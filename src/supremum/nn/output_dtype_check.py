"""Layers whose outputs are not in their compute dtype, because something in `call` had a different one.

spec/keras-rfc-293-mixed-precision.md, "TypeErrors": where TensorFlow raises, JAX promotes, and the rest of the network
is silently float32.
"""

from __future__ import annotations

from typing import Any, Protocol
from weakref import WeakSet

import jax

from supremum.errors import ArgumentError, shown
from supremum.formats import DType, Kind, as_format
from supremum.jaxprs import aval_of, line_of, walk
from supremum.mixed_precision import Policy, PolicyWarning
from supremum.nn.array_arguments import split_arrays
from supremum.nn.call_stack import CallFrame, running_path
from supremum.nn.input_casting import floating_dtypes
from supremum.nn.scopes import declaring
from supremum.user_frame import warn_user


class MixedDtypeError(ArgumentError):
    """A strict layer returned a real floating dtype that differs from its compute dtype."""


class MixedDtypeWarning(PolicyWarning):
    """A layer returned a real floating dtype that differs from its compute dtype."""


class CheckedLayer(Protocol):
    """What the check needs to know of a layer."""

    @property
    def dtype_policy(self) -> Policy:
        """Its policy."""
        ...

    @property
    def variable_dtype(self) -> DType:
        """The dtype its weights are stored in."""
        ...

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """What it computes."""
        ...


_warned: WeakSet[CheckedLayer] = WeakSet()


def check_output_dtype(layer: CheckedLayer, frame: CallFrame, args: Any, kwargs: dict[str, Any], outputs: Any) -> None:
    """Warn, once for each layer, of outputs that are not in the compute dtype.

    Args:
        layer: the layer, whose `call` has just returned.
        frame: its call.
        args: what it was given.
        kwargs: likewise.
        outputs: what it returned. Integers, bools and complex numbers may be what they are.

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
        f"it computes in {as_format(compute)} and returned {as_format(other)}"
        f"{f', since {line}' if line else ''}: make arrays with self.zeros, self.constant, ..., which are "
        f"{as_format(compute)}, or return x.astype(self.compute_dtype); where it is meant, let the policy say so: "
        f"'variable={as_format(layer.variable_dtype)},compute={as_format(compute)},output={as_format(other)}'"
    )
    if frame.strict:
        raise MixedDtypeError(message)
    _warned.add(layer)
    warn_user(f"{running_path()} ({shown(layer)}): {message}", MixedDtypeWarning)


def _line_of_mixing(layer: CheckedLayer, args: Any, kwargs: dict[str, Any], compute: DType, other: DType) -> str:
    """The user's line that first brought something to the other dtype; empty where it cannot be found.

    `call` is traced once more for it, which happens once in the life of a layer.
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
