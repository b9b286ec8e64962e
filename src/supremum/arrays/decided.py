"""Functions whose dtype the rules decide: a decision, casts, the library's function, and a cast of the result."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, TypeAlias

from supremum.arrays.backend_errors import raise_computation_error
from supremum.arrays.backends import Backend, Key, Plan, Raw
from supremum.arrays.backends.base import Build
from supremum.arrays.backends.numpy import NUMPY
from supremum.arrays.call_forms import frozen
from supremum.arrays.conversion import convert
from supremum.arrays.dispatch import Function, Prepared, caller
from supremum.arrays.errors import RuntimeDtypeError
from supremum.arrays.fix_trials import Trial, in_library, no_fix, retyped
from supremum.arrays.operand_keys import (
    NUMBERS,
    as_key,
    check_library,
    common_backend,
    holds_value,
    not_an_operand,
    operands_of,
    with_value,
)
from supremum.arrays.reduction_kernels import reduction
from supremum.arrays.wrapped import new_array, wrapper
from supremum.decisions import Decision, PromotionError, ResultType, Verdict
from supremum.formats import as_format
from supremum.number_conversion import Steps
from supremum.operands import Operand
from supremum.operations import Family, Operation, as_operation
from supremum.rules import (
    EVERYTHING,
    FOLLOWING,
    SCOPE,
    RuleSet,
    RulesLike,
    Runtime,
    Watcher,
    get_rules,
    memory_of,
    question,
)

Arguments: TypeAlias = tuple[Sequence[Any], Mapping[str, Any]]
"""The operands of a call, and its checked options."""


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

    def known(self, function: Function) -> tuple[Hashable, ...]:
        """What identifies the prepared function of a case."""
        return (function, *frozen(self.options), *self.keys)

    def valued(self, raws: Sequence[Raw]) -> Case:
        """The case with the values of 0-d arrays of NumPy."""
        keys = (*map(with_value, self.keys, raws),)
        return self._replace(keys=keys, operands=operands_of(keys, raws))


class Decided(Function):
    """A function of operands that the rules promote.

    Args:
        operation: the name of the operation that decides; None for a decision without an operation.
        arguments: returns the operands of a call and its checked options.
        build: makes the function of the converted operands; None for an elementwise function of the library.
        name: of the function, if it is not that of the operation.
        doc: as for `Function`.
        promoted: the operands that the rules promote; the others keep their dtypes.
        trial: makes the function that tries fixes out; None for one that calls the library's function of the name.
        gives_indices: whether the result has the library's dtype of indices.

    Attributes:
        operator: the function as an operator of Python, which returns `NotImplemented` for other operands.
    """

    promotes = True

    def __init__(
        self,
        operation: str | None,
        arguments: Callable[..., Arguments],
        build: Build | None = None,
        *,
        name: str = "",
        doc: str = "",
        promoted: slice = slice(None),
        trial: Build | None = None,
        gives_indices: bool = False,
    ) -> None:
        row = as_operation(operation)
        # A function with a name of its own is not the library's reduction, which may accumulate by itself.
        own = Family.WHOLE if row.family is Family.REDUCTION else row.family
        self.operation: Operation = replace(row, name=name, family=own) if name else row
        self._deciding, self._build = row, build
        self._trial = trial or (build and in_library(name or row.name))
        self._promoted, self._gives_indices = promoted, gives_indices
        super().__init__(name or row.name, arguments, doc)
        self.operator: Callable[..., Any] = caller(self, lambda operands, _: self.apply(operands))

    def examine(self, args: Sequence[Any], options: Mapping[str, Any]) -> Any:
        """Decide, prepare, and compute.

        Raises:
            PromotionError: if the rules refuse.
            LibraryError: for operands from two libraries.
            OperandError: for operands that are neither arrays of numbers nor Python numbers.
        """
        try:
            operands, given = self.arguments(*args, **options)
        except Exception as error:
            raise_computation_error(self.name, self.backend or NUMPY, args, options, error)
            raise
        return self.apply(operands, given, written=(args, options))

    def apply(
        self,
        operands: Sequence[Any],
        options: Mapping[str, Any] | None = None,
        written: tuple[Sequence[Any], Mapping[str, Any]] | None = None,
    ) -> Any:
        """The result for some operands.

        Args:
            operands: arrays and Python numbers.
            options: the checked options; None for none.
            written: the arguments of the call, for errors and to remember it; None for an operator of Python, which
                returns `NotImplemented` for any other operand.
        """
        options = options or {}
        scope = SCOPE.get()
        asked = scope.rules  # read once, as another thread may set the default
        keys: list[Key] = []
        raws: list[Raw] = []
        for operand in operands:
            found = as_key(operand, asked)
            if found is None:
                if written is None:
                    return NotImplemented
                raise not_an_operand(operand, self.name, len(keys))
            raws.append(found[0])
            keys.append(found[1])
        library = self.backend
        if library is not None and (adopted := _adopted(library, self.name, operands, keys)) is not None:
            return self.apply(adopted, options, written)
        try:
            case = Case((*keys,), operands_of(keys, raws), options)
            known = case.known(self)
            prepared = scope.memory.prepared.get(known)
            if prepared is None:
                prepared = self.prepared_for(asked, scope.watcher, case, raws)
                if scope.watcher is None:
                    memory_of(asked).prepared[known] = prepared
            result = prepared.result(raws)
        except (PromotionError, RuntimeDtypeError) as error:
            if error.decision is not None:
                error.decision = retyped(error.decision, operands[self._promoted])
            raise
        except Exception as error:
            raise_computation_error(self.name, self._library_of(keys), *(written or (operands, options)), error)
            raise
        if library is not None and result.backend is not library:  # it was computed from Python numbers alone
            return convert(result, library=library)
        if written is not None and scope.watcher is None:
            self.remember(memory_of(asked), *written, raws, prepared)
        return result

    def operands_of(self, args: Sequence[Any], options: Mapping[str, Any]) -> Sequence[Any]:
        """As in the base class."""
        return super().operands_of(args, options)[self._promoted]

    def _library_of(self, keys: Sequence[Key]) -> Backend:
        return common_backend(keys, self.name)

    def prepared_for(self, asked: RulesLike, watcher: Watcher | None, case: Case, raws: Sequence[Raw]) -> Prepared:
        """The prepared function for operands under the rules in force; prepare it if necessary."""
        in_jax = self._library_of(case.keys).in_jax
        rules = get_rules(asked, in_jax=in_jax)
        if rules.reads_values and any(map(holds_value, case.keys)):
            prepared = _following(
                lambda raws: (*(rules.key_of(key.operand) for key in case.valued(raws).keys),),
                lambda raws: self.prepare(rules, case.valued(raws)),
            )
            case = case.valued(raws)
        else:
            prepared = self.prepared_under(rules, case)
            if in_jax and isinstance(asked, str) and asked in FOLLOWING:
                prepared = self.prepared_by_jax_flags(asked, case) or prepared
        return prepared if watcher is None else _with_watcher(watcher, prepared, self.plan(rules, case))

    def prepared_under(self, rules: RuleSet, case: Case) -> Prepared:
        """The prepared function under a rule set."""
        known, kept = case.known(self), rules.memory.prepared
        prepared = kept.get(known)
        if prepared is None:
            prepared = kept[known] = self.prepare(rules, case)
        return prepared

    def prepared_by_jax_flags(self, name: str, case: Case) -> Prepared | None:
        """A function that reads JAX's flags at every call, because they determine the rule set of a name.

        Returns:
            None if the flags make no difference.
        """
        verdicts = {each: self.decide(get_rules(each), case).verdict for each in FOLLOWING[name]}
        asked = question({each: (verdict.result, verdict.compute) for each, verdict in verdicts.items()})
        if asked is None:
            return None
        ask = asked.ask  # looked up here, not at every call
        return _following(lambda _: ask(), lambda _: self.prepared_under(get_rules(name), case))

    def decide(self, rules: RuleSet, case: Case, runtime: Runtime = EVERYTHING) -> Decision:
        """The decision of a rule set, with fixes that a runtime can carry out."""
        decision = rules.decide(self._deciding, case.operands[self._promoted], runtime=runtime)
        return replace(decision, operation=self.name)

    def plan(self, rules: RuleSet, case: Case) -> Plan:
        """The plan for the decision.

        Raises:
            PromotionError: if the rules refuse.
        """
        keys, promoted = case.keys, self._promoted
        decision = self.decide(rules, case, Trial(keys[promoted], self._trial, case.options))
        verdict = decision.verdict
        if verdict.result is None:
            raise decision.error()
        compute = [key.dtype or verdict.result.dtype for key in keys]
        compute[promoted] = verdict.compute
        steps: list[Steps] = [()] * len(keys)
        steps[promoted] = verdict.number_steps or ((),) * len(verdict.compute)
        return Plan(
            self.operation, keys, (*compute,), verdict.result, rules.name, self._build, case.options, (*steps,),
            decision, self._gives_indices,
        )  # fmt: skip

    def prepare(self, rules: RuleSet, case: Case) -> Prepared:
        """The function that carries out the decision of a rule set."""
        backend = self._library_of(case.keys)
        if self.operation.family is not Family.ELEMENTWISE:
            backend.check_computes(self.name, (key.operand.format.dtype for key in case.keys if key.backend))
        plan = self.plan(rules, case)
        if (dtype := plan.of_columns) is not None:
            what = f"{self.name}: the rules compute in {dtype}, which {backend.name} does not have"
            raise RuntimeDtypeError(what, decision=plan.decision)
        try:
            function = backend.prepare(plan)
        except RuntimeDtypeError as error:
            error.decision = plan.decision
            raise
        explain = partial(backend.explained, plan)
        if plan.build is None:
            return Prepared(function, wrapper(backend.key_of_result(plan)), explain)
        if plan.gives_indices:
            return Prepared(function, lambda raw: new_array(*backend.keyed(raw)), explain)
        device = backend.device_of_plan(plan)
        return Prepared(function, wrapper(*backend.keys_of_results(plan.result, device)), explain)


def by_name(name: str, **defaults: Any) -> Build:
    """Make the library's function with a name of the standard, with the options of the plan."""

    def build(backend: Backend, plan: Plan) -> Callable[..., Raw]:
        function = backend.function(name)
        return partial(function, **plan.options) if plan.options != defaults else function

    return build


class Reduction(Decided):
    """A reduction, which may have an option for the dtype of its result.

    Args:
        operation: the name of the operation.
        arguments: as for `Decided`.
        doc: as for `Function`.
        build: as for `Decided`.
        name: as for `Decided`.
    """

    def __init__(
        self, operation: str, arguments: Callable[..., Arguments], doc: str, build: Build = reduction, name: str = ""
    ) -> None:
        super().__init__(operation, arguments, build, name=name, doc=doc, trial=build)

    def decide(self, rules: RuleSet, case: Case, runtime: Runtime = EVERYTHING) -> Decision:
        """The decision of a rule set; of only the dtype to accumulate in, if the user asks for a dtype."""
        dtype = case.options.get("dtype")
        if dtype is None:
            return super().decide(rules, case, runtime)
        decision = super().decide(rules, case._replace(operands=(case.operands[0].with_dtype(dtype),)))
        # An integer wraps around to the same result, however wide the computation was.
        computes = decision.verdict.compute[0] if decision and as_format(dtype).is_inexact else dtype
        if not as_format(computes).holds(as_format(dtype)):
            computes = dtype
        asked = f"the result is {dtype}, as asked for"
        verdict = Verdict(ResultType(dtype), (computes,), (asked, *decision.reason))
        # Casts of the operand do not help: the library lacks the dtype that was asked for.
        return replace(decision, operands=case.operands, verdict=verdict, find_fix=no_fix)


def _following(ask: Callable[[Sequence[Raw]], Hashable], make: Callable[[Sequence[Raw]], Prepared]) -> Prepared:
    """A function that asks a question at every call, and prepares another function for each answer."""
    found: dict[Hashable, Prepared] = {}

    def follow(*raws: Raw) -> Any:
        answer = ask(raws)
        if answer not in found:
            found[answer] = make(raws)
        return found[answer].result(raws)

    return Prepared(follow, None)


def _adopted(backend: Backend, name: str, operands: Sequence[Any], keys: Sequence[Key]) -> list[Any] | None:
    """Operands of a namespace of which at least one is an array of its library; None if that is so already.

    Of Python numbers alone the first becomes a weak array of that library, under rules that have weak arrays.

    Raises:
        LibraryError: for arrays of a third library.
    """
    libraries = [key.backend for key in keys]
    for position, library in enumerate(libraries):
        check_library(backend, name, position, library)
    if backend in libraries:
        return None
    first = libraries.index(NUMPY) if NUMPY in libraries else None
    if first is None and get_rules(in_jax=backend.in_jax).weak_arrays:
        first = next((i for i, operand in enumerate(operands) if type(operand) in NUMBERS), None)
    if first is None:
        return None
    return [convert(each, library=backend) if i == first else each for i, each in enumerate(operands)]


def _with_watcher(watcher: Watcher, prepared: Prepared, plan: Plan) -> Prepared:
    """A prepared function that notifies a watcher at every call."""

    def run(*raws: Raw) -> Any:
        watcher.note(plan, raws)
        return prepared.result(raws)

    return Prepared(run, None)
