"""PyTorch's tensors."""

from __future__ import annotations

import importlib
import operator
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from supremum.arrays.backends.base import Backend, Key, Plan, Raw, array_key
from supremum.arrays.backends.kernels import (
    caster_of,
    caster_of_number,
    compose,
    function_of,
    has_usual_steps,
    known_comparison,
    library_agrees,
    numbers_in_range,
    power_by_products,
)
from supremum.arrays.backends.numpy import narrowed
from supremum.arrays.errors import DeviceError, RuntimeDtypeError
from supremum.formats import FORMATS, DType, Format, as_format
from supremum.operands import TYPE_OF_CATEGORY
from supremum.rules import TORCH, TorchRules

# It need not be installed where this file is checked.
torch: Any = importlib.import_module("torch")
_NATIVE: dict[DType, Any] = {
    row.dtype: getattr(torch, row.name) for row in FORMATS if isinstance(getattr(torch, row.name, None), torch.dtype)
}
_FORMAT: dict[Any, DType] = {native: dtype for dtype, native in _NATIVE.items()}
# Where torch is left to promote, it must be right whatever `torch.set_default_dtype` says.
_FLOAT32 = as_format("float32").dtype
_FLOAT32_BITS = as_format(_FLOAT32).bits
_RULES = (TORCH, TORCH.with_default("float64"))
NAMES = {"equal": "eq"}
"""What torch calls operations whose names mean something else there: `torch.equal` compares whole tensors."""


class TorchBackend(Backend):
    """PyTorch: an operation is torch's own, which also promotes where it decides as the rules do."""

    name = "torch"
    namespace = "array_api_compat.torch"
    rules = "torch"

    def key_of(self, raw: Raw, weak: bool = False) -> Key:
        """The key of a tensor; its device is part of it."""
        return array_key(self, self.dtype_of(raw), weak, raw.ndim == 0, raw.device)

    def dtype_of(self, raw: Raw) -> DType:
        """The dtype of a tensor."""
        return _FORMAT.get(raw.dtype) or super().dtype_of(raw)

    def prepare(self, plan: Plan) -> Callable[..., Raw]:
        """Torch's own function, between casts where they are needed."""
        if (known := known_comparison(self, plan)) is not None:
            return known
        device = _common_device(plan)
        if plan.function is None:
            function = function_of(plan.operation, torch, NAMES)
        else:
            function = partial(plan.function, self, **plan.options)
        if function is None:
            raise RuntimeDtypeError(f"torch has no {plan.operation.name}")
        native = [self.native_dtype(dtype) for dtype in plan.compute]
        target = self.native_dtype(plan.result.dtype)
        if plan.operation.name in _AS_OPERATORS and _has_wide_number_on_the_left(plan):
            function = _AS_OPERATORS[plan.operation.name]
        if all(_library_agrees(plan, rules) for rules in _RULES) and self._takes(function, plan):
            return power_by_products(compose(function, _numbers(plan), None), self, plan)
        converters = [self._converter(plan, i, native_dtype, device) for i, native_dtype in enumerate(native)]
        found = self._try(function, plan, [torch.ones(1, dtype=dtype, device=device) for dtype in native])
        prepared = compose(function, converters, None if found == target else lambda raw: raw.to(target))
        return power_by_products(prepared, self, plan)

    def _takes(self, function: Callable[..., Raw], plan: Plan) -> bool:
        """Whether a function of torch takes the operands as they are: many take no number on the left."""
        try:
            self._try(function, plan, [_sample(key) for key in plan.keys])
        except RuntimeDtypeError:
            return False
        return True

    def _try(self, function: Callable[..., Raw], plan: Plan, operands: list[Any]) -> Any:
        """The dtype that torch's function gives.

        Raises:
            RuntimeDtypeError: if it has no kernel for these operands.
        """
        try:
            return function(*operands).dtype
        except (RuntimeError, TypeError) as error:  # a missing kernel is a RuntimeError or its NotImplementedError
            dtypes = " and ".join(dict.fromkeys(map(str, plan.compute)))
            raise RuntimeDtypeError(
                f"torch has no {plan.operation.name} of {dtypes} on {_common_device(plan)}", decision=plan.decision
            ) from error

    def key_of_result(self, plan: Plan) -> Key:
        """The key of the result, where its operands are."""
        zero_d = all(key.zero_d for key in plan.keys)
        return array_key(self, plan.result.dtype, plan.result.weak, zero_d, _common_device(plan))

    def _converter(self, plan: Plan, position: int, native: Any, device: Any) -> Callable[[Any], Any] | None:
        key, dtype = plan.keys[position], plan.compute[position]
        if key.backend is self:
            return None if key.dtype == dtype else lambda raw: raw.to(native)
        if key.backend is None:
            cast = caster_of_number(plan, position)
            return lambda value: self.asarray(cast(value), device=device)
        return lambda raw: self.asarray(narrowed(dtype, raw), device=device)

    def astype(self, raw: Raw, dtype: DType, weak: bool = False, *, copy: bool = True) -> Raw:
        """A tensor in another dtype."""
        return raw.to(self.native_dtype(dtype), copy=copy)

    def asarray(self, data: Any, dtype: DType | None = None, device: Any = None, copy: bool | None = None) -> Raw:
        """A tensor; NumPy's arrays of ml_dtypes formats are taken bit by bit."""
        native = None if dtype is None else self.native_dtype(dtype)
        if isinstance(data, torch.Tensor):
            found = torch.asarray(data, dtype=native, device=device, copy=copy)
            if copy is False and found.data_ptr() != data.data_ptr():
                raise ValueError("the tensor cannot be had in that dtype or on that device without a copy")
            return found
        host = np.asarray(data, dtype)
        target = self.native_dtype(as_format(host.dtype).dtype)
        if copy is not False and not host.flags.writeable:
            host = host.copy()  # torch has no tensors that cannot be written to
        if not as_format(host.dtype).is_builtin:
            bits = np.dtype(f"u{host.dtype.itemsize}")
            return torch.asarray(host.view(bits), device=device, copy=copy).view(target)
        return torch.asarray(np.ascontiguousarray(host).reshape(host.shape), device=device, copy=copy)

    def numpy(self, raw: Raw) -> np.ndarray[Any, Any]:
        """The tensor as NumPy's array, sharing memory where torch's own `numpy` does."""
        dtype = self.dtype_of(raw)
        if as_format(dtype).is_builtin:
            return raw.resolve_conj().resolve_neg().numpy()
        return raw.view(_NATIVE[np.dtype(f"u{dtype.itemsize}")]).numpy().view(dtype)

    def native_dtype(self, dtype: DType) -> Any:
        """Torch's name of a dtype.

        Raises:
            RuntimeDtypeError: if it has none.
        """
        native = _NATIVE.get(dtype)
        if native is None:
            raise RuntimeDtypeError(f"the rules decide {dtype}, which torch does not have")
        return native


_AS_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {"multiply": operator.mul, "divide": operator.truediv}


def _common_device(plan: Plan) -> Any:
    """Where the result will be. Like torch, 0-d tensors on the CPU go with any device."""
    tensors: list[Any] = [key for key in plan.keys if key.device is not None]
    fixed = {key.device for key in tensors if not (key.zero_d and key.device.type == "cpu")}
    if len(fixed) > 1:
        shown = " and ".join(sorted(map(str, fixed)))
        raise DeviceError(
            f"{plan.operation.name}: the operands are on different devices, {shown}: bring one over with "
            ".to_device(...)"
        )
    return next(iter(fixed), tensors[0].device)


def _has_wide_number_on_the_left(plan: Plan) -> bool:
    """Whether torch's operator computes with a number on the left in float32, which its function rounds to 16 bits."""
    return plan.keys[0].backend is None and plan.compute[0] == _FLOAT32 != plan.result.dtype


def _library_agrees(plan: Plan, rules: TorchRules) -> bool:
    """Whether torch itself does what is planned, once Python numbers are rounded as is planned."""
    if library_agrees(plan, rules):
        return True
    # Where torch computes with a number in float32, that is the same number after it has been rounded to 16 bits.
    in_float32 = replace(plan, compute=(_FLOAT32,) * len(plan.compute))
    return any(key.backend is None for key in plan.keys) and (
        set(plan.compute) == {plan.result.dtype} and library_agrees(in_float32, rules)
    )


def _numbers(plan: Plan) -> list[Callable[[Any], Any] | None]:
    """What makes Python numbers such that torch computes with them as is planned."""
    numbers = numbers_in_range(plan, int)
    for i, (key, dtype) in enumerate(zip(plan.keys, plan.compute, strict=True)):
        if key.backend is not None or numbers[i] is not None or not as_format(dtype).is_inexact:
            continue
        row = as_format(dtype)
        is_rounded_here = row.category == "float" and (row.bits < _FLOAT32_BITS or not has_usual_steps(plan))
        numbers[i] = _rounded(caster_of_number(plan, i)) if is_rounded_here else _taken(row.component)
    return numbers


def _rounded(cast: Callable[[Any], Any]) -> Callable[[Any], float]:
    return lambda value: float(cast(value))


def _taken(row: Format) -> Callable[[Any], Any]:
    """Of a Python number the one that torch takes next to floats: no int that it would round otherwise, or not take."""
    low, high, cast = row.min, row.max, caster_of(row.dtype)

    def taken(value: Any) -> Any:
        if value.__class__ is complex or (-_LARGEST_INT <= value <= _LARGEST_INT and low <= value <= high):
            return value
        return float(cast(value))

    return taken


_LARGEST_INT = 2 ** (as_format("float64").mantissa + 1)  # torch rounds larger ones once, where others round twice


def _sample(key: Key) -> Any:
    """An operand like those of a key."""
    if key.backend is None:
        # To the power of one or two torch raises also what it has no kernel for.
        return TYPE_OF_CATEGORY[key.operand.category](5)
    return torch.ones(() if key.zero_d else 1, dtype=_NATIVE[key.operand.format.dtype], device=key.device)


TORCH_BACKEND = TorchBackend()
