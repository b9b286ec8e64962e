"""Writing into arrays: results of in-place operators and of `out=`, and values of elements. The dtype stays."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from supremum.arrays.backends import Backend, Key, Raw
from supremum.arrays.backends.base import array_key
from supremum.arrays.backends.kernels import caster_of
from supremum.arrays.backends.numpy import NUMPY, holds_range
from supremum.arrays.errors import InPlaceError, LibraryError, RuntimeDtypeError
from supremum.arrays.fix_trials import Trial, retyped
from supremum.arrays.operand_keys import as_key, common_backend, operands_of
from supremum.arrays.wrapped import KeyedRaw, WrappedArray
from supremum.decisions import Decision, Fix, PromotionError, Verdict
from supremum.errors import ArgumentError, OperandError, shown
from supremum.formats import Format, as_format
from supremum.operands import Operand
from supremum.operations import ASSIGN, OPERATIONS
from supremum.rules import RuleSet, Storing, fits, get_rules


def assigned(array: WrappedArray, result: KeyedRaw, name: str, inputs: Sequence[Any]) -> KeyedRaw:
    """What an operator that assigns leaves on its left: the array, changed, or a new one where it cannot be changed.

    Args:
        array: what stands on the left.
        result: what the operation gave.
        name: of the operation.
        inputs: what it was given.

    Returns:
        The array of the library, which is the one that `array` wraps if that was written to, and its key.

    Raises:
        InPlaceError: if the rules do not store the result in the dtype of the array, or it is out of range of that.
        ArgumentError: if it has another shape.
    """
    if array.weak_type:
        return result  # the array has no dtype of its own that it could keep
    raw = stored(array, result, name, inputs)
    if not array.backend.mutable:
        return result if raw is result[0] else (raw, array.backend.key_of(raw))
    array.unwrap()[...] = raw
    return array.unwrap(), array.key


def stored(
    array: WrappedArray, result: KeyedRaw, name: str, inputs: Sequence[Any], storing: Storing | None = None
) -> Raw:
    """The result of an operation as it is stored in an array.

    Args:
        array: what it is written into.
        result: what the operation gave.
        name: of the operation.
        inputs: what it was given.
        storing: what may be stored; None for what the rules in force store.

    Raises:
        InPlaceError: if the rules do not store it, or it is out of range.
        LibraryError: if it is from another library.
        ArgumentError: if it has another shape.
    """
    raw, key = result
    assert key.backend is not None
    if key.backend is not array.backend:
        raise LibraryError(
            f"{name} in place gives an array of {key.backend.name}, and what is assigned to is from "
            f"{array.backend.name}: give supremum.namespace({shown(array.backend.name)}).asarray(b)"
        )
    if (shape := tuple(raw.shape)) != array.shape:
        raise ArgumentError(f"{name} in place gives the shape {shape}, and what is assigned to has {array.shape}")
    if key.dtype == array.dtype:
        return raw
    if name in OPERATIONS:
        decision = _raise_if_refused(_decided(array, name, inputs, storing))
    else:  # of a function without a row in the table only the result is known, and no cast by the user changes it
        decision = _raise_if_refused(
            replace(_decided(array, None, (WrappedArray(raw, key),), storing), find_fix=_no_fix)
        )
    return _cast(array, raw, array.backend, decision, storing)


@contextmanager
def refused_in_place(
    array: WrappedArray, name: str, inputs: Sequence[Any], storing: Storing | None = None
) -> Generator[None]:
    """Make refusals in a block suggest casts of other operands than the array that is written into.

    That array keeps its dtype, so a cast of it would change nothing.

    Args:
        array: what is written into.
        name: of the operation.
        inputs: what it is given.
        storing: what may be stored; None for what the rules in force store.
    """
    try:
        yield
    except (PromotionError, RuntimeDtypeError) as error:
        if error.decision is not None:
            error.decision = _decided(array, name, inputs, storing)
        raise


def accepted_value(array: WrappedArray, value: Any, storing: Storing | None = None) -> Raw:
    """A value to be written into an array, in its dtype and from its library.

    Args:
        array: what is assigned to.
        value: an array of the same library or of NumPy, or a Python number.
        storing: what may be stored; None for what the rules in force store.

    Raises:
        InPlaceError: if the rules do not store it, or it is out of range.
        LibraryError: for an array of another library.
    """
    raw, key = _key_of_value(array, value)
    decision = _raise_if_refused(_decided(array, ASSIGN.name, (value,), storing))
    if key.backend is None:
        return array.backend.asarray(caster_of(array.dtype)(value), device=array.device)
    cast = _cast(array, raw, key.backend, decision, storing)
    return cast if key.backend is array.backend else array.backend.asarray(cast, device=array.device)


def changed(array: WrappedArray, name: str, value: Any, change: Callable[[Raw, Raw], Raw]) -> Raw:
    """An array of JAX after an operation on some elements and a value.

    Args:
        array: the array.
        name: of the operation.
        value: its other operand: an array of the same library or of NumPy, or a Python number.
        change: gives the changed array, of an array and the value in the dtype in which it is computed.

    Raises:
        InPlaceError: if the rules do not store the result, or the value or the result is out of range.
        LibraryError: for an array of another library.
    """
    raw, key = _key_of_value(array, value)
    backend = array.backend
    own = array_key(backend, array.dtype, False, array.key.zero_d, array.key.device)  # the dtype stays, weak or not
    decision = _raise_if_refused(_decided(array, name, (array, value), None, own))
    computed = decision.verdict.compute[1]
    if not _is_in_range(key, raw, as_format(computed)):
        raise InPlaceError(_refuse_values(decision, f"b is out of range of {computed}"))
    if key.backend is None:
        given = backend.asarray(caster_of(computed)(value), device=array.device)
    elif key.backend is backend:
        given = backend.astype(raw, computed, copy=False)
    else:
        given = backend.asarray(NUMPY.astype(raw, computed), device=array.device)
    result = change(backend.astype(array.unwrap(), decision.verdict.compute[0], copy=False), given)
    return _cast(array, result, backend, decision, None)


def _rules_of(array: WrappedArray) -> RuleSet:
    return get_rules(in_jax=array.backend.in_jax)


def check_fits(array: WrappedArray, name: str, value: Any) -> None:
    """Raise if a value is out of range of the dtype of an array, also where operators would wrap it around.

    The value is a Python number, or an array of a wider dtype that gives way to this one, as 0-d arrays do under
    PyTorch's and Paddle's rules. Values that JAX is tracing are not checked.

    Args:
        array: what is assigned to.
        name: of the operation.
        value: a Python number or an array.

    Raises:
        InPlaceError: if it is out of range.
    """
    row, rules = as_format(array.dtype), _rules_of(array)
    found = as_key(value, rules)
    if found is not None and not _is_in_range(found[1], found[0], row):
        raw, key = found
        operands = operands_of((array.key, key), (array.unwrap(), raw), rules)
        decision = rules.decide(name, operands, array.key.operand)
        raise InPlaceError(_refuse_values(decision, f"b is out of range of {row}, which what is assigned to keeps"))


def _is_in_range(key: Key, raw: Raw, row: Format) -> bool:
    """Whether a Python number or all values of an array are in range; True for values that JAX is tracing."""
    if key.backend is None:
        return fits(raw, row)
    if key.backend.is_traced(raw) or row.holds(key.operand.format):
        return True
    return holds_range(key.backend.numpy(raw), row)


def _key_of_value(array: WrappedArray, value: Any) -> KeyedRaw:
    found = as_key(value, _rules_of(array))
    if found is None:
        raise OperandError(f"a {type(value).__name__} cannot be assigned to an Array: give an array or a Python number")
    key = found[1]
    if key.backend is not None and common_backend((array.key, key), ASSIGN.name) is not array.backend:
        raise LibraryError(
            f"an array of {key.backend.name} cannot be assigned to one of {array.backend.name}: give "
            f"supremum.namespace({shown(array.backend.name)}).asarray(b)"
        )
    return found


def _decided(
    array: WrappedArray, name: str | None, values: Sequence[Any], storing: Storing | None, own: Key | None = None
) -> Decision:
    """The decision to write into an array.

    Args:
        array: the array.
        name: of the operation.
        values: its operands; those that are neither arrays nor numbers are ignored.
        storing: what may be stored; None for what the rules in force store.
        own: the key that replaces that of the first operand; None to keep it.
    """
    rules = _rules_of(array)
    given = [(value, *found) for value in values if (found := as_key(value, rules)) is not None]
    raws, keys = [raw for _, raw, _ in given], [key for _, _, key in given]
    if own is not None:
        keys[0] = own
    operands = operands_of(keys, raws, rules)
    decision = rules.decide(name, operands, array.key.operand, storing, runtime=Trial(keys))
    return retyped(decision, [value for value, _, _ in given])


def _raise_if_refused(decision: Decision) -> Decision:
    """The decision, unless it is a refusal.

    Raises:
        InPlaceError: if it is a refusal.
    """
    if not decision:
        raise InPlaceError(decision)
    return decision


def _cast(array: WrappedArray, raw: Raw, library: Backend, decision: Decision, storing: Storing | None) -> Raw:
    """An array of a library in the dtype of the array that it is stored in.

    Raises:
        InPlaceError: for values that are out of range, and for traced values, which cannot be checked.
    """
    source, target = library.key_of(raw).operand.format, as_format(array.dtype)
    if not target.holds(source):
        if library.is_traced(raw):
            is_integer = source.category == target.category == "integer"
            rules = _rules_of(array)
            how = storing or (rules.item if decision.operation == ASSIGN.name else rules.in_place)
            # Operators do not check integers that the rules promote to narrower ones either.
            if is_integer and how is not Storing.KEPT:
                raise InPlaceError(
                    _refuse_values(decision, f"JAX is tracing values that may be out of range of {target}")
                )
        elif not holds_range(library.numpy(raw), target):
            raise InPlaceError(_refuse_values(decision, f"it holds values that are out of range of {target}"))
    return library.astype(raw, target.dtype, copy=False)


def _refuse_values(decision: Decision, why: str) -> Decision:
    """The same decision, refused because of the values, which no cast keeps."""
    return replace(decision, verdict=Verdict.refuse(*decision.reason, why, overflow=True), find_fix=_no_fix)


def _no_fix(_operands: tuple[Operand, ...]) -> Fix | None:
    return None
