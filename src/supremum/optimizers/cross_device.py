"""The devices that `minimize`, `get_gradients` and `apply_gradients` work on."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol


class Devices(Protocol):
    """Several devices, each with a part of a batch; `training.DataParallel` is some."""

    @property
    def replicas(self) -> int:
        """How many there are."""
        ...

    @property
    def axis_name(self) -> str:
        """The axis they lie along."""
        ...

    def placed(self, tree: Any) -> Any:
        """Arrays that all devices have."""
        ...

    def batch(self, batch: Any) -> Any:
        """Arrays cut along their first axis."""
        ...

    def on_each_device(
        self, backward: Callable[..., Any], *, keeps_gradients_apart: bool = False
    ) -> Callable[..., Any]:
        """A function of a whole batch that runs one of a part of it on each device."""
        ...

    def mean_of_apart(self, mean: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
        """A function of what `keeps_gradients_apart` gave that runs one of the gradients of each device."""
        ...


_devices: ContextVar[Devices | None] = ContextVar("devices", default=None)


def current_devices() -> Devices | None:
    """The devices of the innermost `across` block; None for one device."""
    return _devices.get()


@contextmanager
def across(devices: Devices) -> Generator[None]:
    """Have optimizers work on several devices inside a block.

    Args:
        devices: them.
    """
    token = _devices.set(devices)
    try:
        yield
    finally:
        _devices.reset(token)
