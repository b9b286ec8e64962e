"""The devices that `minimize`, `get_gradients` and `apply_gradients` work on."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol


class Devices(Protocol):
    """Several devices, each with a part of a batch; `training.DataParallel` implements it."""

    @property
    def replicas(self) -> int:
        """The number of devices."""
        ...

    @property
    def axis_name(self) -> str:
        """The name of the device axis."""
        ...

    def placed(self, tree: Any) -> Any:
        """Put arrays on all devices."""

    def batch(self, batch: Any) -> Any:
        """Split arrays along their first axis, one part for each device."""

    def on_each_device(
        self, backward: Callable[..., Any], *, keeps_gradients_apart: bool = False
    ) -> Callable[..., Any]:
        """Turn a function of a part of the batch into a function of the whole batch, which runs on each device."""
        ...

    def mean_of_apart(self, mean: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
        """Turn a function of one device's gradients into a function of the gradients that were kept apart."""
        ...


_devices: ContextVar[Devices | None] = ContextVar("devices", default=None)


def current_devices() -> Devices | None:
    """Return the devices of the innermost `across` block; None for one device."""
    return _devices.get()


@contextmanager
def across(devices: Devices) -> Generator[None]:
    """Make optimizers use several devices inside a block.

    Args:
        devices: the devices.
    """
    token = _devices.set(devices)
    try:
        yield
    finally:
        _devices.reset(token)
