"""What a call of autocast asks for, checked and hashable."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from supremum.errors import ArgumentError, UnknownDtypeError, UnknownNameError
from supremum.formats import FORMATS, DType, Kind, as_format
from supremum.mixed_precision.autocasting.operations import INSIDE, OPERATIONS, RULES
from supremum.mixed_precision.policy import Policy, as_policy
from supremum.tracing import Entry, Rewritten, name_of_call

_COMPUTE_FORMATS = tuple(row.name for row in FORMATS if row.kind is Kind.FLOAT and 16 <= row.bits <= 32)


@dataclass(frozen=True)
class Settings:
    """How autocast casts.

    Args:
        policy: the policy whose compute dtype it uses.
        given_ops: pairs of a primitive or a function and the rule it is treated by instead of its own.
        honour_casts: whether a value keeps the dtype it was cast to by hand.
    """

    policy: Policy
    given_ops: tuple[tuple[str, str], ...] = ()
    honour_casts: bool = True

    @property
    def by_path(self) -> bool:
        """Whether the policy depends on the named scopes."""
        return False

    @property
    def ops(self) -> Mapping[str, str]:
        """The rules by name."""
        return _mapping(self.given_ops)

    def compute_dtype(self, scopes: tuple[str, ...]) -> DType:  # noqa: ARG002
        """The compute dtype of an equation in these named scopes."""
        return self.policy.compute_dtype

    def check(self, rewritten: Rewritten) -> None:
        """Refuse names that nobody knows, once it is known what the program calls.

        Raises:
            UnknownNameError: for a name in `ops` that is no primitive with a row and stands nowhere in the program.
        """
        unknown = self.ops.keys() - OPERATIONS.keys()
        if not unknown:
            return
        found = {
            name
            for entry in _entries(rewritten)
            for name in (entry.equation.primitive.name, name_of_call(entry.equation))
        }
        for name in sorted(unknown - found):
            raise UnknownNameError("operation", name, sorted({*OPERATIONS, *found} - {""}), "ops")


def _entries(rewritten: Rewritten) -> Iterator[Entry]:
    for entry in rewritten.record:
        yield entry
        for function in entry.functions:
            yield from _entries(function)


@lru_cache(maxsize=128)
def _mapping(pairs: tuple[tuple[str, str], ...]) -> Mapping[str, str]:
    return MappingProxyType(dict(pairs))


def as_settings(policy: Any, ops: Mapping[str, Any] | None, honour_casts: bool) -> Settings:
    """The settings that arguments stand for."""
    chosen = as_policy(policy)
    compute = chosen.compute_dtype
    if compute is None or as_format(compute).name not in _COMPUTE_FORMATS:
        raise ArgumentError(
            f"autocast computes in one of {', '.join(_COMPUTE_FORMATS)}; policy {str(chosen)!r} computes in "
            f"{'no dtype of its own' if compute is None else compute}"
        )
    return Settings(
        chosen, tuple(sorted((name, _rule(name, rule)) for name, rule in (ops or {}).items())), honour_casts
    )


def _rule(name: str, rule: Any) -> str:
    # A primitive has no inside; what is no primitive is taken for a function of the program.
    choices = (*RULES, *(() if name in OPERATIONS else (INSIDE,)), *_COMPUTE_FORMATS)
    if isinstance(rule, str) and rule in choices:
        return rule
    try:
        found = as_format(rule).name
    except UnknownDtypeError:
        raise UnknownNameError("rule", rule, choices, f"ops[{name!r}]") from None
    if found not in _COMPUTE_FORMATS:
        raise ArgumentError(f"ops[{name!r}] is one of {', '.join(choices)}, not {found}")
    return found
