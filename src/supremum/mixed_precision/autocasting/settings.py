"""The dtypes that autocast casts from and to, real floats of 16 and 32 bits, and its settings."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from types import MappingProxyType
from typing import Final

import numpy as np

from supremum.argument_checks import chosen as chosen_name
from supremum.argument_checks import flag, mapping
from supremum.errors import ArgumentError, UnknownDtypeError, UnknownNameError, shown
from supremum.formats import FORMATS, DType, Format, Kind, as_format
from supremum.mixed_precision.autocasting.operations import AUTOCAST_OPERATIONS, DECLARED, INSIDE, RULES
from supremum.mixed_precision.autocasting.presets import AUTOCAST_PRESETS
from supremum.mixed_precision.policy.policy import Policy, PolicyLike, as_policy
from supremum.mixed_precision.policy.policy_map import PolicyMap
from supremum.typing import DTypeLike

CASTABLE_FORMATS: Final[tuple[Format, ...]] = tuple(
    row for row in FORMATS if row.kind is Kind.FLOAT and 16 <= row.bits <= as_format("float32").bits
)
"""The formats that autocast casts from and to.

Programs use floats of 64 and 8 bits on purpose; autocast leaves them alone.
"""

CASTABLE: Final = frozenset(row.dtype for row in CASTABLE_FORMATS)
"""The dtypes of `CASTABLE_FORMATS`."""

_FOREIGN: Final = frozenset(row.dtype for row in FORMATS if row.is_inexact) - CASTABLE


def castable(aval: object) -> DType | None:
    """Return the dtype of an abstract value that autocast casts; None for all others, such as PRNG keys."""
    return _among(CASTABLE, aval)


def foreign(aval: object) -> DType | None:
    """Return the dtype of a floating or complex abstract value that autocast never casts; None for all others."""
    return _among(_FOREIGN, aval)


def _among(dtypes: frozenset[DType], aval: object) -> DType | None:
    # Tokens have no dtype, and the dtypes of PRNG keys are not NumPy dtypes.
    dtype = getattr(aval, "dtype", None)
    return dtype if isinstance(dtype, np.dtype) and dtype in dtypes else None


@lru_cache(maxsize=4096)
def fitting(number: float) -> frozenset[DType]:
    """Return the castable dtypes that hold a number without overflow, and without losing bits by underflow."""
    if number == 0 or not math.isfinite(number):
        return CASTABLE
    return frozenset(row.dtype for row in CASTABLE_FORMATS if row.smallest_normal <= abs(number) <= row.max)


@lru_cache(maxsize=256)
def join(dtypes: frozenset[DType]) -> DType:
    """Return the smallest castable dtype that holds all of these dtypes."""
    rows = [as_format(dtype) for dtype in dtypes]
    return next(row.dtype for row in sorted(CASTABLE_FORMATS, key=lambda row: row.bits) if all(map(row.holds, rows)))


_COMPUTE_NAMES = tuple(row.name for row in CASTABLE_FORMATS)


@dataclass(frozen=True)
class Settings:
    """The settings of autocast.

    Args:
        policy: the policy that gives the compute dtype, or policies by path.
        given_ops: pairs of a primitive or function and the rule that replaces its own.
        respect_explicit_casts: whether a value keeps the dtype to which it was cast by hand.
        enabled: whether the function runs in the dtypes of the policy; otherwise it runs in those that it declares.
    """

    policy: Policy | PolicyMap
    given_ops: tuple[tuple[str, str], ...] = ()
    respect_explicit_casts: bool = True
    enabled: bool = True

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


@lru_cache(maxsize=4096)
def _compute_dtype(policy: Policy | PolicyMap, scopes: tuple[str, ...]) -> DType:
    chosen = policy.for_path("/".join(scopes)) if isinstance(policy, PolicyMap) else policy
    assert chosen.compute_dtype is not None
    return chosen.compute_dtype


def as_settings(
    policy: PolicyLike | PolicyMap,
    ops: Mapping[str, DTypeLike] | str | None,
    respect_explicit_casts: bool,
    enabled: bool = True,
) -> Settings:
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
    if isinstance(ops, str):
        ops = AUTOCAST_PRESETS[chosen_name("preset of ops", ops, AUTOCAST_PRESETS)]
    overrides = {} if ops is None else mapping("ops", ops, "{'softmax': 'float32'}")
    rules = tuple(sorted((name, _rule(name, rule)) for name, rule in overrides.items()))
    return Settings(chosen, rules, respect_explicit_casts, flag("enabled", enabled))


def _rule(name: str, rule: object) -> str:
    row = AUTOCAST_OPERATIONS.get(name)
    if row is not None and row.rule == DECLARED and rule != DECLARED:
        raise ArgumentError(f"ops[{shown(name)}] must be {shown(DECLARED)}, got {shown(rule)}: {row.reason}")
    # `INSIDE` is for functions: names that are not primitives are names of functions in the program.
    rules = RULES if name in AUTOCAST_OPERATIONS else (*RULES, INSIDE)
    choices = (*rules, *(dtype for dtype in _COMPUTE_NAMES if dtype not in rules))  # float32 is both
    if isinstance(rule, str) and rule in choices:
        return rule
    try:
        dtype_name = as_format(rule).name
    except UnknownDtypeError:
        raise UnknownNameError("rule", rule, choices, f"ops[{shown(name)}]") from None
    if dtype_name not in _COMPUTE_NAMES:
        raise ArgumentError(f"ops[{shown(name)}] must be one of {', '.join(choices)}, got {dtype_name}")
    return dtype_name
