"""Name the layer in the errors that come from it."""

from __future__ import annotations

from typing import Any

from supremum.errors import ArgumentError, OperandError, SupremumError, shown
from supremum.nn.call_stack import running_path
from supremum.nn.input_description import described
from supremum.nn.module_tree import Module
from supremum.nn.variables import UninitializedError


def add_layer_to_error(error: Exception, layer: Module[Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
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
