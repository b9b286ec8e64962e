"""The layers whose `call` is running."""

from __future__ import annotations

import itertools
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import jax

from supremum.formats import DType
from supremum.nn.module_tree import Module
from supremum.nn.scopes import autocast_to

_frames: ContextVar[tuple[CallFrame, ...]] = ContextVar("frames", default=())
_numbers = itertools.count(1)


class CallFrame:
    """A call of a layer that is running.

    Args:
        layer: the layer.
        requested: whether this is a training step, as the caller said, for the layers inside; None if nobody said.
        default: what None means for this layer.
        strict: whether an output that is not in the compute dtype is an error.

    Attributes:
        training: whether this is a training step, for this layer.
        is_outermost: whether no other layer called it.
        number: a number that a call shares with the calls inside it, and with no others.
    """

    __slots__ = ("is_outermost", "layer", "number", "requested", "strict", "training")

    def __init__(self, layer: Module[Any], requested: bool | None, default: bool, strict: bool) -> None:
        outer = _frames.get()
        self.is_outermost = not outer
        self.number = outer[0].number if outer else next(_numbers)
        self.layer = layer
        self.requested = requested
        self.training = default if requested is None else requested
        self.strict = strict


@contextmanager
def call_scope(frame: CallFrame, dtype: DType | None) -> Generator[None]:
    """The time in which a layer's `call` runs.

    Operations in it carry the layer's name as a `jax.named_scope`, which profilers show.

    Args:
        frame: the call.
        dtype: what autocast variables are read in; None to read them as they are stored.
    """
    token = _frames.set((*_frames.get(), frame))
    try:
        with autocast_to(dtype), jax.named_scope(frame.layer.name):
            yield
    finally:
        _frames.reset(token)


def running_layers() -> tuple[CallFrame, ...]:
    """The calls that are running, outermost first."""
    return _frames.get()


def is_frozen() -> bool:
    """Whether a layer whose `call` is running is not trainable, and with it all that it holds."""
    return any(not frame.layer.trainable for frame in _frames.get())


def running_path(inner: Module[Any] | None = None) -> str:
    """The path of the layer whose `call` is running, `"encoder/dense"`, as variables name it; the root's own name.

    Args:
        inner: a layer that is called there; None for the one that is running itself.
    """
    layers = [frame.layer for frame in _frames.get()] + ([] if inner is None else [inner])
    names = [outer.name_of(layer) for outer, layer in itertools.pairwise(layers)]
    return "/".join(names or [layer.name for layer in layers])
