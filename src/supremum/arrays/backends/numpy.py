"""NumPy's arrays."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache, partial
from operator import attrgetter
from typing import Any

import numpy as np

from supremum.arrays.backends import kernels
from supremum.arrays.backends.base import Backend, CallPlan, Key, Raw
from supremum.arrays.errors import NarrowingError
from supremum.errors import OperandError, shown
from supremum.formats import DType, Format, as_format
from supremum.rules import NUMPY as RULES
from supremum.typing import ArrayLike


class NumpyBackend(Backend):
    """NumPy, with the dtypes of ml_dtypes."""

    name = "numpy"
    namespace = "array_api_compat.numpy"
    rules = "numpy"

    def function(self, name: str) -> Callable[..., Any]:
        """As in the base class, or one that does the same in less time."""
        return _FASTER.get(name) or _without_dispatch(super().function(name))

    def with_key(self, raw: Raw, weak: bool = False) -> tuple[Raw, Key]:
        """As in the base class, in fewer steps for arrays of a known dtype."""
        if type(raw) is np.ndarray and (key := self._known.get((raw.dtype, weak, raw.ndim == 0, None))):
            return raw, key
        return super().with_key(raw, weak)

    def _key_parts(self, raw: Any, weak: bool) -> tuple[Any, bool, bool, None]:
        return raw.dtype, weak, raw.ndim == 0, None

    def plain(self, raw: Raw) -> np.ndarray[Any, Any]:
        """The array as a plain `np.ndarray` with the byte order of the machine.

        Raises:
            OperandError: for classes whose operators mean something else.
        """
        if type(raw) is np.ndarray and raw.dtype.isnative:
            return raw
        if isinstance(raw, np.generic):
            return np.asarray(raw)
        if isinstance(raw, (np.ma.MaskedArray, np.matrix)):
            kind, fix = ("masked array", ".filled(...)") if isinstance(raw, np.ma.MaskedArray) else ("matrix", ".A")
            raise OperandError(f"the operand must not be a {kind}, whose operators follow other rules; use {fix}")
        array = np.asarray(raw)
        return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))

    def prepare(self, plan: CallPlan) -> Callable[..., Raw]:
        """NumPy's own function, between casts where they are needed."""
        if plan.build is not None:
            return kernels.between_casts(self, plan)
        target = plan.result.dtype
        function = kernels.elementwise_function(self, plan, np, {})
        try:
            with np.errstate(all="ignore"):
                result_dtype = function(*(np.ones(0, dtype) for dtype in plan.compute)).dtype
        except TypeError as error:
            raise kernels.missing_kernel(self, plan) from error
        if _is_foreign_complex(result_dtype) and as_format(target).category != "complex":
            # NumPy's real and imag do not support the complex formats of ml_dtypes.
            function = kernels.compose(function, [partial(_cast, _WIDE_COMPLEX.dtype)])
            result_dtype = _WIDE_COMPLEX.component.dtype
        # NumPy makes scalars of 0-d arrays.
        zero_d = all(key.zero_d for key in plan.keys)
        if kernels.compares_by_value(plan):
            return kernels.compose(function, [None] * len(plan.keys), np.asarray if zero_d else None)
        if _agrees(plan):
            direct = kernels.compose(function, kernels.numbers_in_range(plan), np.asarray if zero_d else None)
            return kernels.power_by_products(direct, self, plan)
        converters = [self.converter(plan, i) for i in range(len(plan.keys))]
        # A result that was computed in a wider dtype wraps around as the library's results do.
        finish = partial(np.asarray, dtype=target) if zero_d else _caster(result_dtype, target)
        return kernels.power_by_products(kernels.compose(function, converters, finish), self, plan)

    def converter(self, plan: CallPlan, position: int) -> Callable[[Any], Any] | None:
        """As in the base class."""
        key, dtype = plan.keys[position], plan.compute[position]
        if key.backend is None:
            return kernels.caster_of_number(plan, position, silent=False)
        return _caster(key.operand.format.dtype, dtype, checked=True)

    def astype(self, raw: Raw, dtype: DType, weak: bool = False, *, copy: bool = True) -> Raw:
        """An array in another dtype."""
        array: Any = raw
        return converted(array, dtype, copy=copy)

    def asarray(
        self, data: ArrayLike, dtype: DType | None = None, device: object = None, copy: bool | None = None
    ) -> Raw:
        """An array."""
        if device is None:
            return np.array(data, dtype, copy=copy)
        place: Any = device  # NumPy checks it
        return np.asarray(data, dtype, device=place, copy=copy)

    def numpy(self, raw: Raw) -> np.ndarray[Any, Any]:
        """The array itself."""
        array: Any = raw
        return array

    def native_dtype(self, dtype: DType) -> Any:
        """The dtype itself."""
        return dtype

    def device_of(self, raw: Raw) -> Any:
        """`"cpu"`."""
        return "cpu"


def _without_dispatch(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of NumPy that does not look for an `__array_function__` in its arguments, which plain arrays lack."""
    return inspect.unwrap(function) if isinstance(function, type(np.concatenate)) else function


def _cumulative_sum(
    x: np.ndarray[Any, Any], *, axis: int | None = None, include_initial: bool = False, **options: Any
) -> Raw:
    # That of array-api-compat takes longer than NumPy's.
    if include_initial or (axis is None and x.ndim != 1):
        return NUMPY.xp.cumulative_sum(x, axis=axis, include_initial=include_initial, **options)
    return x.cumsum(axis, **options)


_REDUCED = {
    "sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum, "any": np.logical_or,
    "all": np.logical_and,
}  # fmt: skip


def _reshape(x: np.ndarray[Any, Any], shape: int | tuple[int, ...], *, copy: bool | None = None) -> Raw:
    return x.reshape(shape, copy=copy)


def _permute_dims(x: np.ndarray[Any, Any], axes: tuple[int, ...]) -> Raw:
    return x.transpose(axes)


# Methods whose arguments have the names of the standard.
_ALIKE = ("argmax", "argmin", "clip", "mean", "repeat", "squeeze", "take")
# Functions that do the same as array-api-compat's without a look at their arguments.
_FASTER: dict[str, Callable[..., Any]] = {
    **{name: partial(ufunc.reduce, axis=None) for name, ufunc in _REDUCED.items()},
    **{name: getattr(np.ndarray, name) for name in _ALIKE},
    "permute_dims": _permute_dims,
    "reshape": _reshape,
    "unique_values": partial(_without_dispatch(np.unique), equal_nan=False),  # `np.unique_values` does not sort
    "matrix_transpose": attrgetter("mT"),
    "cumulative_sum": _cumulative_sum,
}


def _is_plain(plan: CallPlan) -> bool:
    """Whether NumPy can take all operands as they are.

    It makes an array of a Python number that stands alone, and ml_dtypes takes no number of more than 64 bits.
    """
    casts = list(zip(plan.keys, plan.compute, strict=True))
    return any(key.backend is not None for key in plan.keys) and all(
        as_format(dtype).is_builtin if key.dtype is None else _is_direct(key.dtype, dtype) for key, dtype in casts
    )


def _agrees(plan: CallPlan) -> bool:
    """Whether NumPy, given the operands as they are, computes what a plan asks for."""
    return _is_plain(plan) and kernels.has_usual_steps(plan) and kernels.library_agrees(plan, RULES)


def converted(raw: np.ndarray[Any, Any], dtype: DType, *, copy: bool = True) -> np.ndarray[Any, Any]:
    """An array of NumPy in another dtype.

    ml_dtypes has no casts between some of its formats, and its casts from complex formats to bool drop the imaginary
    part. These conversions pass through a format that holds both.
    """
    return raw.astype(dtype, copy=copy) if _is_direct(raw.dtype, dtype) else _detour(dtype, raw)


@cache
def _is_direct(source: DType, target: DType) -> bool:
    if source == target:
        return True
    return np.can_cast(source, target, "unsafe") and not (target == _BOOL and _is_foreign_complex(source))


def _is_foreign_complex(dtype: DType) -> bool:
    row = as_format(dtype)
    return row.category == "complex" and not row.is_builtin


_BOOL, _WIDE_COMPLEX = as_format("bool").dtype, as_format("complex64")
# A conversion passes through the first of these categories that one of the two formats has.
_BETWEEN = {"complex": _WIDE_COMPLEX.dtype, "float": as_format("float32").dtype, "integer": as_format("int8").dtype}


def builtin_dtype(dtype: DType) -> DType:
    """A dtype that NumPy has itself and that holds all values of a dtype; the dtype itself if NumPy has it."""
    row = as_format(dtype)
    return dtype if row.is_builtin else _BETWEEN[row.category]


def _caster(source: DType, target: DType, *, checked: bool = False) -> Callable[[Any], Raw] | None:
    """A function that converts arrays; None if there is nothing to convert."""
    if checked and _narrows(source, target):
        return partial(narrowed, target)
    return None if source == target else partial(_cast if _is_direct(source, target) else _detour, target)


def host_converter(plan: CallPlan, position: int) -> Callable[[Any], Any]:
    """A function that converts a Python number, or an array of NumPy, on its way to another library."""
    if plan.keys[position].backend is None:
        return kernels.caster_of_number(plan, position)
    return partial(narrowed, plan.compute[position])


def converter_for(
    backend: Backend, plan: CallPlan, position: int, cast: Callable[[Raw], Raw]
) -> Callable[[Any], Any] | None:
    """A function that converts an operand to an array of a library, where the result will be.

    Args:
        backend: the library.
        plan: the plan.
        position: of the operand.
        cast: converts arrays of the library to the dtype that the operand is computed in.

    Returns:
        None if the operand needs no conversion.
    """
    key, device = plan.keys[position], backend.device_of_plan(plan)
    if key.backend is backend:
        return None if key.dtype == plan.compute[position] else cast
    convert = host_converter(plan, position)
    return lambda value: backend.asarray(convert(value), device=device)


def _narrows(source: DType, target: DType) -> bool:
    rows = as_format(source), as_format(target)
    return rows[0].category == rows[1].category == "integer" and not rows[1].holds(rows[0])


def holds_range(array: np.ndarray[Any, Any], target: Format) -> bool:
    """Whether values are in the range of a format: none wraps around, and no finite value becomes infinite."""
    with np.errstate(all="ignore"):
        cast = converted(array, target.dtype)
        if not target.is_inexact:
            return bool(np.all(converted(cast, array.dtype) == array))
        wide = as_format("complex128" if target.category == "complex" else "float64").dtype
        return bool(np.all(np.isfinite(cast.astype(wide)) == np.isfinite(converted(array, wide))))


def narrowed(dtype: DType, raw: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Integers in a narrower dtype that a decision asks for, such as 64-bit integers in the 32 bits that JAX has.

    Raises:
        NarrowingError: if the dtype does not hold all of them; they would wrap around silently.
    """
    cast = converted(raw, dtype)
    if _narrows(raw.dtype, dtype):
        kept = converted(cast, raw.dtype) == raw
        if not np.all(kept):
            lost = np.asarray(raw)[~np.asarray(kept)]
            raise NarrowingError(
                f"the rules compute {raw.dtype} in {dtype}, which does not hold {lost.flat[0]} ({lost.size:,} of "
                f"{raw.size:,} values are out of range); to wrap them around, cast first with "
                f".astype({shown(str(dtype))}); to keep them, use rules that keep {raw.dtype}, on JAX with x64 on"
            )
    return cast


def _cast(dtype: DType, raw: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return raw.astype(dtype)


def _detour(dtype: DType, raw: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    categories = (as_format(raw.dtype).category, as_format(dtype).category)
    between = next(between for category, between in _BETWEEN.items() if category in categories)
    return raw.astype(between).astype(dtype)


NUMPY = NumpyBackend()
