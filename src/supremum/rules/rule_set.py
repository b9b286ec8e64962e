"""What every rule set is: a frozen, named value that turns operands into a decision."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, ClassVar

from supremum.decisions import Decision, Fix, FixCast, ResultType, Verdict
from supremum.errors import ArgumentError
from supremum.formats import CATEGORIES, DType, Format, as_format
from supremum.lattice import Lattice
from supremum.number_conversion import Steps, usual_steps
from supremum.operands import TYPE_OF_CATEGORY, Operand, weak_name
from supremum.operations import ASSIGN, Family, Operation, Result, as_operation
from supremum.rules.assignment import Storing, account, find_fix_into, is_no_higher, objection, objection_to_loss
from supremum.rules.custom_lattice import checked_defaults, checked_order
from supremum.rules.fixes import EVERYTHING, Runtime, find_fix, targets_for
from supremum.rules.lattice_promotion import lattice_verdict
from supremum.rules.number_ranges import fits, interval, stores
from supremum.rules.reductions import Reduction, standard
from supremum.rules.shared_cache import Memory, memory_of_values
from supremum.rules.verdicts import LOSSES_AS_DIVISION, disagreement, given, takes_no

_REAL = as_operation("real")


@dataclass(frozen=True, eq=False)
class RuleSet(ABC):
    """A framework's promotion rules, as a value: two of one class that hold the same are equal.

    A subclass of one's own sets what it holds when it is made.

    Args:
        name: what users call it.
        summary: one line on whose rules these are.
        source: the document or software that has the last word.
        accepts: the categories an operation takes, where they are not those of its row.
        stands_in: for functions that the framework does not have, the one each is decided as. It takes what that one
            takes, but nothing above the categories of its own row.
        follows: for functions of several arrays that promote as another operation does, that one.
        agreeing: functions whose arrays must have one dtype.
        lacks: formats that an operation has no kernel for on any device, so that no fix leads there.
        reductions: what reductions accumulate in and give.
        library: where the framework does not have them, for explanations.
        in_place: what in-place operators and `out=` store in an array.
        item: what assignment to elements stores in it.
    """

    weak_arrays: ClassVar[bool] = False
    """Whether there are arrays without a dtype of their own, as JAX has them; elsewhere their dtype counts."""

    reads_values: ClassVar[bool] = False
    """Whether what a 0-d array holds matters, as it did to NumPy 1."""

    name: str
    summary: str
    source: str
    accepts: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]], kw_only=True)
    stands_in: Mapping[str, str] = field(default_factory=dict[str, str], kw_only=True)
    follows: Mapping[str, str] = field(default_factory=dict[str, str], kw_only=True)
    agreeing: frozenset[str] = field(default=frozenset(), kw_only=True)
    lacks: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]], kw_only=True)
    reductions: Mapping[str, Reduction] = field(default_factory=partial(standard, "int64", "uint64"), kw_only=True)
    library: str = field(default="", kw_only=True)
    in_place: Storing = field(default=Storing.KEPT, kw_only=True)
    item: Storing = field(default=Storing.KEPT, kw_only=True)

    @cached_property
    def memory(self) -> Memory:
        """What was found out under these rules, which equal rule sets share."""
        return memory_of_values(type(self), self._values())

    def __eq__(self, other: object) -> bool:
        """Whether it is of the same class, and the same in all that it holds."""
        return self.memory is other.memory if isinstance(other, RuleSet) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.memory)

    @staticmethod
    def from_lattice(
        name: str, edges: Mapping[str, Iterable[str]], *, defaults: Mapping[str, str] | None = None, summary: str = ""
    ) -> RuleSet:
        """Rules of one's own: the joins of an order.

        Args:
            name: what explanations call them; not that of a rule set of Supremum's.
            edges: for each format or weak kind (`"int*"`, `"float*"`, `"complex*"`), those directly above it; none for
                what meets only itself. What is not mentioned is refused.
            defaults: the format that a weak kind is held in where nothing stronger is around, such as
                `{"float*": "bfloat16"}`; int32, float32 and complex64 for those that are not mentioned.
            summary: one line on them.

        Returns:
            The rule set, which equals any other of that name, those edges and defaults. It takes what the operations'
            rows take; division and sines, for two, take no integers.

        Raises:
            ArgumentError: for a circle, for an order that is no lattice, in which two have common upper bounds and no
                least one (the message has all of them), and for a default of another category than its weak kind.
            UnknownDtypeError: for the name of no format.

        >>> mine = RuleSet.from_lattice("mine", {"int*": ["int8"], "int8": ["int16"], "int16": ["float32"]})
        >>> import supremum
        >>> supremum.result_type("int8", "float32", rules=mine)
        dtype('float32')
        >>> RuleSet.from_lattice("bad", {"int8": ["int16", "int32"], "uint8": ["int16", "int32"]})
        Traceback (most recent call last):
            ...
        supremum.errors.ArgumentError: 'bad' is not a lattice: int8 and uint8 have two smallest upper bounds, int16 and int32
        """
        order, held = checked_order(name, edges), checked_defaults(defaults or {})
        integer = as_format(held[weak_name("integer")])
        return LatticeRuleSet(
            name=name,
            summary=summary or "a user-defined lattice",
            source="RuleSet.from_lattice",
            lattice=order,
            defaults=held,
            joins_defaults=False,
            stands_in=LOSSES_AS_DIVISION,
            reductions=standard(integer.name, f"uint{integer.bits}", tuple(order.nodes)),
            library=name,
        )

    def decide(
        self,
        operation: str | Operation | None,
        operands: Sequence[Operand],
        into: Operand | None = None,
        storing: Storing | None = None,
        *,
        runtime: Runtime = EVERYTHING,
    ) -> Decision:
        """Decide one call: the one place where dtypes come from.

        Args:
            operation: a name from `supremum.operations`, or None where no particular operation is meant.
            operands: at least one.
            into: what the result is written into, as `a += b`, `out=` and `a[0] = b` do: an array, which keeps its
                dtype; None for a new array. Of the operation "assign" the operand is the value.
            storing: what may be stored in it; None for what the framework stores in an array. A `Variable` takes less.
            runtime: what has to carry out the fix of a refusal; it has no part in the decision.

        Returns:
            The decision, or the refusal, with its account.

        Raises:
            UnknownNameError: for an operation that has no row.
            ArgumentError: for a number of operands that the operation does not take.
        """
        if not operands:
            raise ArgumentError("a decision needs operands, got none; give at least one")
        row = as_operation(operation)
        if row.arity is not None and len(operands) != row.arity:
            raise ArgumentError(f"{row.name} takes {row.arity} operands, got {len(operands)}")
        seen = tuple(operands)
        if not self.weak_arrays:
            seen = tuple(replace(o, weak=False) if o.weak and o.dtype is not None else o for o in seen)
        if into is not None or row is ASSIGN:
            return self._decide_into(row, seen, into, storing, runtime)
        verdict = self._verdict(row, seen)
        return Decision(self.name, row.name, seen, verdict, partial(self._find_fix, row, runtime))

    def _verdict(self, operation: Operation, operands: tuple[Operand, ...]) -> Verdict:
        """The verdict on a call, settled once for all that it depends on."""
        key = (operation.name, *map(self._key, operands))
        verdict = self.memory.verdicts.get(key)
        if verdict is None:
            settled = self._settle(operation, operands)
            verdict = self.memory.verdicts[key] = self._with_number_steps(operation, operands, settled)
        return verdict

    def ignores_bound(self, array: Operand, bound: Operand, *, is_lower: bool) -> bool:  # noqa: ARG002
        """Whether `clip` leaves a bound out because no element is beyond it.

        Args:
            array: what is clipped.
            bound: the bound.
            is_lower: whether it is the lower one.
        """
        return False

    def _decide_into(
        self,
        operation: Operation,
        operands: tuple[Operand, ...],
        into: Operand | None,
        storing: Storing | None,
        runtime: Runtime,
    ) -> Decision:
        if into is None or into.dtype is None:
            raise ArgumentError(f"{operation.name} needs an array to write into; use into=")
        # Its dtype stays, weak or not.
        target = replace(into, weak=False, value=None, held=None)
        how = storing or (self.item if operation is ASSIGN else self.in_place)
        verdict = self._verdict_into(operation, operands, target, how)
        fix = partial(self._find_fix_into, operation, target, how, runtime)
        return Decision(self.name, operation.name, operands, verdict, fix, target)

    def _verdict_into(
        self, operation: Operation, operands: tuple[Operand, ...], into: Operand, how: Storing
    ) -> Verdict:
        """The verdict on a call whose result is written into something, settled once for all that it depends on."""
        values = (None if each.value is None else interval(each.value) for each in operands)
        key = ("into", operation.name, how, self._key(into), *zip(map(self._key, operands), values, strict=True))
        verdict = self.memory.verdicts.get(key)
        if verdict is None:
            settled = self._settle_into(operation, operands, into, how)
            verdict = self.memory.verdicts[key] = self._with_number_steps(operation, operands, settled)
        return verdict

    def _find_fix_into(
        self, operation: Operation, into: Operand, how: Storing, runtime: Runtime, operands: tuple[Operand, ...]
    ) -> Fix | None:
        """Casts after which the result can be stored; nothing is cut off from a number."""

        def settle(fixed: tuple[Operand, ...]) -> Verdict:
            return self._verdict_into(operation, fixed, into, how)

        return find_fix_into(operation, operands, into, self._may_cast, settle, runtime)

    def _settle_into(self, operation: Operation, operands: tuple[Operand, ...], into: Operand, how: Storing) -> Verdict:
        """The verdict on a call whose result is written into something."""
        if operation is ASSIGN:
            return self._assigned(operands[0], into, how)
        met = self._settle(operation, operands)
        if met.result is None:
            return met
        source, target = as_format(met.result.dtype), into.format
        if why := objection(how, source, target, self._is_same_kind):
            return Verdict.refuse(*met.reason, why)
        reason = (*met.reason, *account(how, source, target))
        stored = None if source is target else source.dtype
        return replace(met, result=ResultType(target.dtype), reason=reason, stored=stored)

    def _assigned(self, value: Operand, into: Operand, how: Storing) -> Verdict:
        """The verdict on a value that is assigned to elements of an array."""
        target = into.format
        if how is Storing.KEPT:
            met = self._brought(into, value)
            if met.result is None:
                return met
            if met.result.dtype != target.dtype:
                why = objection(how, as_format(met.result.dtype), target, self._is_same_kind)
                return Verdict.refuse(*met.reason, why)
            reason = met.reason
        else:
            if why := self._objection_to_cast(value, target):
                return Verdict.refuse(why)
            if why := objection_to_loss(str(value), value.category, target):
                return Verdict.refuse(why)
            reason = (how.value,)
        if value.is_python_scalar and value.value is not None and not fits(value.value, target):
            return Verdict.refuse(*reason, f"{value} is out of range of {target}", overflow=True)
        return Verdict.accept(target.dtype, 1, *reason)

    def _is_same_kind(self, source: Format, target: Format) -> bool:
        """Whether in-place operators cast a format to another, in a framework to which kinds matter."""
        return is_no_higher(source, target)

    def _brought(self, into: Operand, value: Operand) -> Verdict:
        """Where a value meets what it is assigned to, by the types, else as the runtime holds them."""
        by_type = self._settle_operation(as_operation("promote_types"), (into, value))
        if by_type.result is not None and by_type.result.dtype == into.dtype:
            return by_type
        return self._settle_operation(as_operation("result_type"), (into, value))

    def _objection_to_cast(self, value: Operand, target: Format) -> str:
        """Why the framework has no cast of a value to a format at all; empty where it has one."""
        for operand in (value, Operand(target.category, target.dtype)):
            met = self._settle_operation(as_operation("result_type"), (operand,))
            if met.result is None and not operand.is_python_scalar:
                return " ".join(met.reason)
        return ""

    def __getstate__(self) -> dict[str, Any]:
        return self._values()

    def _values(self) -> dict[str, Any]:
        """All that it holds, by name: its fields, and what a subclass has set besides."""
        return {name: value for name, value in vars(self).items() if name != "memory"}

    def key_of(self, operand: Operand) -> Hashable:
        """All of an operand that verdicts depend on: what else is prepared for it can be kept by this."""
        return self._key(operand)

    def _key(self, operand: Operand) -> Hashable:
        """All that this rule set's verdict depends on; rule sets that look at more say so by overriding it."""
        return (operand.category, operand.dtype, operand.weak, operand.is_python_scalar)

    def _with_number_steps(self, operation: Operation, operands: tuple[Operand, ...], verdict: Verdict) -> Verdict:
        if verdict.result is None or not any(operand.is_python_scalar for operand in operands):
            return verdict
        steps = tuple(
            self._number_steps(operation, operands, position, as_format(dtype).component)
            if operands[position].is_python_scalar
            else ()
            for position, dtype in enumerate(verdict.compute)
        )
        return replace(verdict, number_steps=steps)

    def _number_steps(
        self,
        operation: Operation,  # noqa: ARG002 (rule sets whose operations differ override this)
        operands: tuple[Operand, ...],
        position: int,
        target: Format,
    ) -> Steps:
        """The formats that a Python number is converted to, in their order.

        Args:
            operation: what is computed.
            operands: of what.
            position: which of them is the number.
            target: the format it is computed in, or the components of that.
        """
        return usual_steps(operands[position].category, target)

    @abstractmethod
    def _meet(self, operation: Operation, operands: tuple[Operand, ...]) -> Verdict:
        """Where the operands meet, before the operation has its say."""

    def _float_for(self, operation: Operation, dtype: DType) -> DType | None:
        """The float that an operation like division makes of an integer or bool dtype; None refuses."""
        raise NotImplementedError(f"{self.name} does not define the float dtype of {operation.name} for {dtype}")

    def _accepts(self, operation: Operation) -> tuple[str, ...]:
        """The categories the operation takes, by these rules."""
        return self.accepts.get(operation.name, operation.accepts)

    def _refusal_of_category(self, operation: Operation, met: Verdict, dtype: DType) -> Verdict | None:
        """The refusal of an operation that is not defined for what its operands met in; None where it is."""
        return None if as_format(dtype).category in self._accepts(operation) else takes_no(operation, met, dtype)

    def _settle(self, operation: Operation, operands: tuple[Operand, ...]) -> Verdict:
        """The verdict on a call; where the framework lacks the function, that on the one that stands in for it."""
        if operation.name in self.agreeing and (why := disagreement(operation, operands)):
            return Verdict.refuse(why)
        stand_in = self.stands_in.get(operation.name)
        if stand_in is None:
            verdict = self._follow(operation, operands) or self._settle_operation(operation, operands)
            absent = self.lacks.get(operation.name, ()) if verdict.result is not None else ()
            if absent and (found := str(verdict.compute[0])) in absent:
                return Verdict.refuse(
                    *verdict.reason, f"{self.library or self.name} has no {operation.name} of {found}"
                )
            return verdict
        verdict = self._settle_operation(as_operation(stand_in), operands)
        if verdict.result is not None:
            computed = verdict.compute[0]
            highest = max(map(CATEGORIES.index, operation.accepts))
            if CATEGORIES.index(as_format(computed).category) > highest:
                verdict = takes_no(operation, verdict, computed)
        why = f"{self.library} has no {operation.name}, so it is decided like {stand_in}"
        return replace(verdict, reason=(why, *verdict.reason))

    def _follow(self, operation: Operation, operands: tuple[Operand, ...]) -> Verdict | None:
        """The verdict on a function that promotes as another operation does; None for any other."""
        followed = self.follows.get(operation.name)
        if followed is None:
            return None
        verdict = self._settle_operation(as_operation(followed), operands)
        if verdict.result is None:
            return verdict
        why = f"{operation.name} promotes like {followed}"
        verdict = replace(verdict, reason=(*verdict.reason, why) if followed != "result_type" else verdict.reason)
        refusal = None
        if operation.name in self.accepts:
            refusal = self._refusal_of_category(operation, verdict, verdict.compute[0])
        return refusal or verdict

    def _reduce(self, operation: Operation, operands: tuple[Operand, ...]) -> Verdict:
        """The verdict on a reduction."""
        row = self.reductions.get(operation.name)
        framework = self.library or self.name
        if row is None:
            return Verdict.refuse(f"{framework} has no {operation.name}")
        if operands[0].is_python_scalar and not row.numbers:
            return Verdict.refuse(
                f"{operation.name} needs an array, got Python {TYPE_OF_CATEGORY[operands[0].category].__name__}"
            )
        met = self._meet(operation, operands)
        return met if met.result is None else row.verdict(operation.name, framework, met)

    def _settle_operation(self, operation: Operation, operands: tuple[Operand, ...]) -> Verdict:
        """The verdict on a call. Rule sets whose operations follow no common pattern override it."""
        if operation.family is Family.REDUCTION:
            return self._reduce(operation, operands)
        met = self._meet(operation, operands)
        if met.result is None:
            return met
        dtype = met.result.dtype
        if refusal := self._refusal_of_category(operation, met, dtype):
            return refusal
        if operation.result is Result.FLOAT and not as_format(dtype).is_inexact:
            target = self._float_for(operation, dtype)
            if target is None:
                return Verdict.refuse(*met.reason, f"{operation.name} does not convert {dtype} to a float")
            reason = (*met.reason, f"{operation.name} converts {dtype} to {target}")
            return Verdict.accept(target, len(operands), *reason, weak=met.result.weak)
        return given(operation, met)

    def _find_fix(self, operation: Operation, runtime: Runtime, operands: tuple[Operand, ...]) -> Fix | None:
        """Casts that these rules accept and the runtime carries out; None where there are none."""

        def settle(fixed: tuple[Operand, ...]) -> Verdict:
            return self._verdict(operation, fixed)

        return find_fix(operation, operands, self._targets(operands), self._may_cast, settle, runtime)

    def _targets(self, operands: tuple[Operand, ...]) -> Iterable[DType]:
        """Formats that a fix may cast operands to, best first."""
        return targets_for(operands)

    def _may_cast(self, operand: Operand, target: Format, may_cut: bool) -> bool:
        """Whether a fix may cast an operand, and the rules give it a real part if that is what is kept."""
        if not self._is_castable(operand, target, may_cut=may_cut):
            return False
        cast = FixCast.of(0, operand, target.dtype)
        if not cast.drops_imaginary or cast.is_number or operand.library:
            return True
        return self._verdict(_REAL, (operand.with_dtype(cast.through or operand.dtype),)).result is not None

    def _is_castable(self, operand: Operand, target: Format, *, may_cut: bool) -> bool:
        """Whether a fix may cast an operand to a format.

        Args:
            operand: the operand; a Python number that is known has to be in range.
            target: the format.
            may_cut: whether a number may lose its fraction, and a complex operand its imaginary part.
        """
        value = operand.value
        if isinstance(value, complex) and target.category != "complex":
            value = value.real
        if operand.dtype is None and value is not None and not stores(value, target, may_cut=may_cut):
            return False
        is_higher = CATEGORIES.index(operand.category) > CATEGORIES.index(target.category)
        keeps_parts = operand.category != "complex" or target.category == "bool"
        return may_cut or not is_higher or (not operand.is_python_scalar and keeps_parts)


@dataclass(frozen=True, eq=False)
class LatticeRuleSet(RuleSet):
    """Rules that are the joins of an order on formats and weak kinds.

    Args:
        name, summary, source: as for every rule set.
        lattice: the order; nodes are names of formats and of weak kinds.
        defaults: the format a weak kind takes when nothing stronger is around.
        held_as: the format the runtime really holds where it differs from the one named, such as int32 for int64 in
            JAX with x64 off; under the name of a weak kind where only its default differs. Questions about types alone
            ignore it.
        held_because: half a sentence on why, for explanations.
        joins_defaults: whether weak operands alone meet as the formats that hold them, rather than as weak kinds.
    """

    weak_arrays: ClassVar[bool] = True

    lattice: Lattice
    defaults: Mapping[str, str]
    held_as: Mapping[str, str] = field(default_factory=dict[str, str])
    held_because: str = ""
    joins_defaults: bool = True

    def _meet(self, operation: Operation, operands: tuple[Operand, ...]) -> Verdict:
        return lattice_verdict(
            self.lattice,
            operands,
            defaults=self.defaults,
            held_as={} if operation.types_only else self.held_as,
            held_because=self.held_because,
            joins_defaults=self.joins_defaults,
        )
