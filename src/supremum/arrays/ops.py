"""Functions of arrays under the rules in force, one for every name of an elementwise operation.

Reductions and functions of whole arrays, such as `sum` and `matmul`, belong to `supremum.namespace`.

They take an `Array`, an array of NumPy, JAX or PyTorch, a NumPy scalar or a Python number in any position, and return
an `Array`. A function does the same as the operator with its meaning.

>>> import numpy as np, supremum
>>> from supremum import ops
>>> with supremum.use_rules("torch"):
...     (
...         ops.add(np.ones(2, "int8"), np.ones(2, "uint8")),
...         ops.divide(np.ones(2, "int8"), 2),
...     )
(Array([2, 2], dtype=int16), Array([0.5, 0.5], dtype=float32))
>>> ops.less_than is ops.less
True
"""

from __future__ import annotations

from collections.abc import Callable

from supremum.arrays.array import Array
from supremum.arrays.functions import elementwise

FUNCTIONS: dict[str, Callable[..., Array]] = {name: function.call for name, function in elementwise.FUNCTIONS.items()}
for _function in FUNCTIONS.values():
    _function.__module__ = __name__
globals().update(FUNCTIONS)
