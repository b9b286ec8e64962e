"""`einsum`, `dot` and `convolve`, in the dtype that the rules decide for `tensordot`."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from supremum.argument_checks import chosen, whole_number
from supremum.arrays.backends import Backend, CallPlan, Raw
from supremum.arrays.backends.numpy import NUMPY, builtin_dtype
from supremum.arrays.calls import Prepared, PreparedCall
from supremum.arrays.functions.creation import ASTYPE
from supremum.arrays.promoting_function import Arguments, PromotingFunction
from supremum.arrays.wrapped import joint_backend, library_of
from supremum.decisions import PromotionError
from supremum.errors import ArgumentError, OperandError, shown
from supremum.promotion import explain
from supremum.rules import RulesLike, get_rules
from supremum.typing import ArrayLike


def einsum(subscripts: str, /, *operands: ArrayLike) -> Arguments:
    """Sums of products in Einstein's notation, in the dtype that the rules decide for `tensordot`.

    Three or more operands must have the dtypes of a `tensordot` with the next one. They are converted to the dtype that
    all of them promote to, and multiplied from left to right.

    Args:
        subscripts: the dimensions of each operand and of the result, such as `"ij,jk->ik"`.
        operands: the arrays. NumPy's other form is accepted too: each array followed by a list of numbers for its
            dimensions, and the list of the result at the end.

    Raises:
        PromotionError: if the rules refuse.

    >>> import numpy as np, supremum
    >>> xp = supremum.arrays.namespace("numpy")
    >>> with supremum.use_rules("numpy"):
    ...     xp.einsum("i,i->", np.ones(3, "int8"), np.ones(3, "float32"))
    Array(3., dtype=float32)
    """
    # An operand alone is decided like two of its dtype.
    return operands if len(operands) > 1 else operands * 2, {"subscripts": subscripts, "alone": len(operands) == 1}


def _einsum(backend: Backend, plan: CallPlan) -> Callable[..., Raw]:
    function = _in_builtin(backend, plan, backend.function("einsum"))
    subscripts = plan.options["subscripts"]
    if plan.options["alone"]:
        return lambda x, _: function(subscripts, x)
    return partial(function, subscripts)


def _in_builtin(backend: Backend, plan: CallPlan, function: Callable[..., Raw]) -> Callable[..., Raw]:
    """A function of NumPy that lacks the formats of ml_dtypes, computed in a wider format and rounded once."""
    wide = builtin_dtype(plan.compute[0])
    if backend is not NUMPY or wide == plan.compute[0]:
        return function
    return lambda *args: function(*(each if isinstance(each, str) else NUMPY.astype(each, wide) for each in args))


class _Einsum(PromotingFunction):
    """`einsum`: of two operands as the rules decide, and of more in turn."""

    def prepare(self, rules_like: RulesLike, args: Sequence[Any], options: Mapping[str, Any]) -> PreparedCall:
        """As in the base class."""
        subscripts, *operands = _with_subscripts(args)
        if len(operands) < 3:
            return super().prepare(rules_like, (subscripts, *operands), options)
        return Prepared(partial(self._product, subscripts, operands)), ()

    def operands_of(self, args: Sequence[Any], options: Mapping[str, Any]) -> Sequence[Any]:
        """As in the base class."""
        return super().operands_of(_with_subscripts(args), options)

    def fail(self, args: Sequence[Any], options: Mapping[str, Any], error: Exception) -> None:
        """As in the base class; a refusal of more than two operands already names the operands of a product."""
        if not isinstance(error, PromotionError) or len(_with_subscripts(args)) < 4:
            super().fail(args, options, error)

    def _product(self, subscripts: str, operands: Sequence[Any]) -> Any:
        """The product of three or more operands."""
        in_jax = (self.backend or joint_backend(map(library_of, operands))).in_jax
        rules = get_rules(in_jax=in_jax)
        for pair in itertools.pairwise(operands):
            _ = explain(*pair, operation="tensordot", rules=rules).dtype  # raises if the rules refuse
        common = explain(*operands, rules=rules).dtype
        first, *others = [each if each.dtype == common else ASTYPE.call(each, common) for each in operands]
        *terms, result = _terms(subscripts, len(operands))
        first_term = terms[0]
        for i, (other, term) in enumerate(zip(others, terms[1:], strict=True), 1):
            last = i == len(others)
            kept = result if last else _kept(first_term + term, "".join([*terms[i + 1 :], result]))
            first = self.call(f"{first_term},{term}->{kept}", first, other)
            first_term = kept
        return first


def _with_subscripts(args: Sequence[Any]) -> list[Any]:
    """The subscripts as text, and the operands."""
    if args and isinstance(args[0], str):
        return [args[0].replace(" ", ""), *args[1:]]
    if len(args) < 2:
        raise OperandError("einsum needs subscripts and arrays, such as einsum('ij,jk->ik', a, b)")
    lists = [*args[1::2], *args[-1:]] if len(args) % 2 else [*args[1::2]]
    if not all(isinstance(numbers, (list, tuple)) for numbers in lists):
        raise OperandError("einsum needs subscripts and arrays, such as einsum('ij,jk->ik', a, b)")
    texts = ["".join("..." if each is ... else _letter(each) for each in numbers) for numbers in lists]
    operands = [*args[: len(args) // 2 * 2 : 2]]
    left = ",".join(texts[: len(operands)])
    return [f"{left}->{texts[-1]}" if len(args) % 2 else left, *operands]


def _letter(number: Any) -> str:
    whole_number("a dimension of einsum", number, 0, 2 * _LETTERS - 1)
    return chr(ord("a") + number) if number < _LETTERS else chr(ord("A") + number - _LETTERS)


_LETTERS = 26


def _terms(subscripts: str, count: int) -> list[str]:
    """The dimensions of each operand and of the result.

    Raises:
        ArgumentError: for another number of operands.
    """
    left, arrow, right = subscripts.partition("->")
    terms = left.split(",")
    if len(terms) != count:
        raise ArgumentError(f"einsum: {shown(subscripts)} has {len(terms)} operands, got {count}")
    if not arrow:
        letters = left.replace(",", "").replace(".", "")
        right = "..." * ("..." in left) + "".join(sorted(each for each in {*letters} if letters.count(each) == 1))
    return [*terms, right]


def _kept(dimensions: str, needed: str) -> str:
    """The dimensions of a product of two operands that the others or the result need."""
    letters = dict.fromkeys(each for each in dimensions if each != "." and each in needed)
    return "..." * ("..." in dimensions) + "".join(letters)


def dot(x1: ArrayLike, x2: ArrayLike, /) -> Arguments:
    """The sums of products over the last dimension of one array and the last but one of another, or its only one.

    Args:
        x1: an array with dimensions.
        x2: an array with dimensions.

    Raises:
        PromotionError: if the rules refuse.

    >>> import numpy as np, supremum
    >>> xp = supremum.arrays.namespace("numpy")
    >>> with supremum.use_rules("numpy"):
    ...     xp.dot(np.ones(3, "int8"), np.ones(3, "float16"))
    Array(3., dtype=float16)
    """
    return (x1, x2), {}


def _dot(backend: Backend, _: CallPlan) -> Callable[..., Raw]:
    if backend is NUMPY or backend.in_jax:
        return backend.function("dot")
    product = backend.function("tensordot")
    return lambda a, b: product(a, b, axes=((a.ndim - 1,), (max(b.ndim - 2, 0),)))


def convolve(x1: ArrayLike, x2: ArrayLike, /, mode: str = "full") -> Arguments:
    """The convolution of two vectors, in the dtype that the rules decide for `tensordot`.

    Args:
        x1: an array of one dimension.
        x2: an array of one dimension.
        mode: `"full"` for all places at which they overlap, `"same"` for the length of the longer one, or `"valid"`
            for the places at which they overlap completely.

    Raises:
        PromotionError: if the rules refuse.

    >>> import numpy as np, supremum
    >>> xp = supremum.arrays.namespace("numpy")
    >>> xp.convolve(np.array([1, 2, 3], "int8"), np.array([1, 1], "int16"))
    Array([1, 3, 5, 3], dtype=int16)
    """
    return (x1, x2), {"mode": chosen("mode", mode, ("full", "same", "valid"))}


def _convolve(backend: Backend, plan: CallPlan) -> Callable[..., Raw]:
    mode, function = plan.options["mode"], getattr(backend.xp, "convolve", None)
    if function is None:
        return partial(_by_windows, backend.xp, mode)
    return _in_builtin(backend, plan, lambda x1, x2: function(x1, x2, mode=mode))


def _by_windows(xp: Any, mode: str, x1: Any, x2: Any) -> Raw:
    """The convolution as a product of a matrix and a vector, for libraries that have none."""
    if min(len(x1.shape), len(x2.shape)) < 1 or max(len(x1.shape), len(x2.shape)) > 1 or 0 in (*x1.shape, *x2.shape):
        raise ArgumentError("convolve needs two vectors that are not empty")
    long, short = (x1, x2) if x1.shape[0] >= x2.shape[0] else (x2, x1)
    count, width = long.shape[0], short.shape[0]
    edge = xp.zeros_like(short[1:])
    padded = xp.concat([edge, long, edge])
    places = xp.arange(count + width - 1)[:, None] + xp.arange(width)[None, :]
    full = xp.matmul(padded[places], xp.flip(short, axis=0))
    start = {"full": 0, "same": (width - 1) // 2, "valid": width - 1}[mode]
    return full[start : start + {"full": count + width - 1, "same": count, "valid": count - width + 1}[mode]]


SUMS_OF_PRODUCTS: dict[str, PromotingFunction] = {
    "einsum": _Einsum("tensordot", einsum, _einsum, name="einsum"),
    "dot": PromotingFunction("tensordot", dot, _dot, name="dot"),
    "convolve": PromotingFunction("tensordot", convolve, _convolve, name="convolve"),
}
"""The functions by name."""
