"""The public functions for promotion, each a thin view of `RuleSet.decide`.

The rule sets cache their verdicts. Besides, `result_type` caches its answers for two arrays by their dtypes and weak
flags, unless they depend on more, such as PyTorch's if one of the arrays may be 0-d.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any, cast

from numpy import ndarray

from supremum.decisions import Decision
from supremum.errors import hide_frames
from supremum.formats import DType
from supremum.operands import Operand, OperandLike, as_operand
from supremum.rules import (
    IN_JAX,
    JAX_ALIASES,
    SCOPE,
    UNWRAPPED,
    RuleSet,
    RulesLike,
    Runtime,
    get_rules,
    memory_of,
    question,
    scope_in_force,
)

_innermost = SCOPE.get  # looking it up in each call takes 5 % of the call


def explain(
    *operands: OperandLike,
    operation: str | None = None,
    into: OperandLike | None = None,
    rules: RulesLike | None = None,
) -> Decision:
    """Decide a call and explain the decision, which prints as a few plain lines and renders in notebooks.

    Args:
        operands: arrays, dtypes or their names, Python scalars, or the types `int`, `float`, `complex`.
        operation: the name of the operation, or None for no particular one.
        into: the array that the result is written into, or its dtype, which stays the same: `a` for `a += b`, the
            argument for `out=`. `array[index] = value` is the operation "assign" of the value, into the array.
        rules: a rule set or its name; None for the rules in force, `"jax"` unless others are set. `"jax"` follows
            JAX's flags for JAX arrays and for dtypes; if all arrays are of other libraries, it means `"jax-x64"`, as
            their operators do.

    Returns:
        The decision, which may be a refusal; this function raises only for invalid operands and unknown names.

    Raises:
        OperandError: if an argument cannot be promoted at all.
        UnknownNameError: if a dtype, operation or rule set is unknown.

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
    >>> print(
    ...     explain(
    ...         "float32", "float64", operation="add", into="float32", rules="numpy"
    ...     )
    ... )
    add(float32, float64, into=float32) -> float32   [rules numpy]
      a     float32 -> float64
      b     float64, kept
      into  float64 -> float32, not every value survives
      why   the common type of float32 and float64 is float64
            float64 is stored in float32: the framework casts results within their kind and to higher kinds
            a value outside the range of float32 is an error
    """
    try:
        return _explain(operands, operation, into, rules)
    except Exception as error:
        hide_frames(error)
        raise


def _explain(
    operands: Sequence[OperandLike], operation: str | None, into: OperandLike | None, rules: RulesLike | None
) -> Decision:
    """The decision of `explain`."""
    seen = tuple(as_operand(operand, position) for position, operand in enumerate(operands))
    target = None if into is None else as_operand(into)
    asked = scope_in_force().rules if rules is None else rules
    in_jax = not isinstance(asked, str) or asked not in JAX_ALIASES or _is_in_jax(operands)
    rule_set = get_rules(asked, in_jax=in_jax)
    read = zip(seen, operands, map(rule_set.read, operands), strict=True)
    seen = tuple(operand if value is argument else as_operand(value) for operand, argument, value in read)
    return rule_set.decide(operation, seen, target, runtime=_runtime(operands))


def _is_in_jax(operands: Sequence[OperandLike]) -> bool:
    """Whether JAX would hold the result: not if there are arrays and all of them are of other libraries."""
    arrays = [array for operand in operands if (array := _array(operand)) is not None]
    if not arrays:
        return True
    import array_api_compat  # import it only if there are arrays

    compat: Any = array_api_compat  # most of its annotations are unknown if a library is not installed
    return not all(compat.is_array_api_obj(each) and not compat.is_jax_array(each) for each in arrays)


def _array(operand: Any) -> Any:
    """The array that an operand is or wraps; None for a number, a dtype or an `Operand`."""
    raw = operand.unwrap() if hasattr(operand, "unwrap") else operand
    is_description = isinstance(raw, (Operand, type))
    return raw if not is_description and hasattr(raw, "dtype") and hasattr(raw, "ndim") else None


def _runtime(operands: Sequence[OperandLike]) -> Runtime:
    """The runtime on which to try a fix; an `Array` knows its own."""
    classes = [cast("type[Any]", type(each)) for each in operands]
    array_class = next((each for each in classes if hasattr(each, "runtime_of")), None)
    return UNWRAPPED if array_class is None else array_class.runtime_of(operands)


def result_type(*operands: OperandLike, rules: RulesLike | None = None) -> DType:
    """The common dtype of operands, decided for all of them at once.

    Args:
        operands: as for `explain`; at least one.
        rules: a rule set or its name; None for the default, `"jax"`.

    Returns:
        The dtype of the result, as the runtime holds it; for a format of columns, such as int128 in Polars, a
        `formats.ColumnDtype`.

    Raises:
        PromotionError: if the rules refuse.
        OperandError: if an argument cannot be promoted at all.

    >>> (
    ...     result_type("int8", 1000, rules="jax-x64"),
    ...     result_type("int8", "uint8", 1.5, rules="jax-x32"),
    ... )
    (dtype('int8'), dtype('float32'))
    """
    try:
        if rules is None:
            scope = _innermost()
            known = (scope if IN_JAX.synced is scope else scope_in_force()).memory.pairs
        else:
            known = memory_of(rules).pairs
        a: Any
        b: Any
        a, b = operands
        if a.__class__ is ndarray is b.__class__:
            return known[a.dtype, b.dtype]
        left, right = a.aval, b.aval
        answer = known[left.dtype, right.dtype, left.weak_type, right.weak_type]
        return answer() if answer.__class__ is _FlagAnswer else answer
    except (ValueError, KeyError, AttributeError, TypeError):
        pass  # not two arrays of one library, not cached yet, or it depends on more than dtypes
    decision = explain(*operands, rules=rules)
    if decision and len(operands) == 2:
        scope = scope_in_force()
        pairs = scope.memory.pairs if rules is None else memory_of(rules).pairs
        _remember(pairs, scope.rules if rules is None else rules, *operands)
    return decision.dtype


class _FlagAnswer:
    """An answer that depends on JAX's flags.

    Args:
        ask: reads the flags.
        answers: the answer for each value that `ask` returns; None where the rules refuse.
    """

    __slots__ = ("answers", "ask")

    def __init__(self, ask: Callable[[], Hashable], answers: Mapping[Hashable, DType | None]) -> None:
        self.ask = ask
        self.answers = answers

    def __call__(self) -> DType:
        """The answer under the current flags.

        Raises:
            KeyError: if the rules refuse; the caller must ask them for the reason.
        """
        answer = self.answers[self.ask()]
        if answer is None:
            raise KeyError
        return answer


def _remember(pairs: dict[Any, Any], rules: RulesLike, a: Any, b: Any) -> None:
    """Cache the answer for two NumPy arrays or two JAX arrays; other operands are skipped."""
    in_jax = type(a) is type(b) and _is_jax_array(a)
    key: tuple[Any, ...]
    if a.__class__ is ndarray is b.__class__:
        key = (a.dtype, b.dtype)
    elif in_jax:
        key = (a.aval.dtype, b.aval.dtype, a.aval.weak_type, b.aval.weak_type)
    else:
        return
    left, right = as_operand(a), as_operand(b)
    answer: Any
    if in_jax and isinstance(rules, str) and rules in JAX_ALIASES:
        answers = {name: _answer(get_rules(name), left, right) for name in JAX_ALIASES[rules]}
        asked = question(answers)
        if asked is None:
            answer = next(iter(answers.values()))
        else:
            answer = _FlagAnswer(asked.ask, {asked.answer_under(name): each for name, each in answers.items()})
    else:
        answer = _answer(get_rules(rules, in_jax=in_jax), left, right)
    if answer is not None:
        pairs[key] = answer


def _answer(rules: RuleSet, a: Operand, b: Operand) -> DType | None:
    """The result dtype, or None if it depends on which of the two is 0-d."""
    ways = product(*([replace(operand, ndim=ndim, held=None) for ndim in (1, 0)] for operand in (a, b)))
    dtypes = {decision.dtype if decision else None for decision in (rules.decide(None, way) for way in ways)}
    return dtypes.pop() if len(dtypes) == 1 else None


def _is_jax_array(value: Any) -> bool:
    """Whether a value is a JAX array and not a tracer; this does not import JAX."""
    jax = sys.modules.get("jax")
    return jax is not None and isinstance(value, jax.Array) and not isinstance(value, jax.core.Tracer)


def promote_types(a: OperandLike, b: OperandLike, rules: RulesLike | None = None) -> DType:
    """The common dtype of two types, whether or not the runtime holds it.

    It differs from `result_type` if the runtime does not hold that dtype: with JAX's x64 off, `promote_types("int64",
    "int8")` is int64 and `result_type("int64", "int8")` is int32, as with JAX's functions of these names.

    Args:
        a: the first type, given as for `explain`.
        b: the second type.
        rules: a rule set or its name; None for the default, `"jax"`.

    Raises:
        PromotionError: if the rules refuse.
        OperandError: if an argument cannot be promoted at all.

    >>> promote_types("bfloat16", "float16"), promote_types("uint8", int)
    (dtype('float32'), dtype('uint8'))
    """
    return explain(a, b, operation="promote_types", rules=rules).dtype


def can_promote(*operands: OperandLike, operation: str | None = None, rules: RulesLike | None = None) -> bool:
    """Whether the rules accept these operands.

    >>> can_promote("float8_e4m3fn", "float16"), can_promote("float8_e4m3fn", 2.0)
    (False, True)
    """
    return bool(explain(*operands, operation=operation, rules=rules))
