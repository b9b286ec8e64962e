"""The precision of products on the device, an argument of JAX's products."""

from __future__ import annotations

from typing import Any, cast

from jax import lax

from supremum.errors import OperandError, UnknownNameError, shown

_NAMES = ("default", "high", "highest", "bfloat16", "tensorfloat32", "float32")


def as_precision(precision: object) -> Any:
    """Check the precision of products.

    Args:
        precision: None for JAX's default; a name, such as `"highest"`; a member of `jax.lax.Precision` or
            `jax.lax.DotAlgorithmPreset`; or a pair of these, for the two operands.

    Raises:
        UnknownNameError: for an unknown name; a `ValueError`.
        OperandError: for anything else; a `TypeError`.

    >>> as_precision("highest") is lax.Precision.HIGHEST
    True
    """
    if precision is None or isinstance(precision, (lax.Precision, lax.DotAlgorithm, lax.DotAlgorithmPreset)):
        return precision
    if isinstance(precision, str):
        if precision in lax.DotAlgorithmPreset.__members__:
            return lax.DotAlgorithmPreset[precision]
        try:
            return lax.Precision(precision)
        except ValueError:
            raise UnknownNameError("precision", precision, (*_NAMES, *lax.DotAlgorithmPreset.__members__)) from None
    if isinstance(precision, (tuple, list)) and len(cast("list[Any]", precision)) == 2:
        return tuple(map(as_precision, cast("list[Any]", precision)))
    raise OperandError(f"precision must be a name, such as 'highest', or a jax.lax.Precision, got {shown(precision)}")
