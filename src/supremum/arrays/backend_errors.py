"""Errors of the libraries, raised again as `ComputationError` with the library's own error as the cause."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from supremum.arrays.backends import Backend
from supremum.arrays.errors import computation_error
from supremum.errors import SupremumError, listed, shortened, shown

# Our own errors, and errors that the user asked for: warnings as errors, and errors of `numpy.errstate`.
_PASSED_THROUGH: Final = (SupremumError, Warning, FloatingPointError)


def raise_computation_error(
    name: str, backend: Backend, operands: Sequence[Any], options: Mapping[str, Any], error: Exception
) -> None:
    """Raise a `ComputationError` in place of an error of a library; return if that error is to go on as it is.

    Args:
        name: of the function.
        backend: the library.
        operands: the positional arguments of the function.
        options: its arguments by name.
        error: the library's error.

    Raises:
        ComputationError: except for our own errors, and for JAX's errors about what cannot be traced.
    """
    if isinstance(error, (*_PASSED_THROUGH, *backend.passed_through)):
        return
    arguments = [*map(_describe, operands), *(f"{key}={_describe(value)}" for key, value in options.items())]
    said = shortened(next(iter(str(error).strip().splitlines()), "") or type(error).__name__)
    raise computation_error(type(error), f"{name}({listed(arguments)}) failed in {backend.name}: {said}") from error


class computation_errors:  # noqa: N801 (a context manager)
    """A block in which errors of a library become `ComputationError`.

    Args:
        name: of the function.
        backend: the library.
        operands: the positional arguments of the function.
        options: its arguments by name.
    """

    def __init__(self, name: str, backend: Backend, /, *operands: object, **options: object) -> None:
        self.call: tuple[str, Backend, tuple[object, ...], dict[str, object]] = name, backend, operands, options

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, Exception):
            raise_computation_error(*self.call, error)


def _describe(value: Any, depth: int = 0) -> str:
    if isinstance(value, (list, tuple)) and depth < 2:
        parts = cast("Sequence[Any]", value)
        within = [_describe(part, depth + 1) for part in parts[:4]]
        return f"[{', '.join(within)}{', ...' if len(parts) > 4 else ''}]"
    array: Any = value
    try:
        return f"{array.dtype}{list(array.shape)}"
    except Exception:  # it is not an array
        return shown(value)
