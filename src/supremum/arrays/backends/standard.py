"""Arrays of any other library that follows the Python array API standard, directly or through array-api-compat.

CuPy is one of them. This file uses only what the standard has.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import array_api_compat
import numpy as np

from supremum.arrays.backends import kernels
from supremum.arrays.backends.base import Backend, CallPlan, Raw
from supremum.arrays.backends.numpy import converter_for
from supremum.arrays.errors import RuntimeDtypeError
from supremum.errors import OperandError, UnknownDtypeError
from supremum.formats import DType, as_format
from supremum.typing import ArrayLike


class StandardBackend(Backend):
    """A library that is known by its namespace only.

    Args:
        namespace: the module that follows the standard.
    """

    def __init__(self, namespace: str) -> None:
        super().__init__()
        self.namespace = namespace
        self.name: str = namespace.removeprefix("array_api_compat.")

    def dtype_of(self, raw: Raw) -> DType:
        """The dtype of an array. Libraries print their dtypes by name, some with their own name before it."""
        try:
            return as_format(str(raw.dtype).rpartition(".")[2]).dtype
        except UnknownDtypeError:
            raise OperandError(f"the operand's dtype must be numeric, got {raw.dtype}") from None

    def prepare(self, plan: CallPlan) -> Callable[..., Raw]:
        """The standard's function, between casts where they are needed."""
        if plan.build is not None:
            return kernels.between_casts(self, plan)
        if (known := kernels.known_comparison(self, plan)) is not None:
            return known
        device = self.device_of_plan(plan)
        function = kernels.elementwise_function(self, plan, self.xp, {})
        try:
            samples = (self.asarray(np.ones(1, dtype), device=device) for dtype in plan.compute)
            result_dtype = self.dtype_of(function(*samples))
        except (TypeError, ValueError) as error:
            raise kernels.missing_kernel(self, plan) from error

        target = plan.result.dtype
        converters = [self.converter(plan, i) for i in range(len(plan.keys))]
        return kernels.power_by_products(
            kernels.compose(function, converters, None if result_dtype == target else self._caster(target)), self, plan
        )

    def converter(self, plan: CallPlan, position: int) -> Callable[[Any], Any] | None:
        """As in the base class."""
        return converter_for(self, plan, position, self._caster(plan.compute[position]))

    def _caster(self, dtype: DType) -> Callable[[Raw], Raw]:
        return lambda raw: self.astype(raw, dtype)

    def device_of_plan(self, plan: CallPlan) -> Any:
        """The device of all arrays.

        Raises:
            DeviceError: if they are on different devices.
        """
        devices = list(dict.fromkeys(key.device for key in plan.keys if key.backend is self))
        if len(devices) > 1:
            raise kernels.different_devices(plan.operation.name, devices)
        return devices[0]

    def astype(self, raw: Raw, dtype: DType, weak: bool = False, *, copy: bool = True) -> Raw:
        """An array in another dtype."""
        return self.xp.astype(raw, self.native_dtype(dtype), copy=copy)

    def asarray(
        self, data: ArrayLike, dtype: DType | None = None, device: object = None, copy: bool | None = None
    ) -> Raw:
        """An array."""
        native = None if dtype is None else self.native_dtype(dtype)
        host = np.asarray(data) if isinstance(data, np.generic) else data
        return self.xp.asarray(host, dtype=native, device=device, copy=copy)

    def numpy(self, raw: Raw) -> np.ndarray[Any, Any]:
        """The array on the host."""
        array: Any = array_api_compat.to_device(raw, "cpu") if array_api_compat.is_cupy_array(raw) else raw
        return np.from_dlpack(array)

    def native_dtype(self, dtype: DType) -> Any:
        """The library's attribute of that name.

        Raises:
            RuntimeDtypeError: if the library does not have it.
        """
        native = getattr(self.xp, dtype.name, None)
        if native is None:
            raise RuntimeDtypeError(f"the rules decide {dtype}, which {self.name} does not have")
        return native

    def device_of(self, raw: Raw) -> Any:
        """The device of an array."""
        return array_api_compat.device(raw)


@cache
def standard_backend(namespace: str) -> StandardBackend:
    """The backend of a namespace; always the same one.

    Args:
        namespace: the name of its module.
    """
    return StandardBackend(namespace)
