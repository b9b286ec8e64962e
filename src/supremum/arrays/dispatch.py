"""Dispatch of operations: decide once, prepare a function, and keep it under the keys of the operands."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, NamedTuple

from supremum.arrays.backend_errors import raise_computation_error
from supremum.arrays.backends import Key, Plan, Raw
from supremum.arrays.errors import RuntimeDtypeError
from supremum.arrays.fix_trials import Trial, retyped
from supremum.arrays.operand_keys import as_key, common_backend, holds_value, not_an_operand, operands_of, with_value
from supremum.arrays.wrapped import KeyedRaw, raw_and_key
from supremum.decisions import Decision, PromotionError
from supremum.operands import Operand
from supremum.operations import ELEMENTWISE, Operation
from supremum.rules import EVERYTHING, FOLLOWING, SCOPE, RuleSet, Runtime, Watcher, get_rules, memory_of, question


class Prepared(NamedTuple):
    """A function that carries out a decision.

    Args:
        function: takes the arrays of the library.
        key: the key of the result; None if it is not known beforehand, and the function returns it with the result.
    """

    function: Callable[..., Any]
    key: Key | None

    def __call__(self, *raws: Raw) -> KeyedRaw:
        """The result, and its key."""
        result = self.function(*raws)
        return result if self.key is None else (result, self.key)


class DispatchedOperation:
    """An operation on arrays of any library, prepared once for all operands with the same keys.

    Args:
        operation: its row in the table of operations.
        function: replaces the library's function of that name; it takes the `Backend` and the converted operands.
        options: further arguments of the function.
    """

    def __init__(
        self, operation: Operation, function: Callable[..., Raw] | None = None, options: Mapping[str, Any] | None = None
    ) -> None:
        self.operation, self.function, self.options = operation, function, dict(options or {})

    def __call__(self, *operands: Any) -> KeyedRaw:
        """Decide, cast and compute.

        Raises:
            PromotionError: if the rules refuse.
            LibraryError: for operands from two libraries.
            OperandError: for operands that are neither arrays of numbers nor Python numbers.
        """
        return self.apply(operands, refuse_others=True)

    def apply(self, operands: Sequence[Any], *, refuse_others: bool = False) -> Any:
        """As a call, but return `NotImplemented` for an operand of any other type, as Python's operators do.

        Args:
            operands: arrays and Python numbers.
            refuse_others: whether any other operand raises an `OperandError` instead.
        """
        scope = SCOPE.get()
        asked = scope.rules  # read once, as another thread may set the default
        keys: list[Key] = []
        raws: list[Raw] = []
        for operand in operands:
            found = as_key(operand, asked)
            if found is None:
                if refuse_others:
                    raise not_an_operand(operand, self.operation.name, len(keys))
                return NotImplemented
            raws.append(found[0])
            keys.append(found[1])
        try:
            known = scope.memory.prepared.get((self, *keys))
            function, key = known or self.prepared_for(asked, scope.watcher, keys, raws)
            result = function(*raws)
        except (PromotionError, RuntimeDtypeError) as error:
            if error.decision is not None:
                error.decision = retyped(error.decision, operands)
            raise
        except Exception as error:
            raise_computation_error(self.operation.name, common_backend(keys, self.operation.name), operands, {}, error)
            raise
        return result if key is None else (result, key)

    def prepared_for(
        self, asked: str | RuleSet, watcher: Watcher | None, keys: Sequence[Key], raws: Sequence[Raw]
    ) -> Prepared:
        """The prepared function for operands under the rules in force; prepare it if necessary."""
        in_jax = common_backend(keys, self.operation.name).in_jax
        rules = get_rules(asked, in_jax=in_jax)
        by_values = rules.reads_values and any(map(holds_value, keys))
        if watcher is not None:
            if by_values:
                keys = tuple(map(with_value, keys, raws))
            prepare = self.prepare if by_values else self.prepared_under
            return with_watcher(watcher, prepare(rules, keys, raws), self.plan(rules, keys, raws))
        if by_values:
            prepared = self.prepared_by_values(rules, keys)
        else:
            prepared = self.prepared_under(rules, keys, raws)
            if in_jax and isinstance(asked, str) and asked in FOLLOWING:
                prepared = self.prepared_by_jax_flags(asked, keys, raws) or prepared
        memory_of(asked).prepared[self, *keys] = prepared
        return prepared

    def prepared_under(self, rules: RuleSet, keys: Sequence[Key], raws: Sequence[Raw]) -> Prepared:
        """The prepared function under a rule set."""
        known, kept = (self, *keys), rules.memory.prepared
        prepared = kept.get(known)
        if prepared is None:
            prepared = kept[known] = self.prepare(rules, keys, raws)
        return prepared

    def decide(self, rules: RuleSet, operands: Sequence[Operand], runtime: Runtime = EVERYTHING) -> Decision:
        """The decision of a rule set about operands, with fixes that a runtime can carry out."""
        return rules.decide(self.operation, operands, runtime=runtime)

    def prepared_by_jax_flags(self, name: str, keys: Sequence[Key], raws: Sequence[Raw]) -> Prepared | None:
        """A function that reads JAX's flags at every call, because they determine the rule set of a name.

        Returns:
            None if the flags make no difference.
        """
        operands = operands_of(keys, raws)
        verdicts = {each: self.decide(get_rules(each), operands).verdict for each in FOLLOWING[name]}
        asked = question({each: (verdict.result, verdict.compute) for each, verdict in verdicts.items()})
        if asked is None:
            return None
        ask = asked.ask  # looked up here, not at every call
        found: dict[Hashable, Prepared] = {}

        def follow(*raws: Raw) -> KeyedRaw:
            flags = ask()
            if flags not in found:
                found[flags] = self.prepared_under(get_rules(name), keys, raws)
            return found[flags](*raws)

        return Prepared(follow, None)

    def prepared_by_values(self, rules: RuleSet, keys: Sequence[Key]) -> Prepared:
        """A function that reads the values of 0-d arrays of NumPy at every call, for rules that depend on them."""
        found: dict[Hashable, Prepared] = {}

        def read(*raws: Raw) -> KeyedRaw:
            valued = tuple(map(with_value, keys, raws))
            kinds = tuple(rules.key_of(key.operand) for key in valued)
            if kinds not in found:
                found[kinds] = self.prepare(rules, valued, raws)
            return found[kinds](*raws)

        return Prepared(read, None)

    def plan(self, rules: RuleSet, keys: Sequence[Key], raws: Sequence[Raw]) -> Plan:
        """The plan for the decision.

        Raises:
            PromotionError: if the rules refuse.
        """
        trial = Trial(keys, self.function, self.options)
        decision = raise_if_refused(self.decide(rules, operands_of(keys, raws, rules), trial))
        verdict = decision.verdict
        assert verdict.result is not None
        return Plan(
            self.operation, tuple(keys), verdict.compute, verdict.result, rules.name, self.function, self.options,
            verdict.number_steps, decision,
        )  # fmt: skip

    def prepare(self, rules: RuleSet, keys: Sequence[Key], raws: Sequence[Raw]) -> Prepared:
        """The function that carries out the decision of a rule set."""
        backend = common_backend(keys, self.operation.name)
        plan = self.plan(rules, keys, raws)
        try:
            function = backend.prepare(plan)
        except RuntimeDtypeError as error:
            error.decision = plan.decision
            raise
        if self.function is None:
            return Prepared(function, backend.key_of_result(plan))
        return Prepared(lambda *raws: raw_and_key(function(*raws), plan.result.weak), None)


def with_watcher(watcher: Watcher, prepared: Prepared, plan: Plan) -> Prepared:
    """A prepared operation that notifies a watcher at every call."""

    def run(*raws: Raw) -> KeyedRaw:
        watcher.note(plan, raws)
        return prepared(*raws)

    return Prepared(run, None)


def raise_if_refused(decision: Decision) -> Decision:
    """The decision, unless it is a refusal.

    Raises:
        PromotionError: if it is a refusal.
    """
    if not decision:
        raise decision.error()
    return decision


ELEMENTWISE_OPERATIONS: dict[str, DispatchedOperation] = {
    name: DispatchedOperation(row) for name, row in ELEMENTWISE.items()
}
"""All elementwise operations by name; operators and `supremum.ops` share their prepared functions."""
