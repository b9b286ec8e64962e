"""Reductions under the rules in force: a decision, casts, the library's function, and a cast of the result.

The first parameter of each function is the library of the namespace.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, Final, cast

from supremum.argument_checks import flag, real_number, whole_number
from supremum.arrays.backends import Backend, Key, Plan, Raw
from supremum.arrays.backends.kernels import library_agrees
from supremum.arrays.dispatch import DispatchedOperation, Prepared
from supremum.arrays.errors import RuntimeDtypeError
from supremum.arrays.fix_trials import no_fix
from supremum.arrays.operand_keys import common_backend
from supremum.arrays.promote_operands import convert_operand
from supremum.arrays.reduction_kernels import reduce
from supremum.arrays.wrapped import KeyedRaw, keyed
from supremum.arrays.wrapped_functions import adopt_operands, adopt_result
from supremum.decisions import Decision, ResultType, Verdict
from supremum.formats import DType, as_format
from supremum.operands import Operand
from supremum.operations import REDUCTIONS, Operation
from supremum.rules import EVERYTHING, RuleSet, Runtime, find_rules

# The largest number of dimensions of NumPy's arrays; other libraries have the same limit or a lower one.
_MOST_AXES: Final = 64


class _Reduction(DispatchedOperation):
    """A reduction with its options.

    Args:
        operation: its row.
        options: of the library's function, by name.
        dtype: the dtype that the user asked for; None for the dtype that the rules decide.
    """

    def __init__(self, operation: Operation, options: Mapping[str, Any], dtype: DType | None) -> None:
        super().__init__(operation, reduce, {"name": operation.name, **options})
        self.dtype = dtype

    def decide(self, rules: RuleSet, operands: Sequence[Operand], runtime: Runtime = EVERYTHING) -> Decision:
        """The decision of a rule set; of only the dtype to accumulate in, if the user asks for a dtype."""
        if self.dtype is None:
            return super().decide(rules, operands, runtime)
        decision = super().decide(rules, [operand.with_dtype(self.dtype) for operand in operands])
        # An integer wraps around to the same result, however wide the computation was.
        computes = decision.verdict.compute[0] if decision and as_format(self.dtype).is_inexact else self.dtype
        if not as_format(computes).holds(as_format(self.dtype)):
            computes = self.dtype
        asked = f"the result is {self.dtype}, as asked for"
        verdict = Verdict(ResultType(self.dtype), (computes,), (asked, *decision.reason))
        # Casts of the operand do not help: the library lacks the dtype that was asked for.
        return replace(decision, operands=tuple(operands), verdict=verdict, find_fix=no_fix)

    def prepare(self, rules: RuleSet, keys: Sequence[Key], raws: Sequence[Raw]) -> Prepared:
        """The function that carries out the decision of a rule set."""
        backend = common_backend(keys, self.operation.name)
        plan = self.plan(rules, keys, raws)
        asked = self.dtype
        if asked is not None:
            backend.native_dtype(asked)  # its error has the right fix
        function = backend.prepare(plan) if backend.compiles else _between_casts(backend, plan, asked)

        def reduced(raw: Raw) -> KeyedRaw:
            if asked is not None:
                backend.native_dtype(asked)  # JAX's flags may have changed
            return keyed(backend, function(raw), plan.result.weak)

        return Prepared(reduced, None)


def _between_casts(backend: Backend, plan: Plan, dtype: DType | None) -> Callable[[Raw], Raw]:
    """The library's function, between casts where they are needed."""
    (key,), (computes,), name = plan.keys, plan.compute, plan.operation.name
    target = plan.result.dtype
    agrees = dtype is None and key.backend is backend and backend.rules != ""
    agrees = agrees and library_agrees(replace(plan, function=None), find_rules(backend.rules))
    options: dict[str, Any] = {**plan.options, "agrees": agrees}

    def reduced(raw: Raw) -> Raw:
        operand = raw if agrees else convert_operand(backend, key, raw, computes)
        try:
            result = reduce(backend, operand, **options)
        except (NotImplementedError, TypeError, RuntimeError) as error:
            if type(error) in (TypeError, RuntimeError) and "not implemented" not in str(error):
                raise  # the error is about an argument or values; a missing kernel raises a subclass
            raise RuntimeDtypeError(f"{backend.name} has no {name} for {computes}", decision=plan.decision) from error
        return result if backend.dtype_of(result) == target else backend.astype(result, target)

    return reduced


@lru_cache(maxsize=4096)
def _reduction(name: str, dtype: DType | None, options: tuple[tuple[str, Any], ...]) -> _Reduction:
    """A reduction with its options; always the same one."""
    return _Reduction(REDUCTIONS[name], dict(options), dtype)


def _reduce(backend: Backend, name: str, x: Any, dtype: Any = None, **options: Any) -> KeyedRaw:
    asked = None if dtype is None else as_format(dtype).dtype
    given = tuple((key, _hashable(key, value)) for key, value in options.items())
    return adopt_result(backend, _reduction(name, asked, given)(*adopt_operands(backend, name, (x,))))


def _hashable(name: str, value: Any) -> Any:
    """An option as part of a key, with one type per option, because True and 1 are equal keys."""
    if name == "correction":
        return real_number(name, value)
    if name != "axis":
        return flag(name, value)
    if isinstance(value, (list, tuple)):
        return tuple(_hashable(name, each) for each in cast("Sequence[Any]", value))
    return None if value is None else whole_number(name, value, -_MOST_AXES, _MOST_AXES)


_DTYPE = "dtype: the dtype of the result; None for the dtype that the rules decide."


def _summing(name: str, what: str) -> Callable[..., KeyedRaw]:
    def reduction(
        backend: Backend, x: Any, /, *, axis: Any = None, dtype: Any = None, keepdims: bool = False
    ) -> KeyedRaw:
        return _reduce(backend, name, x, dtype, axis=axis, keepdims=keepdims)

    return _documented(reduction, name, what, _DTYPE)


def _cumulating(name: str, what: str) -> Callable[..., KeyedRaw]:
    def reduction(
        backend: Backend, x: Any, /, *, axis: Any = None, dtype: Any = None, include_initial: bool = False
    ) -> KeyedRaw:
        return _reduce(backend, name, x, dtype, axis=axis, include_initial=include_initial)

    return _documented(reduction, name, what, _DTYPE)


def _reducing(name: str, what: str) -> Callable[..., KeyedRaw]:
    def reduction(backend: Backend, x: Any, /, *, axis: Any = None, keepdims: bool = False) -> KeyedRaw:
        return _reduce(backend, name, x, axis=axis, keepdims=keepdims)

    return _documented(reduction, name, what)


def _varying(name: str, what: str) -> Callable[..., KeyedRaw]:
    def reduction(
        backend: Backend, x: Any, /, *, axis: Any = None, correction: float = 0.0, keepdims: bool = False
    ) -> KeyedRaw:
        return _reduce(backend, name, x, axis=axis, correction=correction, keepdims=keepdims)

    return _documented(reduction, name, what, "correction: subtracted from the number of elements in the divisor.")


def _documented(function: Callable[..., KeyedRaw], name: str, what: str, more: str = "") -> Callable[..., KeyedRaw]:
    function.__name__ = function.__qualname__ = name
    last = f"\n        {more}" if more else ""
    function.__doc__ = f"""{what}, in the dtype that the rules in force decide for `{name}`.

    Args:
        backend: the library.
        x: an array.
        axis: the dimension, or several; None for all.{last}

    The Python array API standard describes the other options.

    Raises:
        PromotionError: if the rules refuse.
        RuntimeDtypeError: if the library does not compute it in the dtype that the rules decide.
    """
    return function


REDUCTION_FUNCTIONS: dict[str, Callable[..., KeyedRaw]] = {
    "sum": _summing("sum", "The sum"),
    "prod": _summing("prod", "The product"),
    "cumulative_sum": _cumulating("cumulative_sum", "The cumulative sums"),
    "cumulative_prod": _cumulating("cumulative_prod", "The cumulative products"),
    "mean": _reducing("mean", "The mean"),
    "var": _varying("var", "The variance"),
    "std": _varying("std", "The standard deviation"),
    "any": _reducing("any", "Whether any element is true"),
    "all": _reducing("all", "Whether all elements are true"),
    "min": _reducing("min", "The smallest element"),
    "max": _reducing("max", "The largest element"),
}
"""The reductions of the namespace, by name."""
