"""Promotion of operands in one library, for functions that are not elementwise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from supremum.arrays.backend_errors import raises_computation_errors
from supremum.arrays.backends import Backend, Key, Plan, Raw
from supremum.arrays.backends.kernels import number_caster
from supremum.arrays.backends.numpy import NUMPY, narrowed
from supremum.arrays.dispatch import raise_if_refused
from supremum.arrays.fix_trials import Trial, in_library, retyped
from supremum.arrays.operand_keys import as_key_or_raise, common_backend, operands_of
from supremum.arrays.wrapped import KeyedRaw, keyed
from supremum.decisions import Decision, ResultType
from supremum.errors import ArgumentError
from supremum.formats import DType
from supremum.number_conversion import Steps
from supremum.operands import as_operand
from supremum.operations import as_operation
from supremum.rules import SCOPE, get_rules


class Promoted(NamedTuple):
    """Operands that have been promoted.

    Args:
        backend: the library.
        operands: its arrays, in the dtype of the computation; numbers are 0-d arrays.
        unpromoted: further operands as arrays of that library, with their own dtypes.
        result: the type of the result.
        decision: the decision.
    """

    backend: Backend
    operands: list[Raw]
    unpromoted: list[Raw]
    result: ResultType
    decision: Decision

    def typed(self, raw: Raw) -> KeyedRaw:
        """A result of the library with the dtype and the weak flag of the decision, and its key."""
        dtype, weak = self.result.dtype, self.result.weak
        raw, key = keyed(self.backend, raw, weak)
        if (key.dtype, key.weak) == (dtype, weak):
            return raw, key
        return keyed(self.backend, self.backend.astype(raw, dtype, weak=weak), weak)


def promote_operands(
    operation: str | None, operands: Sequence[Any], unpromoted: Sequence[Any] = (), name: str = ""
) -> Promoted:
    """Convert operands to one library and to the dtypes that the rules decide.

    Args:
        operation: the name of the operation that decides; None for a decision without an operation.
        operands: arrays and Python numbers.
        unpromoted: more operands, which are not part of the decision.
        name: of the function, for errors and counts; empty for the name of the operation.

    Raises:
        PromotionError: if the rules refuse.
        OperandError: for operands that are not arrays of numbers.
        LibraryError: for operands from two libraries.
    """
    row = as_operation(operation)
    name = name or row.name
    asked = SCOPE.get().rules
    found = [as_key_or_raise(operand, asked, name, i) for i, operand in enumerate((*operands, *unpromoted))]
    backend = common_backend([key for _, key in found], name)
    rules = get_rules(asked, in_jax=backend.in_jax)
    deciding, others = found[: len(operands)], found[len(operands) :]
    raws, keys = [raw for raw, _ in deciding], tuple(key for _, key in deciding)
    described = operands_of(keys, raws, rules)
    trial = Trial(keys, in_library(name))
    decision = retyped(replace(rules.decide(row, described, runtime=trial), operation=name), operands)
    verdict = raise_if_refused(decision).verdict
    assert verdict.result is not None
    if (watcher := SCOPE.get().watcher) is not None:
        plan = Plan(replace(row, name=name), keys, verdict.compute, verdict.result, rules.name)
        watcher.note(plan, raws)
    steps = verdict.number_steps or ((),) * len(deciding)
    converted = [
        convert_operand(backend, key, raw, dtype, of_number)
        for (raw, key), dtype, of_number in zip(deciding, verdict.compute, steps, strict=True)
    ]
    kept = [convert_operand(backend, key, raw, key.operand.format.dtype) for raw, key in others]
    return Promoted(backend, converted, kept, verdict.result, decision)


def convert_operand(backend: Backend, key: Key, raw: Raw, dtype: DType, steps: Steps = ()) -> Raw:
    """An operand as an array of a library.

    Args:
        backend: the library.
        key: of the operand.
        raw: the array or the number.
        dtype: the dtype of the new array.
        steps: for a Python number, the formats that it is converted to on the way.
    """
    if key.backend is None:
        return backend.asarray(number_caster(key.operand.category, dtype, steps)(raw))
    if key.backend is NUMPY:
        host = raw if key.dtype == dtype else narrowed(dtype, raw)
        return host if backend is NUMPY else backend.asarray(host)
    return raw if key.dtype == dtype else backend.astype(raw, dtype)


@raises_computation_errors
def where(condition: Any, x1: Any, x2: Any, /) -> KeyedRaw:
    """Elements of one array where a condition is true, and of another where it is false.

    Args:
        condition: an array of bools, or a bool.
        x1: an array or a number.
        x2: an array or a number; the rules promote both.

    Raises:
        PromotionError: if the rules refuse.
        ArgumentError: for a condition that is not boolean.

    >>> import numpy as np, supremum
    >>> supremum.ops.where(np.array([True, False]), np.ones(2, "float32"), 2)
    Array([1., 2.], dtype=float32)
    """
    promoted = promote_operands("where", (x1, x2), unpromoted=(condition,))
    (chosen,) = promoted.unpromoted
    key = promoted.backend.key_of(chosen)
    if key.operand.category != "bool":
        raise ArgumentError(f"where() needs a boolean condition, got {key.dtype}; use condition != 0")
    return promoted.typed(promoted.backend.xp.where(chosen, *promoted.operands))


@raises_computation_errors
def clip(x: Any, /, min: Any = None, max: Any = None) -> KeyedRaw:  # noqa: A002 (the standard's names)
    """Elements limited to a range.

    Args:
        x: an array or a number.
        min: the lower bound, an array or a number, or None.
        max: the upper bound, an array or a number, or None; the rules promote all operands.

    Raises:
        PromotionError: if the rules refuse.

    >>> import numpy as np, supremum
    >>> supremum.ops.clip(np.array([1.0, 5.0], "float32"), max=2)
    Array([1., 2.], dtype=float32)
    """
    given = {"maximum": min, "minimum": max}
    bounds = {name: bound for name, bound in given.items() if bound is not None and not _is_ignored(x, name, bound)}
    promoted = promote_operands("clip", (x, *bounds.values()))
    xp = promoted.backend.xp
    first, *others = promoted.operands
    # NumPy's own clip does not know the formats of ml_dtypes.
    clipped = first if bounds else xp.asarray(first, copy=True)
    for name, bound in zip(bounds, others, strict=True):
        clipped = getattr(xp, name)(clipped, bound)
    return promoted.typed(clipped)


def _is_ignored(x: Any, name: str, bound: Any) -> bool:
    """Whether the rules ignore a bound."""
    rules = get_rules()
    array, number = (as_key_or_raise(each, rules, "clip", i)[1].operand for i, each in enumerate((x, bound)))
    if type(bound) is int:
        number = as_operand(bound)
    return rules.ignores_bound(array, number, is_lower=name == "maximum")
