"""Trials of fixes before messages suggest them: once per dtype, on arrays of one element and not on the user's."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from supremum.arrays.backends import Backend, CallPlan, Key, Raw, array_key
from supremum.arrays.backends.base import Build
from supremum.arrays.backends.kernels import sample_of
from supremum.arrays.backends.numpy import NUMPY
from supremum.arrays.reduction_kernels import reduction
from supremum.arrays.wrapped import joint_backend
from supremum.bounded_cache import Bounded
from supremum.decisions import Decision, ResultType, Verdict
from supremum.errors import SupremumError
from supremum.fix import Fix, FixCast
from supremum.formats import as_format
from supremum.operands import Operand, library_of
from supremum.operations import ASSIGN, Family, Operation
from supremum.rules import is_typed

# What libraries raise if they do not have a dtype or a kernel.
_FAILURES = (SupremumError, TypeError, ValueError, RuntimeError, AttributeError, ArithmeticError)
_PROBE = as_format("float32").dtype
_KNOWN: Bounded[Hashable, bool] = Bounded(16_384)


class Trial:
    """The runtime of some operands, as it is now: their libraries, and JAX's flags.

    Args:
        keys: of the operands.
        build: makes the function to try, as for a `CallPlan`; None for the function of the operation's name.
        options: its options.
    """

    def __init__(
        self, keys: Sequence[Key], build: Build | None = None, options: Mapping[str, Any] | None = None
    ) -> None:
        self.keys: tuple[Key, ...] = tuple(keys)
        self.build = build
        self.options: dict[str, Any] = dict(options or {})
        self.backend: Backend = joint_backend(key.backend for key in keys)
        self.flags: Hashable = self.backend.flags()

    def holds(self, operand: Operand) -> bool:  # noqa: ARG002 (a `Runtime`)
        """True, because the arrays of the operands exist."""
        return True

    def tried(self, operation: Operation, operands: Sequence[Operand], fix: Fix, verdict: Verdict) -> Fix | None:
        """The fix if the libraries make its casts and then compute what the rules say, otherwise None."""
        assert verdict.result is not None
        keys, casts = list(self.keys), list[FixCast]()
        with self.backend.under(self.flags):
            if self.backend.flags() != self.flags:
                return None  # these flags cannot be set for a block
            for cast in fix.casts:
                i = cast.position
                working_cast = self._working_cast(keys[i], operands[i], cast)
                if working_cast is None:
                    return None
                casts.append(working_cast)
                keys[i] = _key_after(keys[i], working_cast)
            result = verdict.result if verdict.stored is None else ResultType(verdict.stored)
            build = self.build or _build_of(operation)
            plan = CallPlan(
                operation, tuple(keys), verdict.compute, result, "", build, self.options, verdict.number_steps
            )
            computes = self._computes(plan)
            if computes and joint_backend(key.backend for key in keys) is not self.backend:
                # Operands that are not part of the decision, such as the condition of `where`, may be in this library.
                computes = self._computes(replace(plan, keys=self._moved_back(keys)))
            return Fix(tuple(casts)) if computes else None

    def _working_cast(self, key: Key, operand: Operand, cast: FixCast) -> FixCast | None:
        """The cast if the operand's library makes it, the cast by NumPy if only that works, otherwise None."""
        if operand.library:
            return cast if is_typed(operand, cast) else None
        if key.backend is None or self._converts(key.backend, key, cast):
            return cast
        if self._converts(key.backend, key, FixCast.of(cast.position, operand, _PROBE)):
            return None
        if not is_typed(replace(operand, library=NUMPY.name), cast):
            return None
        return cast._replace(on_host=True)  # the library does not convert arrays of this dtype

    def _moved_back(self, keys: Sequence[Key]) -> tuple[Key, ...]:
        """The keys of the operands after their casts, with all arrays in the library of the trial."""
        return tuple(
            array_key(self.backend, key.operand.format.dtype, False, key.zero_d, own.device)
            if key.backend is not None
            else key
            for key, own in zip(keys, self.keys, strict=True)
        )

    def _converts(self, backend: Backend, key: Key, cast: FixCast) -> bool:
        """Whether a library converts one of its arrays itself."""

        def convert(raw: Raw) -> Raw:
            if cast.through is not None:
                raw = backend.astype(raw, cast.through)
            return backend.astype(backend.xp.real(raw) if cast.drops_imaginary else raw, cast.dtype)

        trial = (key, cast.dtype, cast.drops_imaginary, cast.through, self.flags)
        return _once(trial, lambda: backend.try_out(convert, [sample_of(key)], [key.operand.format.dtype, cast.dtype]))

    def _computes(self, plan: CallPlan) -> bool:
        backend = joint_backend(key.backend for key in plan.keys)
        trial = (plan.operation.name, plan.keys, plan.compute, plan.result, plan.build, *plan.options.items())

        def compute() -> bool:
            prepared = backend.prepare(plan)
            array_dtypes = [key.operand.format.dtype for key in plan.keys if key.backend is not None]
            dtypes = [*array_dtypes, *plan.compute, plan.result.dtype]
            return backend.try_out(prepared, [*map(sample_of, plan.keys)], dtypes)

        return _once((*trial, self.flags), compute)


def _key_after(key: Key, cast: FixCast) -> Key:
    """The key of an operand after its cast."""
    library = NUMPY if key.backend is None or cast.on_host else key.backend
    return array_key(library, cast.dtype, False, key.zero_d, None if library is NUMPY else key.device)


def _build_of(operation: Operation) -> Build | None:
    """What makes the function of the promoted operands; None for the library's elementwise function."""
    if operation is ASSIGN or operation.family is Family.QUESTION:
        return _first
    if operation.family is Family.REDUCTION:
        return reduction
    return in_library(operation.name) if operation.family is Family.WHOLE else None


def _first(backend: Backend, plan: CallPlan) -> Callable[..., Raw]:  # noqa: ARG001
    return lambda *samples: samples[0]


def _once(trial: Hashable, attempt: Callable[[], bool]) -> bool:
    try:
        success = _KNOWN.get(trial)
    except TypeError:  # an option that cannot be a key, such as an array
        return False
    if success is None:
        try:
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the warnings would be about the trial, not the user's program
                success = attempt()
        except _FAILURES:
            success = False
        _KNOWN[trial] = success
    return success


@cache
def in_library(name: str) -> Build:
    """Make a function that tries a function of the standard on square matrices and on vectors.

    Args:
        name: of a function that is not elementwise. If the library does not have it only the casts are tried.
    """

    def build(backend: Backend, plan: CallPlan) -> Callable[..., Raw]:  # noqa: ARG001
        xp = backend.xp
        function = getattr(xp, name, None) or getattr(xp.linalg, name, None)

        def tried(*samples: Raw) -> Raw:
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

    return build


_OF_LISTS = ("concat", "stack")
_NOT_ALONE = ("where", "clip", "diff")  # they need more operands, or are composed of other functions


def with_operands(decision: Decision, operands: Sequence[Any]) -> Decision:
    """A decision with the operands of this call, which its fix then casts.

    A prepared operation keeps the decision about the numbers that it was first prepared for. Fixes cast arrays that are
    not wrapped with the methods of their own library.
    """
    new_operands: list[Operand] = []
    for operand, argument in zip(decision.operands, operands, strict=True):
        # The decision about a NumPy scalar that counts as a number is of this call.
        is_number = operand.is_python_scalar and not isinstance(argument, np.generic)
        value = argument if is_number else operand.value
        new_operands.append(replace(operand, value=value, library=library_of(argument)))
    return replace(decision, operands=tuple(new_operands))


def no_fix(_operands: tuple[Operand, ...]) -> Fix | None:
    """None: for decisions that no cast changes; a function, so that they can be pickled."""
