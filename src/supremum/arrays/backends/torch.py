"""PyTorch's tensors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import torch

from supremum.arrays.backends.base import Backend, Key, Plan, Raw, array_key, caster_of, composed, function_of
from supremum.arrays.backends.numpy import NUMPY
from supremum.arrays.errors import DeviceError, RuntimeDtypeError
from supremum.errors import OperandError, UnknownDtypeError
from supremum.formats import FORMATS, DType, as_format
from supremum.rules.torch import TORCH

_NATIVE: dict[DType, torch.dtype] = {
    row.dtype: getattr(torch, row.name) for row in FORMATS if isinstance(getattr(torch, row.name, None), torch.dtype)
}
_FORMAT: dict[torch.dtype, DType] = {native: dtype for dtype, native in _NATIVE.items()}
NAMES = {"equal": "eq"}
"""What torch calls operations whose names mean something else there: `torch.equal` compares whole tensors."""


class TorchBackend(Backend):
    """PyTorch: an operation is torch's own, which also promotes where it decides as the rules do."""

    name = "torch"

    @cached_property
    def xp(self) -> Any:
        """`array_api_compat.torch`."""
        import array_api_compat.torch as xp

        return xp

    def key_of(self, raw: Raw, weak: bool = False) -> Key:
        """The key of a tensor; its device is part of it."""
        dtype = _FORMAT.get(raw.dtype)
        if dtype is None:
            raise OperandError(f"an operand is of dtype {raw.dtype}, which no rule promotes")
        return array_key(self, dtype, weak, raw.ndim == 0, raw.device)

    def prepare(self, plan: Plan) -> Callable[..., Raw]:
        """torch's own function, between casts where they are needed."""
        device = _common_device(plan)
        if plan.function is None:
            function = function_of(plan.operation, torch, NAMES)
        else:
            function = partial(plan.function, self, **plan.options)
        if function is None:
            raise RuntimeDtypeError(f"torch has no {plan.operation.name}")
        native = [self.native_dtype(dtype) for dtype in plan.compute]
        target = self.native_dtype(plan.result.dtype)
        if plan.function is None and _promotes_alike(plan):
            numbers = [_number_in_range(key, dtype) for key, dtype in zip(plan.keys, plan.compute, strict=True)]
            return composed(function, numbers, None)
        converters = [
            self._converter(key, dtype, native_dtype, device)
            for key, dtype, native_dtype in zip(plan.keys, plan.compute, native, strict=True)
        ]
        try:
            found = function(*(torch.ones(1, dtype=dtype, device=device) for dtype in native)).dtype
        except (RuntimeError, TypeError) as error:  # a missing kernel is a RuntimeError or its NotImplementedError
            dtypes = " and ".join(dict.fromkeys(map(str, plan.compute)))
            raise RuntimeDtypeError(
                f"torch has no {plan.operation.name} of {dtypes} on {device}: cast first, with .astype('float32')"
            ) from error
        return composed(function, converters, None if found == target else lambda raw: raw.to(target))

    def key_of_result(self, plan: Plan) -> Key:
        """The key of the result, where its operands are."""
        zero_d = all(key.zero_d for key in plan.keys)
        return array_key(self, plan.result.dtype, plan.result.weak, zero_d, _common_device(plan))

    def _converter(
        self, key: Key, dtype: DType, native: torch.dtype, device: torch.device
    ) -> Callable[[Any], Any] | None:
        if key.backend is self:
            return None if key.dtype == dtype else lambda raw: raw.to(native)
        if key.backend is None:
            cast = caster_of(dtype)
            return lambda value: self.asarray(cast(value), device=device)
        return lambda raw: self.asarray(NUMPY.astype(raw, dtype), device=device)

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
        dtype = _FORMAT[raw.dtype]
        if as_format(dtype).is_builtin:
            return raw.numpy()
        return raw.view(_NATIVE[np.dtype(f"u{dtype.itemsize}")]).numpy().view(dtype)

    def native_dtype(self, dtype: DType) -> torch.dtype:
        """torch's name of a dtype.

        Raises:
            RuntimeDtypeError: if it has none.
        """
        native = _NATIVE.get(dtype)
        if native is None:
            raise RuntimeDtypeError(f"the rules decide {dtype}, which torch does not have")
        return native


def _common_device(plan: Plan) -> torch.device:
    """Where the result will be. Like torch, 0-d tensors on the CPU go with any device."""
    tensors = [key for key in plan.keys if key.device is not None]
    fixed = {key.device for key in tensors if not (key.zero_d and key.device.type == "cpu")}
    if len(fixed) > 1:
        shown = " and ".join(sorted(map(str, fixed)))
        raise DeviceError(
            f"{plan.operation.name}: the operands are on different devices, {shown}: bring one over with "
            ".to_device(...)"
        )
    return next(iter(fixed), tensors[0].device)


def _promotes_alike(plan: Plan) -> bool:
    """Whether torch computes and returns what the rules decide when it is given the operands as they are.

    That must hold whatever `torch.set_default_dtype` says.
    """
    if any(key.backend is not None and key.device is None for key in plan.keys):
        return False
    operands = tuple(replace(key.operand, weak=key.backend is None and key.operand.weak) for key in plan.keys)
    for rules in (TORCH, TORCH.with_default("float64")):
        verdict = rules.decide(plan.operation, operands).verdict
        if verdict.result is None or (verdict.result.dtype, verdict.compute) != (plan.result.dtype, plan.compute):
            return False
    return True


def _number_in_range(key: Key, dtype: DType) -> Callable[[Any], Any] | None:
    """What makes of a Python int one that torch takes next to tensors of an integer dtype; None for other operands."""
    if key.backend is not None or key.operand.category != "integer" or as_format(dtype).is_inexact:
        return None
    cast = caster_of(dtype)
    return lambda value: int(cast(value))


TORCH_BACKEND = TorchBackend()
