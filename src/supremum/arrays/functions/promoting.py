"""Functions of the standard that promote several arrays and are not elementwise.

The first parameter of each function is the library of the namespace.
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
    """The same as `promote_operands`, in the library of a namespace."""
    adopted = adopt_operands(backend, name, (*operands, *unpromoted))
    return promote_operands.promote_operands(operation, adopted[: len(operands)], adopted[len(operands) :], name)


def _compute_promoted(
    backend: Backend,
    name: str,
    operands: Sequence[Any],
    compute: Callable[[Any, list[Raw]], Raw],
    operation: str | None = None,
) -> KeyedRaw:
    """The result of a function of promoted operands, in the dtype that the rules decide.

    Args:
        backend: the library of the namespace.
        name: of the function.
        operands: arrays and Python numbers.
        compute: the function; it takes the library's namespace and the promoted operands.
        operation: the operation that decides; None for the operation with the name of the function.

    Raises:
        ArgumentError: if there are no operands.
        RuntimeDtypeError: if the library does not compute the function in that dtype.
    """
    if not operands:
        raise ArgumentError(f"{name} needs at least one array")
    promoted = _promoted(backend, name, operation or name, operands)
    try:
        raw = compute(promoted.backend.xp, promoted.operands)
    except (NotImplementedError, TypeError) as error:
        if type(error) is TypeError:  # the error is about an argument; a missing kernel raises a subclass
            raise
        dtype = promoted.backend.key_of(promoted.operands[0]).dtype
        raise RuntimeDtypeError(f"{backend.name} has no {name} for {dtype}", decision=promoted.decision) from error
    return adopt_result(backend, promoted.typed(raw))


def concat(backend: Backend, arrays: Sequence[Any], /, *, axis: int | None = 0) -> KeyedRaw:
    """Arrays joined along a dimension, in their common dtype.

    Args:
        backend: the library.
        arrays: the arrays.
        axis: the dimension; None flattens the arrays.

    Raises:
        PromotionError: if the rules refuse.

    >>> import numpy as np, supremum
    >>> xp = supremum.arrays.namespace("numpy")
    >>> xp.concat([np.ones(1, "int8"), np.ones(1, "uint8")])
    Array([1, 1], dtype=int16)
    """
    return _compute_promoted(backend, "concat", list(arrays), lambda xp, found: xp.concat(found, axis=axis))


def stack(backend: Backend, arrays: Sequence[Any], /, *, axis: int = 0) -> KeyedRaw:
    """Arrays joined along a new dimension, in their common dtype.

    Args:
        backend: the library.
        arrays: the arrays, all of one shape.
        axis: the position of the new dimension.

    Raises:
        PromotionError: if the rules refuse.
    """
    return _compute_promoted(backend, "stack", list(arrays), lambda xp, found: xp.stack(found, axis=axis))


def where(backend: Backend, condition: Any, x1: Any, x2: Any, /) -> KeyedRaw:
    """The same as `supremum.ops.where`.

    Args:
        backend: the library.
        condition: an array of bools, or a bool.
        x1: an array or a number.
        x2: an array or a number; the rules promote both.
    """
    return adopt_result(backend, promote_operands.where(*adopt_operands(backend, "where", (condition, x1, x2))))


def clip(backend: Backend, x: Any, /, min: Any = None, max: Any = None) -> KeyedRaw:  # noqa: A002 (the standard's names)
    """The same as `supremum.ops.clip`.

    Args:
        backend: the library.
        x: an array or a number.
        min: the lower bound, an array or a number, or None.
        max: the upper bound, an array or a number, or None; the rules promote all operands.
    """
    return adopt_result(backend, promote_operands.clip(*adopt_operands(backend, "clip", (x, min, max))))


def matmul(backend: Backend, x1: Any, x2: Any, /) -> KeyedRaw:
    """The product of two matrices, or of stacks of them, in the dtype that the rules decide for `matmul`.

    Args:
        backend: the library.
        x1: an array.
        x2: an array.

    Raises:
        PromotionError: if the rules refuse.
    """
    return _compute_promoted(backend, "matmul", (x1, x2), lambda xp, found: xp.matmul(*found))


def tensordot(backend: Backend, x1: Any, x2: Any, /, *, axes: Any = 2) -> KeyedRaw:
    """The sum of products over some dimensions, in the dtype that the rules decide for `tensordot`.

    Args:
        backend: the library.
        x1: an array.
        x2: an array.
        axes: the number of dimensions, the last of `x1` and the first of `x2`; or the dimensions of each.

    Raises:
        PromotionError: if the rules refuse.
    """
    return _compute_promoted(backend, "tensordot", (x1, x2), lambda xp, found: xp.tensordot(*found, axes=axes))


def vecdot(backend: Backend, x1: Any, x2: Any, /, *, axis: int = -1) -> KeyedRaw:
    """The dot products of vectors, with the first conjugated, in the dtype that the rules decide for `vecdot`.

    Args:
        backend: the library.
        x1: an array.
        x2: an array.
        axis: the dimension of the vectors.

    Raises:
        PromotionError: if the rules refuse.
    """
    return _compute_promoted(backend, "vecdot", (x1, x2), lambda xp, found: xp.vecdot(*found, axis=axis))


def cross(backend: Backend, x1: Any, x2: Any, /, *, axis: int = -1) -> KeyedRaw:
    """The cross products of vectors of three elements, in the dtype that the rules decide for `cross`.

    Args:
        backend: the library.
        x1: an array.
        x2: an array.
        axis: the dimension of the vectors.

    Raises:
        PromotionError: if the rules refuse.
    """
    return _compute_promoted(backend, "cross", (x1, x2), lambda xp, found: xp.linalg.cross(*found, axis=axis))


def outer(backend: Backend, x1: Any, x2: Any, /) -> KeyedRaw:
    """All products of the elements of two vectors, in the dtype that the rules decide for `outer`.

    Args:
        backend: the library.
        x1: an array of one dimension.
        x2: an array of one dimension.

    Raises:
        PromotionError: if the rules refuse.
    """
    return _compute_promoted(backend, "outer", (x1, x2), lambda xp, found: xp.linalg.outer(*found))


def solve(backend: Backend, x1: Any, x2: Any, /) -> KeyedRaw:
    """The solution of linear equations, in the dtype that the rules decide for `solve`.

    Args:
        backend: the library.
        x1: the matrices of coefficients.
        x2: the right-hand sides, a vector or matrices.

    Raises:
        PromotionError: if the rules refuse.
    """
    return _compute_promoted(backend, "solve", (x1, x2), lambda xp, found: xp.linalg.solve(*found))


def searchsorted(backend: Backend, x1: Any, x2: Any, /, *, side: str = "left", sorter: Any = None) -> KeyedRaw:
    """The positions at which elements would be inserted into a sorted array, compared in their common dtype.

    Args:
        backend: the library.
        x1: the sorted array.
        x2: the elements to insert.
        side: `"left"` or `"right"` of equal elements.
        sorter: indices that sort `x1`, if it is not sorted.

    Raises:
        PromotionError: if the rules refuse.
    """
    promoted = _promoted(backend, "searchsorted", None, (x1, x2), () if sorter is None else (sorter,))
    given = {"sorter": promoted.unpromoted[0]} if promoted.unpromoted else {}
    return keyed(promoted.backend, promoted.backend.xp.searchsorted(*promoted.operands, side=side, **given))


def isin(backend: Backend, x1: Any, x2: Any, /, *, invert: bool = False) -> KeyedRaw:
    """Whether each element of an array is in another array, compared in their common dtype.

    Args:
        backend: the library.
        x1: the elements.
        x2: the elements to look in.
        invert: whether to negate the result.

    Raises:
        PromotionError: if the rules refuse.
    """
    return _compute_promoted(backend, "isin", (x1, x2), lambda xp, found: xp.isin(*found, invert=invert), "equal")


def diff(
    backend: Backend, x: Any, /, *, axis: int = -1, n: int = 1, prepend: Any = None, append: Any = None
) -> KeyedRaw:
    """Differences of neighbours, in the common dtype of the array and of what is added before and after it.

    Args:
        backend: the library.
        x: an array.
        axis: the dimension.
        n: how often to take differences.
        prepend: an array to add before `x`, or None.
        append: an array to add after `x`, or None.

    Raises:
        PromotionError: if the rules refuse.
    """
    ends = {name: end for name, end in (("prepend", prepend), ("append", append)) if end is not None}

    def compute(xp: Any, found: list[Raw]) -> Raw:
        # There are no elements left after as many times as there are elements; libraries go on.
        times = min(whole_number("n", n, 0, 2**63 - 1), sum(each.shape[axis] for each in found))
        return xp.diff(found[0], axis=axis, n=times, **dict(zip(ends, found[1:], strict=True)))

    return _compute_promoted(backend, "diff", (x, *ends.values()), compute)


PROMOTING_FUNCTIONS: dict[str, Callable[..., KeyedRaw]] = {
    function.__name__: function
    for function in (clip, concat, diff, isin, matmul, searchsorted, stack, tensordot, vecdot, where)
}
"""The functions of the namespace itself, by name."""
PROMOTING_LINALG_FUNCTIONS: dict[str, Callable[..., KeyedRaw]] = {
    function.__name__: function for function in (cross, matmul, outer, solve, tensordot, vecdot)
}
"""The functions of its `linalg`."""
