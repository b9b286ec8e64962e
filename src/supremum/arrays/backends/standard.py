"""Arrays of any other library that follows the Python array API standard, or that array-api-compat makes follow it.

CuPy's are among them: what is used here is the standard's, and nothing of one library.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import array_api_compat
import numpy as np

from supremum.arrays.backends.base import Backend, Key, Plan, Raw, array_key
from supremum.arrays.backends.kernels import caster_of_number, compose, function_of, known_comparison, power_by_products
from supremum.arrays.backends.numpy import narrowed
from supremum.arrays.errors import DeviceError, RuntimeDtypeError
from supremum.errors import OperandError, UnknownDtypeError
from supremum.formats import DType, as_format


class StandardBackend(Backend):
    """A library that is known by its namespace only.

    Args:
        namespace: the module that follows the standard.
    """

    def __init__(self, namespace: str) -> None:
        self.namespace = namespace
        self.name = namespace.removeprefix("array_api_compat.")

    def key_of(self, raw: Raw, weak: bool = False) -> Key:
        """The key of an array; its device is part of it."""
        return array_key(self, self.dtype_of(raw), weak, raw.ndim == 0, self.device_of(raw))

    def dtype_of(self, raw: Raw) -> DType:
        """The dtype of an array; libraries print theirs as they are called, some with their own name before it."""
        try:
            return as_format(str(raw.dtype).rpartition(".")[2]).dtype
        except UnknownDtypeError as error:
            raise OperandError(f"an operand is of dtype {raw.dtype}, which no rule promotes") from error

    def prepare(self, plan: Plan) -> Callable[..., Raw]:
        """The standard's function, between casts where they are needed."""
        if (known := known_comparison(self, plan)) is not None:
            return known
        device = self._device(plan)
        if plan.function is None:
            function = function_of(plan.operation, self.xp, {})
        else:
            function = partial(plan.function, self, **plan.options)
        if function is None:
            raise RuntimeDtypeError(f"{self.name} has no {plan.operation.name}")
        try:
            samples = (self.asarray(np.ones(1, dtype), device=device) for dtype in plan.compute)
            found = self.dtype_of(function(*samples))
        except (TypeError, ValueError) as error:
            dtypes = " and ".join(dict.fromkeys(map(str, plan.compute)))
            raise RuntimeDtypeError(
                f"{self.name} has no {plan.operation.name} of {dtypes}", decision=plan.decision
            ) from error
        target = plan.result.dtype
        converters = [self._converter(plan, i, device) for i in range(len(plan.keys))]
        prepared = compose(function, converters, None if found == target else lambda raw: self.astype(raw, target))
        return power_by_products(prepared, self, plan)

    def _converter(self, plan: Plan, position: int, device: Any) -> Callable[[Any], Any] | None:
        key, dtype = plan.keys[position], plan.compute[position]
        if key.backend is self:
            return None if key.dtype == dtype else lambda raw: self.astype(raw, dtype)
        if key.backend is None:
            cast = caster_of_number(plan, position)
            return lambda value: self.asarray(np.asarray(cast(value)), device=device)
        return lambda raw: self.asarray(narrowed(dtype, raw), device=device)

    def _device(self, plan: Plan) -> Any:
        found = list(dict.fromkeys(key.device for key in plan.keys if key.backend is self))
        if len(found) > 1:
            shown = " and ".join(map(str, found))
            raise DeviceError(
                f"{plan.operation.name}: the operands are on different devices, {shown}: bring one over with "
                ".to_device(...)"
            )
        return found[0]

    def key_of_result(self, plan: Plan) -> Key:
        """The key of the result, where its operands are."""
        zero_d = all(key.zero_d for key in plan.keys)
        return array_key(self, plan.result.dtype, plan.result.weak, zero_d, self._device(plan))

    def astype(self, raw: Raw, dtype: DType, weak: bool = False, *, copy: bool = True) -> Raw:
        """An array in another dtype."""
        return self.xp.astype(raw, self.native_dtype(dtype), copy=copy)

    def asarray(self, data: Any, dtype: DType | None = None, device: Any = None, copy: bool | None = None) -> Raw:
        """An array."""
        native = None if dtype is None else self.native_dtype(dtype)
        return self.xp.asarray(data, dtype=native, device=device, copy=copy)

    def numpy(self, raw: Raw) -> np.ndarray[Any, Any]:
        """The array on the host."""
        return np.from_dlpack(array_api_compat.to_device(raw, "cpu") if array_api_compat.is_cupy_array(raw) else raw)

    def native_dtype(self, dtype: DType) -> Any:
        """The library's attribute of that name.

        Raises:
            RuntimeDtypeError: if it has none.
        """
        native = getattr(self.xp, dtype.name, None)
        if native is None:
            raise RuntimeDtypeError(f"the rules decide {dtype}, which {self.name} does not have")
        return native

    def device_of(self, raw: Raw) -> Any:
        """Where an array is."""
        return array_api_compat.device(raw)


@cache
def standard_backend(namespace: str) -> StandardBackend:
    """The backend of a namespace, one for each.

    Args:
        namespace: the name of its module.
    """
    return StandardBackend(namespace)
