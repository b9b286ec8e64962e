"""What the functions of this package compile for a program, kept for later calls of the same function."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar

from jax.extend.core import JaxprEqn, Literal

from supremum.bounded_cache import Bounded
from supremum.jaxprs import TracedCall, call_key, has_tracers, if_hashable, line_of

T = TypeVar("T")

_MOST = 8
"""How many programs of one function are kept."""


class KeptPrograms(Generic[T]):
    """Prepares programs to be measured, each once.

    A function is traced in every call, which costs little if it is jitted: JAX then returns the traced function that it
    has, and the program is the same. What was compiled for it is found here, and freed with the last owner of this
    object. The values of constants belong to the program; those of its operands do not.

    Args:
        prepare: makes what is kept, from the first call of a program.

    >>> import jax, jax.numpy as jnp
    >>> from supremum.jaxprs import traced_call
    >>> kept, step = KeptPrograms(lambda call: [call.program]), jax.jit(jnp.sin)
    >>> one, other = (
    ...     kept.of(traced_call(step, (jnp.ones(2) * n,), {}, "it")) for n in range(2)
    ... )
    >>> one is other, kept.of(traced_call(step, (jnp.ones(3),), {}, "it")) is one
    (True, False)
    """

    def __init__(self, prepare: Callable[[TracedCall], T]) -> None:
        self._prepare = prepare
        self._kept: Bounded[Hashable, tuple[list[Any], T]] = Bounded(_MOST)

    def of(self, call: TracedCall) -> T:
        """What was prepared for the program of a call.

        Args:
            call: the traced call.
        """
        key = _key_of(call)
        if key is None:
            return self._prepare(call)
        known = self._kept.get(key)
        if known is None:  # the key has the identities of the constants, which must stay alive
            known = self._kept.setdefault(key, (call.program.consts, self._prepare(call)))
        return known[1]


def _key_of(call: TracedCall) -> Hashable | None:
    """What the program of a call computes, and where; None if it is not known, or valid in this trace only."""
    program, results = call.program, call_key(call.result_of(call.program.out_avals))
    if call.is_lifted or results is None or has_tracers((call.arrays, program.consts)):
        return None
    jaxpr, numbers = program.jaxpr, dict[Any, int]()

    def atom(each: Any) -> Hashable:
        return str(each.val) if isinstance(each, Literal) else numbers.setdefault(each, len(numbers)), each.aval

    def equation(each: JaxprEqn) -> Hashable:
        # Inner programs are compared by identity.
        return (
            each.primitive, tuple(each.params.items()), line_of(each),
            tuple(map(atom, each.invars)), tuple(map(atom, each.outvars)),
        )  # fmt: skip

    key = (
        results, *(tuple(map(atom, each)) for each in (jaxpr.constvars, jaxpr.invars)),
        tuple(map(id, program.consts)), tuple(map(equation, jaxpr.eqns)), tuple(map(atom, jaxpr.outvars)),
    )  # fmt: skip
    return if_hashable(key)
