"""`asarray` and `namespace`, which make an `Array` from numbers and lists, and the functions of a library."""

from __future__ import annotations

from supremum.arrays.array import Array
from supremum.arrays.backend_errors import raise_computation_error
from supremum.arrays.backends import backend_named, backend_of
from supremum.arrays.backends.numpy import NUMPY
from supremum.arrays.conversion import convert
from supremum.arrays.namespaces import Namespace, namespace_of
from supremum.arrays.wrapped import unwrapped
from supremum.errors import SupremumError, hide_frames
from supremum.typing import ArrayLike, DTypeLike


def asarray(
    data: ArrayLike, dtype: DTypeLike | None = None, *, library: str | None = None, device: object = None,
    copy: bool | None = None,
) -> Array:  # fmt: skip
    """An `Array` made from anything that holds numbers.

    Args:
        data: an array of any library, an `Array`, a Python number, nested lists of them, or anything else that NumPy
            makes an array of numbers from.
        dtype: the dtype; None to keep the dtype of the data. Python numbers and lists of them have no dtype and get the
            rules' default for their kind, such as float32 under `"jax-x32"` and `"torch"`, float64 under `"numpy"`.
            Under `"jax"` an array that JAX holds follows JAX's flags, float32 with x64 off; any other is float64.
        library: `"numpy"`, `"jax"` or `"torch"`; None for the library of the data, or NumPy if it has none.
        device: the device, in the library's notation; None to keep it.
        copy: True always copies, False never (and raises if a copy is necessary), None only if necessary.

    Returns:
        The array. An array of a Python number without `dtype` is weak, if the rules in force have weak arrays.

    Raises:
        OperandError: for data that are not numbers.
        RuntimeDtypeError: for a dtype that the library does not have.
        OverflowError: for a number that does not fit the dtype.
        ComputationError: for what the library refuses, such as an unknown device.

    >>> import supremum
    >>> with supremum.use_rules("jax-x32"):
    ...     supremum.asarray(2), supremum.asarray(2, dtype="int32")
    (Array(2, dtype=int32, weak_type=True), Array(2, dtype=int32))
    >>> with supremum.use_rules("torch"):
    ...     supremum.asarray([1.0, 2.0])
    Array([1., 2.], dtype=float32)
    """
    try:
        return convert(data, dtype, library=library, device=device, copy=copy)
    except Exception as error:
        hide_frames(error)
        if not isinstance(error, SupremumError):  # such as that of an unknown library
            backend = backend_of(unwrapped(data)) if library is None else backend_named(library)
            options = {"dtype": dtype, "device": device, "copy": copy}
            options = {name: value for name, value in options.items() if value is not None}
            raise_computation_error("asarray", backend or NUMPY, (data,), options, error)
        raise


def namespace(library: str, *, api_version: str | None = None) -> Namespace:
    """The functions of the Python array API standard for one library, under the rules in force.

    Functions that combine arrays decide by the rules. The others are the library's own, through `array-api-compat` if
    the library does not follow the standard itself. All functions return an `Array`. They take an `Array`, arrays of
    the library, arrays of NumPy, which they convert, and Python numbers.

    There are also functions with NumPy's meaning, decided by the rules: `allclose`, `bincount`, `convolve`, `dot`,
    `einsum`, `gradient`, `histogram`, `hstack`, `interp`, `isclose`, `linalg.norm`, `median`, `nanmean`, `nansum`,
    `pad`, `percentile`, `quantile`, `unique` and `vstack`. The library's other functions are there for arrays of one
    dtype.

    Args:
        library: `"numpy"`, `"jax"` or `"torch"`.
        api_version: a version of the standard that the namespace must support; None for any.

    Returns:
        The namespace, which acts as a module; always the same one.

    Raises:
        UnknownNameError: for an unknown version or library; a `ValueError`.

    >>> import supremum
    >>> xp = supremum.namespace("numpy")
    >>> with supremum.use_rules("torch"):
    ...     xp.concat([xp.zeros(1), xp.asarray([1, 2], dtype="int8")])
    Array([0., 1., 2.], dtype=float32)
    """
    return namespace_of(library, api_version)
