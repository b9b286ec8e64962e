"""Trying a fix before it is offered: on arrays of one element, never on those of the user, once per dtype."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from supremum.arrays.backends import Backend, Key, Plan, Raw, array_key
from supremum.arrays.backends.numpy import NUMPY
from supremum.arrays.operand_keys import joint_backend
from supremum.arrays.reduction_kernels import reduce
from supremum.bounded_cache import Bounded
from supremum.decisions import Decision, Fix, FixCast, ResultType, Verdict
from supremum.errors import SupremumError
from supremum.formats import as_format
from supremum.operands import TYPE_OF_CATEGORY, Operand, library_of
from supremum.operations import ASSIGN, Family, Operation
from supremum.rules import is_typed

_FAILURES = (SupremumError, TypeError, ValueError, RuntimeError, AttributeError, ArithmeticError)
"""What libraries raise for a dtype or a kernel that they do not have."""
_PROBE = as_format("float32").dtype
_KNOWN: Bounded[Hashable, bool] = Bounded(16_384)


class Trial:
    """The runtime of some operands, as it is now: their libraries, and JAX's flags.

    Args:
        keys: of the operands.
        function: what is computed instead of the library's function of the operation's name, given the backend.
        options: what the function is given besides.
    """

    def __init__(
        self, keys: Sequence[Key], function: Callable[..., Raw] | None = None, options: Mapping[str, Any] | None = None
    ) -> None:
        self.keys = tuple(keys)
        self.function = function
        self.options = dict(options or {})
        self.backend = joint_backend(key.backend for key in keys)
        self.flags = self.backend.flags()

    def holds(self, operand: Operand) -> bool:  # noqa: ARG002 (a `Runtime`)
        """True: the operands are arrays that exist."""
        return True

    def tried(self, operation: Operation, operands: Sequence[Operand], fix: Fix, verdict: Verdict) -> Fix | None:
        """The fix, if the libraries make its casts and then compute what the rules say; else None."""
        assert verdict.result is not None
        keys, casts = list(self.keys), list(fix.casts)
        with self.backend.under(self.flags):
            if self.backend.flags() != self.flags:
                return None  # those flags cannot be restored for a block
            for at, cast in enumerate(fix.casts):
                i, key = cast.position, keys[cast.position]
                if operands[i].library:
                    if not is_typed(operands[i], cast):
                        return None
                elif key.backend is not None and not self._converts(key.backend, key, cast):
                    if self._converts(key.backend, key, FixCast.of(i, operands[i], _PROBE)):
                        return None
                    if not is_typed(replace(operands[i], library=NUMPY.name), cast):
                        return None
                    casts[at] = cast._replace(on_host=True)  # it converts arrays of this dtype to no other
                library = NUMPY if key.backend is None or casts[at].on_host else key.backend
                keys[i] = array_key(library, cast.dtype, False, key.zero_d, None if library is NUMPY else key.device)
            result = verdict.result if verdict.stored is None else ResultType(verdict.stored)
            function, options = (self.function, self.options) if self.function else _function_of(operation)
            plan = Plan(
                operation, tuple(keys), verdict.compute, result, "", function, options, verdict.number_steps
            )  # fmt: skip
            if not self._computes(plan):
                return None
            if joint_backend(key.backend for key in keys) is not self.backend:
                # Operands that take no part in the decision, as the condition of `where`, may be of this library.
                back = [
                    key if key.backend is None else self._key_in_library(key, each)
                    for key, each in zip(keys, self.keys, strict=True)
                ]
                if not self._computes(replace(plan, keys=tuple(back))):
                    return None
            return Fix(tuple(casts))

    def _key_in_library(self, key: Key, own: Key) -> Key:
        """The key of an array on the host once it is in the library that the operands were in."""
        return array_key(self.backend, key.operand.format.dtype, False, key.zero_d, own.device)

    def _converts(self, backend: Backend, key: Key, cast: FixCast) -> bool:
        """Whether a library converts one of its arrays itself."""

        def convert(raw: Raw) -> Raw:
            if cast.through is not None:
                raw = backend.astype(raw, cast.through)
            return backend.astype(backend.xp.real(raw) if cast.drops_imaginary else raw, cast.dtype)

        known = (key, cast.dtype, cast.drops_imaginary, cast.through, self.flags)
        return _once(known, lambda: backend.try_out(convert, [_sample(key)], [key.operand.format.dtype, cast.dtype]))

    def _computes(self, plan: Plan) -> bool:
        backend = joint_backend(key.backend for key in plan.keys)
        known = (plan.operation.name, plan.keys, plan.compute, plan.result, plan.function, *plan.options.items())

        def compute() -> bool:
            prepared = backend.prepare(plan)
            held = [key.operand.format.dtype for key in plan.keys if key.backend is not None]
            dtypes = [*held, *plan.compute, plan.result.dtype]
            return backend.try_out(prepared, [*map(_sample, plan.keys)], dtypes)

        return _once((*known, self.flags), compute)


def _function_of(operation: Operation) -> tuple[Callable[..., Raw] | None, dict[str, Any]]:
    """What is computed of promoted operands, and its options; None for the library's function of that name."""
    if operation is ASSIGN or operation.family is Family.QUESTION:
        return _first, {}
    if operation.family is Family.REDUCTION:
        return reduce, {"name": operation.name}
    return (in_library(operation.name) if operation.family is Family.WHOLE else None), {}


def _first(backend: Backend, *samples: Raw) -> Raw:  # noqa: ARG001 (what a `Plan` computes)
    return samples[0]


def _once(known: Hashable, attempt: Callable[[], bool]) -> bool:
    found = _KNOWN.get(known)
    if found is None:
        try:
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")  # they would be about the trial, and not about the user's program
                found = attempt()
        except _FAILURES:
            found = False
        _KNOWN[known] = found
    return found


def _sample(key: Key) -> Any:
    """An operand like those of a key: of ones, or a number whose power no library takes for a product."""
    if key.backend is None:
        return TYPE_OF_CATEGORY[key.operand.category](5)
    return key.backend.asarray(np.ones(() if key.zero_d else 1, key.dtype), device=key.device)


@cache
def in_library(name: str) -> Callable[..., Raw]:
    """A function of the standard that is not element by element, tried on square matrices and on vectors.

    Args:
        name: of the function; where the library has none of that name only the casts are tried.
    """

    def tried(backend: Backend, *samples: Raw) -> Raw:
        xp = backend.xp
        function = getattr(xp, name, None) or getattr(xp.linalg, name, None)
        if function is None or name in _NOT_ALONE:
            return samples[0]
        for square in (xp.eye(3), xp.ones(3)):
            arrays = [backend.astype(square, backend.key_of(sample).operand.format.dtype) for sample in samples]
            try:
                result = function(arrays) if name in _OF_LISTS else function(*arrays)
            except _FAILURES as error:
                failure = error
            else:
                return xp.reshape(result, (-1,))[:1]
        raise failure

    return tried


_OF_LISTS = ("concat", "stack")
_NOT_ALONE = ("where", "clip", "diff")
"""Functions that need further operands, or that are composed of others."""


def retyped(decision: Decision, operands: Sequence[Any]) -> Decision:
    """A decision whose fix is about the operands of this call.

    A prepared operation keeps the decision on the numbers that it was first prepared for. Arrays that are not wrapped
    are cast with their library's own methods.
    """
    seen = zip(decision.operands, operands, strict=True)
    return replace(decision, operands=tuple(_retyped(each, given) for each, given in seen))


def _retyped(operand: Operand, given: Any) -> Operand:
    value = given if operand.is_python_scalar else operand.value
    return replace(operand, value=value, library=library_of(given))
