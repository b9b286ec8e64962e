"""The libraries that carry out a fixed call; the search for a fix tries casts on them, as users would type them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Protocol

import numpy as np

from supremum.decisions import Verdict
from supremum.errors import UnknownDtypeError
from supremum.fix import Fix, FixCast
from supremum.formats import DType, as_format
from supremum.operands import Operand
from supremum.operations import Operation
from supremum.rules.jax_flags import holds_64_bits


class Runtime(Protocol):
    """The library that carries out a fixed call; without methods of its own, one that supports everything.

    >>> from supremum import rules
    >>> from supremum.operands import as_operand
    >>> class WithoutFloat64(Runtime):
    ...     def tried(self, operation, operands, fix, verdict):
    ...         lost = any(cast.dtype == "float64" for cast in fix.casts)
    ...         return None if lost else fix
    >>> operands = as_operand("int32"), as_operand("float32")
    >>> str(rules.ARRAY_API.decide("add", operands).fix)
    "a.astype('float64') and b.astype('float64')"
    >>> str(rules.ARRAY_API.decide("add", operands, runtime=WithoutFloat64()).fix)
    "a.astype('complex128') and b.astype('complex128')"
    """

    def holds(self, operand: Operand) -> bool:  # noqa: ARG002 (it has no arrays)
        """Whether the array is known to belong to this runtime, so that it can try a cast of it."""
        return False

    def tried(self, operation: Operation, operands: Sequence[Operand], fix: Fix, verdict: Verdict) -> Fix | None:  # noqa: ARG002
        """The fix as users must type it; None if a cast or the operation after it does not work.

        Args:
            operation: its row.
            operands: the operands before the casts.
            fix: the casts.
            verdict: the verdict of the rules on the operands after the casts.
        """
        return fix


class Everything(Runtime):
    """The runtime assumed when only dtypes are known, which supports every dtype and every function."""


class Unwrapped(Runtime):
    """The runtime of unwrapped arrays: their libraries cast them, and the library that computes is unknown."""

    def holds(self, operand: Operand) -> bool:
        """Whether the library of the array is loaded."""
        return operand.library in sys.modules

    def tried(self, operation: Operation, operands: Sequence[Operand], fix: Fix, verdict: Verdict) -> Fix | None:  # noqa: ARG002
        """The fix, or None if one of its casts does not work."""
        return fix if all(is_typed(operands[cast.position], cast) for cast in fix.casts) else None


EVERYTHING, UNWRAPPED = Everything(), Unwrapped()


def is_typed(operand: Operand, conversion: FixCast) -> bool:
    """Whether the library of an array carries out a cast and returns the dtype of the cast.

    Args:
        operand: the array; for operands that are not NumPy, JAX or PyTorch arrays, the answer is True.
        conversion: the cast to try.
    """
    if operand.library not in sys.modules or operand.dtype is None:
        return True
    return _tried(operand.dtype, conversion._replace(position=0), holds_64_bits())


@lru_cache(maxsize=4096)
def _tried(source: DType, conversion: FixCast, wide: bool) -> bool:
    """Whether a cast of an array of ones works, cached for each state of JAX's flags."""
    try:
        if conversion.library == "jax":
            # JAX narrows 64 bits and only warns.
            if not wide and as_format(conversion.dtype).component.bits > as_format("float32").bits:
                return False
            result = _converted_by_jax(conversion, source)
        elif conversion.library == "torch":
            result = _converted(conversion, sys.modules["torch"].ones(1, dtype=_native(source)))
        else:
            with np.errstate(all="ignore"):
                result = _converted(conversion, np.ones(1, source))
        return as_format(result.dtype).dtype == conversion.dtype
    except (TypeError, ValueError, AttributeError, RuntimeError, UnknownDtypeError):
        return False


def _converted_by_jax(conversion: FixCast, source: DType) -> Any:
    """Cast in JAX, and run the cast even while JAX traces, because XLA traces some casts that it cannot run."""
    jax = sys.modules["jax"]
    with jax.ensure_compile_time_eval():
        for target in (conversion.through, conversion.dtype):
            if target is not None:
                # A format that no device supports raises here; in a conversion XLA may end the process.
                jax.numpy.asarray(np.ones(1, target))
        array = jax.numpy.asarray(np.ones(4, source))
        if as_format(conversion.dtype).category == "bool":
            # The cast compares with zero. If XLA cannot compute in the format, a sum raises, while a comparison ends
            # the process from JAX 0.12 on.
            (array + array).block_until_ready()
        return _converted(conversion, array)


def _converted(conversion: FixCast, array: Any) -> Any:
    """Cast an array as the text of the cast does."""
    if conversion.through is not None:
        array = _cast(array, conversion.through, conversion.library)
    return _cast(array.real if conversion.drops_imaginary else array, conversion.dtype, conversion.library)


def _cast(array: Any, dtype: DType, library: str) -> Any:
    return array.to(_native(dtype)) if library == "torch" else array.astype(dtype)


def _native(dtype: DType) -> Any:
    return getattr(sys.modules["torch"], str(dtype))
