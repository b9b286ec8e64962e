"""Functions of the standard that make arrays of numbers. The rules decide the default dtype.

The first parameter of each function is the namespace.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import ModuleType
from typing import Any

from array_api_compat import to_device

from supremum.argument_checks import flag
from supremum.arrays.assignment import value_to_store
from supremum.arrays.backends import Backend, Raw
from supremum.arrays.calls import Function
from supremum.arrays.conversion import convert, default_dtype
from supremum.arrays.pass_through_function import PassThroughFunction, native
from supremum.arrays.wrapped import NUMBERS, as_option, library_of, new_array, unwrapped
from supremum.formats import CATEGORIES, argument_dtype
from supremum.operands import TYPE_OF_CATEGORY
from supremum.promotion import explain
from supremum.rules import get_rules
from supremum.typing import ArrayLike, DTypeLike, SupportsArray


def _float_dtype(backend: Backend, dtype: DTypeLike | None) -> Any:
    """The library's name of a dtype; of the rules' default float for None."""
    return backend.native_dtype(default_dtype(backend, "float")) if dtype is None else native(backend, dtype)


def _dtype_of_numbers(backend: Backend, dtype: DTypeLike | None, numbers: tuple[Any, ...], lowest: str) -> Any:
    """The library's name of a dtype; for None, of the common dtype of arrays among numbers, or else of the default."""
    if dtype is not None:
        return native(backend, dtype)
    types = {*map(type, numbers)}
    if types <= NUMBERS:
        categories = [category for category, kind in TYPE_OF_CATEGORY.items() if kind in types]
        return backend.native_dtype(default_dtype(backend, max(lowest, *categories, key=CATEGORIES.index)))
    operation = "divide" if lowest == "float" else None
    return native(backend, explain(*numbers, operation=operation, rules=get_rules(in_jax=backend.in_jax)).dtype)


def _make_array(backend: Backend, name: str, *args: object, device: object, **options: object) -> Any:
    """The array that a library's function makes, on a device if one is given."""
    kwargs = {option: as_option(value) for option, value in options.items()}
    on = {} if device is None else {"device": device}
    return new_array(*backend.with_key(backend.function(name)(*args, **kwargs, **on)))


def _array_filler(name: str) -> Callable[..., Any]:
    """A function that makes an array of a shape; its default dtype is a float."""

    def make(
        xp: ModuleType, shape: int | Sequence[int], *, dtype: DTypeLike | None = None, device: object = None
    ) -> Any:
        """An array made by the library's function of the same name.

        Args:
            xp: the namespace.
            shape: the length of each dimension, or of the only one.
            dtype: the dtype; None for the rules' default float.
            device: the device, in the library's notation.

        Raises:
            RuntimeDtypeError: for a dtype that the library does not have.
        """
        return _make_array(xp.backend, name, shape, dtype=_float_dtype(xp.backend, dtype), device=device)

    make.__name__ = make.__qualname__ = name
    return make


def asarray(
    xp: ModuleType, obj: ArrayLike, /, *, dtype: DTypeLike | None = None, device: object = None,
    copy: bool | None = None,
) -> Any:  # fmt: skip
    """The same as `supremum.arrays.asarray`, in the library of the namespace.

    Args:
        xp: the namespace.
        obj: an array of any library, an `Array`, a Python number, or nested lists of them.
        dtype: the dtype; None to keep it.
        device: the device, in the library's notation.
        copy: True always copies, False never, None only if necessary.
    """
    return convert(obj, dtype, library=xp.backend, device=device, copy=copy)


def full(
    xp: ModuleType, shape: int | Sequence[int], fill_value: ArrayLike, *, dtype: DTypeLike | None = None,
    device: object = None,
) -> Any:  # fmt: skip
    """An array with equal elements.

    Args:
        xp: the namespace.
        shape: the length of each dimension, or of the only one.
        fill_value: a number or a 0-d array.
        dtype: the dtype; None for the dtype of the 0-d array, or the rules' default for the number.
        device: the device, in the library's notation.

    Raises:
        OverflowError: for a number that does not fit the dtype.
        RuntimeDtypeError: for a dtype that the library does not have.
    """
    value = convert(fill_value, dtype, library=xp.backend, device=device)
    native_dtype = native(xp.backend, value.dtype)
    return _make_array(xp.backend, "full", shape, value.unwrap(), dtype=native_dtype, device=device)


def full_like(
    xp: ModuleType, x: ArrayLike, /, fill_value: ArrayLike, *, dtype: DTypeLike | None = None, device: object = None
) -> Any:
    """An array with equal elements, the shape of another array, and its dtype unless one is given.

    Args:
        xp: the namespace.
        x: the other array.
        fill_value: a number or a 0-d array, which the rules convert to its dtype.
        dtype: the dtype; None for the dtype of `x`.
        device: the device, in the library's notation.

    Raises:
        InPlaceError: if the rules do not store `fill_value` in the dtype of `x`.
        OverflowError: for a number that does not fit `dtype`.
    """
    like = convert(x, library=xp.backend)
    if dtype is not None:
        on = like.device if device is None else device
        return full(xp, like.shape, fill_value, dtype=dtype, device=on)
    value = value_to_store(like, fill_value)
    raw = xp.backend.xp.full_like(like.unwrap(), value, dtype=native(xp.backend, like.dtype), device=device)
    return new_array(
        *xp.backend.with_key(xp.backend.astype(raw, like.dtype, weak=True) if like.weak_type else raw, like.weak_type)
    )


def arange(
    xp: ModuleType, start: ArrayLike, /, stop: ArrayLike | None = None, step: ArrayLike = 1, *,
    dtype: DTypeLike | None = None, device: object = None,
) -> Any:  # fmt: skip
    """Evenly spaced numbers without the end.

    Args:
        xp: the namespace.
        start: the first number; without `stop` the end, and the first is 0.
        stop: the end.
        step: the distance.
        dtype: the dtype; None for the rules' default for these numbers.
        device: the device, in the library's notation.

    Raises:
        RuntimeDtypeError: for a dtype that the library does not have.
    """
    numbers = (start, step) if stop is None else (start, stop, step)
    native_dtype = _dtype_of_numbers(xp.backend, dtype, numbers, "integer")
    ends = (0, start) if stop is None else (start, stop)
    return _make_array(xp.backend, "arange", *map(as_option, (*ends, step)), dtype=native_dtype, device=device)


def linspace(
    xp: ModuleType,
    start: ArrayLike,
    stop: ArrayLike,
    /,
    num: int,
    *,
    dtype: DTypeLike | None = None,
    device: object = None,
    endpoint: bool = True,
) -> Any:
    """A given number of evenly spaced numbers.

    Args:
        xp: the namespace.
        start: the first number.
        stop: the last number.
        num: how many numbers.
        dtype: the dtype; None for the rules' default float, or complex.
        device: the device, in the library's notation.
        endpoint: whether to include `stop`.

    Raises:
        RuntimeDtypeError: for a dtype that the library does not have.
    """
    native_dtype = _dtype_of_numbers(xp.backend, dtype, (start, stop), "float")
    ends = map(unwrapped, (start, stop))
    return _make_array(xp.backend, "linspace", *ends, num, dtype=native_dtype, device=device, endpoint=endpoint)


def eye(
    xp: ModuleType, n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: DTypeLike | None = None,
    device: object = None,
) -> Any:  # fmt: skip
    """A matrix with ones on a diagonal.

    Args:
        xp: the namespace.
        n_rows: the number of rows.
        n_cols: the number of columns; None for a square matrix.
        k: the diagonal, counted upwards from the main diagonal.
        dtype: the dtype; None for the rules' default float.
        device: the device, in the library's notation.

    Raises:
        RuntimeDtypeError: for a dtype that the library does not have.
    """
    return _make_array(xp.backend, "eye", n_rows, n_cols, k=k, dtype=_float_dtype(xp.backend, dtype), device=device)


def from_dlpack(xp: ModuleType, x: SupportsArray, /, *, device: object = None, copy: bool | None = None) -> Any:
    """An array that shares memory with an array of any library.

    Args:
        xp: the namespace.
        x: an object with `__dlpack__`.
        device: the device; None to keep it.
        copy: whether to copy.

    Raises:
        RuntimeDtypeError: for a dtype that the library does not have.
    """
    options = {name: value for name, value in {"device": device, "copy": copy}.items() if value is not None}
    raw = unwrapped(x)
    if library_of(raw) is not None:
        native(xp.backend, raw.dtype)  # JAX would silently narrow 64 bits
    return new_array(*xp.backend.with_key(xp.backend.xp.from_dlpack(raw, **options)))


def astype(x: SupportsArray, dtype: DTypeLike, /, *, copy: bool = True, device: object = None) -> Any:
    """A strong array in another dtype. The rules never refuse an explicit cast.

    Args:
        x: the array.
        dtype: the dtype.
        copy: whether to copy an array that has the dtype already.
        device: the device; None to keep it.

    Raises:
        RuntimeDtypeError: if the library does not have the dtype.
    """


def _cast(backend: Backend, dtype: DTypeLike, *, copy: bool = True, device: object = None) -> Callable[[Raw], Raw]:
    cast = partial(backend.astype, dtype=argument_dtype(dtype), copy=flag("copy", copy))
    return cast if device is None else lambda raw: to_device(cast(raw), device)


ASTYPE = PassThroughFunction("astype", astype, _cast)


def _frequencies(name: str) -> Callable[..., Any]:
    """A function of `fft` that makes an array."""

    def make(
        xp: ModuleType, n: int, /, *, d: float = 1.0, dtype: DTypeLike | None = None, device: object = None
    ) -> Any:
        """Frequencies made by the library's function of the same name.

        Args:
            xp: the namespace.
            n: the length of the window.
            d: the distance between samples.
            dtype: the dtype; None for the rules' default float.
            device: the device, in the library's notation.
        """
        return _make_array(xp.backend, f"fft.{name}", n, d=d, dtype=_float_dtype(xp.backend, dtype), device=device)

    make.__name__ = make.__qualname__ = name
    return make


CREATION_FUNCTIONS: Mapping[str, Function | Callable[..., Any]] = {
    "astype": ASTYPE,
    **{name: _array_filler(name) for name in ("zeros", "ones", "empty")},
    **{each.__name__: each for each in (arange, asarray, eye, from_dlpack, full, full_like, linspace)},
    **{f"fft.{name}": _frequencies(name) for name in ("fftfreq", "rfftfreq")},
}
"""The functions by name, with their extension."""
