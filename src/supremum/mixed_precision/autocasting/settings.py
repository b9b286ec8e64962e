"""The settings of autocast, checked and hashable."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from types import MappingProxyType
from typing import Any

from supremum.argument_checks import mapping
from supremum.errors import ArgumentError, UnknownDtypeError, UnknownNameError, near_names, shown
from supremum.formats import DType, as_format
from supremum.jaxprs import RewriteRecord, Rewritten, name_of_call, scopes_of
from supremum.mixed_precision.autocasting.castable_dtypes import CASTABLE_FORMATS
from supremum.mixed_precision.autocasting.operations import AUTOCAST_OPERATIONS, DECLARED, INSIDE, RULES
from supremum.mixed_precision.policy.policy import Policy, as_policy
from supremum.mixed_precision.policy.policy_map import PolicyMap, UnmatchedPatternWarning

_COMPUTE_NAMES = tuple(row.name for row in CASTABLE_FORMATS)


@dataclass(frozen=True)
class Settings:
    """The settings of autocast.

    Args:
        policy: the policy that gives the compute dtype, or policies by path.
        given_ops: pairs of a primitive or function and the rule that replaces its own.
        respect_explicit_casts: whether a value keeps the dtype to which it was cast by hand.
    """

    policy: Policy | PolicyMap
    given_ops: tuple[tuple[str, str], ...] = ()
    respect_explicit_casts: bool = True

    @property
    def by_path(self) -> bool:
        """Whether the compute dtype of an operation depends on its named scopes."""
        return isinstance(self.policy, PolicyMap)

    @cached_property
    def ops(self) -> Mapping[str, str]:
        """The rules by name."""
        return MappingProxyType(dict(self.given_ops))

    def compute_dtype(self, scopes: tuple[str, ...]) -> DType:
        """Return the compute dtype of an operation in these named scopes."""
        return _compute_dtype(self.policy, scopes if self.by_path else ())

    def check(self, rewritten: Rewritten) -> None:
        """Warn about names in `ops` and patterns that match nothing in the program, which are probably misspelt."""
        unknown = self.ops.keys() - AUTOCAST_OPERATIONS.keys()
        if not unknown and not self.by_path:
            return
        entries = list(_entries(rewritten, ()))
        if isinstance(self.policy, PolicyMap):
            self.policy.check(dict.fromkeys("/".join(scopes) for _, scopes in entries))
        found = {name for entry, _ in entries for name in (entry.equation.primitive.name, name_of_call(entry.equation))}
        for name in sorted(unknown - found):
            near = near_names(name, {*AUTOCAST_OPERATIONS, *found} - {""})
            hint = f": did you mean {' or '.join(map(repr, near))}?" if near else ""
            message = f"ops has {name!r}, which is not a known primitive and not a function called here{hint}"
            warnings.warn(message, UnmatchedPatternWarning, stacklevel=4)


def _entries(rewritten: Rewritten, scopes: tuple[str, ...]) -> Iterator[tuple[RewriteRecord, tuple[str, ...]]]:
    for entry in rewritten.record:
        inner = (*scopes, *scopes_of(entry.equation))
        yield entry, inner
        for function in entry.functions:
            yield from _entries(function, inner)


@lru_cache(maxsize=4096)
def _compute_dtype(policy: Policy | PolicyMap, scopes: tuple[str, ...]) -> DType:
    chosen = policy.for_path("/".join(scopes)) if isinstance(policy, PolicyMap) else policy
    assert chosen.compute_dtype is not None
    return chosen.compute_dtype


def as_settings(policy: Any, ops: Mapping[str, Any] | None, respect_explicit_casts: bool) -> Settings:
    """Make the settings from the arguments of `autocast`."""
    chosen = policy if isinstance(policy, PolicyMap) else as_policy(policy)
    used = [chosen] if isinstance(chosen, Policy) else [chosen.default, *(each for _, each in chosen.patterns)]
    for each in used:
        compute = each.compute_dtype
        if compute is None or as_format(compute) not in CASTABLE_FORMATS:
            raise ArgumentError(
                f"autocast needs a policy that computes in one of {', '.join(_COMPUTE_NAMES)}, got {shown(str(each))}, "
                f"which computes in {'the dtype of its inputs' if compute is None else compute}"
            )
    given = {} if ops is None else mapping("ops", ops, "{'softmax': 'float32'}")
    rules = tuple(sorted((name, _rule(name, rule)) for name, rule in given.items()))
    return Settings(chosen, rules, respect_explicit_casts)


def _rule(name: str, rule: Any) -> str:
    row = AUTOCAST_OPERATIONS.get(name)
    if row is not None and row.rule == DECLARED and rule != DECLARED:
        raise ArgumentError(f"ops[{shown(name)}] must be {shown(DECLARED)}, got {shown(rule)}: {row.reason}")
    # `INSIDE` is for functions: names that are not primitives are names of functions in the program.
    rules = RULES if name in AUTOCAST_OPERATIONS else (*RULES, INSIDE)
    choices = (*rules, *(dtype for dtype in _COMPUTE_NAMES if dtype not in rules))  # float32 is both
    if isinstance(rule, str) and rule in choices:
        return rule
    try:
        found = as_format(rule).name
    except UnknownDtypeError:
        raise UnknownNameError("rule", rule, choices, f"ops[{shown(name)}]") from None
    if found not in _COMPUTE_NAMES:
        raise ArgumentError(f"ops[{shown(name)}] must be one of {', '.join(choices)}, got {found}")
    return found
