"""`RuleSet`, the base of all rule sets: a frozen, named value that turns operands into a decision."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar

from supremum.decisions import Decision, ResultType, Verdict
from supremum.errors import ArgumentError
from supremum.fix import Fix
from supremum.formats import DType, Format, as_format
from supremum.lattice import Lattice
from supremum.number_conversion import Steps, fits, interval, usual_steps
from supremum.operands import TYPE_OF_CATEGORY, WEAK_NAMES, Operand, OperandLike, Operands, number_text, weak_name
from supremum.operations import ASSIGN, Family, Operation, Result, as_operation
from supremum.rules.columns import Columns
from supremum.rules.lattices import (
    checked_defaults,
    checked_order,
    held_format,
    no_join,
    nodes_of,
    reasons_of_held,
    reasons_of_join,
)
from supremum.rules.reductions import Reduction, standard
from supremum.rules.runtimes import EVERYTHING, Runtime
from supremum.rules.shared_cache import Memory, memory_of_values
from supremum.rules.verdicts import (
    LOSSES_AS_DIVISION,
    Storing,
    Target,
    capped,
    disagreement,
    is_no_higher,
    objection,
    objection_to_loss,
    of_stand_in,
    refuse_category,
    with_result_of,
)

if TYPE_CHECKING:
    from supremum.rules.array_casts import ArrayCasts


@dataclass(frozen=True, eq=False, repr=False)
class RuleSet(ABC):
    """A framework's promotion rules, as a value: two of one class with equal fields are equal.

    A user-defined subclass must set its attributes in `__init__`.

    Args:
        name: the name that users pass.
        summary: one line that says which rules these are.
        source: the document or software that these rules reproduce.
        measured: the operations that the framework was asked for, by name; other operations are refused, but not plain
            promotion. None for rules that decide about any operation by its row in `operations`.
        accepts: the categories that an operation accepts, where they differ from those of its row in `operations`.
        stands_in: for each function that the framework lacks, the function whose rules apply instead. The function
            accepts the same categories, but none above those of its own row.
        agreeing: functions that need arrays of one dtype.
        lacks: for each operation, the formats without a kernel on any device. No fix casts to them.
        formats: the names of the formats that the framework has; None for all that arrays have.
        computes: for each operation, the formats that it does not compute in, and those that it uses instead.
        gives: for each operation, the formats that it computes in but does not return, and those that it returns.
        quotients: for bool and the integers, the float that operations such as division convert them to.
        reductions: the dtypes in which reductions accumulate and the dtypes of their results.
        library: the name of the library in explanations.
        spelling: the library in `fix.SPELLINGS` in whose code fixes are written; empty for that of NumPy.
        in_place: what in-place operators and `out=` may store in an array.
        item: what assignment to elements may store in an array.
        array_casts: what casts make of the values of arrays; None if the rules say nothing about it.
        columns: what becomes of missing values in columns of data frames.
        weak_arrays: whether the rules know weak arrays, as JAX does; other rules treat a weak array like any other.
        caps: the formats that promotion does not give, and those that it gives instead; see `cap_at_32_bits`.

    >>> from dataclasses import replace
    >>> from supremum import explain, rules
    >>> strict = replace(rules.TORCH, name="strict-torch", in_place=Storing.KEPT)
    >>> for each in (rules.TORCH, strict):
    ...     bool(explain("int8", "int16", operation="add", into="int8", rules=each))
    True
    False
    """

    reads_numbers: ClassVar[tuple[type, ...]] = ()
    """The types of the Python numbers whose values verdicts depend on."""
    reads_dimensions: ClassVar[bool] = False
    """Whether verdicts depend on which arrays are 0-d."""
    reads_values: ClassVar[bool] = False
    """Whether the result depends on the values of 0-d arrays, as in NumPy 1."""

    name: str
    summary: str
    source: str
    measured: frozenset[str] | None = field(default=frozenset(), kw_only=True)
    accepts: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]], kw_only=True)
    stands_in: Mapping[str, str] = field(default_factory=dict[str, str], kw_only=True)
    agreeing: frozenset[str] = field(default=frozenset(), kw_only=True)
    lacks: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]], kw_only=True)
    formats: frozenset[str] | None = field(default=None, kw_only=True)
    computes: Mapping[str, Mapping[str, str]] = field(default_factory=dict[str, "Mapping[str, str]"], kw_only=True)
    gives: Mapping[str, Mapping[str, str]] = field(default_factory=dict[str, "Mapping[str, str]"], kw_only=True)
    quotients: Mapping[str, str] = field(default_factory=dict[str, str], kw_only=True)
    reductions: Mapping[str, Reduction] = field(default_factory=partial(standard, "int64", "uint64"), kw_only=True)
    library: str = field(default="", kw_only=True)
    spelling: str = field(default="", kw_only=True)
    in_place: Storing = field(default=Storing.KEPT, kw_only=True)
    item: Storing = field(default=Storing.KEPT, kw_only=True)
    array_casts: ArrayCasts | None = field(default=None, kw_only=True)
    columns: Columns = field(default=Columns(), kw_only=True)
    weak_arrays: bool = field(default=False, kw_only=True)
    caps: Mapping[str, str] = field(default_factory=dict[str, str], kw_only=True)

    @cached_property
    def memory(self) -> Memory:
        """The caches of these rules, which equal rule sets share."""
        return memory_of_values(type(self), self._values())

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    def __eq__(self, other: object) -> bool:
        """Whether the other rule set has the same class and equal attributes."""
        return self.memory is other.memory if isinstance(other, RuleSet) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.memory)

    @staticmethod
    def from_lattice(
        name: str, edges: Mapping[str, Iterable[str]], *, defaults: Mapping[str, str] | None = None, summary: str = ""
    ) -> RuleSet:
        """Make a rule set from an order: operands promote to their join.

        Args:
            name: the name in explanations; it must not be the name of a built-in rule set.
            edges: for each format or weak kind (`"int*"`, `"float*"`, `"complex*"`), the nodes directly above it;
                an empty list for a format that works only with itself. Formats without an entry are refused.
            defaults: the format that holds a weak kind if no operand is stronger, such as `{"float*": "bfloat16"}`; int32,
                float32 and complex64 by default.
            summary: one line that describes them.

        Returns:
            The rule set, which equals any other with the same name, edges and defaults. Operations accept the
            categories of their rows in `operations`: division and `sin`, for example, do not accept integers.

        Raises:
            ArgumentError: for a cycle; for an order that is not a lattice, because two nodes have common upper bounds but
                no least one (the message lists the smallest); and for a default of a different category than its weak
                kind.
            UnknownDtypeError: for a name that is not a format.

        >>> mine = RuleSet.from_lattice(
        ...     "mine", {"int*": ["int8"], "int8": ["int16"], "int16": ["float32"]}
        ... )
        >>> import supremum
        >>> supremum.result_type("int8", "float32", rules=mine)
        dtype('float32')
        >>> RuleSet.from_lattice(
        ...     "bad", {"int8": ["int16", "int32"], "uint8": ["int16", "int32"]}
        ... )
        Traceback (most recent call last):
            ...
        supremum.errors.ArgumentError: 'bad' is not a lattice: int8 and uint8 have two smallest upper bounds, int16 and int32
        """  # noqa: E501
        order, default_formats = checked_order(name, edges), checked_defaults(defaults or {})
        integer = as_format(default_formats[weak_name("integer")])
        return LatticeRuleSet(
            name=name,
            summary=summary or "a user-defined lattice",
            source="RuleSet.from_lattice",
            lattice=order,
            defaults=default_formats,
            joins_defaults=False,
            measured=None,
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
        """Decide one call; every dtype of Supremum comes from here.

        Args:
            operation: a name from `supremum.operations`, or None for plain promotion without an operation.
            operands: at least one.
            into: the array that the result is written into (`a += b`, `out=`, `a[0] = b`), which keeps its dtype;
                None for a new array. For the operation "assign" the operand is the value.
            storing: what may be stored in it; None for what the framework stores in an array. A `Variable` stores less.
            runtime: the library that must carry out the fix of a refusal; it does not affect the decision.

        Returns:
            The decision or the refusal, with its reason.

        Raises:
            UnknownNameError: for an unknown operation.
            ArgumentError: for a wrong number of operands.
        """
        if not operands:
            raise ArgumentError("a decision needs operands, got none; give at least one")
        row = as_operation(operation)
        if row.arity is not None and len(operands) != row.arity:
            expected = "1 operand" if row.arity == 1 else f"{row.arity} operands"
            raise ArgumentError(f"{row.name} takes {expected}, got {len(operands)}")
        seen = tuple(operands)
        if not self.weak_arrays:
            seen = tuple(replace(o, weak=False) if o.weak and o.dtype is not None else o for o in seen)
        target = None
        if into is not None or row is ASSIGN:
            if into is None or into.dtype is None:
                raise ArgumentError(f"{row.name} needs an array to write into; use into=")
            into = replace(into, weak=False, value=None, held=None)  # it keeps its dtype, weak or not
            target = (into, storing or (self.item if row is ASSIGN else self.in_place))
        find_fix = partial(self._find_fix, row, target, runtime)
        return Decision(self.name, row.name, seen, self._verdict(row, seen, target), find_fix, into)

    def _verdict(self, operation: Operation, operands: Operands, target: Target | None = None) -> Verdict:
        """The verdict on a call whose result is new, or is written into an array."""
        if any(each.nullable for each in (*operands, *(target or ())[:1])):
            return self.columns.verdict(self._cached, operation, operands, target)
        return self._cached(operation, operands, target)

    def _cached(self, operation: Operation, operands: Operands, target: Target | None) -> Verdict:
        """The cached verdict on operands as these rules see them."""
        key = (operation.name, *map(self.key_of, operands))
        if target is not None:
            values = (None if each.value is None else interval(each.value) for each in operands)
            key = ("into", target[1], self.key_of(target[0]), *key, *values)
        verdict = self.memory.verdicts.get(key)
        if verdict is None:
            verdict = self._settled(operation, operands, target)
            # A refusal may name a number, and the key stands for other numbers, too.
            numbers = [number_text(each.value) for each in operands if each.value is not None]
            if verdict.result is not None or not any(each in " ".join(verdict.reason) for each in numbers):
                self.memory.verdicts[key] = verdict
        return verdict

    def _settled(self, operation: Operation, operands: Operands, target: Target | None) -> Verdict:
        """The verdict on a call, with the steps in which its Python numbers are converted."""
        formats = dict.fromkeys(each.format for each in (*operands, *(target or ())[:1]) if each.dtype is not None)
        if absent := [row.name for row in formats if not self._has_format(row)]:
            return Verdict.refuse(f"{self.library or self.name} has no {' and '.join(absent)}")
        if target:
            verdict = self._settle_into(operation, operands, *target)
        else:
            verdict = capped(self._settle(operation, operands), operands, self.caps)
        if verdict.result is None or not any(operand.is_python_scalar for operand in operands):
            return verdict
        steps = (
            self._number_steps(operation, operands, i, as_format(dtype).component) if o.is_python_scalar else ()
            for i, (o, dtype) in enumerate(zip(operands, verdict.compute, strict=False))
        )
        return replace(verdict, number_steps=tuple(steps))

    def _has_format(self, row: Format) -> bool:
        """Whether the framework has a format."""
        return row.is_of_arrays if self.formats is None else row.name in self.formats

    def read(self, value: OperandLike) -> Any:
        """An operand as the framework reads it; PyTorch, for one, reads a NumPy scalar as a Python number."""
        return value

    def ignores_bound(self, array: Operand, bound: Operand, *, is_lower: bool) -> bool:  # noqa: ARG002
        """Whether `clip` skips a bound because no element can be beyond it.

        Args:
            array: the array to clip.
            bound: the bound.
            is_lower: whether it is the lower one.
        """
        return False

    def _settle_into(self, operation: Operation, operands: Operands, into: Operand, how: Storing) -> Verdict:
        """The verdict on a call whose result is written into an array."""
        if operation is ASSIGN:
            return self._assigned(operands[0], into, how)
        met = capped(self._settle(operation, operands), (into,), self.caps)
        if met.result is None:
            return met
        source, target = as_format(met.result.dtype), into.format
        if why := objection(how, source, target, self._is_same_kind):
            return Verdict.refuse(*met.reason, why)
        met = replace(met, result=ResultType(target.dtype))
        if source is target:
            return met
        checked = () if target.holds(source) else (f"a value outside the range of {target} is an error",)
        reason = (*met.reason, f"{source} is stored in {target}: {how.value}", *checked)
        return replace(met, reason=reason, stored=source.dtype)

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
            if why := self._objection_to_cast(value, target) or objection_to_loss(str(value), value.category, target):
                return Verdict.refuse(why)
            reason = (how.value,)
        if value.is_python_scalar and value.value is not None and not fits(value.value, target):
            return Verdict.refuse(*reason, f"{value} is out of range of {target}", overflow=True)
        return Verdict.accept(target.dtype, 1, *reason)

    def _is_same_kind(self, source: Format, target: Format) -> bool:
        """Whether in-place operators cast one format to another, in frameworks that look at kinds."""
        return is_no_higher(source, target)

    def _brought(self, into: Operand, value: Operand) -> Verdict:
        """The common type of a value and its target: by type, else by the formats that the runtime holds."""
        by_type = self._settle_operation(as_operation("promote_types"), (into, value))
        if by_type.result is not None and by_type.result.dtype == into.dtype:
            return by_type
        return self._settle_operation(as_operation("result_type"), (into, value))

    def _objection_to_cast(self, value: Operand, target: Format) -> str:
        """Why the framework lacks a cast of a value to a format; empty if it has one."""
        for operand in (value, Operand(target.category, target.dtype)):
            met = self._settle_operation(as_operation("result_type"), (operand,))
            if met.result is None and not operand.is_python_scalar:
                return " ".join(met.reason)
        return ""

    def _values(self) -> dict[str, Any]:
        """The attributes by name: the fields, and those that a subclass sets."""
        return {name: value for name, value in vars(self).items() if name != "memory"}

    def __getstate__(self) -> dict[str, Any]:
        return self._values()

    def key_of(self, operand: Operand) -> Hashable:
        """The part of an operand that verdicts depend on, as a cache key; rule sets that look at more override this."""
        value = operand.value
        number = interval(value) if value is not None and isinstance(value, self.reads_numbers) else None
        is_0d = self.reads_dimensions and operand.ndim == 0
        return (operand.category, operand.dtype, operand.weak, operand.is_python_scalar, is_0d, number)

    def _number_steps(self, operation: Operation, operands: Operands, position: int, target: Format) -> Steps:  # noqa: ARG002
        """The formats that the number at a position is converted to, in order, if it is computed in the target."""
        return usual_steps(operands[position].category, target)

    @abstractmethod
    def _meet(self, operation: Operation, operands: Operands) -> Verdict:
        """The common type of the operands, before the operation changes it."""

    def _refusal_of_category(self, operation: Operation, met: Verdict, dtype: DType) -> Verdict | None:
        """The refusal of an operation that does not accept the common type of its operands; None if it does."""
        accepts = self.accepts.get(operation.name, operation.accepts)
        return None if as_format(dtype).category in accepts else refuse_category(operation, met, dtype)

    def _is_measured(self, operation: Operation) -> bool:
        """Whether the framework was asked for an operation, or the rules decide by its row alone."""
        is_plain = operation is ASSIGN or operation.family is Family.QUESTION
        return self.measured is None or is_plain or operation.name in self.measured

    def _settle(self, operation: Operation, operands: Operands) -> Verdict:
        """The verdict on a call; if the framework lacks the function, the verdict on its stand-in."""
        if not self._is_measured(operation):
            return Verdict.refuse(f"{operation.name} was not measured with {self.library or self.name}")
        if operation.name in self.agreeing and (why := disagreement(operation, operands)):
            return Verdict.refuse(why)
        stand_in = self.stands_in.get(operation.name)
        if stand_in is None:
            verdict = self._settle_operation(operation, operands)
            if verdict.result is None or str(verdict.compute[0]) not in self.lacks.get(operation.name, ()):
                return verdict
            why = f"{self.library or self.name} has no {operation.name} of {verdict.compute[0]}"
            return Verdict.refuse(*verdict.reason, why)
        verdict = self._settle_operation(as_operation(stand_in), operands)
        return of_stand_in(operation, verdict, stand_in, self.library)

    def _reduce(self, operation: Operation, operands: Operands) -> Verdict:
        """The verdict on a reduction."""
        row = self.reductions.get(operation.name)
        framework = self.library or self.name
        if row is None:
            return Verdict.refuse(f"{framework} has no {operation.name}")
        if operands[0].is_python_scalar and not row.numbers:
            number = TYPE_OF_CATEGORY[operands[0].category].__name__
            return Verdict.refuse(f"{operation.name} needs an array, got Python {number}")
        met = self._meet(operation, operands)
        return met if met.result is None else row.verdict(operation.name, framework, met)

    def _settle_operation(self, operation: Operation, operands: Operands) -> Verdict:
        """The verdict on a call; rule sets with irregular operations override this."""
        if operation.family is Family.REDUCTION:
            return self._reduce(operation, operands)
        met = self._meet(operation, operands)
        if met.result is None:
            return met
        refusal = self._refusal_of_category(operation, met, met.result.dtype)
        return refusal or self._computed(operation, met, met.result)

    def _computed(self, operation: Operation, met: Verdict, common: ResultType) -> Verdict:
        """The verdict on an operation that accepts the common type of its operands."""
        name, dtype = operation.name, common.dtype
        computed = self.computes.get(name, {}).get(str(dtype))
        if computed is None:
            needs_float = operation.result is Result.FLOAT and not as_format(dtype).is_inexact
            computed = self.quotients.get(str(dtype)) if needs_float else str(dtype)
        if computed is None:
            return Verdict.refuse(*met.reason, f"{name} does not convert {dtype} to a float")
        target = as_format(computed, columns=True).dtype
        if target != dtype:
            why = f"{name} converts {dtype} to {target}"
            met = Verdict.accept(target, len(met.compute), *met.reason, why, weak=common.weak)
        if other := self.gives.get(name, {}).get(str(target)):
            return met.resulting_in(as_format(other).dtype, f"{name} of {target} is {other}")
        return with_result_of(operation, met)

    def _find_fix(
        self, operation: Operation, target: Target | None, runtime: Runtime, operands: Operands
    ) -> Fix | None:
        """Find casts that these rules accept and the runtime carries out; None if there are none."""
        from supremum.rules.fixes import RefusedCall, find_fix  # only a refusal imports it

        if not self._is_measured(operation) or any(operand.is_missing_value for operand in operands):
            return None  # no cast changes that
        operands, target = self.columns.seen(operands, target)
        call = RefusedCall(operation, operands, target, self._allows_cast, self._verdict, runtime, self.spelling)
        return find_fix(call, self._first_targets(operands))

    def _first_targets(self, operands: Operands) -> Iterable[DType]:  # noqa: ARG002
        """Formats that a fix casts operands to before any others, best first."""
        return ()

    def _allows_cast(self, operand: Operand, target: Format, may_cut: bool) -> bool:  # noqa: ARG002
        """Whether a fix may cast an operand, if the format can take its values.

        Args:
            operand: the operand.
            target: the format.
            may_cut: whether a number may lose its fraction, and a complex operand its imaginary part.
        """
        return True


@dataclass(frozen=True, eq=False, repr=False)
class LatticeRuleSet(RuleSet):
    """Rules in which operands promote to their join in a lattice of formats and weak kinds.

    Args:
        name, summary, source: as for every rule set.
        lattice: the lattice; its nodes are names of formats and of weak kinds.
        defaults: the format that holds a weak kind if no operand is stronger.
        held_as: the formats that the runtime holds differently, such as int64 as int32 in JAX with x64 off. The name of
            a weak kind stands for its default. Questions about types alone ignore it.
        held_because: the reason, as half a sentence for explanations.
        joins_defaults: whether weak operands alone promote as the formats that hold them rather than as weak kinds.

    >>> from supremum import rules
    >>> order = rules.JAX_X64.lattice
    >>> order.join("int8", "uint8"), order.path("int32", "float16")
    ('int16', ('int32', 'int64', 'float*', 'float16'))
    >>> rules.JAX_X32.defaults["float*"], rules.JAX_X32.held_as["int64"]
    ('float64', 'int32')
    """

    lattice: Lattice
    defaults: Mapping[str, str]
    held_as: Mapping[str, str] = field(default_factory=dict[str, str])
    held_because: str = ""
    joins_defaults: bool = True
    weak_arrays: bool = field(default=True, kw_only=True)

    def _meet(self, operation: Operation, operands: Operands) -> Verdict:
        held_as: Mapping[str, str] = {} if operation.types_only else self.held_as
        names = [operand.name if operand.dtype is None else operand.format.name for operand in operands]
        formats = [held_format(name, self.defaults, held_as) for name in names]
        reason = reasons_of_held(operands, formats, self.held_because)
        nodes = nodes_of(operands, formats, joins_defaults=self.joins_defaults)
        if unknown := sorted({node for node in nodes if node not in self.lattice.edges}):
            return Verdict.refuse(f"the lattice of these rules does not contain {', '.join(unknown)}")
        met = self.lattice.join(*nodes)
        if met is None:
            return Verdict.refuse(*reason, no_join(self.lattice, nodes))
        dtype = as_format(held_format(met, self.defaults, held_as)).dtype
        paths = tuple(self.lattice.path(node, met) for node in nodes)
        all_weak = all(operand.weak for operand in operands)
        reason += reasons_of_join(met, dtype, paths, all_weak=all_weak)
        result = ResultType(dtype, all_weak or met in WEAK_NAMES)
        return Verdict(result, (dtype,) * len(operands), tuple(reason), paths)
