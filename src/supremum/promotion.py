"""The questions people ask, each a thin view of `RuleSet.decide`."""

from __future__ import annotations

from numpy import ndarray

from supremum.decisions import Decision
from supremum.formats import DType
from supremum.operands import OperandLike, as_operand
from supremum.rules import RuleSet, get_rules
from supremum.rules.pairs import PAIRS, remember
from supremum.rules.scope import SCOPE


def explain(*operands: OperandLike, operation: str | None = None, rules: str | RuleSet | None = None) -> Decision:
    """The decision for a call, with its account; it prints a few plain lines and renders in notebooks.

    Args:
        operands: arrays, dtypes or their names, Python scalars, or the types `int`, `float`, `complex`.
        operation: name of the operation, or None where no particular one is meant.
        rules: a rule set or its name; None for the default, `"jax"`.

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
      why  nothing in the lattice is above both float8_e4m3fn and float16
      fix  a.astype('float16')
    """
    seen = tuple(as_operand(operand, position) for position, operand in enumerate(operands))
    return get_rules(rules).decide(operation, seen)


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
    asked = SCOPE.get().rules if rules is None else rules
    try:
        a, b = operands
        known = PAIRS[asked]
        if a.__class__ is ndarray is b.__class__:
            return known[a.dtype, b.dtype]
        left, right = a.aval, b.aval
        return known[left.dtype, right.dtype, left.weak_type, right.weak_type]
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
