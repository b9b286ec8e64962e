"""Functions of the standard that promote several arrays and are not element by element.

The first parameter of each is the library of the namespace that it is a function of.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from supremum.argument_checks import whole_number
from supremum.arrays import promote_operands
from supremum.arrays.backends import Backend, Raw
from supremum.arrays.errors import RuntimeDtypeError
from supremum.arrays.wrapped import KeyedRaw, keyed
from supremum.arrays.wrapped_functions import adopt_operands, adopt_result
from supremum.errors import ArgumentError


def _promoted(
    backend: Backend, name: str, operation: str | None, operands: Sequence[Any], unpromoted: Sequence[Any] = ()
) -> promote_operands.Promoted:
    """As `promote_operands`, in the library of a namespace."""
    adopted = adopt_operands(backend, name, (*operands, *unpromoted))
    return promote_operands.promote_operands(operation, adopted[: len(operands)], adopted[len(operands) :], name)


def _compute_promoted(
    backend: Backend,
    name: str,
    operands: Sequence[Any],
    compute: Callable[[Any, list[Raw]], Raw],
    operation: str | None = None,
) -> KeyedRaw:
    """The result of a function of the library of the promoted operands, in the dtype that the rules decide.

    Args:
        backend: the library of the namespace.
        name: of the function.
        operands: arrays and Python numbers.
        compute: the function, given the library's namespace and the promoted operands.
        operation: the operation that decides; None for the one with the name of the function.

    Raises:
        RuntimeDtypeError: if the library does not compute it in that dtype.
    """
    promoted = _promoted(backend, name, operation or name, operands)
    try:
        raw = compute(promoted.backend.xp, promoted.operands)
    except (NotImplementedError, TypeError) as error:
        if type(error) is TypeError:  # it is about an argument; a missing loop or kernel raises a subclass
            raise
        dtype = promoted.backend.key_of(promoted.operands[0]).dtype
        raise RuntimeDtypeError(f"{backend.name} has no {name} of {dtype}", decision=promoted.decision) from error
    return adopt_result(backend, promoted.typed(raw))


def concat(backend: Backend, arrays: Sequence[Any], /, *, axis: int | None = 0) -> KeyedRaw:
    """Arrays one after the other, in their common dtype.

    Args:
        backend: the library.
        arrays: the arrays.
        axis: the dimension along which; None flattens them.

    Raises:
        PromotionError: if the rules refuse.

    >>> import numpy as np, supremum
    >>> xp = supremum.arrays.namespace("numpy")
    >>> xp.concat([np.ones(1, "int8"), np.ones(1, "uint8")])
    Array([1, 1], dtype=int16)
    """
    return _compute_promoted(
        backend, "concat", _at_least_one("concat", arrays), lambda xp, found: xp.concat(found, axis=axis)
    )


def stack(backend: Backend, arrays: Sequence[Any], /, *, axis: int = 0) -> KeyedRaw:
    """Arrays side by side in a new dimension, in their common dtype.

    Args:
        backend: the library.
        arrays: the arrays, all of one shape.
        axis: where the new dimension is.

    Raises:
        PromotionError: if the rules refuse.
    """
    return _compute_promoted(
        backend, "stack", _at_least_one("stack", arrays), lambda xp, found: xp.stack(found, axis=axis)
    )


def _at_least_one(name: str, arrays: Sequence[Any]) -> list[Any]:
    found = list(arrays)
    if not found:
        raise ArgumentError(f"{name} needs at least one array")
    return found


def where(backend: Backend, condition: Any, x1: Any, x2: Any, /) -> KeyedRaw:
    """As `supremum.ops.where`.

    Args:
        backend: the library.
        condition: an array of bools, or a bool.
        x1: an array or a number.
        x2: likewise; both are promoted as the rules decide.
    """
    return adopt_result(backend, promote_operands.where(*adopt_operands(backend, "where", (condition, x1, x2))))


def clip(backend: Backend, x: Any, /, min: Any = None, max: Any = None) -> KeyedRaw:  # noqa: A002 (the standard's names)
    """As `supremum.ops.clip`.

    Args:
        backend: the library.
        x: an array or a number.
        min: the lower bound, an array or a number; None for none.
        max: the upper one, likewise. All are promoted as the rules decide.
    """
    return adopt_result(backend, promote_operands.clip(*adopt_operands(backend, "clip", (x, min, max))))


def matmul(backend: Backend, x1: Any, x2: Any, /) -> KeyedRaw:
    """The product of two matrices, or of stacks of them, in the dtype that the rules decide for `matmul`.

    Args:
        backend: the library.
        x1: an array.
        x2: another.

    Raises:
        PromotionError: if the rules refuse.
    """
    return _compute_promoted(backend, "matmul", (x1, x2), lambda xp, found: xp.matmul(*found))


def tensordot(backend: Backend, x1: Any, x2: Any, /, *, axes: Any = 2) -> KeyedRaw:
    """The sum of products over some dimensions, in the dtype that the rules decide for `tensordot`.

    Args:
        backend: the library.
        x1: an array.
        x2: another.
        axes: over how many dimensions, last of the first and first of the second; or which ones of each.

    Raises:
        PromotionError: if the rules refuse.
    """
    return _compute_promoted(backend, "tensordot", (x1, x2), lambda xp, found: xp.tensordot(*found, axes=axes))


def vecdot(backend: Backend, x1: Any, x2: Any, /, *, axis: int = -1) -> KeyedRaw:
    """The dot products of vectors, the first conjugated, in the dtype that the rules decide for `vecdot`.

    Args:
        backend: the library.
        x1: an array.
        x2: another.
        axis: the dimension that the vectors are along.

    Raises:
        PromotionError: if the rules refuse.
    """
    return _compute_promoted(backend, "vecdot", (x1, x2), lambda xp, found: xp.vecdot(*found, axis=axis))


def cross(backend: Backend, x1: Any, x2: Any, /, *, axis: int = -1) -> KeyedRaw:
    """The cross products of vectors of three elements, in the dtype that the rules decide for `cross`.

    Args:
        backend: the library.
        x1: an array.
        x2: another.
        axis: the dimension that the vectors are along.

    Raises:
        PromotionError: if the rules refuse.
    """
    return _compute_promoted(backend, "cross", (x1, x2), lambda xp, found: xp.linalg.cross(*found, axis=axis))


def outer(backend: Backend, x1: Any, x2: Any, /) -> KeyedRaw:
    """All products of the elements of two vectors, in the dtype that the rules decide for `outer`.

    Args:
        backend: the library.
        x1: an array of one dimension.
        x2: another.

    Raises:
        PromotionError: if the rules refuse.
    """
    return _compute_promoted(backend, "outer", (x1, x2), lambda xp, found: xp.linalg.outer(*found))


def solve(backend: Backend, x1: Any, x2: Any, /) -> KeyedRaw:
    """The solution of linear equations, in the dtype that the rules decide for `solve`.

    Args:
        backend: the library.
        x1: the coefficients, matrices.
        x2: the right sides, a vector or matrices.

    Raises:
        PromotionError: if the rules refuse.
    """
    return _compute_promoted(backend, "solve", (x1, x2), lambda xp, found: xp.linalg.solve(*found))


def searchsorted(backend: Backend, x1: Any, x2: Any, /, *, side: str = "left", sorter: Any = None) -> KeyedRaw:
    """Where elements would be inserted into a sorted array, compared in their common dtype.

    Args:
        backend: the library.
        x1: the sorted array.
        x2: what would be inserted.
        side: `"left"` or `"right"` of equal elements.
        sorter: integers that sort `x1`, if it is not sorted.

    Raises:
        PromotionError: if the rules refuse.
    """
    promoted = _promoted(backend, "searchsorted", None, (x1, x2), () if sorter is None else (sorter,))
    given = {"sorter": promoted.unpromoted[0]} if promoted.unpromoted else {}
    return keyed(promoted.backend, promoted.backend.xp.searchsorted(*promoted.operands, side=side, **given))


def isin(backend: Backend, x1: Any, x2: Any, /, *, invert: bool = False) -> KeyedRaw:
    """Which elements of an array are in another, compared in their common dtype.

    Args:
        backend: the library.
        x1: the elements.
        x2: those they are compared with.
        invert: whether to tell which are not.

    Raises:
        PromotionError: if the rules refuse.
    """
    return _compute_promoted(
        backend, "isin", (x1, x2), lambda xp, found: xp.isin(*found, invert=invert), operation="equal"
    )


def diff(
    backend: Backend, x: Any, /, *, axis: int = -1, n: int = 1, prepend: Any = None, append: Any = None
) -> KeyedRaw:
    """Differences of neighbours, in the common dtype of the array and what is put before and after it.

    Args:
        backend: the library.
        x: an array.
        axis: the dimension along which.
        n: how often.
        prepend: an array that is put before it; None for none.
        append: one that is put after it, likewise.

    Raises:
        PromotionError: if the rules refuse.
    """
    given = {"prepend": prepend, "append": append}
    ends = {name: end for name, end in given.items() if end is not None}

    def compute(xp: Any, found: list[Raw]) -> Raw:
        # After as many times as there are elements nothing is left; libraries go on.
        times = min(whole_number("n", n, 0, 2**63 - 1), sum(each.shape[axis] for each in found))
        return xp.diff(found[0], axis=axis, n=times, **dict(zip(ends, found[1:], strict=True)))

    return _compute_promoted(backend, "diff", (x, *ends.values()), compute)


PROMOTING_FUNCTIONS: dict[str, Callable[..., KeyedRaw]] = {
    function.__name__: function
    for function in (clip, concat, diff, isin, matmul, searchsorted, stack, tensordot, vecdot, where)
}
"""By name, those of the namespace itself."""
PROMOTING_LINALG_FUNCTIONS: dict[str, Callable[..., KeyedRaw]] = {
    function.__name__: function for function in (cross, matmul, outer, solve, tensordot, vecdot)
}
"""Those of its `linalg`."""
