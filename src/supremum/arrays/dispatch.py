"""Carrying out decisions on arrays: decide once, prepare a function, and keep it by all it depends on."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from supremum.arrays.backend_errors import raise_as_ours
from supremum.arrays.backends import Backend, Key, Plan, Raw, backend_of
from supremum.arrays.backends.numpy import NUMPY
from supremum.arrays.errors import LibraryError, RuntimeDtypeError
from supremum.arrays.fix_trials import Trial, retyped
from supremum.decisions import Decision, PromotionError, letter
from supremum.errors import OperandError, shown
from supremum.operands import TYPE_OF_CATEGORY, Operand, Scalar, as_operand
from supremum.operations import Operation
from supremum.rules import RuleSet, get_rules
from supremum.rules.fixes import EVERYTHING, Runtime
from supremum.rules.names import FOLLOWING, question
from supremum.rules.registry import memory_of
from supremum.rules.scope import SCOPE, Watcher

if TYPE_CHECKING:
    from supremum.arrays.array import Array

NUMBERS: frozenset[type] = frozenset(TYPE_OF_CATEGORY.values())
"""The types of Python numbers; exactly these, no subclasses."""


def number_key(rules: str | RuleSet, value: Scalar) -> Key:
    """The key of a Python number: one for all numbers between which these rules see no difference."""
    numbers = memory_of(rules).numbers
    kind = value.__class__, value
    found = numbers.get(kind)
    if found is None:
        operand = as_operand(value)
        # All rule sets that "jax" may stand for look at the same of a number.
        seen_of_it = get_rules(rules, in_jax=False).key_of(operand)
        found = numbers[kind] = numbers.setdefault(seen_of_it, Key(None, operand, None))
    return found


def seen(value: Any, rules: str | RuleSet) -> tuple[Key, Raw] | None:
    """An operand as operations take it: its key, and the array that it wraps, or itself.

    Args:
        value: an `Array` or a `Variable`, an array of a library that is known, a NumPy scalar or a Python number.
        rules: the rules in force.

    Returns:
        None for anything else.

    Raises:
        OperandError: for arrays of what is no number.
    """
    kind = cast("type[object]", type(value))
    if issubclass(kind, _array_class()):
        return value.key, value.unwrap()
    if kind in NUMBERS:
        return number_key(rules, value), value
    backend = backend_of(value)
    if backend is None:
        return None
    raw = backend.plain(value)
    return backend.key_of(raw), raw


@cache
def _array_class() -> type[Array]:
    from supremum.arrays.array import Array  # it imports this module

    return Array


class Prepared(NamedTuple):
    """A decision that is ready to be carried out.

    Args:
        function: of what the operands wrap.
        key: the key of the result; None where it is not known before, and the function wraps its result itself.
    """

    function: Callable[..., Any]
    key: Key | None

    def __call__(self, *raws: Raw) -> Array:
        """Carry it out."""
        result = self.function(*raws)
        if self.key is None:
            return result
        return _array_class().of(result, self.key)


class Applied:
    """An operation as a function of arrays.

    Args:
        operation: its row in the table of operations.
        function: what is computed instead of the library's function of that name, given the `Backend` and the operands
            in the dtype they are computed in.
        options: what the function is given besides.
    """

    def __init__(
        self,
        operation: Operation,
        function: Callable[..., Raw] | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        self.operation = operation
        self.function = function
        self.options = dict(options or {})

    def __call__(self, *operands: Any) -> Array:
        """Decide, cast, compute and wrap; what `__add__` and `ops.add` both come to.

        Raises:
            PromotionError: if the rules refuse.
            LibraryError: for operands from two libraries.
            OperandError: for operands that are no arrays of numbers.
        """
        result = self.apply(operands)
        if result is NotImplemented:
            for position, operand in enumerate(operands):
                seen_or_refused(operand, get_rules(), self.operation.name, position)
        return result

    def apply(self, operands: Sequence[Any]) -> Any:
        """As a call, but `NotImplemented` for an operand that is no array, as Python's operators have it."""
        scope = SCOPE.get()
        asked = scope.rules  # once: another thread may set the default
        keys: list[Key] = []
        raws: list[Raw] = []
        for operand in operands:
            found = seen(operand, asked)
            if found is None:
                return NotImplemented
            keys.append(found[0])
            raws.append(found[1])
        try:
            prepared = scope.memory.prepared.get((self, *keys)) or self.find(asked, scope.watcher, keys, raws)
            return prepared(*raws)
        except (PromotionError, RuntimeDtypeError) as error:
            if error.decision is not None:
                error.decision = retyped(error.decision, operands)
            raise
        except Exception as error:
            raise_as_ours(self.operation.name, common_backend(keys, self.operation.name), operands, {}, error)
            raise

    def find(self, asked: str | RuleSet, watcher: Watcher | None, keys: Sequence[Key], raws: Sequence[Raw]) -> Prepared:
        """What is prepared for these operands under the rules in force, prepared now if need be."""
        in_jax = common_backend(keys, self.operation.name).in_jax
        rules = get_rules(asked, in_jax=in_jax)
        if rules.reads_values and any(map(_holds_value, keys)):
            if watcher is not None:
                keys = tuple(map(_valued, keys, raws))
                return watched(watcher, self.prepare(rules, keys, raws), self.plan(rules, keys, raws))
            prepared = memory_of(asked).prepared[self, *keys] = self.reading(rules, keys)
            return prepared
        prepared = self.under(rules, keys, raws)
        if watcher is not None:
            return watched(watcher, prepared, self.plan(rules, keys, raws))
        if in_jax and isinstance(asked, str) and asked in FOLLOWING:
            prepared = self.following_jax(asked, keys, raws) or prepared
        memory_of(asked).prepared[self, *keys] = prepared
        return prepared

    def under(self, rules: RuleSet, keys: Sequence[Key], raws: Sequence[Raw]) -> Prepared:
        """What is prepared under a rule set."""
        known, kept = (self, *keys), rules.memory.prepared
        prepared = kept.get(known)
        if prepared is None:
            prepared = kept[known] = self.prepare(rules, keys, raws)
        return prepared

    def decide(self, rules: RuleSet, operands: Sequence[Operand], runtime: Runtime = EVERYTHING) -> Decision:
        """What a rule set decides about operands, with fixes that a runtime carries out."""
        return rules.decide(self.operation, operands, runtime=runtime)

    def following_jax(self, name: str, keys: Sequence[Key], raws: Sequence[Raw]) -> Prepared | None:
        """What asks JAX's flags at every call which rule set a name stands for; None where they make no difference."""
        operands = operands_of(keys, raws)
        verdicts = {each: self.decide(get_rules(each), operands).verdict for each in FOLLOWING[name]}
        asked = question({each: (verdict.result, verdict.compute) for each, verdict in verdicts.items()})
        if asked is None:
            return None
        ask = asked.ask
        found: dict[Hashable, Prepared] = {}
        array_class = _array_class()

        def follow(*raws: Raw) -> Array:
            flags = ask()
            if flags not in found:
                found[flags] = self.under(get_rules(name), keys, raws)
            function, key = found[flags]
            return array_class.of(function(*raws), key) if key is not None else function(*raws)

        return Prepared(follow, None)

    def reading(self, rules: RuleSet, keys: Sequence[Key]) -> Prepared:
        """What reads the values of 0-d arrays of NumPy at every call, for the rules that look at them."""
        found: dict[Hashable, Prepared] = {}
        array_class = _array_class()

        def read(*raws: Raw) -> Array:
            valued = tuple(map(_valued, keys, raws))
            kinds = tuple(rules.key_of(key.operand) for key in valued)
            if kinds not in found:
                found[kinds] = self.prepare(rules, valued, raws)
            function, key = found[kinds]
            return array_class.of(function(*raws), key) if key is not None else function(*raws)

        return Prepared(read, None)

    def plan(self, rules: RuleSet, keys: Sequence[Key], raws: Sequence[Raw]) -> Plan:
        """What is decided.

        Raises:
            PromotionError: if the rules refuse.
        """
        trial = Trial(keys, self.function, self.options)
        decision = accepted(self.decide(rules, operands_of(keys, raws), trial))
        verdict = decision.verdict
        assert verdict.result is not None
        return Plan(
            self.operation, tuple(keys), verdict.compute, verdict.result, rules.name, self.function, self.options,
            verdict.number_steps, decision,
        )  # fmt: skip

    def prepare(self, rules: RuleSet, keys: Sequence[Key], raws: Sequence[Raw]) -> Prepared:
        """The decision of a rule set, ready to be carried out."""
        backend = common_backend(keys, self.operation.name)
        plan = self.plan(rules, keys, raws)
        try:
            function = backend.prepare(plan)
        except RuntimeDtypeError as error:
            error.decision = plan.decision
            raise
        if self.function is None:
            return Prepared(function, backend.key_of_result(plan))
        from supremum.arrays.array import wrap  # it imports this module

        def wrapped(*raws: Raw) -> Array:
            return wrap(function(*raws), plan.result.weak)

        return Prepared(wrapped, None)


def _holds_value(key: Key) -> bool:
    """Whether the value is there to be looked at: other libraries' may be far away, or not computed yet."""
    return key.zero_d and key.backend is NUMPY


def _valued(key: Key, raw: Raw) -> Key:
    """The key of a 0-d array of NumPy with the value that it holds, others as they are."""
    return Key(key.backend, replace(as_operand(raw), weak=key.weak), key.device) if _holds_value(key) else key


def watched(watcher: Watcher, prepared: Prepared, plan: Plan) -> Prepared:
    """The same, telling the watcher."""

    def run(*raws: Raw) -> Array:
        watcher.note(plan, raws)
        return prepared(*raws)

    return Prepared(run, None)


def accepted(decision: Decision) -> Decision:
    """The decision, unless it is a refusal.

    Raises:
        PromotionError: if it is.
    """
    if not decision:
        raise decision.error()
    return decision


def operands_of(keys: Sequence[Key], raws: Sequence[Raw], rules: RuleSet | None = None) -> tuple[Operand, ...]:
    """What is decided about, with the very values of Python numbers, for explanations.

    Args:
        keys: of the operands.
        raws: what they wrap.
        rules: those that decide, to which 0-d arrays of NumPy show their values if they look at them.
    """
    reads = rules is not None and rules.reads_values
    shown = map(_valued, keys, raws) if reads else keys
    return tuple(key.operand if key.backend else as_operand(raw) for key, raw in zip(shown, raws, strict=True))


def common_backend(keys: Sequence[Key], name: str) -> Backend:
    """The library that an operation runs in; NumPy's arrays are adopted by any other.

    Raises:
        LibraryError: for two others.
    """
    others = list(dict.fromkeys(key.backend for key in keys if key.backend not in (None, NUMPY)))
    if len(others) > 1:
        named = [f"{letter(i)} is from {key.backend.name}" for i, key in enumerate(keys) if key.backend in others]
        stranger = next(i for i, key in enumerate(keys) if key.backend is others[1])
        raise LibraryError(
            f"{name}: {' and '.join(named)}, and nothing is moved between libraries implicitly: "
            f"supremum.namespace({shown(others[0].name)}).asarray({letter(stranger)})"
        )
    return others[0] if others else NUMPY


def seen_or_refused(operand: Any, rules: str | RuleSet, name: str, position: int) -> tuple[Key, Raw]:
    """As `seen`, with an error for anything else.

    Raises:
        OperandError: it says which argument of which function it was.
    """
    found = seen(operand, rules)
    if found is None:
        raise OperandError(
            f"{name}: argument {position} is a {type(operand).__name__}, which is no array: supremum.asarray("
            f"{letter(position)}) makes one of lists and what NumPy knows"
        )
    return found
