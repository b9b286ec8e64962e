"""The bytes per parameter of weights, moments and what is stored beside them."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import jax

from supremum.argument_checks import pytree
from supremum.errors import ArgumentError
from supremum.formats import as_format
from supremum.mixed_precision.pytrees import is_array, is_inexact
from supremum.mixed_precision.weight_storage.places import find_places
from supremum.render import aligned
from supremum.reports import plain_fields
from supremum.typing import PyTree

_WEIGHTS, _OTHERS = "weights", "counts and numbers"


@dataclass(frozen=True, slots=True)
class WeightMemoryRow:
    """The arrays of one kind.

    Args:
        name: `"weights"`, the field of a state such as `"mu"` or `"compensation"`, or `"counts and numbers"`.
        dtypes: the names of their dtypes.
        total_bytes: their bytes together.
        bytes_per_parameter: these bytes for each element of the weights.

    >>> import jax.numpy as jnp
    >>> weight_memory({"w": jnp.ones(4, "bfloat16")}, None).rows[0].bytes_per_parameter
    2.0
    """

    name: str
    dtypes: tuple[str, ...]
    total_bytes: int
    bytes_per_parameter: float


@dataclass(frozen=True, slots=True)
class WeightMemory:
    """The bytes of parameters and of the state of an optimizer; `print` it.

    Args:
        rows: the kinds of arrays.
        parameters: the number of elements of the weights.

    >>> import jax.numpy as jnp
    >>> memory = weight_memory({"w": jnp.ones(4, "bfloat16")}, None)
    >>> memory.total_bytes, memory.bytes_per_parameter
    (8, 2.0)
    """

    rows: tuple[WeightMemoryRow, ...]
    parameters: int

    @property
    def total_bytes(self) -> int:
        """The bytes of all arrays."""
        return sum(row.total_bytes for row in self.rows)

    @property
    def bytes_per_parameter(self) -> float:
        """The bytes of all arrays for each element of the weights."""
        return self.total_bytes / self.parameters

    def to_dict(self) -> dict[str, Any]:
        """Convert to plain data for JSON."""
        return plain_fields(self) | {
            "total_bytes": self.total_bytes,
            "bytes_per_parameter": self.bytes_per_parameter,
        }

    def __str__(self) -> str:
        lines = [
            (row.name, ", ".join(row.dtypes), f"{row.total_bytes:,}", f"{row.bytes_per_parameter:.3f}")
            for row in self.rows
        ]
        total = ("together", "", f"{self.total_bytes:,}", f"{self.bytes_per_parameter:.3f}")
        return aligned([("arrays", "dtypes", "bytes", "bytes per parameter"), *lines, total], right=frozenset({2, 3}))

    __repr__ = __str__


def weight_memory(params: PyTree, state: PyTree) -> WeightMemory:
    """Measure the bytes per parameter of the arrays of parameters and of an optimizer's state.

    Args:
        params: any pytree of arrays; its elements of floating dtypes are the parameters that are counted.
        state: the state of any optimizer for these parameters; None for none.

    Raises:
        ArgumentError: for parameters without a floating array; a `ValueError`.

    >>> import jax.numpy as jnp, optax
    >>> from supremum.mixed_precision import narrow_weights
    >>> params = {"w": jnp.ones((256, 256), "bfloat16")}
    >>> optimizer = narrow_weights(
    ...     optax.adam(1e-3), "kahan", moments={"mu": "bfloat16", "nu": "dynamic8"}
    ... )
    >>> print(weight_memory(params, optimizer.init(params)))
    arrays              dtypes            bytes  bytes per parameter
    weights             bfloat16        131,072                2.000
    mu                  bfloat16        131,072                2.000
    nu                  uint8, float32   66,560                1.016
    compensation        int16           131,072                2.000
    counts and numbers  int32                 8                0.000
    together                            459,784                7.016
    """
    weights = [leaf for leaf in jax.tree.leaves(pytree("params", params)) if is_array(leaf)]
    counted = sum(leaf.size for leaf in weights if is_inexact(leaf))
    if not counted:
        raise ArgumentError("weight_memory needs params with at least one element of a floating dtype")
    groups: dict[str, list[Any]] = defaultdict(list)
    groups[_WEIGHTS] = weights
    leaves = jax.tree.leaves(pytree("state", state))
    for leaf, place in zip(leaves, find_places(state, params), strict=True):
        if is_array(leaf):
            groups[place.field if place.path or leaf.size > 1 else _OTHERS].append(leaf)
    if _OTHERS in groups:
        groups[_OTHERS] = groups.pop(_OTHERS)
    rows = [
        WeightMemoryRow(name, tuple(dict.fromkeys(as_format(leaf.dtype).name for leaf in arrays)), size, size / counted)
        for name, arrays in groups.items()
        for size in [sum(leaf.nbytes for leaf in arrays)]
    ]
    return WeightMemory(tuple(rows), counted)
