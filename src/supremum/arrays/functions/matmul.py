"""The operator `@`."""

from __future__ import annotations

from typing import Any

from supremum.arrays.functions.promoting import matmul
from supremum.arrays.operand_keys import joint_backend
from supremum.arrays.wrapped_functions import call_in, library_of


def product(a: Any, b: Any) -> Any:
    """The matrix product in the library of both operands, and its key; `NotImplemented` if one is not an array.

    Args:
        a: an array.
        b: another.

    Raises:
        PromotionError: if the rules refuse.
        LibraryError: for arrays from two libraries.
    """
    libraries = [library_of(operand) for operand in (a, b)]
    if None in libraries:
        return NotImplemented
    return call_in(joint_backend(libraries), "matmul", matmul, (a, b), {})
