"""Assigning to arrays: what the rules bring to the dtype that is there, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from supremum.arrays.backends import Raw
from supremum.arrays.backends.numpy import NUMPY, holds_range
from supremum.arrays.backends.preparing import caster_of
from supremum.arrays.dispatch import NUMBERS, accepted, common_backend, operands_of, seen
from supremum.arrays.errors import InPlaceError, LibraryError
from supremum.decisions import Conversion
from supremum.errors import ArgumentError, OperandError
from supremum.formats import as_format
from supremum.operands import as_operand
from supremum.rules import get_rules
from supremum.rules.values import fits, stores

if TYPE_CHECKING:
    from supremum.arrays.array import Array


def assigned(array: Array, result: Array, name: str, other: Any) -> Array:
    """What an operator that assigns gives: the array, changed, or a new one where the library never changes its own.

    Args:
        array: what stands on the left.
        result: what the operation gave.
        name: of the operation.
        other: what stands on the right, for the error.

    Raises:
        InPlaceError: if the result has another dtype.
        ArgumentError: if it has another shape.
    """
    if array.weak_type:
        return result  # it has no dtype of its own that it could keep
    check_kept(array, result, name, other)
    if not array.backend.mutable:
        return result
    array.unwrap()[...] = result.unwrap()
    return array


def check_kept(array: Array, result: Array, name: str, other: Any) -> None:
    """Refuse a result that cannot stand in the place of an array.

    Raises:
        InPlaceError: if it has another dtype.
        LibraryError: if it is from another library.
        ArgumentError: if it has another shape.
    """
    if result.backend is not array.backend:
        raise LibraryError(
            f"{name} in place gives an array of {result.backend.name}, and what is assigned to is from "
            f"{array.backend.name}: give supremum.namespace({array.backend.name!r}).asarray(b)"
        )
    if result.dtype != array.dtype:
        raise in_place_error(array, name, other, f"gives {result.dtype}")
    if result.shape != array.shape:
        raise ArgumentError(
            f"{name} in place gives the shape {result.shape}, and what is assigned to has {array.shape}"
        )


def in_place_error(array: Array, name: str, other: Any, what: str) -> InPlaceError:
    """The refusal of an assignment, with what would work."""
    operand = as_operand(other)
    is_castable = operand.value is None or stores(operand.value, as_format(array.dtype), may_cut=True)
    cast = f", or cast first, with {Conversion.of(1, operand, array.dtype)}" if is_castable else ""
    return InPlaceError(
        f"{name} in place: {array.dtype} with {operand} {what} under the rules {get_rules().name}, and what is "
        f"assigned to keeps {array.dtype}: give the result a name of its own{cast}"
    )


def accepted_value(array: Array, value: Any) -> Raw:
    """A value to be written into an array, in its dtype and from its library.

    Args:
        array: what is assigned to.
        value: an array of the same library or of NumPy, or a Python number.

    Raises:
        InPlaceError: if the rules lead to another dtype, or a Python number does not fit.
        PromotionError: if they refuse.
        LibraryError: for an array of another library.
    """
    rules = get_rules()
    found = seen(value, rules)
    if found is None:
        raise OperandError(f"a {type(value).__name__} cannot be assigned to an Array: give an array or a Python number")
    key, raw = found
    if key.backend is not None and common_backend((array.key, key), "assign") is not array.backend:
        raise LibraryError(
            f"an array of {key.backend.name} cannot be assigned to one of {array.backend.name}: give "
            f"supremum.namespace({array.backend.name!r}).asarray(b)"
        )
    (operand,) = operands_of([key], [raw], rules)
    # What a runtime would hold the type in makes no difference to an array that is there: this does not look at it.
    decided = accepted(rules.decide("promote_types", (array.key.operand, operand))).dtype
    if decided != array.dtype:
        raise in_place_error(array, "assign", value, f"meets in {decided}")
    check_fits(array, "assign", value)
    if key.backend is None:
        return array.backend.asarray(caster_of(decided)(value), device=array.device)
    if key.backend is not array.backend:
        return array.backend.asarray(NUMPY.astype(raw, decided), device=array.device)
    return array.backend.astype(raw, decided, copy=False)


def check_fits(array: Array, name: str, value: Any) -> None:
    """Refuse what is out of range of the dtype of an array, also where operators wrap it around.

    That is a Python number, or an array of a wider dtype that gives way to this one, as 0-d arrays do under PyTorch's
    and Paddle's rules. The values of an array that JAX is tracing cannot be looked at.

    Args:
        array: what is assigned to.
        name: of the operation.
        value: a Python number or an array.

    Raises:
        InPlaceError: if it is.
    """
    row = as_format(array.dtype)
    if type(value) in NUMBERS:
        is_in_range = fits(value, row)
    else:
        found = seen(value, get_rules())
        backend = None if found is None else found[0].backend
        if found is None or backend is None or backend.is_traced(found[1]) or row.holds(found[0].operand.format):
            return
        is_in_range = holds_range(backend.numpy(found[1]), row)
    if not is_in_range:
        raise in_place_error(array, name, value, "is out of range")
