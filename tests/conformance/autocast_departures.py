"""Where autocast departs from PyTorch's on purpose: one row per reason, as `departures` has them of rule sets."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class AutocastDeparture:
    """Functions that autocast treats otherwise than `torch.autocast` does, all for one reason.

    Args:
        functions: their names in PyTorch, separated by spaces.
        ours: the rule of the row that follows them; for functions that are composed of several operations in JAX, the
            operations that run in 16 bits there where one operand comes from a product and the other does not.
        theirs: the rule of PyTorch's list.
        reason: why ours is as it is.
    """

    functions: str
    ours: str
    theirs: str
    reason: str


_ONE_PRIMITIVE = "JAX has one primitive for all products, and it follows matmul"
_WEIGHTS = "a product with a matrix of weights in JAX"

AUTOCAST_ROWS: list[AutocastDeparture] = [
    AutocastDeparture(
        "reciprocal __rdiv__ __rtruediv__", "widest", "float32",
        "of a number by an array only, which runs in float32 as an exception; a test asks for it",
    ),
    AutocastDeparture(
        "scatter_add", "declared", "widest", "adds in the dtype of the array that is there, not in the widest of both",
    ),
    AutocastDeparture(
        "norm", "widest", "float32",
        "of an array multiplied with itself only, which runs in float32 as an exception; jnp.linalg.norm has it so",
    ),
]  # fmt: skip

AUTOCAST_COMPOSITIONS: list[AutocastDeparture] = [
    AutocastDeparture(
        "prelu", "gt", "compute",
        "a function of JAX here: the weight is multiplied element by element, and 32 bits stay 32 bits there",
    ),
    AutocastDeparture("dot vdot", "dot_general", "widest", _ONE_PRIMITIVE),
    AutocastDeparture("tensordot", "dot_general", "widest", _ONE_PRIMITIVE),
    AutocastDeparture("bilinear", "dot_general", "widest", _ONE_PRIMITIVE),
    AutocastDeparture(
        "grid_sampler", "floor sub mul", "widest",
        "a composition in JAX, whose first operations take the places alone",
    ),
    AutocastDeparture(
        "upsample_linear1d upsample_bilinear2d _upsample_bilinear2d_aa upsample_trilinear3d", "dot_general", "float32",
        _WEIGHTS,
    ),
    AutocastDeparture("upsample_bicubic2d _upsample_bicubic2d_aa", "dot_general", "float32", _WEIGHTS),
]  # fmt: skip
