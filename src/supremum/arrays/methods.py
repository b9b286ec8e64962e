"""Methods of `Array` that are functions of NumPy with the same names, under the rules in force."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from supremum.arrays.backend_errors import raise_computation_error
from supremum.arrays.dispatch import Function
from supremum.arrays.functions.reductions import REDUCTION_FUNCTIONS
from supremum.arrays.numpy_functions import route


def method(name: str, standard: Function | None = None) -> Callable[..., Any]:
    """The method with the name of a function of NumPy, and with its arguments after the first.

    Args:
        name: of the function.
        standard: the standard's function, which is called in fewer steps if its options are enough; None to look among
            the reductions.
    """
    function, direct = getattr(np, name), standard or REDUCTION_FUNCTIONS.get(name)
    options_of_standard = {*inspect.signature(direct.arguments).parameters} if direct else set[str]()

    def call(self: Any, *args: Any, **options: Any) -> Any:
        if direct is not None and not args and (not options or options.keys() <= options_of_standard):
            return direct.call(self, **options)
        try:
            return route(function, (self, *args), options)
        except Exception as error:
            raise_computation_error(name, self.backend, (self, *args), options, error)
            raise

    plain = inspect.signature(function)
    first, *rest = plain.parameters.values()
    self = first.replace(name="self", kind=inspect.Parameter.POSITIONAL_ONLY)
    vars(call)["__signature__"] = plain.replace(parameters=[self, *rest], return_annotation="Array")
    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"""`np.{name}` of this array, as the rules in force decide; the arguments are those of NumPy.

        Raises:
            OperandError: for arguments that the Python array API standard does not have.
            ComputationError: if the library fails to compute it.
        """
    return call


def refused(name: str, instead: str) -> property:
    """A method that libraries disagree about.

    Args:
        name: of the method.
        instead: what to use instead, for the error.
    """

    def raise_error(_: Any) -> Any:
        raise AttributeError(f"an Array has no method {name}(), which changes arrays in some libraries; use {instead}")

    raise_error.__doc__ = f"Raise, as libraries disagree about `{name}`; use `{instead}`."
    return property(raise_error)
