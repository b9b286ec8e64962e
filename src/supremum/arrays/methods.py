"""Methods of `Array` that call a function, under the rules in force."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np

from supremum.arrays.backend_errors import raise_computation_error
from supremum.arrays.dispatch import Deferred, Forwarding
from supremum.arrays.numpy_functions import Routed
from supremum.arrays.numpy_signatures import numpy_signature

A = TypeVar("A")
P = ParamSpec("P")


class _Method(Routed):
    """A function of NumPy as a method."""

    def examine(self, args: Sequence[Any], options: Mapping[str, Any]) -> Any:
        """As in the base class."""
        try:
            return super().examine(args, options)
        except Exception as error:
            raise_computation_error(self.name, args[0].backend, args, options, error)
            raise


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
    return _Method(function, call).call


class _Composed(Forwarding):
    """A method that is another function of the array and of the other arguments.

    Args:
        deferred: returns the call of that function.
        by_rank: as for `Function`.
    """

    def __init__(self, deferred: Callable[..., Deferred], *, by_rank: bool) -> None:
        self.by_rank = by_rank
        super().__init__(deferred.__name__, deferred)

    def deferred(self, args: Sequence[Any], options: Mapping[str, Any]) -> Deferred:
        """As in the base class."""
        return self.arguments(*args, **options)


def composed(
    *, by_rank: bool = False
) -> Callable[[Callable[Concatenate[A, P], Deferred]], Callable[Concatenate[A, P], A]]:
    """Make a method of a function that returns the call of another one.

    Args:
        by_rank: whether the call depends on how many dimensions the array has.
    """

    def make(deferred: Callable[Concatenate[A, P], Deferred]) -> Callable[Concatenate[A, P], A]:
        call = _Composed(deferred, by_rank=by_rank).call
        call.__annotations__["return"] = "Array"
        return call

    return make


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
