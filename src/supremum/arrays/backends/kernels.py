"""What the libraries' functions are prepared with: finding them, converting operands, and letting a library promote."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from supremum.arrays.backends.base import Backend, Plan, Raw
from supremum.formats import DType, as_format
from supremum.number_conversion import Steps, usual_steps
from supremum.operands import Scalar
from supremum.operations import Operation, as_operation
from supremum.rules import RuleSet, fits


def function_of(operation: Operation, module: Any, names: Mapping[str, str]) -> Callable[..., Raw] | None:
    """A library's function for an operation, found by its name or an alias; None where it has none.

    Args:
        operation: the row.
        module: where the functions are.
        names: what the library calls those that have the name of something else there.
    """
    candidates = (names[operation.name],) if operation.name in names else (operation.name, *operation.aliases)
    return next((getattr(module, name) for name in candidates if hasattr(module, name)), None)


def caster_of(dtype: DType, *, silent: bool = True) -> Callable[[Scalar], Any]:
    """A function that makes a NumPy scalar of a Python number.

    Args:
        dtype: of the scalar. An integer that does not hold the number gets it wrapped around: where that is not wanted
            the rules have refused it.
        silent: whether a number that becomes infinite does so without NumPy's warning.
    """
    row = as_format(dtype)
    make = _make_of_ml_dtypes(dtype.type) if row.is_inexact and not row.is_builtin else dtype.type
    low, high, modulus = row.min, row.max, 2**row.bits

    def wrapped(value: Any) -> Any:
        try:
            return make(value)
        except OverflowError:
            return np.asarray(value % modulus, np.uint64).astype(dtype)[()]

    def quiet(value: Any) -> Any:
        with np.errstate(over="ignore"):
            return make(value)

    def ranged(value: Any) -> Any:
        return make(value) if low <= value <= high else quiet(value)

    if row.category == "integer":
        return wrapped
    if not silent or not row.is_inexact:
        return make
    return quiet if row.category == "complex" else ranged


def _make_of_ml_dtypes(make: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The same, also of an int of more than 64 bits, which ml_dtypes takes for no number."""
    return lambda value: make(float(value) if value.__class__ is int else value)


def number_caster(category: str, dtype: DType, steps: Steps, *, silent: bool = True) -> Callable[[Scalar], Any]:
    """A function that makes a NumPy scalar of a Python number, by way of the formats that the rules say.

    Args:
        category: of the number.
        dtype: of the scalar.
        steps: the formats that a number, or each component of it, is converted to.
        silent: as for `caster_of`.
    """
    cast = caster_of(dtype, silent=silent)
    if not steps or steps == usual_steps(category, as_format(dtype).component):
        return cast
    casts = [caster_of(row.dtype, silent=silent) for row in steps]

    def along(value: Any) -> Any:
        for each in casts:
            value = each(value)
        return value

    if as_format(dtype).category != "complex":
        return along
    return lambda value: cast(complex(along(value.real), along(value.imag)))


def caster_of_number(plan: Plan, position: int, *, silent: bool = True) -> Callable[[Scalar], Any]:
    """The same of an operand of a plan."""
    category, dtype = plan.keys[position].operand.category, plan.compute[position]
    return number_caster(category, dtype, plan.number_steps[position], silent=silent)


def has_usual_steps(plan: Plan) -> bool:
    """Whether constructing a scalar converts the Python numbers of a plan as the rules say."""
    operands = zip(plan.keys, plan.compute, plan.number_steps, strict=False)  # without numbers there are no steps
    return all(
        not steps or steps == usual_steps(key.operand.category, as_format(dtype).component)
        for key, dtype, steps in operands
    )


def compose(
    function: Callable[..., Raw], converters: Sequence[Callable[[Any], Any] | None], finish: Callable[[Raw], Raw] | None
) -> Callable[..., Raw]:
    """A function of converted operands, its result finished; with nothing to do, the function itself.

    It is written out for one and two operands, as most operations have: a loop over them costs as much as an addition.
    """
    if finish is not None:
        inner = compose(function, converters, None)
        return lambda *operands: finish(inner(*operands))
    match converters:
        case [None] | [None, None]:
            return function
        case [convert] if convert is not None:
            return lambda a: function(convert(a))
        case [None, convert] if convert is not None:
            return lambda a, b: function(a, convert(b))
        case [convert, None] if convert is not None:
            return lambda a, b: function(convert(a), b)
        case [first, second] if first is not None and second is not None:
            return lambda a, b: function(first(a), second(b))
        case _:
            pairs = (*enumerate(converters),)
            return lambda *given: function(*(given[i] if to is None else to(given[i]) for i, to in pairs))


def library_agrees(plan: Plan, rules: RuleSet) -> bool:
    """Whether a library, given the operands as they are, computes and returns what is planned.

    Args:
        plan: what is planned.
        rules: the rules of the library.
    """
    if plan.function is not None or len({key.backend for key in plan.keys} - {None}) > 1:
        return False
    operands = tuple(replace(key.operand, weak=key.backend is None and key.operand.weak) for key in plan.keys)
    verdict = rules.decide(plan.operation, operands).verdict
    return verdict.result is not None and (verdict.result.dtype, verdict.compute) == (plan.result.dtype, plan.compute)


def numbers_in_range(plan: Plan, make: Callable[[Any], Any]) -> list[Callable[[Any], Any] | None]:
    """For a library that promotes alike, what makes Python ints fit an integer dtype; nothing for other operands.

    Args:
        plan: what is planned.
        make: what the library takes, of a NumPy scalar.
    """
    converters: list[Callable[[Any], Any] | None] = []
    for key, dtype in zip(plan.keys, plan.compute, strict=True):
        is_integer = key.backend is None and key.operand.category == "integer" and not as_format(dtype).is_inexact
        cast = caster_of(dtype)
        converters.append((lambda value, cast=cast: make(cast(value))) if is_integer else None)
    return converters


_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "equal": operator.eq,
    "not_equal": operator.ne,
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
}


def compares_by_value(plan: Plan) -> bool:
    """Whether integers are compared with a Python int that is not converted to their dtype."""
    steps = zip(plan.keys, plan.number_steps, strict=False)  # without numbers there are no steps
    return plan.operation.name in _COMPARISONS and any(key.backend is None and not each for key, each in steps)


def known_comparison(backend: Backend, plan: Plan) -> Callable[..., Raw] | None:
    """A comparison by value with an int beyond the dtype of the integers, which is the same for all of them.

    Args:
        backend: the library.
        plan: what is planned.

    Returns:
        What compares the integers with themselves; None for every other plan.
    """
    if not compares_by_value(plan):
        return None
    place = 0 if plan.keys[0].backend is not None else 1
    dtype, number = plan.compute[place], plan.keys[1 - place].operand.value
    if not isinstance(number, int) or fits(number, as_format(dtype)):
        return None
    is_true = _COMPARISONS[plan.operation.name](*((0, number) if place == 0 else (number, 0)))
    operation, keys = as_operation("equal" if is_true else "not_equal"), (plan.keys[place],) * 2
    prepared = backend.prepare(replace(plan, operation=operation, keys=keys, compute=(dtype, dtype), number_steps=()))
    return lambda *operands: prepared(operands[place], operands[place])


_KNOWN_INT = {"pow": 1}


def known_int(plan: Plan) -> int | None:
    """Which operand is a Python int that takes no dtype: a power to it is a product of the base with itself."""
    position = _KNOWN_INT.get(plan.operation.name)
    if position is None or plan.keys[position].backend is not None:
        return None
    return position if plan.keys[position].operand.category == "integer" else None


def power_by_products(prepared: Callable[..., Raw], backend: Backend, plan: Plan) -> Callable[..., Raw]:
    """A power of integers whose exponent is not wrapped around where the dtype of the base does not hold it.

    Args:
        prepared: the library's power, for exponents that it holds.
        backend: the library.
        plan: what is planned; others than such powers are returned as they are prepared.
    """
    position, dtype = known_int(plan), plan.compute[0]
    if position is None or as_format(dtype).is_inexact:
        return prepared
    highest, xp = as_format(plan.compute[position]).max, backend.xp

    def power(base: Raw, exponent: int) -> Raw:
        if exponent <= highest:
            return prepared(base, exponent)
        # Squares wrap around as products do; those of 0-d arrays would be NumPy's scalars, which warn of it.
        held = backend.asarray(caster_of(dtype)(base)) if plan.keys[0].backend is None else base
        square = xp.reshape(backend.astype(held, dtype), (-1,))
        result = xp.ones_like(square)
        while exponent:
            if exponent & 1:
                result = result * square
            square = square * square
            exponent >>= 1
        return xp.reshape(result, tuple(held.shape))

    return power
