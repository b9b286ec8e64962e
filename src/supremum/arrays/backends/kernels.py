"""Building blocks of prepared operations: find a library's function, convert operands, let a library promote."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np

from supremum.arrays.backends.base import Backend, CallPlan, Key, Raw
from supremum.arrays.errors import DeviceError, RuntimeDtypeError
from supremum.formats import DType, as_format
from supremum.number_conversion import fits, usual_steps
from supremum.operands import TYPE_OF_CATEGORY
from supremum.operations import Family, as_operation
from supremum.rules import RuleSet, find_rules
from supremum.typing import Scalar


def elementwise_function(
    backend: Backend, plan: CallPlan, module: ModuleType, names: Mapping[str, str]
) -> Callable[..., Raw]:
    """The library's function for an elementwise operation.

    Args:
        backend: the library.
        plan: the plan.
        module: the module of the library that has its functions.
        names: the library's names of operations whose usual names mean something else there.

    Raises:
        RuntimeDtypeError: if the library has no such function.
    """
    row = plan.operation
    if row.name == "divide" and as_format(plan.result.dtype).category == "integer":
        return partial(_quotient_without_fraction, module)
    for name in (names[row.name],) if row.name in names else (row.name, *row.aliases):
        if hasattr(module, name):
            return getattr(module, name)
    raise RuntimeDtypeError(f"{backend.name} has no function {row.name}")


def _quotient_without_fraction(module: Any, a: Any, b: Any) -> Raw:
    """A quotient of integers that is cut toward zero; the floats of the library's own division would round it."""
    quotient = module.floor_divide(a, b)
    is_rounded_down = (module.remainder(a, b) != 0) & ((a < 0) != (b < 0))
    return module.where(is_rounded_down, quotient + 1, quotient)


def between_casts(backend: Backend, plan: CallPlan) -> Callable[..., Raw]:
    """The function that a plan builds, with operands as planned; a wrong dtype of its result is cast.

    Args:
        backend: the library, which does not compile.
        plan: a plan with a function to build.
    """
    assert plan.build is not None
    function, target = plan.build(backend, plan), plan.result.dtype
    native, gives_indices = backend.native_dtype(target), plan.gives_indices
    if not reduces_alike(backend, plan):
        function = compose(function, [backend.converter(plan, i) for i in range(len(plan.keys))])

    def run(*operands: Any) -> Raw:
        try:
            result = function(*operands)
        except (NotImplementedError, TypeError, RuntimeError) as error:
            # For a missing kernel libraries raise a subclass, or say so.
            if type(error) in (TypeError, RuntimeError) and not re.search("not (implemented|supported)", str(error)):
                raise
            raise missing_kernel(backend, plan) from error
        if result.dtype is not native and result.dtype != native and not gives_indices:
            return backend.astype(result, target)
        return result

    return run


def missing_kernel(backend: Backend, plan: CallPlan, where: str = "") -> RuntimeDtypeError:
    """The error for a function that a library has, but not for the dtypes of a plan."""
    dtypes = " and ".join(dict.fromkeys(map(str, plan.compute)))
    return RuntimeDtypeError(f"{backend.name} has no {plan.operation.name} for {dtypes}{where}", decision=plan.decision)


def different_devices(name: str, devices: Iterable[Any]) -> DeviceError:
    """The error for operands on different devices."""
    named = " and ".join(map(str, devices))
    return DeviceError(f"{name}: the operands are on different devices, {named}; move one with .to_device(...)")


def sample_of(key: Key) -> Any:
    """An operand with a given key: ones, or a number that no library treats as a simple power."""
    if key.backend is None:
        return TYPE_OF_CATEGORY[key.operand.category](5)
    return key.backend.asarray(np.ones(() if key.zero_d else 1, key.dtype), device=key.device)


def caster_of(dtype: DType, *, silent: bool = True) -> Callable[[Scalar], Any]:
    """A function that makes a NumPy scalar from a Python number.

    Args:
        dtype: of the scalar. An integer that is out of its range wraps around; rules that do not want this have refused
            the number already.
        silent: whether to suppress NumPy's warning about a number that overflows to infinity.
    """
    row = as_format(dtype)
    kind: Callable[[Any], Any] = dtype.type
    # ml_dtypes takes no int of more than 64 bits.
    is_foreign = row.is_inexact and not row.is_builtin
    make = (lambda value: kind(float(value) if value.__class__ is int else value)) if is_foreign else kind
    low, high, modulus = row.min, row.max, 2**row.bits

    def wrap_around(value: Any) -> Any:
        try:
            return make(value)
        except OverflowError:
            return np.asarray(value % modulus, np.uint64).astype(dtype)[()]

    def make_quietly(value: Any) -> Any:
        with np.errstate(over="ignore"):
            return make(value)

    def make_in_range(value: Any) -> Any:
        return make(value) if low <= value <= high else make_quietly(value)

    if row.category == "integer":
        return wrap_around
    if not silent or not row.is_inexact:
        return make
    return make_quietly if row.category == "complex" else make_in_range


def caster_of_number(plan: CallPlan, position: int, *, silent: bool = True) -> Callable[[Scalar], Any]:
    """A function that makes a NumPy scalar from a Python number, through the formats that the rules name.

    Args:
        plan: the plan.
        position: of the number among its operands.
        silent: as for `caster_of`.
    """
    category, dtype, steps = plan.keys[position].operand.category, plan.compute[position], plan.number_steps[position]
    cast = caster_of(dtype, silent=silent)
    if not steps or steps == usual_steps(category, as_format(dtype).component):
        return cast
    casts = [caster_of(row.dtype, silent=silent) for row in steps]

    def along(value: Any) -> Any:
        for each in casts:
            value = each(value)
        return value

    if "complex" not in (category, as_format(dtype).category):
        return along
    return lambda value: cast(complex(along(value.real), along(value.imag)))


def has_usual_steps(plan: CallPlan) -> bool:
    """Whether the constructor of a scalar converts the Python numbers of a plan as the rules say."""
    operands = zip(plan.keys, plan.compute, plan.number_steps, strict=False)  # there are no steps without numbers
    return all(
        not steps or steps == usual_steps(key.operand.category, as_format(dtype).component)
        for key, dtype, steps in operands
    )


def compose(
    function: Callable[..., Any], converters: Sequence[Callable[[Any], Any] | None],
    finish: Callable[[Any], Any] | None = None,
) -> Callable[..., Any]:  # fmt: skip
    """A function of converted operands whose result is finished; the function itself if there is nothing to do.

    One and two operands are written out, as most operations have them: a loop over them costs as much as an addition.
    """
    if finish is not None:
        inner = compose(function, converters)
        return lambda *operands: finish(inner(*operands))
    if not any(converters):
        return function
    match converters:
        case [convert] if convert is not None:
            return lambda a: function(convert(a))
        case [None, convert] if convert is not None:
            return lambda a, b: function(a, convert(b))
        case [convert, None] if convert is not None:
            return lambda a, b: function(convert(a), b)
        case [first, second] if first is not None and second is not None:
            return lambda a, b: function(first(a), second(b))
        case _:
            to_convert = [(i, convert) for i, convert in enumerate(converters) if convert is not None]

            def converted(*operands: Any) -> Raw:
                arguments = [*operands]
                for i, convert in to_convert:
                    arguments[i] = convert(arguments[i])
                return function(*arguments)

            return converted


def library_agrees(plan: CallPlan, rules: RuleSet) -> bool:
    """Whether a library, given the operands as they are, follows a plan by itself.

    Args:
        plan: the plan.
        rules: the rules of the library.
    """
    if len({key.backend for key in plan.keys} - {None}) > 1:
        return False
    operands = tuple(replace(key.operand, weak=key.backend is None and key.operand.weak) for key in plan.keys)
    verdict = rules.decide(plan.operation, operands).verdict
    return verdict.result is not None and (verdict.result.dtype, verdict.compute) == (plan.result.dtype, plan.compute)


def reduces_alike(backend: Backend, plan: CallPlan) -> bool:
    """Whether a plan is a reduction, and the library by itself accumulates and returns what the rules decide."""
    if plan.operation.family is not Family.REDUCTION or plan.options.get("dtype") is not None or not backend.rules:
        return False
    return plan.keys[0].backend is backend and library_agrees(plan, find_rules(backend.rules))


def numbers_in_range(plan: CallPlan, make: Callable[[Any], Any] | None = None) -> list[Callable[[Any], Any] | None]:
    """For a library that promotes alike, converters that make Python ints fit an integer dtype; None for the rest.

    Args:
        plan: the plan.
        make: converts the NumPy scalar to what the library takes; None to leave it.
    """
    converters: list[Callable[[Any], Any] | None] = []
    for key, dtype in zip(plan.keys, plan.compute, strict=True):
        is_integer = key.backend is None and key.operand.category == "integer" and not as_format(dtype).is_inexact
        cast = caster_of(dtype)
        converters.append((compose(make, [cast]) if make else cast) if is_integer else None)
    return converters


_COMPARISONS = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")


def compares_by_value(plan: CallPlan) -> bool:
    """Whether integers are compared with a Python int that is not converted to their dtype."""
    steps = zip(plan.keys, plan.number_steps, strict=False)  # there are no steps without numbers
    return plan.operation.name in _COMPARISONS and any(key.backend is None and not each for key, each in steps)


def known_comparison(backend: Backend, plan: CallPlan) -> Callable[..., Raw] | None:
    """A comparison by value with an int beyond the dtype of the integers, which has the same answer for all of them.

    Args:
        backend: the library.
        plan: the plan.

    Returns:
        A function that compares the integers with themselves; None for every other plan.
    """
    if not compares_by_value(plan):
        return None
    place = 0 if plan.keys[0].backend is not None else 1
    dtype, number = plan.compute[place], plan.keys[1 - place].operand.value
    if not isinstance(number, int) or fits(number, as_format(dtype)):
        return None
    is_true = getattr(np, plan.operation.name)(*((0, number) if place == 0 else (number, 0)))
    operation, keys = as_operation("equal" if is_true else "not_equal"), (plan.keys[place],) * 2
    prepared = backend.prepare(replace(plan, operation=operation, keys=keys, compute=(dtype, dtype), number_steps=()))
    return lambda *operands: prepared(operands[place], operands[place])


def known_int(plan: CallPlan) -> int | None:
    """The position of an exponent that is a Python int and takes no dtype: the power is a product of the bases."""
    is_power = plan.operation.name == "pow" and plan.keys[1].backend is None
    return 1 if is_power and plan.keys[1].operand.category == "integer" else None


def known_int_wrapper(plan: CallPlan, position: int) -> Callable[[int], int] | None:
    """A function that wraps the known exponent around; None if the rules give it a float dtype or none."""
    dtype = plan.compute[position]
    if not plan.number_steps[position] or as_format(dtype).is_inexact:
        return None
    cast = caster_of(dtype)
    return lambda exponent: int(cast(exponent))


def power_by_products(prepared: Callable[..., Raw], backend: Backend, plan: CallPlan) -> Callable[..., Raw]:
    """A power of integers whose exponent does not wrap around if the rules give it no dtype.

    Args:
        prepared: the library's power, for exponents that the dtype holds.
        backend: the library.
        plan: the plan; for other operations `prepared` is returned as it is.
    """
    position, dtype = known_int(plan), plan.compute[0]
    if position is None or as_format(dtype).is_inexact or plan.number_steps[position]:
        return prepared
    highest, xp = as_format(plan.compute[position]).max, backend.xp

    def power(base: Any, exponent: int) -> Raw:
        if exponent <= highest:
            return prepared(base, exponent)
        # Squares wrap around as products do. NumPy would make scalars of 0-d arrays, and warn when they wrap around.
        array = backend.asarray(caster_of(dtype)(base)) if plan.keys[0].backend is None else base
        square = xp.reshape(backend.astype(array, dtype), (-1,))
        result = xp.ones_like(square)
        while exponent:
            if exponent & 1:
                result = result * square
            square = square * square
            exponent >>= 1
        return xp.reshape(result, tuple(array.shape))

    return power
