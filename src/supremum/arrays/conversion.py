"""Conversion of numbers, lists and other arrays to arrays of a library, and to other dtypes and devices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from supremum.argument_checks import flag
from supremum.arrays.backends import Backend, backend_named, backend_of
from supremum.arrays.backends.numpy import NUMPY, narrowed
from supremum.arrays.wrapped import NUMBERS, WrappedArray, new_array, unwrapped
from supremum.data_frames import fix_of_missing_values
from supremum.errors import OperandError
from supremum.formats import CATEGORIES, FORMATS, DType, argument_dtype, as_format
from supremum.operands import TYPE_OF_CATEGORY, as_operand
from supremum.rules import SCOPE, RuleSet, get_rules
from supremum.typing import ArrayLike, DTypeLike, Scalar


def convert(
    data: ArrayLike, dtype: DTypeLike | None = None, *, library: str | Backend | None = None, device: object = None,
    copy: bool | None = None,
) -> Any:  # fmt: skip
    """An `Array` of a library made from anything that holds numbers, with the arguments of `asarray`.

    Raises:
        OperandError: for data that are not numbers.
        RuntimeDtypeError: for a dtype that the library does not have.
        OverflowError: for a number that does not fit the dtype.
    """
    if data.__class__ is list and (library is None or library is NUMPY) and dtype is device is copy is None:
        return of_list(cast("list[Any]", data))
    return _convert_data(data, dtype, library, device, copy)


def of_list(data: list[Any]) -> Any:
    """An array of NumPy made from a list. The types of its numbers determine the dtype, which is looked up by them.

    Args:
        data: the list.

    Raises:
        OperandError: for data that are not numbers.
        OverflowError: for a number that does not fit the dtype.
    """
    memory, kinds = SCOPE.get().memory, frozenset(map(type, data))
    key = memory.prepared.get((of_list, kinds))
    if key is not None:
        try:
            return new_array(np.array(data, key.dtype), key)
        except OverflowError:
            pass  # the code below raises the error that users see
    array = _convert_data(data, None, NUMPY, None, None)
    categories = [as_operand(kind).category for kind in kinds & NUMBERS]
    # NumPy makes floats of integers that no integer dtype holds.
    is_usual = max(categories, key=CATEGORIES.index, default="float") == array.key.operand.category
    if kinds <= NUMBERS and is_usual and SCOPE.get().memory is memory:
        memory.prepared[of_list, kinds] = array.key
    return array


def _convert_data(
    data: ArrayLike, dtype: DTypeLike | None, library: str | Backend | None, device: object, copy: bool | None
) -> Any:
    """`convert` of anything."""
    target = None if dtype is None else argument_dtype(dtype)
    if copy is not None:
        flag("copy", copy)
    weak = isinstance(data, WrappedArray) and data.weak_type and target is None
    raw_data = unwrapped(data)
    source = backend_of(raw_data)
    backend = backend_named(library) if library is not None else source or NUMPY
    if source is None:
        raw_data, weak = _host_array(raw_data, target, backend)
        is_ready = backend is NUMPY and device is None and not copy
        raw = raw_data if is_ready else backend.asarray(raw_data, raw_data.dtype, device, copy)
    elif source is backend:
        raw = backend.asarray(source.plain(raw_data), target, device, copy)
    else:
        host = source.numpy(source.plain(raw_data))
        if weak:  # a weak array takes the default dtype, which may differ in the new library
            host = narrowed(default_dtype(backend, as_operand(host).category), host)
        raw = backend.asarray(host, target, device, copy)
    if weak and backend.in_jax:
        raw = backend.astype(raw, backend.key_of(raw).operand.format.dtype, weak=True)
    return new_array(*backend.with_key(raw, weak))


def _host_array(data: Any, target: DType | None, backend: Backend) -> tuple[np.ndarray[Any, Any], bool]:
    """A NumPy array made from data that are not an array of a library, and whether it is weak."""
    is_number = type(data) in NUMBERS
    is_of_numbers = is_number or _is_of_numbers(data)
    if not is_of_numbers:
        _check_missing_values(data, target)
    try:
        array = np.asarray(data)
        kind = None if target is not None else _CATEGORY_OF.get(array.dtype) or as_operand(array).category
    except (ValueError, TypeError) as error:  # ragged lists, and data that are not numbers
        raise OperandError(
            f"the data must be numbers or nested lists of them, got {type(data).__name__}: {error}"
        ) from None
    weak = False
    if kind is not None and is_of_numbers:
        if is_number:
            target, weak = default_of(data, get_rules(in_jax=backend.in_jax))
        else:
            target = default_dtype(backend, kind)
    is_ready = target is None or array.dtype == target
    return array if is_ready else np.array(data, target), weak


def _check_missing_values(data: Any, target: DType | None) -> None:
    """Raise for a column with missing values, also in a list, unless they become NaN in a float dtype."""
    for part in cast("Sequence[Any]", data) if isinstance(data, (list, tuple)) else [data]:
        if isinstance(part, (list, tuple)):
            _check_missing_values(part, target)
        elif fix := fix_of_missing_values(part, None if target is None else as_format(target)):
            what = type(part).__name__
            raise OperandError(
                f"the {what} must not have missing values, which only float dtypes hold, as NaN; use {fix}"
            )


_CATEGORY_OF = {row.dtype: row.category for row in FORMATS}


def _is_of_numbers(data: Any) -> bool:
    """Whether nested lists hold only Python numbers, and not arrays, which have a dtype."""
    if not isinstance(data, (list, tuple)):
        return False
    kinds = {*map(type, cast("Sequence[Any]", data))}
    return kinds <= NUMBERS or all(type(part) in NUMBERS or _is_of_numbers(part) for part in cast("list[Any]", data))


def default_dtype(backend: Backend, category: str) -> DType:
    """The default dtype of a category of Python numbers in arrays of a library, under the rules in force.

    Args:
        backend: the library of the array.
        category: `"bool"`, `"integer"`, `"float"` or `"complex"`.

    >>> import supremum
    >>> from supremum.arrays.backends import backend_named
    >>> with supremum.use_rules("torch"):
    ...     [
    ...         default_dtype(backend_named("numpy"), category)
    ...         for category in ("float", "integer")
    ...     ]
    [dtype('float32'), dtype('int64')]
    """
    rules = get_rules(SCOPE.get().rules, in_jax=backend.in_jax)
    defaults, key = rules.memory.prepared, (default_of, category)
    dtype = defaults.get(key)
    if dtype is None:
        dtype = defaults[key] = default_of(category, rules)[0]
    return dtype


def default_of(number: Scalar | str, rules: RuleSet) -> tuple[DType, bool]:
    """The default dtype of a Python number or of a category of numbers, and whether it is weak.

    Args:
        number: the number, or the category.
        rules: the rules that decide.
    """
    operand = as_operand(TYPE_OF_CATEGORY[number] if isinstance(number, str) else number)
    decision = rules.decide(None, (operand,))
    if decision.result is not None:
        return decision.result.dtype, decision.result.weak
    # These rules decide nothing about numbers alone. The library does: this is what NumPy and the standard choose.
    value = TYPE_OF_CATEGORY[operand.category](0) if operand.value is None else operand.value
    return np.asarray(value).dtype, False
