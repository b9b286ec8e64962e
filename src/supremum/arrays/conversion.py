"""Making arrays of numbers, lists and other arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from supremum.argument_checks import flag
from supremum.arrays.array import Array, wrap
from supremum.arrays.backends import backend_named, backend_of
from supremum.arrays.backends.numpy import NUMPY, narrowed
from supremum.arrays.dispatch import NUMBERS
from supremum.errors import OperandError
from supremum.formats import DType, as_format
from supremum.operands import TYPE_OF_CATEGORY, as_operand
from supremum.rules import RuleSet, get_rules


def asarray(
    data: Any, dtype: Any = None, *, library: Any = None, device: Any = None, copy: bool | None = None
) -> Array:
    """An `Array` of anything that holds numbers.

    Args:
        data: an array of any library, an `Array`, a Python number, nested lists of them, or what NumPy makes an array
            of numbers of.
        dtype: its dtype; None for the one it has. A Python number and lists of them have none: they get the rules'
            default for their kind, such as float32 under `"jax-x32"` and `"torch"`, float64 under `"numpy"`. Under
            `"jax"` an array that JAX holds follows its flags, float32 with x64 off; any other is float64.
        library: `"numpy"`, `"jax"` or `"torch"`; None for the one it is from, NumPy for what is from none.
        device: where to put it, as the library names it; None leaves it.
        copy: True always copies, False never (an error where it must be), None only if it must be.

    Returns:
        The array. Without `dtype`, that of a Python number is weak, if the rules in force know weak arrays.

    Raises:
        OperandError: for what holds no numbers.
        RuntimeDtypeError: for a dtype that the library does not have.
        OverflowError: for a number that does not fit the dtype.

    >>> import supremum
    >>> with supremum.use_rules("jax-x32"):
    ...     supremum.asarray(2), supremum.asarray(2, dtype="int32")
    (Array(2, dtype=int32, weak_type=True), Array(2, dtype=int32))
    >>> with supremum.use_rules("torch"):
    ...     supremum.asarray([1.0, 2.0])
    Array([1., 2.], dtype=float32)
    """
    target = None if dtype is None else as_format(dtype).dtype
    if copy is not None:
        flag("copy", copy)
    weak = isinstance(data, Array) and data.weak_type and target is None
    given = data.unwrap() if isinstance(data, Array) else data
    source = backend_of(given)
    backend = backend_named(library) if library is not None else source or NUMPY
    if source is None:
        given, weak = _host(given, target, get_rules(in_jax=backend.in_jax))
        raw = backend.asarray(given, given.dtype, device, copy)
    elif source is backend:
        raw = backend.asarray(source.plain(given), target, device, copy)
    else:
        host = source.numpy(source.plain(given))
        if weak:  # it has no dtype of its own, and the other library may have another default
            host = narrowed(default_of(as_operand(host).category, get_rules(in_jax=backend.in_jax))[0], host)
        raw = backend.asarray(host, target, device, copy)
    if weak and backend.own_weakness:
        raw = backend.astype(raw, backend.key_of(raw).operand.format.dtype, weak=True)
    return wrap(raw, weak)


def _host(data: Any, target: DType | None, rules: RuleSet) -> tuple[np.ndarray[Any, Any], bool]:
    """A NumPy array of what is from no library, and whether it is weak."""
    is_number = cast("type[object]", type(data)) in NUMBERS
    try:
        found = np.asarray(data)
        kind = None if target is not None else as_operand(found).category
    except (ValueError, TypeError) as error:  # ragged lists; what is no number
        raise OperandError(
            f"a {type(data).__name__} holds no numbers that an array could be made of: {error}"
        ) from None
    if target is None and kind is not None and (is_number or _is_of_numbers(data)):
        target, weak = default_of(data if is_number else kind, rules)
        return np.array(data, target), weak and is_number
    return (found if target is None else np.array(data, target)), False


def _is_of_numbers(data: Any) -> bool:
    """Whether nested lists hold Python numbers only, and no arrays, which have a dtype."""
    if isinstance(data, (list, tuple)):
        parts: Sequence[Any] = data
        return all(map(_is_of_numbers, parts))
    return cast("type[object]", type(data)) in NUMBERS


def default_of(number: Any, rules: RuleSet) -> tuple[DType, bool]:
    """The dtype that a Python number, or any of a category, has alone, and whether it is weak.

    Args:
        number: the number, or the category.
        rules: those that decide.
    """
    operand = as_operand(number if type(number) in NUMBERS else TYPE_OF_CATEGORY[number])
    decision = rules.decide(None, (operand,))
    if decision.result is not None:
        return decision.result.dtype, decision.result.weak
    # Rules that define nothing for numbers alone leave it to the library; this is NumPy's choice, and the standard's.
    return np.asarray(
        operand.value if operand.value is not None else TYPE_OF_CATEGORY[operand.category](0)
    ).dtype, False
