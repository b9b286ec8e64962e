"""Functions of the standard that make arrays of numbers; without a dtype they have the rules' default.

The first parameter of each is the library of the namespace that it is a function of.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from supremum.arrays import conversion
from supremum.arrays.assignment import accepted_value
from supremum.arrays.backends import Backend
from supremum.arrays.operand_keys import NUMBERS
from supremum.arrays.wrapped import KeyedRaw, WrappedArray, keyed, unwrapped
from supremum.arrays.wrapped_functions import library_of, native
from supremum.formats import CATEGORIES, DType
from supremum.operands import as_operand
from supremum.promotion import explain
from supremum.rules import get_rules


def default_dtype(backend: Backend, category: str) -> DType:
    """The dtype that Python numbers of a category have under the rules in force.

    Args:
        backend: the library that holds them.
        category: `"bool"`, `"integer"`, `"float"` or `"complex"`.

    >>> import supremum
    >>> from supremum.arrays.backends import backend_named
    >>> with supremum.use_rules("torch"):
    ...     [default_dtype(backend_named("numpy"), category) for category in ("float", "integer")]
    [dtype('float32'), dtype('int64')]
    """
    return conversion.default_of(category, get_rules(in_jax=backend.in_jax))[0]


def _of_numbers(backend: Backend, numbers: tuple[Any, ...], lowest: str) -> DType:
    """The dtype of what is counted out of numbers: that in which arrays among them meet, else the default."""
    operands = [as_operand(number) for number in numbers]
    if all(type(number) in NUMBERS for number in numbers):
        return default_dtype(backend, max((lowest, *(each.category for each in operands)), key=CATEGORIES.index))
    operation = "divide" if lowest == "float" else None
    return explain(*operands, operation=operation, rules=get_rules(in_jax=backend.in_jax)).dtype


def _filled(name: str) -> Callable[..., KeyedRaw]:
    """A function that makes an array of a shape, of floats where no dtype is given."""

    def make(backend: Backend, shape: Any, *, dtype: Any = None, device: Any = None) -> KeyedRaw:
        given = native(backend, default_dtype(backend, "float") if dtype is None else dtype)
        return keyed(backend, getattr(backend.xp, name)(shape, dtype=given, device=device))

    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"""An array made by `{name}` of the library.

    Args:
        backend: the library.
        shape: the length of each dimension, or of the only one.
        dtype: its dtype; None for the rules' default float.
        device: where to put it, as the library names it.

    Raises:
        RuntimeDtypeError: for a dtype that the library does not have.
    """
    return make


def asarray(
    backend: Backend, obj: Any, /, *, dtype: Any = None, device: Any = None, copy: bool | None = None
) -> KeyedRaw:
    """As `supremum.arrays.asarray`, in the library of the namespace.

    Args:
        backend: the library.
        obj: an array of any library, an `Array`, a Python number, or nested lists of them.
        dtype: its dtype; None for the one it has.
        device: where to put it, as the library names it.
        copy: True always copies, False never, None only if it must be.
    """
    return conversion.convert(obj, dtype, library=backend, device=device, copy=copy)


def full(backend: Backend, shape: Any, fill_value: Any, *, dtype: Any = None, device: Any = None) -> KeyedRaw:
    """An array of equal elements.

    Args:
        backend: the library.
        shape: the length of each dimension, or of the only one.
        fill_value: a number or a 0-d array.
        dtype: its dtype; None for that of the array, or the rules' default for numbers of that kind.
        device: where to put it, as the library names it.

    Raises:
        OverflowError: for a number that does not fit the dtype.
        RuntimeDtypeError: for a dtype that the library does not have.
    """
    value, key = conversion.convert(fill_value, dtype, library=backend, device=device)
    return keyed(backend, backend.xp.full(shape, value, dtype=native(backend, key.dtype), device=device))


def full_like(backend: Backend, x: Any, /, fill_value: Any, *, dtype: Any = None, device: Any = None) -> KeyedRaw:
    """An array of equal elements, in the shape of another and, where no dtype is given, in its dtype.

    Args:
        backend: the library.
        x: the other one.
        fill_value: a number or a 0-d array, which the rules bring to that dtype.
        dtype: its dtype.
        device: where to put it, as the library names it.

    Raises:
        InPlaceError: if the rules lead to another dtype than that of `x`.
        OverflowError: for a number that does not fit `dtype`.
    """
    like = WrappedArray(*conversion.convert(x, library=backend))
    if dtype is not None:
        return full(backend, like.shape, fill_value, dtype=dtype, device=like.device if device is None else device)
    value = accepted_value(like, fill_value)
    raw = backend.xp.full_like(like.unwrap(), value, dtype=native(backend, like.dtype), device=device)
    return keyed(backend, backend.astype(raw, like.dtype, weak=True) if like.weak_type else raw, like.weak_type)


def arange(
    backend: Backend, start: Any, /, stop: Any = None, step: Any = 1, *, dtype: Any = None, device: Any = None
) -> KeyedRaw:
    """Evenly spaced numbers, the end left out.

    Args:
        backend: the library.
        start: the first; with nothing else the end, after zero.
        stop: the end.
        step: the distance.
        dtype: its dtype; None for the rules' default for the numbers given.
        device: where to put it, as the library names it.

    Raises:
        RuntimeDtypeError: for a dtype that the library does not have.
    """
    numbers = (start, step) if stop is None else (start, stop, step)
    given = native(backend, _of_numbers(backend, numbers, "integer") if dtype is None else dtype)
    ends = (0, start) if stop is None else (start, stop)
    return keyed(backend, backend.xp.arange(*map(unwrapped, ends), unwrapped(step), dtype=given, device=device))


def linspace(
    backend: Backend,
    start: Any,
    stop: Any,
    /,
    num: int,
    *,
    dtype: Any = None,
    device: Any = None,
    endpoint: bool = True,
) -> KeyedRaw:
    """Numbers between two others, evenly spaced.

    Args:
        backend: the library.
        start: the first.
        stop: the last.
        num: how many.
        dtype: its dtype; None for the rules' default float, or complex.
        device: where to put it, as the library names it.
        endpoint: whether the last one is among them.

    Raises:
        RuntimeDtypeError: for a dtype that the library does not have.
    """
    given = native(backend, _of_numbers(backend, (start, stop), "float") if dtype is None else dtype)
    ends = map(unwrapped, (start, stop))
    return keyed(backend, backend.xp.linspace(*ends, num, dtype=given, device=device, endpoint=endpoint))


def eye(
    backend: Backend, n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: Any = None, device: Any = None
) -> KeyedRaw:
    """A matrix with ones on a diagonal.

    Args:
        backend: the library.
        n_rows: how many rows.
        n_cols: how many columns; None for as many.
        k: which diagonal, counted upwards from the main one.
        dtype: its dtype; None for the rules' default float.
        device: where to put it, as the library names it.

    Raises:
        RuntimeDtypeError: for a dtype that the library does not have.
    """
    given = native(backend, default_dtype(backend, "float") if dtype is None else dtype)
    return keyed(backend, backend.xp.eye(n_rows, n_cols, k=k, dtype=given, device=device))


def from_dlpack(backend: Backend, x: Any, /, *, device: Any = None, copy: bool | None = None) -> KeyedRaw:
    """An array that shares memory with one of any library.

    Args:
        backend: the library.
        x: what has `__dlpack__`.
        device: where to put it; None leaves it.
        copy: whether to copy.

    Raises:
        RuntimeDtypeError: for a dtype that the library does not have.
    """
    options = {name: value for name, value in {"device": device, "copy": copy}.items() if value is not None}
    given = unwrapped(x)
    if library_of(given) is not None:
        native(backend, given.dtype)  # JAX would narrow 64 bits without a word
    return keyed(backend, backend.xp.from_dlpack(given, **options))


def astype(backend: Backend, x: Any, dtype: Any, /, *, copy: bool = True, device: Any = None) -> KeyedRaw:
    """An array in another dtype, strong: a cast by hand is never refused.

    Args:
        backend: the library.
        x: the array.
        dtype: the dtype.
        copy: whether an array that has it already is copied too.
        device: where to put it; None leaves it.

    Raises:
        RuntimeDtypeError: if the library does not have the dtype.
    """
    result = conversion.cast(WrappedArray(*conversion.convert(x, library=backend)), dtype, copy=copy)
    return result if device is None else conversion.to_device(WrappedArray(*result), device)


def _frequencies(name: str) -> Callable[..., KeyedRaw]:
    """A function of `fft` that makes an array."""

    def make(backend: Backend, n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> KeyedRaw:
        given = native(backend, default_dtype(backend, "float") if dtype is None else dtype)
        return keyed(backend, getattr(backend.xp.fft, name)(n, d=d, dtype=given, device=device))

    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"""Frequencies made by `{name}` of the library.

    Args:
        backend: the library.
        n: the length of the window.
        d: the distance of samples.
        dtype: its dtype; None for the rules' default float.
        device: where to put it, as the library names it.
    """
    return make


CREATION_FUNCTIONS: dict[str, Callable[..., KeyedRaw]] = {
    function.__name__: function
    for function in (
        *map(_filled, ("zeros", "ones", "empty")),
        *(arange, asarray, astype, eye, from_dlpack, full, full_like, linspace),
    )
}
"""By name, those of the namespace itself."""
CREATION_FFT_FUNCTIONS: dict[str, Callable[..., KeyedRaw]] = {
    name: _frequencies(name) for name in ("fftfreq", "rfftfreq")
}
"""Those of its `fft`."""
