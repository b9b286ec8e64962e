"""NumPy's arrays."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np

from supremum.arrays.backends.base import Backend, Key, Plan, Raw, array_key
from supremum.arrays.backends.kernels import (
    caster_of_number,
    compares_by_value,
    compose,
    function_of,
    has_usual_steps,
    library_agrees,
    numbers_in_range,
    power_by_products,
)
from supremum.arrays.errors import NarrowingError, RuntimeDtypeError
from supremum.errors import OperandError, shown
from supremum.formats import DType, Format, as_format
from supremum.rules import NUMPY as RULES


class NumpyBackend(Backend):
    """NumPy, with the dtypes of ml_dtypes."""

    name = "numpy"
    namespace = "array_api_compat.numpy"
    rules = "numpy"

    def key_of(self, raw: Raw, weak: bool = False) -> Key:
        """The key of an array."""
        return array_key(self, self.dtype_of(raw), weak, raw.ndim == 0)

    def plain(self, raw: Raw) -> np.ndarray[Any, Any]:
        """An array of the class that operations are prepared for, with the byte order of the machine.

        Raises:
            OperandError: for classes whose operators mean something else.
        """
        if isinstance(raw, (np.ma.MaskedArray, np.matrix)):
            kind, fix = ("a masked array", ".filled(...)") if isinstance(raw, np.ma.MaskedArray) else ("a matrix", ".A")
            raise OperandError(f"{kind} has operators of its own, which follow no rules: use {fix}")
        array = np.asarray(raw)
        return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))

    def prepare(self, plan: Plan) -> Callable[..., Raw]:
        """NumPy's own function, between casts where they are needed."""
        name, target = plan.operation.name, plan.result.dtype
        if plan.function is None:
            function = function_of(plan.operation, np, {})
        else:
            function = partial(plan.function, self, **plan.options)
        try:
            assert function is not None
            with np.errstate(all="ignore"):
                # Losses average; of one number already some functions have errors of values.
                size = 0 if plan.function is None else 1
                found = function(*(np.ones(size, dtype) for dtype in plan.compute)).dtype
        except (TypeError, AssertionError) as error:
            dtypes = " and ".join(dict.fromkeys(map(str, plan.compute)))
            raise RuntimeDtypeError(f"NumPy has no {name} of {dtypes}", decision=plan.decision) from error
        if _is_foreign_complex(found) and as_format(target).category != "complex":
            # NumPy's real and imag do not know the complex formats of ml_dtypes.
            function = compose(function, [partial(_cast, _WIDE_COMPLEX.dtype)], None)
            found = _WIDE_COMPLEX.component.dtype
        # Of 0-d arrays NumPy makes scalars.
        zero_d = all(key.zero_d for key in plan.keys) or plan.function is not None
        if compares_by_value(plan):
            return compose(function, [None] * len(plan.keys), np.asarray if zero_d else None)
        if _is_plain(plan) and has_usual_steps(plan) and library_agrees(plan, RULES):
            direct = compose(function, numbers_in_range(plan, _itself), np.asarray if zero_d else None)
            return power_by_products(direct, self, plan)
        converters = [
            caster_of_number(plan, i, silent=False) if key.backend is None else _checked_caster(key.dtype, dtype)
            for i, (key, dtype) in enumerate(zip(plan.keys, plan.compute, strict=True))
        ]
        # A result wraps around as those of the library do, also where it was computed wider.
        finish = partial(np.asarray, dtype=target) if zero_d else _caster(found, target)
        return power_by_products(compose(function, converters, finish), self, plan)

    def astype(self, raw: Raw, dtype: DType, weak: bool = False, *, copy: bool = True) -> Raw:
        """An array in another dtype."""
        return converted(raw, dtype, copy=copy)

    def asarray(self, data: Any, dtype: DType | None = None, device: Any = None, copy: bool | None = None) -> Raw:
        """An array."""
        return np.array(data, dtype, copy=copy)

    def numpy(self, raw: Raw) -> np.ndarray[Any, Any]:
        """The array itself."""
        return raw

    def native_dtype(self, dtype: DType) -> Any:
        """The dtype itself."""
        return dtype

    def device_of(self, raw: Raw) -> Any:
        """`"cpu"`."""
        return "cpu"


def _is_plain(plan: Plan) -> bool:
    """Whether NumPy takes all operands for what they are.

    It makes an array of a Python number that stands alone, and ml_dtypes takes no number of more than 64 bits.
    """
    casts = list(zip(plan.keys, plan.compute, strict=True))
    return any(key.backend is not None for key in plan.keys) and all(
        as_format(dtype).is_builtin if key.dtype is None else _is_direct(key.dtype, dtype) for key, dtype in casts
    )


def converted(raw: Raw, dtype: DType, *, copy: bool = True) -> Raw:
    """An array of NumPy in another dtype.

    ml_dtypes has no casts between some of its formats, and those of its complex ones to bool look at the real part
    alone: they go by way of a format that holds both.
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
# The first whose category is that of either format.
_BETWEEN = {"complex": _WIDE_COMPLEX.dtype, "float": as_format("float32").dtype, "integer": as_format("int8").dtype}


def _caster(source: DType | None, target: DType) -> Callable[[Raw], Raw] | None:
    if source is None or source == target:
        return None
    return partial(_cast if _is_direct(source, target) else _detour, target)


def _checked_caster(source: DType | None, target: DType) -> Callable[[Raw], Raw] | None:
    return partial(narrowed, target) if source is not None and _narrows(source, target) else _caster(source, target)


def _narrows(source: DType, target: DType) -> bool:
    rows = as_format(source), as_format(target)
    return rows[0].category == rows[1].category == "integer" and not rows[1].holds(rows[0])


def holds_range(array: np.ndarray[Any, Any], target: Format) -> bool:
    """Whether values are in the range of a format: none wraps around, and none that is finite becomes infinite."""
    with np.errstate(all="ignore"):
        cast = converted(array, target.dtype)
        if not target.is_inexact:
            return bool(np.all(converted(cast, array.dtype) == array))
        wide = as_format("complex128" if target.category == "complex" else "float64").dtype
        return bool(np.all(np.isfinite(cast.astype(wide)) == np.isfinite(converted(array, wide))))


def narrowed(dtype: DType, raw: Raw) -> Raw:
    """Integers in the dtype that a decision narrows them to, such as the 32 bits that JAX holds 64 in.

    Raises:
        NarrowingError: if it does not hold all of them; they would be wrapped around in silence.
    """
    cast = converted(raw, dtype)
    if _narrows(raw.dtype, dtype):
        kept = converted(cast, raw.dtype) == raw
        if not np.all(kept):
            lost = np.asarray(raw)[~np.asarray(kept)]
            raise NarrowingError(
                f"the rules compute {raw.dtype} in {dtype}, which does not hold {lost.flat[0]} ({lost.size:,} of "
                f"{raw.size:,} values are out of range): cast by hand, .astype({shown(str(dtype))}), to wrap them "
                "around; "
                "to keep them choose rules that keep the dtype, on JAX with its x64 on"
            )
    return cast


def _cast(dtype: DType, raw: Raw) -> Raw:
    return raw.astype(dtype)


def _detour(dtype: DType, raw: Raw) -> Raw:
    categories = (as_format(raw.dtype).category, as_format(dtype).category)
    between = next(between for category, between in _BETWEEN.items() if category in categories)
    return raw.astype(between).astype(dtype)


def _itself(scalar: Any) -> Any:
    return scalar


NUMPY = NumpyBackend()
