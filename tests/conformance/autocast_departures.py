"""Deliberate differences between our autocast and PyTorch's: one row per reason, like `departures` for rule sets."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class AutocastDeparture:
    """Functions that our autocast and `torch.autocast` treat differently, all for one reason.

    Args:
        functions: their names in PyTorch, separated by spaces.
        ours: the rule of our row for them. For functions that JAX composes of several operations, the operations that
            run in 16 bits when one operand comes from a product and the other does not.
        theirs: the rule of PyTorch's list.
        reason: why our autocast differs.
    """

    functions: str
    ours: str
    theirs: str
    reason: str


_ONE_PRIMITIVE = "JAX has one primitive for all products, and it follows matmul's rule"
_WEIGHTS = "JAX computes it as a product with a matrix of weights"

AUTOCAST_ROWS: list[AutocastDeparture] = [
    AutocastDeparture(
        "reciprocal __rdiv__ __rtruediv__", "widest", "float32",
        "our row is for division in general; only a number divided by an array runs in float32, as a tested exception",
    ),
    AutocastDeparture(
        "scatter_add", "declared", "widest", "adds in the dtype of the target array, not in the widest of both dtypes",
    ),
    AutocastDeparture(
        "norm", "widest", "float32",
        "our row is for multiplication in general; only an array multiplied by itself, as in jnp.linalg.norm, runs in "
        "float32, as an exception",
    ),
]  # fmt: skip

AUTOCAST_COMPOSITIONS: list[AutocastDeparture] = [
    AutocastDeparture(
        "prelu", "gt", "compute",
        "composed of JAX operations here; the weight is multiplied element by element, and 32-bit operands stay 32-bit",
    ),
    AutocastDeparture("dot vdot", "dot_general", "widest", _ONE_PRIMITIVE),
    AutocastDeparture("tensordot", "dot_general", "widest", _ONE_PRIMITIVE),
    AutocastDeparture("bilinear", "dot_general", "widest", _ONE_PRIMITIVE),
    AutocastDeparture(
        "grid_sampler", "floor sub mul", "widest",
        "composed of JAX operations, the first of which take only the coordinates",
    ),
    AutocastDeparture(
        "upsample_linear1d upsample_bilinear2d _upsample_bilinear2d_aa upsample_trilinear3d", "dot_general", "float32",
        _WEIGHTS,
    ),
    AutocastDeparture("upsample_bicubic2d _upsample_bicubic2d_aa", "dot_general", "float32", _WEIGHTS),
]  # fmt: skip
