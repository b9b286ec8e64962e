"""Functions of arrays under the rules in force, one for every name of an elementwise operation.

Reductions and functions of whole arrays, such as `sum` and `matmul`, belong to `supremum.namespace`.

They take an `Array`, an array of NumPy, JAX or PyTorch, a NumPy scalar or a Python number in any position, and return
an `Array`. A function does the same as the operator with its meaning.

>>> import numpy as np, supremum
>>> from supremum import ops
>>> with supremum.use_rules("torch"):
...     ops.add(np.ones(2, "int8"), np.ones(2, "uint8")), ops.divide(np.ones(2, "int8"), 2)
(Array([2, 2], dtype=int16), Array([0.5, 0.5], dtype=float32))
>>> ops.less_than is ops.less
True
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from supremum.arrays.array import Array, new_array
from supremum.arrays.functions import elementwise
from supremum.arrays.wrapped import KeyedRaw


def _wrapping(function: Callable[..., KeyedRaw]) -> Callable[..., Array]:
    """A function that returns an `Array`."""

    @functools.wraps(function)
    def call(*operands: Any, **options: Any) -> Array:
        return new_array(*function(*operands, **options))

    call.__module__ = __name__
    vars(call)["__signature__"] = inspect.signature(function).replace(return_annotation="Array")
    return call


_WRAPPING = {function: _wrapping(function) for function in elementwise.FUNCTIONS.values()}
FUNCTIONS: dict[str, Callable[..., Array]] = {
    name: _WRAPPING[function] for name, function in elementwise.FUNCTIONS.items()
}
globals().update(FUNCTIONS)
