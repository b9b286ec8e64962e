"""Deliberate differences between our autocast and PyTorch's: one row per reason, like `departures` for rule sets."""

from __future__ import annotations

from dataclasses import dataclass

from conformance.departures import rows_by_reason


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


_ROWS = """\
our row is for division in general; only a number divided by an array runs in float32, as a tested exception
  reciprocal __rdiv__ __rtruediv__ | widest | float32
adds in the dtype of the target array, not in the widest of both dtypes
  scatter_add | declared | widest
our row is for multiplication in general; only an array multiplied by itself, as in jnp.linalg.norm, runs in float32, as
an exception
  norm | widest | float32
"""
_COMPOSITIONS = """\
composed of JAX operations here; the weight is multiplied element by element, and 32-bit operands stay 32-bit
  prelu | gt | compute
JAX has one primitive for all products, and it follows matmul's rule
  dot vdot | dot_general | widest
  tensordot | dot_general | widest
  bilinear | dot_general | widest
composed of JAX operations, the first of which take only the coordinates
  grid_sampler | floor sub mul | widest
JAX computes it as a product with a matrix of weights
  upsample_linear1d upsample_bilinear2d _upsample_bilinear2d_aa upsample_trilinear3d | dot_general | float32
  upsample_bicubic2d _upsample_bicubic2d_aa | dot_general | float32
"""


def _departures(table: str) -> list[AutocastDeparture]:
    return [AutocastDeparture(*row, reason) for reason, row in rows_by_reason(table)]


AUTOCAST_ROWS: list[AutocastDeparture] = _departures(_ROWS)
AUTOCAST_COMPOSITIONS: list[AutocastDeparture] = _departures(_COMPOSITIONS)
