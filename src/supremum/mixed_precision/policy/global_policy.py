"""The policy of layers that were given none: of the process, or of the innermost `with use_policy(...)`.

spec/keras-rfc-293-mixed-precision.md, "The global policy".
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from supremum.errors import ArgumentError, shown
from supremum.formats import DType, Format, Kind, as_format, format_names
from supremum.mixed_precision.policy.policy import Policy, as_policy
from supremum.scoped_values import BlockValue, calls_within
from supremum.user_frame import warn_user

P = ParamSpec("P")
R = TypeVar("R")

_LEAST_BITS = 16
VARIABLE = "SUPREMUM_FLOATX"
"""The environment variable that says what `floatx` starts as."""


class PolicyWarning(UserWarning):
    """A policy that is valid and most likely not what is wanted."""


class _Process:
    """What the process has set, for all of its threads."""

    def __init__(self) -> None:
        self.floatx: str | None = None
        self.explicit: Policy | None = None
        self.tracked = Policy("float32")


_process = _Process()


def _fix(policy: Policy | None) -> str:
    asked = None if policy is None else policy.name
    return f"another policy is the global one in this task: decorate its coroutine function with @use_policy({asked!r})"


# JAX is told: a layer that is made while a function is traced makes the trace one for its policy.
_scope: BlockValue[Policy | None] = BlockValue("policy", None, _fix)


def floatx() -> str:
    """The name of the dtype that the global policy tracks until one is set.

    It is float32, or what the environment variable SUPREMUM_FLOATX says, until `set_floatx`.

    Raises:
        ArgumentError: if the variable names no real floating dtype.

    >>> floatx()
    'float32'
    """
    if _process.floatx is None:
        found = os.environ.get(VARIABLE, "float32")
        try:
            _process.floatx = _floating(found)
        except ValueError as error:
            raise ArgumentError(f"the environment variable {VARIABLE} is {shown(found)}: {error}") from None
    return _process.floatx


def set_floatx(dtype: Any) -> None:
    """Set the dtype that the global policy tracks.

    Args:
        dtype: a real floating dtype or its name.

    Raises:
        ArgumentError: for a dtype that is not real floating.
        UnknownDtypeError: for what is no dtype.
    """
    _process.floatx = _floating(dtype)
    _tell_jax()


def _floating(dtype: Any) -> str:
    row = as_format(dtype)
    if not _is_usual(row):
        names = [name for name in format_names() if _is_usual(as_format(name))]
        raise ArgumentError(
            f"floatx is a real floating dtype that layers learn in, not {row}: one of {', '.join(names)}"
        )
    return str(row)


def _is_usual(row: Format) -> bool:
    return row.kind is Kind.FLOAT and row.bits >= _LEAST_BITS


def global_policy() -> Policy:
    """The policy that a layer made here gets when it is given none.

    It is that of the innermost `use_policy`, else the one that was set, else `Policy(floatx())`.

    >>> global_policy()
    Policy('float32')
    """
    scoped = _scope.value
    if scoped is not None:
        return scoped
    if _process.explicit is not None:
        return _process.explicit
    name = floatx()
    # One object for as long as it tracks the same, so that what was given it can be told from what was given another.
    if _process.tracked.name != name:
        _process.tracked = Policy(name)
    return _process.tracked


def set_global_policy(policy: Any) -> None:
    """Set the policy of the whole process, threads that are started later included.

    Layers read it once, when they are made; those that exist keep theirs.

    Args:
        policy: a `Policy`, or what makes one; None to track `floatx` again. It has to compute in a real floating dtype,
            of at least 16 bits, or to be `"infer"`; a layer's own may be any.

    Raises:
        ArgumentError: for a policy that computes in anything else.
        UnknownNameError: for an unknown one.

    >>> set_global_policy("mixed_bfloat16")
    >>> global_policy().compute_dtype
    dtype(bfloat16)
    >>> set_global_policy(None)
    """
    _process.explicit = None if policy is None else _usable(policy)
    _tell_jax()


def _tell_jax() -> None:
    _scope.tell_all_threads(_process.explicit or _process.floatx)


class use_policy:  # noqa: N801 (a context manager, named like the verb it is)
    """Make another policy the global one for the time of a block, or of every call of a function.

    Tasks of asyncio and threads have it as they have the rules of `supremum.use_rules`. Layers that are made in it keep
    the policy; a jitted function that makes some is traced again under another policy.

    Args:
        policy: as for `set_global_policy`; None for what the process has set, or `floatx`.

    Raises:
        ArgumentError, UnknownNameError: as `set_global_policy` does.

    >>> with use_policy("mixed_float16"):
    ...     global_policy().variable_dtype
    dtype('float32')
    """

    def __init__(self, policy: Any) -> None:
        self.policy = None if policy is None else _usable(policy)

    def __enter__(self) -> Policy:
        """Put the policy in force, and return it."""
        _scope.enter(self, self.policy, self.policy)
        return global_policy()

    def __exit__(self, *exception: object) -> None:
        """Put the policy in force that is without this one."""
        _scope.leave(self)

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        """A function that runs under this policy; of a coroutine function, one whose awaited body does."""
        return calls_within(
            function,
            "use_policy",
            lambda: _scope.holding(self.policy, self.policy),
            lambda awaited: _scope.run(self.policy, self.policy, awaited),
        )


def _usable(policy: Any) -> Policy:
    given = as_policy(policy)
    # An object of its own: a layer that is given the user's policy is told from one that is given none.
    made = Policy(given.name, given.loss_scale)
    if made.compute_dtype is not None and as_format(made.compute_dtype).kind is not Kind.FLOAT:
        raise ArgumentError(
            f"the global policy computes in a real floating dtype, and {shown(made.name)} does not: most layers have "
            "no "
            f"meaning in it. Give it to a layer, as in Layer(dtype={shown(made.name)}), or set 'float32' or 'infer'"
        )
    if made.compute_dtype is not None and as_format(made.compute_dtype).bits < _LEAST_BITS:
        raise ArgumentError(
            f"the global policy computes in at least {_LEAST_BITS} bits, and {shown(made.name)} does not: most layers "
            "learn "
            f"nothing in it. Give it to a layer, as in Layer(dtype={shown(made.name)}), or set 'mixed_bfloat16'"
        )
    if _trains_badly(made.variable_dtype) and made.variable_dtype == made.compute_dtype:
        # "mixed_float16", for instance: the same computation, variables that small updates do not get lost in.
        warn_user(
            f"under the policy {made.name!r} variables are {made.name} too, which small updates vanish in, and "
            f"checkpoints of float32 do not load into: 'mixed_{made.name}' computes in the same dtype and trains as "
            "well as float32",
            PolicyWarning,
        )
    return made


def _trains_badly(dtype: DType) -> bool:
    row = as_format(dtype)
    return row.kind is Kind.FLOAT and row.bits < as_format("float32").bits
