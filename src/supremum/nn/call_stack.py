"""The layers whose `call` is running, and the name of the layer in the errors that come from it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import jax

from supremum.errors import ArgumentError, OperandError, SupremumError, shown
from supremum.formats import DType
from supremum.nn.inputs import described
from supremum.nn.module_tree import Module
from supremum.nn.scopes import autocast_to
from supremum.nn.variables import UninitializedError

_frames: ContextVar[tuple[CallFrame, ...]] = ContextVar("frames", default=())
_numbers = itertools.count(1)


class CallFrame:
    """A running call of a layer.

    Args:
        layer: the layer.
        requested: whether the caller says that this is a training step, which the layers inside follow; None for what
            the layer around says.
        default: the meaning of None for this layer if no layer around it says anything else.
        strict: whether an output in a dtype other than the compute dtype is an error, as it is if it is one for the
            layer around.
        dtype: the floating dtype that inputs are cast to and autocast variables are read in; None to leave both.

    Attributes:
        training: whether this is a training step, for this layer.
        is_outermost: whether the layer was not called by another layer.
        number: a number shared by an outermost call and all calls inside it.
    """

    __slots__ = ("dtype", "is_outermost", "layer", "number", "requested", "strict", "training")

    def __init__(
        self, layer: Module[Any], requested: bool | None, default: bool, strict: bool, dtype: DType | None
    ) -> None:
        outer = _frames.get()
        self.is_outermost: bool = not outer
        self.number: int = outer[0].number if outer else next(_numbers)
        self.layer: Module[Any] = layer
        self.dtype: DType | None = dtype
        self.requested: bool | None = outer[-1].requested if outer and requested is None else requested
        self.training: bool = default if self.requested is None else self.requested
        self.strict: bool = strict or (bool(outer) and outer[-1].strict)


@contextmanager
def call_scope(frame: CallFrame) -> Generator[None]:
    """Run a block as a layer's `call`.

    Operations in the block carry the layer's name as a `jax.named_scope`, which profilers show.

    Args:
        frame: the call.
    """
    token = _frames.set((*_frames.get(), frame))
    try:
        with autocast_to(frame.dtype), jax.named_scope(frame.layer.name):
            yield
    finally:
        _frames.reset(token)


running_layers: Callable[[], tuple[CallFrame, ...]] = _frames.get
"""A function that returns the running calls, outermost first."""


def is_frozen() -> bool:
    """Whether any layer whose `call` is running is not trainable, which freezes all layers inside it too."""
    return any(not frame.layer.trainable for frame in _frames.get())


def running_path(inner: Module[Any] | None = None) -> str:
    """The path of the layer whose `call` is running, such as `"encoder/dense"`; for the root, its own name.

    Args:
        inner: a layer called inside the running one; None for the running layer itself.
    """
    layers = [frame.layer for frame in _frames.get()] + ([] if inner is None else [inner])
    names = [outer.name_of(layer) for outer, layer in itertools.pairwise(layers)]
    return "/".join(names or [layer.name for layer in layers])


def name_layer_in(error: Exception, layer: Module[Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Add to an error the innermost layer whose `call` raised it, and the inputs of that layer.

    Errors of Supremum get a longer message. Errors of JAX or of the user's code keep their message and get a note.

    Args:
        error: the error.
        layer: the layer.
        args: its positional inputs.
        kwargs: its keyword inputs.
    """
    if getattr(error, "layer", None) is not None:
        return
    name = f"{running_path(layer)} ({shown(layer)})"
    if isinstance(error, (ArgumentError, OperandError, UninitializedError)):
        if error.args:
            vars(error)["layer"] = name
            error.args = (f"{name}, given {described(args, kwargs)}: {error.args[0]}", *error.args[1:])
    elif not isinstance(error, SupremumError):
        vars(error)["layer"] = name
        error.add_note(f"in {name}, given {described(args, kwargs)}")
