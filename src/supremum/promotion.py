"""The public functions for promotion, each a thin view of `RuleSet.decide`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from numpy import ndarray

from supremum.decisions import Decision
from supremum.formats import DType
from supremum.operands import Operand, OperandLike, as_operand
from supremum.rules import (
    FOLLOWING,
    UNWRAPPED,
    Following,
    RuleSet,
    Runtime,
    get_rules,
    memory_of,
    remember,
    scope_in_force,
)


def explain(
    *operands: OperandLike,
    operation: str | None = None,
    into: OperandLike = None,
    rules: str | RuleSet | None = None,
) -> Decision:
    """The decision for a call, with its account; it prints a few plain lines and renders in notebooks.

    Args:
        operands: arrays, dtypes or their names, Python scalars, or the types `int`, `float`, `complex`.
        operation: name of the operation, or None where no particular one is meant.
        into: what the result is written into, an array or a dtype, which it keeps: `a` for `a += b`, the argument for
            `out=`. `array[index] = value` is the operation "assign" of the value, into the array.
        rules: a rule set or its name; None for the rules in force, `"jax"` unless others are set. `"jax"` stands for
            what JAX's own flags say, as for JAX's arrays and for dtypes; given arrays of other libraries alone it
            stands for `"jax-x64"`, as their operators do.

    Returns:
        The decision, or the refusal; this function raises only for what is no operand or no name.

    Raises:
        OperandError: if an argument cannot be promoted at all.
        UnknownNameError: for an unknown dtype, operation or rule set.

    >>> print(explain("int8", "uint8", rules="jax-x64"))
    result_type(int8, uint8) -> int16   [rules jax-x64]
      a    int8 -> int16
      b    uint8 -> int16
      why  int16 is the least upper bound: int8 -> int16, uint8 -> int16
    >>> print(explain("float8_e4m3fn", "float16", rules="jax-x64"))
    result_type(float8_e4m3fn, float16) -> refused   [rules jax-x64]
      a    float8_e4m3fn
      b    float16
      why  the lattice has no upper bound of float8_e4m3fn and float16
      fix  a.astype('float16')
    >>> print(explain("float32", "float64", operation="add", into="float32", rules="numpy"))
    add(float32, float64, into=float32) -> float32   [rules numpy]
      a     float32 -> float64
      b     float64, kept
      into  float64 -> float32, not every value survives
      why   the common type of float32 and float64 is float64
            float64 is stored in float32: the framework casts results within their kind and to higher kinds
            a value outside the range of float32 is an error
    """
    seen = tuple(as_operand(operand, position) for position, operand in enumerate(operands))
    target = None if into is None else as_operand(into)
    asked = scope_in_force().rules if rules is None else rules
    in_jax = not isinstance(asked, str) or asked not in FOLLOWING or _is_in_jax(operands)
    return get_rules(asked, in_jax=in_jax).decide(operation, seen, target, runtime=_runtime(operands))


def _is_in_jax(operands: Sequence[OperandLike]) -> bool:
    """Whether JAX would hold what is computed of operands: unless all arrays among them are of other libraries."""
    arrays = [array for operand in operands if (array := _array(operand)) is not None]
    if not arrays:
        return True
    import array_api_compat  # only arrays load it

    compat: Any = array_api_compat  # most of its annotations are unknown where a library is not installed
    return not all(compat.is_array_api_obj(each) and not compat.is_jax_array(each) for each in arrays)


def _array(operand: OperandLike) -> Any:
    """The array that an operand is or wraps; None for a number, a dtype, or an `Operand`, which no library holds."""
    raw = operand.unwrap() if hasattr(operand, "unwrap") else operand
    is_description = isinstance(raw, (Operand, type))
    return raw if not is_description and hasattr(raw, "dtype") and hasattr(raw, "ndim") else None


def _runtime(operands: Sequence[OperandLike]) -> Runtime:
    """What a fix is tried on: an `Array` says so itself."""
    classes = [cast("type[Any]", type(each)) for each in operands]
    found = next((each for each in classes if hasattr(each, "runtime_beside")), None)
    return UNWRAPPED if found is None else found.runtime_beside(operands)


def result_type(*operands: OperandLike, rules: str | RuleSet | None = None) -> DType:
    """The dtype that operands meet in, all of them at once.

    Args:
        operands: as for `explain`; at least one.
        rules: a rule set or its name; None for the default, `"jax"`.

    Returns:
        The dtype of the result, as the runtime holds it.

    Raises:
        PromotionError: if the rules refuse.
        OperandError: if an argument cannot be promoted at all.

    >>> result_type("int8", 1000, rules="jax-x64"), result_type("int8", "uint8", 1.5, rules="jax-x32")
    (dtype('int8'), dtype('float32'))
    """
    asked = scope_in_force().rules if rules is None else rules
    try:
        a, b = operands
        known = memory_of(asked).pairs
        if a.__class__ is ndarray is b.__class__:
            return known[a.dtype, b.dtype]
        left, right = a.aval, b.aval
        found = known[left.dtype, right.dtype, left.weak_type, right.weak_type]
        return found() if found.__class__ is Following else found
    except (ValueError, KeyError, AttributeError, TypeError):
        pass  # not two arrays of one library, or not known yet, or it depends on more
    decision = explain(*operands, rules=asked)
    if decision and len(operands) == 2:
        remember(asked, *operands)
    return decision.dtype


def promote_types(a: OperandLike, b: OperandLike, rules: str | RuleSet | None = None) -> DType:
    """The dtype that two types meet in, whether or not the runtime holds it.

    It differs from `result_type` where a runtime holds less than it names: with JAX's x64 off, `promote_types("int64",
    "int8")` is int64 and `result_type("int64", "int8")` is int32, as JAX's own functions of these names say.

    Args:
        a: the one type, given as for `explain`.
        b: the other.
        rules: a rule set or its name; None for the default, `"jax"`.

    Raises:
        PromotionError: if the rules refuse.
        OperandError: if an argument cannot be promoted at all.

    >>> promote_types("bfloat16", "float16"), promote_types("uint8", int)
    (dtype('float32'), dtype('uint8'))
    """
    return explain(a, b, operation="promote_types", rules=rules).dtype


def can_promote(*operands: OperandLike, operation: str | None = None, rules: str | RuleSet | None = None) -> bool:
    """Whether the rules accept these operands.

    >>> can_promote("float8_e4m3fn", "float16"), can_promote("float8_e4m3fn", 2.0)
    (False, True)
    """
    return bool(explain(*operands, operation=operation, rules=rules))
