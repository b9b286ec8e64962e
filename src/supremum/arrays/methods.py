"""Methods of `Array` that call a function, under the rules in force."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from supremum.arrays.numpy_functions import NumpyFunction
from supremum.arrays.numpy_signatures import numpy_signature


def method(name: str) -> Callable[..., Any]:
    """The method with the name of a function of NumPy, and with its arguments after the first.

    Args:
        name: of the function.
    """
    function = getattr(np, name)

    def call(self: Any, /, *args: Any, **options: Any) -> None: ...

    plain = numpy_signature(function)
    first, *rest = plain.parameters.values()
    self = first.replace(name="self", kind=inspect.Parameter.POSITIONAL_ONLY)
    call.__annotations__ = {}
    vars(call)["__signature__"] = plain.replace(parameters=[self, *rest])
    call.__doc__ = f"""`np.{name}` of this array, as the rules in force decide; the arguments are those of NumPy.

        Raises:
            OperandError: for arguments that the Python array API standard does not have.
            ComputationError: if the library fails to compute it.
        """
    return NumpyFunction(function, call).call


def missing_method(name: str, instead: str) -> property:
    """A method that libraries disagree about.

    Args:
        name: of the method.
        instead: what to use instead, for the error.
    """

    def raise_error(_: Any) -> Any:
        raise AttributeError(f"an Array has no method {name}(), which changes arrays in some libraries; use {instead}")

    raise_error.__doc__ = f"Raise, as libraries disagree about `{name}`; use `{instead}`."
    return property(raise_error)
