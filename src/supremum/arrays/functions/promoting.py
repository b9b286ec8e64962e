"""Functions of the standard that promote several arrays and are not elementwise.

Each returns the operands of a call and its options; see `PromotingFunction`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from supremum.argument_checks import whole_number
from supremum.arrays.backends import Backend, CallPlan, Raw
from supremum.arrays.backends.numpy import NUMPY
from supremum.arrays.calls import PreparedCall
from supremum.arrays.pass_through_function import PassThroughFunction
from supremum.arrays.promoting_function import Arguments, PromotingFunction, by_name
from supremum.arrays.wrapped import as_key, not_an_operand
from supremum.errors import ArgumentError
from supremum.formats import as_format
from supremum.operands import as_operand
from supremum.rules import RulesLike, get_rules
from supremum.typing import ArrayLike


def concat(arrays: Sequence[ArrayLike], /, *, axis: int | None = 0) -> Arguments:
    """Arrays joined along a dimension, in their common dtype.

    Args:
        arrays: the arrays.
        axis: the dimension; None flattens the arrays.

    Raises:
        PromotionError: if the rules refuse.

    >>> import numpy as np, supremum
    >>> xp = supremum.arrays.namespace("numpy")
    >>> xp.concat([np.ones(1, "int8"), np.ones(1, "uint8")])
    Array([1, 1], dtype=int16)
    """
    return _several("concat", arrays), {"axis": axis}


def stack(arrays: Sequence[ArrayLike], /, *, axis: int = 0) -> Arguments:
    """Arrays joined along a new dimension, in their common dtype.

    Args:
        arrays: the arrays, all of one shape.
        axis: the position of the new dimension.

    Raises:
        PromotionError: if the rules refuse.
    """
    return _several("stack", arrays), {"axis": axis}


def _several(name: str, arrays: Sequence[ArrayLike]) -> list[Any]:
    operands = list(arrays)
    if not operands:
        raise ArgumentError(f"{name} needs at least one array")
    return operands


def _of_list(name: str) -> Callable[[Backend, CallPlan], Callable[..., Raw]]:
    def build(backend: Backend, plan: CallPlan) -> Callable[..., Raw]:
        function, axis = backend.function(name), plan.options["axis"]
        return (lambda *operands: function(operands)) if axis == 0 else lambda *operands: function(operands, axis=axis)

    return build


def where(condition: ArrayLike, x1: ArrayLike, x2: ArrayLike, /) -> Arguments:
    """Elements of one array where a condition is true, and of another where it is false.

    Args:
        condition: an array of bools, or a bool.
        x1: an array or a number.
        x2: an array or a number; the rules promote both.

    Raises:
        PromotionError: if the rules refuse.
        ArgumentError: for a condition that is not boolean.

    >>> import numpy as np, supremum
    >>> supremum.ops.where(np.array([True, False]), np.ones(2, "float32"), 2)
    Array([1., 2.], dtype=float32)
    """
    return (condition, x1, x2), {}


def _choice(backend: Backend, plan: CallPlan) -> Callable[..., Raw]:
    condition = plan.keys[0].operand
    if condition.category != "bool":
        raise ArgumentError(f"where() needs a boolean condition, got {condition.name}; use condition != 0")
    return backend.function("where")


class _Where(PromotingFunction):
    """`where`, which for a condition alone returns the positions at which it is true, as libraries do."""

    def prepare(self, rules_like: RulesLike, args: Sequence[Any], options: Mapping[str, Any]) -> PreparedCall:
        """As in the base class."""
        if len(args) == 1 and not options:
            return (_NONZERO if self.backend is None else _NONZERO.within(self.backend)).find(rules_like, args, options)
        return super().prepare(rules_like, args, options)


def _positions(x: ArrayLike, /) -> None:
    """The arguments of `nonzero`."""


_NONZERO = PassThroughFunction("nonzero", _positions)


def clip(x: ArrayLike, /, min: ArrayLike | None = None, max: ArrayLike | None = None) -> Arguments:  # noqa: A002 (the standard's names)
    """Limit elements to a range.

    Args:
        x: an array or a number.
        min: the lower bound, an array or a number, or None.
        max: the upper bound, an array or a number, or None; the rules promote all operands.

    Raises:
        PromotionError: if the rules refuse.

    >>> import numpy as np, supremum
    >>> supremum.ops.clip(np.array([1.0, 5.0], "float32"), max=2)
    Array([1., 2.], dtype=float32)
    """
    limits = {"maximum": min, "minimum": max}
    bounds = {name: bound for name, bound in limits.items() if bound is not None and not _is_ignored(x, name, bound)}
    return (x, *bounds.values()), {"bounds": (*bounds,)}


def _is_ignored(x: ArrayLike, name: str, bound: ArrayLike) -> bool:
    """Whether the rules ignore a bound."""
    rules = get_rules()
    operands = [as_key(each, rules) for each in (x, bound)]
    for position, keyed_raw in enumerate(operands):
        if keyed_raw is None:
            raise not_an_operand((x, bound)[position], "clip", position)
    array, number = (keyed_raw[1].operand for keyed_raw in operands if keyed_raw is not None)
    if type(bound) is int:
        number = as_operand(bound)
    return rules.ignores_bound(array, number, is_lower=name == "maximum")


def _limits(backend: Backend, plan: CallPlan) -> Callable[..., Raw]:
    names = plan.options["bounds"]
    if len(names) == 2 and backend is NUMPY and as_format(plan.compute[0]).is_builtin:
        return NUMPY.function("clip")  # it does not support the formats of ml_dtypes
    functions = [backend.function(name) for name in names]

    def limit(x: Raw, *bounds: Raw) -> Raw:
        for function, bound in zip(functions, bounds, strict=True):
            x = function(x, bound)
        return x if functions else backend.xp.asarray(x, copy=True)

    return limit


def matmul(x1: ArrayLike, x2: ArrayLike, /) -> Arguments:
    """The product of two matrices, or of stacks of them, in the dtype that the rules decide for `matmul`.

    Args:
        x1: an array.
        x2: an array.

    Raises:
        PromotionError: if the rules refuse.
    """
    return (x1, x2), {}


def tensordot(x1: ArrayLike, x2: ArrayLike, /, *, axes: int | Sequence[Sequence[int]] = 2) -> Arguments:
    """The sum of products over some dimensions, in the dtype that the rules decide for `tensordot`.

    Args:
        x1: an array.
        x2: an array.
        axes: the number of dimensions, the last of `x1` and the first of `x2`; or the dimensions of each.

    Raises:
        PromotionError: if the rules refuse.
    """
    return (x1, x2), {"axes": axes}


def vecdot(x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1) -> Arguments:
    """The dot products of vectors, with the first conjugated, in the dtype that the rules decide for `vecdot`.

    Args:
        x1: an array.
        x2: an array.
        axis: the dimension of the vectors.

    Raises:
        PromotionError: if the rules refuse.
    """
    return (x1, x2), {"axis": axis}


def cross(x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1) -> Arguments:
    """The cross products of vectors of three elements, in the dtype that the rules decide for `cross`.

    Args:
        x1: an array.
        x2: an array.
        axis: the dimension of the vectors.

    Raises:
        PromotionError: if the rules refuse.
    """
    return (x1, x2), {"axis": axis}


def outer(x1: ArrayLike, x2: ArrayLike, /) -> Arguments:
    """All products of the elements of two vectors, in the dtype that the rules decide for `outer`.

    Args:
        x1: an array of one dimension.
        x2: an array of one dimension.

    Raises:
        PromotionError: if the rules refuse.
    """
    return (x1, x2), {}


def solve(x1: ArrayLike, x2: ArrayLike, /) -> Arguments:
    """The solution of linear equations, in the dtype that the rules decide for `solve`.

    Args:
        x1: the matrices of coefficients.
        x2: the right-hand sides, a vector or matrices.

    Raises:
        PromotionError: if the rules refuse.
    """
    return (x1, x2), {}


def searchsorted(x1: ArrayLike, x2: ArrayLike, /, *, side: str = "left", sorter: ArrayLike | None = None) -> Arguments:
    """The positions at which elements would be inserted into a sorted array, compared in their common dtype.

    Args:
        x1: the sorted array.
        x2: the elements to insert.
        side: `"left"` or `"right"` of equal elements.
        sorter: indices that sort `x1`, if it is not sorted.

    Raises:
        PromotionError: if the rules refuse.
    """
    return (x1, x2) if sorter is None else (x1, x2, sorter), {"side": side}


def _search(backend: Backend, plan: CallPlan) -> Callable[..., Raw]:
    function, side = backend.function("searchsorted"), plan.options["side"]
    return lambda x1, x2, sorter=None: function(x1, x2, side=side, **({} if sorter is None else {"sorter": sorter}))


def isin(x1: ArrayLike, x2: ArrayLike, /, *, invert: bool = False) -> Arguments:
    """Whether each element of an array is in another array, compared in their common dtype.

    Args:
        x1: the elements.
        x2: the elements to look in.
        invert: whether to negate the result.

    Raises:
        PromotionError: if the rules refuse.
    """
    return (x1, x2), {"invert": invert}


def diff(
    x: ArrayLike, /, n: int = 1, *, axis: int = -1, prepend: ArrayLike | None = None, append: ArrayLike | None = None
) -> Arguments:
    """Differences of neighbours, in the common dtype of the array and of what is added before and after it.

    Args:
        x: an array.
        n: how often to take differences.
        axis: the dimension.
        prepend: an array to add before `x`, or None.
        append: an array to add after `x`, or None.

    Raises:
        PromotionError: if the rules refuse.
    """
    ends = {name: end for name, end in (("prepend", prepend), ("append", append)) if end is not None}
    return (x, *ends.values()), {"axis": axis, "n": whole_number("n", n, 0, 2**63 - 1), "ends": (*ends,)}


def _differences(backend: Backend, plan: CallPlan) -> Callable[..., Raw]:
    function, (axis, n, names) = backend.function("diff"), plan.options.values()

    def differences(x: Raw, *ends: Raw) -> Raw:
        # No element is left after as many differences as there are elements; libraries would go on.
        times = min(n, sum(each.shape[axis] for each in (x, *ends)))
        return function(x, axis=axis, n=times, **dict(zip(names, ends, strict=True)))

    return differences


_PRODUCTS = {
    "matmul": PromotingFunction("matmul", matmul, by_name("matmul"), takes_numbers=False),
    "tensordot": PromotingFunction("tensordot", tensordot, by_name("tensordot")),
    "vecdot": PromotingFunction("vecdot", vecdot, by_name("vecdot")),
}
PROMOTING_FUNCTIONS: dict[str, PromotingFunction] = {
    "clip": PromotingFunction("clip", clip, _limits),
    "concat": PromotingFunction("concat", concat, _of_list("concat")),
    "diff": PromotingFunction("diff", diff, _differences),
    "isin": PromotingFunction("equal", isin, by_name("isin"), name="isin"),
    "searchsorted": PromotingFunction(
        None, searchsorted, _search, name="searchsorted", promoted=slice(2), gives_indices=True
    ),
    "stack": PromotingFunction("stack", stack, _of_list("stack")),
    "where": _Where("where", where, _choice, promoted=slice(1, None)),
    **_PRODUCTS,
    **{f"linalg.{name}": function for name, function in _PRODUCTS.items()},
    "linalg.cross": PromotingFunction("cross", cross, by_name("linalg.cross")),
    "linalg.outer": PromotingFunction("outer", outer, by_name("linalg.outer")),
    "linalg.solve": PromotingFunction("solve", solve, by_name("linalg.solve")),
}
"""The functions by name, with their extension."""
