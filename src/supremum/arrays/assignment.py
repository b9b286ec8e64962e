"""Assignment into arrays, which keep their dtype: in-place operators, `out=`, and elements."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from typing import Any

from supremum.arrays.backend_errors import computation_errors
from supremum.arrays.backends import Backend, Key, Raw
from supremum.arrays.backends.base import array_key
from supremum.arrays.backends.kernels import caster_of
from supremum.arrays.backends.numpy import NUMPY, holds_range
from supremum.arrays.calls import Function, Prepared, PreparedCall
from supremum.arrays.errors import InPlaceError, RuntimeDtypeError
from supremum.arrays.fix_trials import Trial, no_fix, with_operands
from supremum.arrays.wrapped import (
    KeyedRaw,
    WrappedArray,
    as_key,
    common_backend,
    holds_value,
    new_array,
    operands_of,
    wrap,
    wrong_library,
)
from supremum.decisions import Decision, PromotionError, Verdict
from supremum.errors import ArgumentError, OperandError
from supremum.formats import DType, Format, as_format
from supremum.number_conversion import fits
from supremum.operations import ASSIGN, OPERATIONS
from supremum.rules import JAX_ALIASES, RuleSet, RulesLike, Storing, get_rules
from supremum.typing import ArrayLike, SupportsArray


def assign_result(array: WrappedArray, result: WrappedArray, name: str, inputs: Sequence[Any]) -> WrappedArray:
    """The left side after an in-place operator: the changed array, or a new one if the library's arrays are immutable.

    Args:
        array: the left side.
        result: the result of the operation.
        name: of the operation.
        inputs: its operands.

    Raises:
        InPlaceError: if the rules do not store the result in the dtype of the array, or it is out of range.
        ArgumentError: if the result has a different shape.
    """
    if array.weak_type:
        return result  # a weak array has no dtype to keep
    raw = stored(array, result, name, inputs)
    if not array.backend.mutable:
        return result if raw is result.unwrap() else new_array(raw, array.backend.key_of(raw))
    _write(array, raw, name, inputs)
    return array


def _write(array: WrappedArray, raw: Raw, name: str, inputs: Sequence[Any]) -> None:
    """Write into all elements of an array, whose memory may be read-only.

    Args:
        array: the array.
        raw: the elements.
        name: of the operation.
        inputs: its operands.

    Raises:
        ComputationError: if the library does not write.
    """
    with computation_errors(name, array.backend, *inputs, out=array):
        array.unwrap()[...] = raw


def stored(
    array: WrappedArray, result: WrappedArray, name: str, inputs: Sequence[Any], storing: Storing | None = None
) -> Any:
    """The result of an operation, in the form in which an array stores it.

    Args:
        array: the array that it is written into.
        result: the result.
        name: of the operation.
        inputs: its operands; empty if the rules decide about the result alone.
        storing: what may be stored; None for what the rules in force store.

    Raises:
        InPlaceError: if the rules do not store it, or it is out of range.
        LibraryError: if it is from a different library.
        ArgumentError: if it has a different shape.
    """
    if result.backend is not array.backend:
        raise wrong_library(f"the result of {name} in place", array.backend, result.backend)
    if result.shape != array.shape:
        raise ArgumentError(
            f"the result of {name} in place must have the array's shape {array.shape}, got {result.shape}"
        )
    if result.dtype == array.dtype:
        return result.unwrap()
    if inputs and name in OPERATIONS:
        decision = _raise_if_refused(_decide_storing(array, name, inputs, storing))
    else:  # only the result is known, which no cast of the operands changes
        result_alone = _decide_storing(array, None, (result,), storing)
        decision = _raise_if_refused(replace(result_alone, find_fix=no_fix))
    return _cast(array.dtype, result.unwrap(), array.backend, decision, storing or _rules_of(array))


@contextmanager
def refused_in_place(
    array: WrappedArray, name: str, inputs: Sequence[Any], storing: Storing | None = None
) -> Generator[None]:
    """Make refusals in a block suggest casts of the other operands, and not of the array that is written into.

    That array keeps its dtype, so a cast of it would change nothing.

    Args:
        array: the array.
        name: of the operation.
        inputs: its operands.
        storing: what may be stored; None for what the rules in force store.
    """
    try:
        yield
    except (PromotionError, RuntimeDtypeError) as error:
        if error.decision is not None:
            error.decision = _decide_storing(array, name, inputs, storing)
        raise


def write_result(
    out: SupportsArray, function: str, name: str, inputs: Sequence[Any], compute: Callable[[], Any]
) -> Any:
    """Write the result of a function into an array, and return the array as it was given.

    Args:
        out: an array, wrapped or not.
        function: the function as users write it.
        name: of its operation.
        inputs: the operands of the operation; empty if the rules decide about the result alone.
        compute: returns the result, or `NotImplemented`.

    Raises:
        InPlaceError: if the rules do not store the result in the dtype of the array, or it is out of range.
        LibraryError: if it is from a different library.
        OperandError: for an array that is immutable.
        ArgumentError: if the result has a different shape.
    """
    kept = wrap(out)
    result = f"{function}(...)"
    check_mutable(kept, f"x = {result} without out=, or x = x.at[...].set({result}) to keep the dtype of x")
    with refused_in_place(kept, name, inputs) if inputs else nullcontext():
        output = compute()
    if output is not NotImplemented:
        _write(kept, stored(kept, output, name or function, inputs), function, inputs)
        output = out
    return output


def check_mutable(array: WrappedArray, instead: str) -> None:
    """Raise for an array that cannot be written to.

    Args:
        array: the array.
        instead: what to use instead, for the error.

    Raises:
        OperandError: if its library has immutable arrays.
    """
    backend: Any = array.key.backend
    if not backend.mutable:
        raise OperandError(f"arrays of JAX are immutable; use {instead}")


def _assignment(array: WrappedArray, value: Any) -> tuple[Sequence[Any], Mapping[str, Any]]:
    """A value that is written into an array, as an array of its library with its dtype, or as a float that fits it.

    Args:
        array: the array.
        value: an array of the same library or of NumPy, or a Python number.

    Raises:
        InPlaceError: if the rules do not store it, or it is out of range.
        LibraryError: for an array of a different library.
    """
    return (array, value), {}


class _Store(Function):
    """Takes an array and a value, and returns the value as an array stores it.

    Args:
        storing: what may be stored; None for what the rules in force store.
    """

    operands = 2

    def __init__(self, storing: Storing | None) -> None:
        self._storing = storing
        super().__init__("assignment", _assignment)

    def prepare(self, rules_like: RulesLike, args: Sequence[Any], options: Mapping[str, Any]) -> PreparedCall:  # noqa: ARG002
        """Decide, and prepare the conversion of the value."""
        array, value = args
        storing, (raw, key) = self._storing, _key_of_value(array, value)
        value = raw if key.backend is None else value
        decision = _raise_if_refused(_decide_storing(array, ASSIGN.name, (value,), storing))
        backend, dtype, library = array.backend, array.dtype, key.backend

        def accept_number(destination: Raw, number: Any) -> Any:
            # Numbers share what is prepared, whether they fit or not. A comparison takes less time than `fits`.
            is_usual = number.__class__ is not complex and low <= number <= high
            if not is_usual and not fits(number, row):
                _raise_if_refused(_decide_storing(wrap(destination), ASSIGN.name, (number,), storing))
            return caster(number)

        def accept_float(destination: Raw, number: float) -> Any:
            return number if low <= number <= high else accept_number(destination, number)

        def accepted(destination: Raw, raw: Raw) -> Raw:
            if library is None:
                raw = accept_number(destination, raw)
            elif key.dtype != dtype:
                raw = _cast(dtype, raw, library, decision, rules)
            is_ready = backend is NUMPY or library is backend
            return raw if is_ready else backend.asarray(raw, device=backend.device_of(destination))

        in_force = _rules_of(array)
        row, caster, rules = as_format(dtype), caster_of(dtype), storing or in_force
        low, high = row.min, row.max
        # NumPy itself rounds a float that becomes an element, in less time; it would warn about infinities.
        is_rounded = storing is None and backend is NUMPY and row.is_builtin and type(value) is float
        accept = accept_float if is_rounded and row.category == "float" else accepted
        follows_flags = backend.in_jax and rules_like in JAX_ALIASES
        reads_value = in_force.reads_values and holds_value(key)
        raws = array.unwrap(), raw
        return (Prepared(partial(accept, *raws)), ()) if follows_flags or reads_value else (Prepared(accept), raws)


value_to_store: Callable[..., Any] = _Store(None).call
kept_value: Callable[..., Any] = _Store(Storing.KEPT).call


def change_elements(array: WrappedArray, name: str, value: ArrayLike, change: Callable[[Raw, Raw], Raw]) -> Raw:
    """An array after an operation on some elements and a value, in the dtype of the array.

    Args:
        array: the array.
        name: of the operation.
        value: its other operand: an array of the same library or of NumPy, or a Python number.
        change: makes the changed array from an array and the value, both in the dtype of the computation.

    Raises:
        InPlaceError: if the rules do not store the result, or the value or the result is out of range.
        LibraryError: for an array of a different library.
    """
    raw, key = _key_of_value(array, value)
    backend = array.backend
    own = array_key(backend, array.dtype, False, array.key.zero_d, array.key.device)  # the dtype stays, weak or not
    operands = (array, raw if key.backend is None else value)
    decision = _raise_if_refused(_decide_storing(array, name, operands, None, own))
    computed = decision.verdict.compute[1]
    # Operations on bools depend only on whether values are zero.
    if as_format(computed).category != "bool" and not _is_in_range(key, raw, as_format(computed)):
        raise InPlaceError(_refuse_values(decision, f"b is out of range of {computed}"))
    if key.backend is backend:
        operand = backend.astype(raw, computed, copy=False)
    else:
        host = caster_of(computed)(raw) if key.backend is None else NUMPY.astype(raw, computed)
        operand = backend.asarray(host, device=array.device)
    result = change(backend.astype(array.unwrap(), decision.verdict.compute[0], copy=False), operand)
    return _cast(array.dtype, result, backend, decision, _rules_of(array))


def _rules_of(array: WrappedArray) -> RuleSet:
    return get_rules(in_jax=array.backend.in_jax)


def check_fits(array: WrappedArray, name: str, value: ArrayLike) -> None:
    """Raise if a value is out of range of the dtype of an array, even if operators would wrap it around.

    The value is a Python number, or an array of a wider dtype that the rules convert to this one, as 0-d arrays under
    PyTorch's and Paddle's rules. Values that JAX traces are not checked.

    Args:
        array: the array.
        name: of the operation.
        value: a Python number or an array.

    Raises:
        InPlaceError: if it is out of range.
    """
    row, rules = as_format(array.dtype), _rules_of(array)
    keyed_raw = as_key(value, rules)
    if keyed_raw is not None and not _is_in_range(keyed_raw[1], keyed_raw[0], row):
        raw, key = keyed_raw
        operands = operands_of((array.key, key), (array.unwrap(), raw), rules)
        decision = rules.decide(name, operands, array.key.operand)
        raise InPlaceError(_refuse_values(decision, f"b is out of range of {row}, and the array keeps its dtype"))


def _is_in_range(key: Key, raw: Any, row: Format) -> bool:
    """Whether a Python number or all values of an array are in range; True for values that JAX traces."""
    if key.backend is None:
        return fits(raw, row)
    if key.backend.is_traced(raw) or row.holds(key.operand.format):
        return True
    return holds_range(key.backend.numpy(raw), row)


def _key_of_value(array: WrappedArray, value: Any) -> KeyedRaw:
    keyed_raw = as_key(value, _rules_of(array))
    if keyed_raw is None:
        raise OperandError(f"the value must be an array or a Python number, got {type(value).__name__}")
    key = keyed_raw[1]
    if key.backend is not None and common_backend((array.key, key), ASSIGN.name) is not array.backend:
        raise wrong_library("the value", array.backend, key.backend)
    return keyed_raw


def _decide_storing(
    array: WrappedArray, name: str | None, values: Sequence[Any], storing: Storing | None, own: Key | None = None
) -> Decision:
    """The decision to write into an array.

    Args:
        array: the array.
        name: of the operation.
        values: its operands; anything but arrays and numbers is ignored.
        storing: what may be stored; None for what the rules in force store.
        own: a key that replaces the key of the first operand; None to keep it.
    """
    rules = _rules_of(array)
    triples = [(value, *keyed_raw) for value in values if (keyed_raw := as_key(value, rules)) is not None]
    raws, keys = [raw for _, raw, _ in triples], [key for _, _, key in triples]
    if own is not None:
        keys[0] = own
    operands = operands_of(keys, raws, rules)
    decision = rules.decide(name, operands, array.key.operand, storing, runtime=Trial(keys))
    return with_operands(decision, [value for value, _, _ in triples])


def _raise_if_refused(decision: Decision) -> Decision:
    """The decision, unless it is a refusal.

    Raises:
        InPlaceError: if it is a refusal.
    """
    if not decision:
        raise InPlaceError(decision)
    return decision


def _cast(dtype: DType, raw: Raw, library: Backend, decision: Decision, rules: RuleSet | Storing) -> Raw:
    """The array `raw` in the dtype of the array that stores it.

    Raises:
        InPlaceError: for values that are out of range, and for traced integers, which cannot be checked.
    """
    source, target = library.key_of(raw).operand.format, as_format(dtype)
    if not target.holds(source):
        if library.is_traced(raw):
            is_integer = source.category == target.category == "integer"
            how = rules
            if isinstance(rules, RuleSet):
                how = rules.item if decision.operation == ASSIGN.name else rules.in_place
            # Operators do not check integers either that the rules convert to a narrower dtype.
            if is_integer and how is not Storing.KEPT:
                raise InPlaceError(_refuse_values(decision, f"traced values may be out of range of {target}"))
        elif not holds_range(library.numpy(raw), target):
            raise InPlaceError(_refuse_values(decision, f"some values are out of range of {target}"))
    return library.astype(raw, dtype, copy=False)


def _refuse_values(decision: Decision, why: str) -> Decision:
    """The same decision, refused because of the values, which no cast changes."""
    return replace(decision, verdict=Verdict.refuse(*decision.reason, why, overflow=True), find_fix=no_fix)
