"""`asarray` and `namespace`: the functions that lead from numbers, lists and libraries to `Array`."""

from __future__ import annotations

from typing import Any

from supremum.arrays.array import Array, new_array
from supremum.arrays.conversion import convert
from supremum.arrays.namespaces import Namespace, namespace_of


def asarray(
    data: Any, dtype: Any = None, *, library: Any = None, device: Any = None, copy: bool | None = None
) -> Array:
    """An `Array` of anything that holds numbers.

    Args:
        data: an array of any library, an `Array`, a Python number, nested lists of them, or what NumPy makes an array
            of numbers of.
        dtype: its dtype; None for the one it has. A Python number and lists of them have none: they get the rules'
            default for their kind, such as float32 under `"jax-x32"` and `"torch"`, float64 under `"numpy"`. Under
            `"jax"` an array that JAX holds follows its flags, float32 with x64 off; any other is float64.
        library: `"numpy"`, `"jax"` or `"torch"`; None for the one it is from, NumPy for what is from none.
        device: where to put it, as the library names it; None leaves it.
        copy: True always copies, False never (an error where it must be), None only if it must be.

    Returns:
        The array. Without `dtype`, that of a Python number is weak, if the rules in force know weak arrays.

    Raises:
        OperandError: for what holds no numbers.
        RuntimeDtypeError: for a dtype that the library does not have.
        OverflowError: for a number that does not fit the dtype.

    >>> import supremum
    >>> with supremum.use_rules("jax-x32"):
    ...     supremum.asarray(2), supremum.asarray(2, dtype="int32")
    (Array(2, dtype=int32, weak_type=True), Array(2, dtype=int32))
    >>> with supremum.use_rules("torch"):
    ...     supremum.asarray([1.0, 2.0])
    Array([1., 2.], dtype=float32)
    """
    return new_array(*convert(data, dtype, library=library, device=device, copy=copy))


def namespace(library: Any, *, api_version: str | None = None) -> Namespace:
    """The functions of the Python array API standard for one library, under the rules in force.

    What brings arrays together decides by the rules; the rest is the library's own, through `array-api-compat` where
    it does not follow the standard itself. All take and give an `Array`, take arrays of the library and Python
    numbers too, and adopt NumPy's. Functions that the library has besides are there as well, for arrays of one dtype.

    Args:
        library: `"numpy"`, `"jax"` or `"torch"`.
        api_version: a version of the standard that it has to have all of; None for any.

    Returns:
        The namespace, a module by its looks; always the same one.

    Raises:
        UnknownNameError: for another version or library; a `ValueError`.

    >>> import supremum
    >>> xp = supremum.namespace("numpy")
    >>> with supremum.use_rules("torch"):
    ...     xp.concat([xp.zeros(1), xp.asarray([1, 2], dtype="int8")])
    Array([0., 1., 2.], dtype=float32)
    """
    return namespace_of(library, new_array, api_version)
