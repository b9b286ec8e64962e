"""PyTorch's tensors."""

from __future__ import annotations

import importlib
import operator
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from supremum.arrays.backends import kernels
from supremum.arrays.backends.base import Backend, CallPlan, Raw
from supremum.arrays.backends.numpy import converter_for
from supremum.arrays.errors import RuntimeDtypeError
from supremum.formats import FORMATS, DType, Format, as_format
from supremum.rules import TORCH, TorchRules
from supremum.typing import ArrayLike

# The type checker runs without PyTorch too.
torch: Any = importlib.import_module("torch")
_NATIVE: dict[DType, Any] = {
    row.dtype: getattr(torch, row.name) for row in FORMATS if isinstance(getattr(torch, row.name, None), torch.dtype)
}
_FORMAT: dict[Any, DType] = {native: dtype for dtype, native in _NATIVE.items()}
_FLOAT32 = as_format("float32").dtype
_FLOAT32_BITS = as_format(_FLOAT32).bits
# PyTorch may promote by itself only where that is right under both values of `torch.set_default_dtype`.
_RULES = (TORCH, TORCH.with_default("float64"))
NAMES = {"equal": "eq"}
"""PyTorch's names of operations whose usual names mean something else there: `torch.equal` compares whole tensors."""


def path_of(function: Callable[..., Any]) -> str:
    """Where PyTorch has a function, such as `torch.linalg.inv`."""
    return torch.overrides.resolve_name(function) or str(function)


class TorchBackend(Backend):
    """PyTorch: an operation calls PyTorch's function, which also promotes where it agrees with the rules."""

    name = "torch"
    namespace = "array_api_compat.torch"
    rules = "torch"

    def dtype_of(self, raw: Raw) -> DType:
        """The dtype of a tensor."""
        return _FORMAT.get(raw.dtype) or super().dtype_of(raw)

    def prepare(self, plan: CallPlan) -> Callable[..., Raw]:
        """PyTorch's own function, between casts where they are needed."""
        if plan.build is not None:
            return kernels.between_casts(self, plan)
        if (known := kernels.known_comparison(self, plan)) is not None:
            return known
        device = self.device_of_plan(plan)
        function = kernels.elementwise_function(self, plan, torch, NAMES)
        native = [self.native_dtype(dtype) for dtype in plan.compute]
        target = self.native_dtype(plan.result.dtype)
        # PyTorch's operators compute with a number on the left in float32; its functions round the number to 16 bits.
        if plan.keys[0].backend is None and plan.compute[0] == _FLOAT32 != plan.result.dtype:
            function = _AS_OPERATORS.get(plan.operation.name, function)
        if all(_library_agrees(plan, rules) for rules in _RULES) and self._takes(function, plan):
            return kernels.power_by_products(kernels.compose(function, _numbers(plan)), self, plan)
        converters = [self.converter(plan, i) for i in range(len(native))]
        result_dtype = self._try(function, plan, [torch.ones(1, dtype=dtype, device=device) for dtype in native])
        prepared = kernels.compose(function, converters, None if result_dtype == target else _caster(target))
        return kernels.power_by_products(prepared, self, plan)

    def converter(self, plan: CallPlan, position: int) -> Callable[[Any], Any] | None:
        """As in the base class."""
        return converter_for(self, plan, position, _caster(self.native_dtype(plan.compute[position])))

    def _takes(self, function: Callable[..., Raw], plan: CallPlan) -> bool:
        """Whether a function of PyTorch takes the operands as they are: many take no number on the left."""
        try:
            self._try(function, plan, [kernels.sample_of(key) for key in plan.keys])
        except RuntimeDtypeError:
            return False
        return True

    def _try(self, function: Callable[..., Raw], plan: CallPlan, operands: list[Any]) -> Any:
        """The dtype of the result of PyTorch's function.

        Raises:
            RuntimeDtypeError: if PyTorch has no kernel for these operands.
        """
        try:
            return function(*operands).dtype
        except (RuntimeError, TypeError) as error:  # a missing kernel is a RuntimeError or its NotImplementedError
            raise kernels.missing_kernel(self, plan, f" on {self.device_of_plan(plan)}") from error

    def device_of_plan(self, plan: CallPlan) -> Any:
        """The device of the result. As in PyTorch, 0-d tensors on the CPU go with any device.

        Raises:
            DeviceError: if tensors are on different devices.
        """
        tensors: list[Any] = [key for key in plan.keys if key.device is not None]
        fixed = {key.device for key in tensors if not (key.zero_d and key.device.type == "cpu")}
        if len(fixed) > 1:
            raise kernels.different_devices(plan.operation.name, sorted(map(str, fixed)))
        return next(iter(fixed), tensors[0].device)

    def astype(self, raw: Raw, dtype: DType, weak: bool = False, *, copy: bool = True) -> Raw:
        """A tensor in another dtype."""
        tensor: Any = raw
        return tensor.to(self.native_dtype(dtype), copy=copy)

    def asarray(
        self, data: ArrayLike, dtype: DType | None = None, device: object = None, copy: bool | None = None
    ) -> Raw:
        """A tensor; arrays of ml_dtypes formats are passed as bits."""
        native = None if dtype is None else self.native_dtype(dtype)
        if isinstance(data, torch.Tensor):
            source: Any = data
            tensor = torch.asarray(data, dtype=native, device=device, copy=copy)
            if copy is False and tensor.data_ptr() != source.data_ptr():
                raise ValueError("copy=False needs a tensor that has the dtype and the device already; use copy=None")
            return tensor
        host = np.asarray(data, dtype)
        target = self.native_dtype(as_format(host.dtype).dtype)
        if copy is not False and not host.flags.writeable:
            host = host.copy()  # all tensors of PyTorch are writable
        if not as_format(host.dtype).is_builtin:
            bits = np.dtype(f"u{host.dtype.itemsize}")
            return torch.asarray(host.view(bits), device=device, copy=copy).view(target)
        return torch.asarray(np.ascontiguousarray(host).reshape(host.shape), device=device, copy=copy)

    def numpy(self, raw: Raw) -> np.ndarray[Any, Any]:
        """The tensor as NumPy's array, which shares memory where PyTorch's own `numpy` does."""
        tensor: Any = raw
        dtype = self.dtype_of(raw)
        if as_format(dtype).is_builtin:
            return tensor.resolve_conj().resolve_neg().numpy()
        return tensor.view(_NATIVE[np.dtype(f"u{dtype.itemsize}")]).numpy().view(dtype)

    def native_dtype(self, dtype: DType) -> Any:
        """PyTorch's own dtype.

        Raises:
            RuntimeDtypeError: if PyTorch does not have it.
        """
        native = _NATIVE.get(dtype)
        if native is None:
            raise RuntimeDtypeError(f"the rules decide {dtype}, which torch does not have")
        return native


_AS_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {"multiply": operator.mul, "divide": operator.truediv}


def _caster(native: Any) -> Callable[[Any], Raw]:
    return lambda raw: raw.to(native)


def _library_agrees(plan: CallPlan, rules: TorchRules) -> bool:
    """Whether PyTorch itself follows a plan, once Python numbers are rounded as planned."""
    if kernels.library_agrees(plan, rules):
        return True
    # PyTorch computes with a number in float32. A number that is rounded to 16 bits first stays the same there.
    in_float32 = replace(plan, compute=(_FLOAT32,) * len(plan.compute))
    return any(key.backend is None for key in plan.keys) and (
        set(plan.compute) == {plan.result.dtype} and kernels.library_agrees(in_float32, rules)
    )


def _numbers(plan: CallPlan) -> list[Callable[[Any], Any] | None]:
    """Converters of Python numbers after which PyTorch computes with them as planned."""
    numbers = kernels.numbers_in_range(plan, int)
    for i, (key, dtype) in enumerate(zip(plan.keys, plan.compute, strict=True)):
        if key.backend is not None or numbers[i] is not None or not as_format(dtype).is_inexact:
            continue
        row = as_format(dtype)
        is_rounded_here = row.category == "float" and (row.bits < _FLOAT32_BITS or not kernels.has_usual_steps(plan))
        cast = kernels.caster_of_number(plan, i)
        numbers[i] = kernels.compose(float, [cast]) if is_rounded_here else _int_in_range(row.component)
    return numbers


def _int_in_range(row: Format) -> Callable[[Any], Any]:
    """A converter of ints that PyTorch would refuse next to floats, or round differently; it leaves other numbers."""
    low, high, cast = row.min, row.max, kernels.caster_of(row.dtype)

    def convert(value: Any) -> Any:
        if value.__class__ is complex or (-_LARGEST_INT <= value <= _LARGEST_INT and low <= value <= high):
            return value
        return float(cast(value))

    return convert


_LARGEST_INT = 2 ** (as_format("float64").mantissa + 1)  # PyTorch rounds larger ints once, other libraries twice


TORCH_BACKEND = TorchBackend()
