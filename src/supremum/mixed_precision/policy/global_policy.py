"""The global policy: the policy of layers that are made without one (Keras RFC 293, "The global policy")."""

from __future__ import annotations

import os
from copy import copy
from typing import Any, ClassVar

from supremum.errors import ArgumentError, shown
from supremum.formats import Kind, as_format
from supremum.jax_compat import is_backend_running
from supremum.mixed_precision.policy.hardware import warn_if_it_gains_nothing
from supremum.mixed_precision.policy.policy import (
    Policy,
    PolicyLike,
    PolicyWarning,
    as_policy,
    as_reducible,
    reducible_formats,
    reducible_names,
)
from supremum.scoped_values import BlockDecorator, Blocks, BlockValue, ValueBlock
from supremum.typing import DTypeLike
from supremum.user_frame import warn_user

VARIABLE = "SUPREMUM_FLOATX"
"""The environment variable with the initial value of `floatx`."""


class _Process:
    """The settings of the process, for all of its threads."""

    floatx: str | None = None
    explicit: Policy | None = None
    tracked = Policy("float32")


_process = _Process()


def _fix(policy: Policy | None) -> str:
    name = None if policy is None else policy.name
    return f"this task has a different global policy: decorate its coroutine function with @use_policy({name!r})"


# JAX's cache key contains the policy: a function that makes layers is traced again under another policy.
_scope: BlockValue[Policy | None] = BlockValue("policy", None, _fix)


def floatx() -> str:
    """Return the name of the dtype that the global policy tracks unless a policy is set.

    Before `set_floatx` it is the value of the environment variable SUPREMUM_FLOATX, or float32.

    Raises:
        ArgumentError: if the environment variable does not name a real floating dtype.

    >>> floatx()
    'float32'
    """
    if _process.floatx is None:
        name = os.environ.get(VARIABLE, "float32")
        try:
            _process.floatx = str(as_reducible("floatx must be", name))
        except ValueError as error:
            raise ArgumentError(f"the environment variable {VARIABLE}={shown(name)} is invalid: {error}") from None
    return _process.floatx


def set_floatx(dtype: DTypeLike) -> None:
    """Set the dtype that the global policy tracks.

    Args:
        dtype: a real floating dtype or its name.

    Raises:
        ArgumentError: for a dtype that is not real floating, or has less than 16 bits.
        UnknownDtypeError: for anything that is not a dtype.

    >>> set_floatx("bfloat16")
    >>> floatx(), global_policy()
    ('bfloat16', Policy('bfloat16'))
    >>> set_floatx("float32")
    """
    _process.floatx = str(as_reducible("floatx must be", dtype))
    _sync_jax_context()


def global_policy() -> Policy:
    """Return the policy of layers that are made here without a policy.

    It is the policy of the innermost `use_policy`, else the policy that was set, else `Policy(floatx())`.

    >>> global_policy()
    Policy('float32')
    """
    scoped = _scope.value
    if scoped is not None:
        return scoped
    if _process.explicit is not None:
        return _process.explicit
    name = floatx()
    # One object for each `floatx`: layers tell the global policy from a given policy by identity.
    if _process.tracked.name != name:
        _process.tracked = Policy(name)
    return _process.tracked


def set_global_policy(policy: PolicyLike | None) -> None:
    """Set the policy of the whole process, including threads that start later.

    A layer reads it once, when it is made; existing layers keep their policy. If JAX already runs on a device that
    gains no speed from a mixed policy, this warns; otherwise the first layer that computes in it does. Setting a policy
    never starts JAX, so that `jax.distributed.initialize` may follow.

    Args:
        policy: a `Policy` or an argument of `Policy`; None to track `floatx` again. It must be `"infer"` or compute in
            a real floating dtype of at least 16 bits; the policy of one layer may compute in any dtype.

    Raises:
        ArgumentError: for a policy that computes in another dtype.
        UnknownNameError: for an unknown policy.

    >>> set_global_policy("mixed_bfloat16")
    >>> global_policy().compute_dtype
    dtype(bfloat16)
    >>> set_global_policy(None)
    """
    _process.explicit = None if policy is None else _usable(policy)
    _sync_jax_context()


def _sync_jax_context() -> None:
    _scope.sync_all_threads(_process.explicit or _process.floatx)


class use_policy(BlockDecorator[ValueBlock[Policy | None]]):  # noqa: N801 (a context manager, named like the verb it is)
    """Set the global policy within a block, or during every call of a function.

    It applies to asyncio tasks and threads as `supremum.use_rules` does. Layers made in the block keep the policy. A
    jitted function that makes layers is traced again under another policy.

    Args:
        policy: as for `set_global_policy`; None for the policy of the process, or `floatx`.

    Raises:
        ArgumentError, UnknownNameError: as `set_global_policy` does.

    >>> with use_policy("mixed_float16"):
    ...     global_policy().variable_dtype
    dtype('float32')
    """

    _blocks: ClassVar[Blocks[Any]] = _scope

    def __init__(self, policy: PolicyLike | None) -> None:
        self.policy: Policy | None = None if policy is None else _usable(policy)

    def _make_block(self, owner: object) -> ValueBlock[Policy | None]:
        """Make the block of the policy inside the one in force."""
        return _scope.block(owner, self.policy, self.policy)

    def __enter__(self) -> Policy:
        """Set the policy, and return it."""
        self._blocks.enter_block(self._make_block(self))
        return global_policy()

    def __repr__(self) -> str:
        return f"use_policy({None if self.policy is None else self.policy.name!r})"


def _usable(policy: PolicyLike) -> Policy:
    # A separate object: layers tell the global policy from a given policy by identity.
    own = copy(as_policy(policy))
    if own.compute_dtype is not None and as_format(own.compute_dtype) not in reducible_formats():
        raise ArgumentError(
            f"the global policy must compute in {reducible_names()}, got {shown(own.name)}: set 'mixed_bfloat16', "
            f"or pass the policy to a single layer, as in Layer(dtype={shown(own.name)})"
        )
    row = as_format(own.variable_dtype)
    if row.kind is Kind.FLOAT and row.bits < as_format("float32").bits and row.dtype == own.compute_dtype:
        warn_user(
            f"the policy {own.name!r} stores variables in {own.name}: small updates vanish, and float32 checkpoints "
            f"do not load; 'mixed_{own.name}' computes in the same dtype and trains as well as float32",
            PolicyWarning,
        )
    if own.compute_dtype is not None and own.compute_dtype != own.variable_dtype and is_backend_running():
        warn_if_it_gains_nothing(own.compute_dtype)
    return own
