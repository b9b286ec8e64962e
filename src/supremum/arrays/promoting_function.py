"""Functions whose dtype the rules decide: a decision, casts, the library's function, and a cast of the result."""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, TypeAlias

from supremum.arrays.backends import Backend, CallPlan, Key, Raw
from supremum.arrays.backends.base import Build
from supremum.arrays.backends.numpy import NUMPY
from supremum.arrays.calls import Function, Prepared, PreparedCall, callable_of, prepared_calls, read
from supremum.arrays.conversion import convert
from supremum.arrays.errors import RuntimeDtypeError
from supremum.arrays.fix_trials import Trial, in_library, no_fix, with_operands
from supremum.arrays.wrapped import (
    NUMBERS,
    as_key,
    as_option,
    check_library,
    common_backend,
    holds_value,
    is_operand,
    library_of,
    new_array,
    not_an_operand,
    operands_of,
    with_value,
)
from supremum.decisions import Decision, PromotionError, ResultType, Verdict
from supremum.formats import as_format
from supremum.number_conversion import Steps
from supremum.operands import Operand
from supremum.operations import Family, Operation, as_operation
from supremum.rules import JAX_ALIASES, SCOPE, RuleSet, RulesLike, Watcher, get_rules, question
from supremum.typing import ArrayLike

Arguments: TypeAlias = tuple[Sequence[Any], Mapping[str, Any]]
"""The operands of a call, and its checked options."""


def one_operand(x: ArrayLike, /) -> Arguments:
    """The arguments of a function of one operand."""
    return (x,), {}


def two_operands(x1: ArrayLike, x2: ArrayLike, /) -> Arguments:
    """The arguments of a function of two operands."""
    return (x1, x2), {}


class Case(NamedTuple):
    """What a decision depends on.

    Args:
        keys: of the operands.
        operands: the operands.
        options: the checked options of the call.
    """

    keys: tuple[Key, ...]
    operands: tuple[Operand, ...]
    options: Mapping[str, Any]

    def valued(self, raws: Sequence[Raw]) -> Case:
        """The case with the values of 0-d arrays of NumPy."""
        keys = (*map(with_value, self.keys, raws),)
        return self._replace(keys=keys, operands=operands_of(keys, raws))


class PromotingFunction(Function):
    """A function of operands that the rules promote.

    Args:
        operation: the name of the operation that decides; None for a decision without an operation.
        arguments: returns the operands of a call and its checked options.
        build: makes the function of the converted operands; None for an elementwise function of the library.
        name: of the function, if it differs from the operation's name.
        doc: as for `Function`.
        promoted: the operands that the rules promote; the others keep their dtypes.
        gives_indices: whether the result has the library's dtype of indices.
        takes_numbers: whether Python numbers can be operands.

    Attributes:
        operator: the function as an operator of Python, which returns `NotImplemented` for other operands.
    """

    def __init__(
        self,
        operation: str | None,
        arguments: Callable[..., Arguments],
        build: Build | None = None,
        *,
        name: str = "",
        doc: str = "",
        promoted: slice = slice(None),
        gives_indices: bool = False,
        takes_numbers: bool = True,
    ) -> None:
        row = as_operation(operation)
        # A function with a name of its own is not the library's reduction, which may accumulate by itself.
        own = Family.WHOLE if row.family is Family.REDUCTION else row.family
        self.operation: Operation = replace(row, name=name, family=own) if name else row
        self.operands: int = sys.maxsize if takes_numbers else 0
        self._deciding, self._build = row, build
        # A fix is tried with the promoted operands alone.
        is_whole = row.family in (Family.WHOLE, Family.QUESTION) or promoted != slice(None)
        self._trial = in_library(row.name) if build and is_whole else build
        self._promoted, self._gives_indices = promoted, gives_indices
        super().__init__(name or row.name, arguments, doc)
        self.operator: Callable[..., Any] = callable_of(self, is_operand if takes_numbers else library_of)

    def prepare(self, rules_like: RulesLike, args: Sequence[Any], options: Mapping[str, Any]) -> PreparedCall:
        """Decide, and prepare.

        Raises:
            PromotionError: if the rules refuse.
            LibraryError: for operands from two libraries.
            OperandError: for operands that are neither arrays of numbers nor Python numbers.
        """
        operands, case_options = self.arguments(*args, **options)
        case_options = {name: as_option(value) for name, value in case_options.items()}
        raws, keys = self._keyed(rules_like, operands)
        library = self.backend
        if library is not None:
            raws, keys = self._keyed(rules_like, _adopt(library, self.name, operands, keys))
        kept, known = prepared_calls(rules_like), (*read(self, (), case_options, rules_like)[0], *keys)
        prepared = kept.get(known)
        if prepared is None:
            case = Case(keys, operands_of(keys, raws), case_options)
            prepared = kept[known] = self._prepare_under(rules_like, case)
        if library not in (None, common_backend(keys, self.name)):  # it computes from Python numbers alone
            run = prepared.run
            prepared = Prepared(lambda *raws: convert(run(raws), library=library))
        return prepared, raws

    def _keyed(self, rules_like: RulesLike, operands: Sequence[Any]) -> tuple[list[Raw], tuple[Key, ...]]:
        raws: list[Raw] = []
        keys: list[Key] = []
        for operand in operands:
            keyed_raw = as_key(operand, rules_like)
            if keyed_raw is None:
                raise not_an_operand(operand, self.name, len(keys))
            raws.append(keyed_raw[0])
            keys.append(keyed_raw[1])
        return raws, (*keys,)

    def fail(self, args: Sequence[Any], options: Mapping[str, Any], error: Exception) -> None:
        """As in the base class; the decision of an error gets the operands of this call, which its fix casts."""
        if not isinstance(error, (PromotionError, RuntimeDtypeError)):
            super().fail(args, options, error)
        elif error.decision is not None:
            error.decision = with_operands(error.decision, self.operands_of(args, options))

    def operands_of(self, args: Sequence[Any], options: Mapping[str, Any]) -> Sequence[Any]:
        """The operands of a call about which rules decide."""
        return self.arguments(*args, **options)[0][self._promoted]

    def _prepare_under(self, rules_like: RulesLike, case: Case) -> Prepared:
        """The prepared function under the rules in force, which may depend on values and on JAX's flags."""
        in_jax = common_backend(case.keys, self.name).in_jax
        rules = get_rules(rules_like, in_jax=in_jax)
        if rules.reads_values and any(map(holds_value, case.keys)):
            return _ask_at_each_call(
                lambda raws: (*(rules.key_of(key.operand) for key in case.valued(raws).keys),),
                lambda raws: self.prepare_for(rules, case.valued(raws)),
            )
        if in_jax and isinstance(rules_like, str) and rules_like in JAX_ALIASES:
            verdicts = {name: self.decide(get_rules(name), case).verdict for name in JAX_ALIASES[rules_like]}
            flags = question({name: (verdict.result, verdict.compute) for name, verdict in verdicts.items()})
            if flags is not None:  # they make a difference
                ask = flags.ask  # looked up here, not at every call
                return _ask_at_each_call(lambda _: ask(), lambda _: self.prepare_for(get_rules(rules_like), case))
        return self.prepare_for(rules, case)

    def decide(self, rules: RuleSet, case: Case) -> Decision:
        """The decision of a rule set, with fixes that the libraries of the operands can carry out."""
        runtime = Trial(case.keys[self._promoted], self._trial, case.options)
        decision = rules.decide(self._deciding, case.operands[self._promoted], runtime=runtime)
        return replace(decision, operation=self.name)

    def prepare_for(self, rules: RuleSet, case: Case) -> Prepared:
        """The function that carries out the decision of a rule set.

        Raises:
            PromotionError: if the rules refuse.
        """
        backend = common_backend(case.keys, self.name)
        if self.operation.family is not Family.ELEMENTWISE:
            backend.check_computes(self.name, (key.operand.format.dtype for key in case.keys if key.backend))
        plan = self._steps(rules, case)
        try:
            if (dtype := plan.of_columns) is not None:
                what = f"{self.name}: the rules compute in {dtype}, which {backend.name} does not have"
                raise RuntimeDtypeError(what)
            function = backend.prepare(plan)
        except RuntimeDtypeError as error:
            error.decision = plan.decision
            raise
        watcher = SCOPE.get().watcher
        if watcher is not None:
            function = _watch(watcher, plan, function)
        explain = partial(backend.clarify_error, plan)
        if plan.build is None:  # the result of an elementwise function has a key that is known
            return Prepared(function, partial(new_array, key=backend.key_of_result(plan)), explain)
        weak = plan.result.weak and not plan.gives_indices
        return Prepared(function, lambda raw: new_array(*backend.with_key(raw, weak)), explain)

    def _steps(self, rules: RuleSet, case: Case) -> CallPlan:
        keys, promoted = case.keys, self._promoted
        decision = self.decide(rules, case)
        verdict = decision.verdict
        if verdict.result is None:
            raise decision.error()
        compute = [key.dtype or verdict.result.dtype for key in keys]
        compute[promoted] = verdict.compute
        steps: list[Steps] = [()] * len(keys)
        steps[promoted] = verdict.number_steps or ((),) * len(verdict.compute)
        return CallPlan(
            self.operation, keys, (*compute,), verdict.result, rules.name, self._build, case.options, (*steps,),
            decision, self._gives_indices,
        )  # fmt: skip


def by_name(name: str, **defaults: object) -> Build:
    """Make the library's function with a name of the standard, with the options of the plan."""

    def build(backend: Backend, plan: CallPlan) -> Callable[..., Raw]:
        function = backend.function(name)
        return partial(function, **plan.options) if plan.options != defaults else function

    return build


# The cast to a real dtype comes before the squares, and would drop imaginary parts.
_OF_SQUARES = ("var", "std")


class ReducingFunction(PromotingFunction):
    """A reduction, which may have an option for the dtype of its result."""

    def decide(self, rules: RuleSet, case: Case) -> Decision:
        """The decision of a rule set; if the user asks for a dtype, it is that about an operand that has it already."""
        dtype = case.options.get("dtype")
        if dtype is None:
            return super().decide(rules, case)
        operand = case.operands[0].with_dtype(dtype)
        decision = super().decide(rules, case._replace(operands=(operand,)))
        # Rules that do not have the dtype say nothing about it, as with a cast.
        reasons = () if decision or not rules.decide(None, (operand,)) else decision.reason
        if self._deciding.name in _OF_SQUARES and operand.category != case.operands[0].category == "complex":
            reasons = (f"{self.name} of complex elements needs a complex dtype=",)
        if reasons:
            refused = Verdict.refuse(f"the result must be {dtype}, as asked for", *reasons)
            return replace(decision, operands=case.operands, verdict=refused, find_fix=no_fix)
        # An integer wraps around to the same result, however wide the computation was.
        computes = decision.verdict.compute[0] if decision and as_format(dtype).is_inexact else dtype
        if not as_format(computes).holds(as_format(dtype)):
            computes = dtype
        why = f"the result is {dtype}, as asked for"
        verdict = Verdict(ResultType(dtype), (computes,), (why, *decision.reason))
        # Casts of the operand do not help: the library lacks the dtype that was asked for.
        return replace(decision, operands=case.operands, verdict=verdict, find_fix=no_fix)


def _ask_at_each_call(ask: Callable[[Sequence[Raw]], Hashable], make: Callable[[Sequence[Raw]], Prepared]) -> Prepared:
    """Ask a question at every call, and run the function that is prepared for the answer."""
    functions: dict[Hashable, Prepared] = {}

    def follow(*raws: Raw) -> Any:
        answer = ask(raws)
        if answer not in functions:
            functions[answer] = make(raws)
        return functions[answer].run(raws)

    return Prepared(follow)


def _adopt(backend: Backend, name: str, operands: Sequence[Any], keys: Sequence[Key]) -> Sequence[Any]:
    """Convert operands so that at least one is an array of the namespace's library.

    Of Python numbers alone the first becomes a weak array of that library, under rules that have weak arrays.

    Raises:
        LibraryError: for arrays of a third library.
    """
    libraries = [key.backend for key in keys]
    for position, library in enumerate(libraries):
        check_library(backend, name, position, library)
    if backend in libraries:
        return operands
    first = libraries.index(NUMPY) if NUMPY in libraries else None
    if first is None and get_rules(in_jax=backend.in_jax).weak_arrays:
        first = next((i for i, operand in enumerate(operands) if type(operand) in NUMBERS), None)
    return [convert(each, library=backend) if i == first else each for i, each in enumerate(operands)]


def _watch(watcher: Watcher, plan: CallPlan, function: Callable[..., Raw]) -> Callable[..., Raw]:
    """A prepared function that notifies a watcher at every call."""

    def run(*raws: Raw) -> Raw:
        watcher.note(plan, raws)
        return function(*raws)

    return run
