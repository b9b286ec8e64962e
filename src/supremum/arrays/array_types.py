"""The types of methods that arrays and variables make from tables, for type checkers only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, Self, TypeAlias, TypeVar

from supremum.typing import ArrayLike, DTypeLike, SupportsArray

Axes: TypeAlias = "int | Sequence[int] | None"
"""The dimensions of a reduction; None for all."""
Out: TypeAlias = "SupportsArray | None"
R = TypeVar("R")


class OperatorTypes(Generic[R]):
    """Python's operators, which return `R`."""

    def __pos__(self) -> R: ...

    __neg__ = __abs__ = __invert__ = __pos__

    def __add__(self, other: ArrayLike, /) -> R: ...

    __sub__ = __mul__ = __truediv__ = __floordiv__ = __mod__ = __pow__ = __matmul__ = __add__
    __radd__ = __rsub__ = __rmul__ = __rtruediv__ = __rfloordiv__ = __rmod__ = __rpow__ = __rmatmul__ = __add__
    __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = __add__
    __lshift__ = __rlshift__ = __rshift__ = __rrshift__ = __lt__ = __le__ = __gt__ = __ge__ = __add__

    def __divmod__(self, other: ArrayLike, /) -> tuple[R, R]: ...

    __rdivmod__ = __divmod__

    def __eq__(self, other: object, /) -> R: ...  # pyright: ignore[reportIncompatibleMethodOverride] (elementwise)
    def __ne__(self, other: object, /) -> R: ...  # pyright: ignore[reportIncompatibleMethodOverride]


class ArrayTypes(OperatorTypes[R]):
    """The operators of `Array`, and its methods that are functions of NumPy."""

    @property
    def real(self) -> R: ...
    @property
    def imag(self) -> R: ...

    def __iadd__(self, other: ArrayLike, /) -> Self: ...

    __isub__ = __imul__ = __itruediv__ = __ifloordiv__ = __imod__ = __ipow__ = __imatmul__ = __iadd__
    __iand__ = __ior__ = __ixor__ = __ilshift__ = __irshift__ = __iadd__

    def prod(self, axis: Axes = None, dtype: DTypeLike | None = None, out: Out = None, keepdims: bool = False) -> R: ...

    sum = mean = prod

    def std(self, axis: Axes = None, *, ddof: float = 0, keepdims: bool = False) -> R: ...

    var = std

    def argmax(self, axis: Axes = None, out: Out = None, keepdims: bool = False) -> R: ...

    any = all = min = max = argmin = argmax

    def cumsum(self, axis: int | None = None, dtype: DTypeLike | None = None, out: Out = None) -> R: ...

    cumprod = cumsum

    def argsort(self, axis: int | None = -1, *, stable: bool | None = None) -> R: ...
    def searchsorted(self, v: ArrayLike, side: str = "left", sorter: ArrayLike | None = None) -> R: ...
    def round(self, decimals: int = 0, out: Out = None) -> R: ...
    def nonzero(self) -> tuple[R, ...]: ...
    def dot(self, b: ArrayLike, out: Out = None) -> R: ...
    def copy(self) -> R: ...

    ravel = copy

    def repeat(self, repeats: ArrayLike, axis: int | None = None) -> R: ...
    def swapaxes(self, axis1: int, axis2: int) -> R: ...
    def take(self, indices: ArrayLike, axis: int | None = None, out: Out = None) -> R: ...
    def clip(self, min: ArrayLike | None = None, max: ArrayLike | None = None) -> R: ...  # noqa: A002
