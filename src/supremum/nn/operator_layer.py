"""An operator between symbolic tensors, as a layer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax

from supremum.arrays import Array
from supremum.nn.layer import Layer


class OperatorLayer(Layer):
    """An operator of Python, under the rules in force when the model runs; it casts nothing beyond them.

    Args:
        function: one of the module `operator`.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(dtype="infer", autocast=False, name=function.__name__)
        self.function = function

    def call(self, *operands: Any) -> Any:
        """The result, as an array of JAX."""
        given = [Array(operand) if isinstance(operand, jax.Array) else operand for operand in operands]
        found = self.function(*given)
        return found.unwrap() if isinstance(found, Array) else found
