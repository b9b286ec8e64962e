"""Methods of `Array` that everyone expects: functions of its namespace under the same names."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from supremum.arrays.array import Array


def _method(name: str) -> Callable[..., Array]:
    """The function of the namespace, of the array."""

    def method(self: Any, *args: Any, **options: Any) -> Array:
        return getattr(self.__array_namespace__(), name)(self, *args, **options)

    method.__name__, method.__qualname__ = name, f"Array.{name}"
    method.__doc__ = f"`{name}` of the array's namespace, with the same arguments, as `axis` and `keepdims`."
    return method


class Methods:
    """Functions of the namespace as methods; a base of `Array`.

    >>> import supremum
    >>> supremum.arrays.asarray([[1.0, 2.0], [3.0, 4.0]], dtype="float32").sum(axis=0)
    Array([4., 6.], dtype=float32)
    """

    __slots__ = ()

    sum, prod, mean, std, var = _method("sum"), _method("prod"), _method("mean"), _method("std"), _method("var")
    min, max, argmin, argmax = _method("min"), _method("max"), _method("argmin"), _method("argmax")
    any, all = _method("any"), _method("all")

    def reshape(self, *shape: Any, copy: bool | None = None) -> Array:
        """The same elements in another shape.

        Args:
            shape: it, as a tuple or number by number; one of them may be -1, what remains.
            copy: as in the array API standard.
        """
        array: Any = self
        lengths = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
        return array.__array_namespace__().reshape(array, tuple(lengths), **({} if copy is None else {"copy": copy}))

    def squeeze(self, axis: int | tuple[int, ...] | None = None) -> Array:
        """The array without some dimensions of length one.

        Args:
            axis: which; None for all.
        """
        array: Any = self
        found = tuple(i for i, length in enumerate(array.shape) if length == 1) if axis is None else axis
        return array.__array_namespace__().squeeze(array, axis=found)
