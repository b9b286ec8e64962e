"""Losses of two arrays, written once for all libraries.

They are the losses of `torch.nn.functional` that are in the list of Paddle type promotion. Operands have the dtype that
the rules decide. If that has fewer bits than float32, the elements are summed in float32, and the result is rounded
once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from supremum.arrays.backends import Backend, Raw
from supremum.formats import as_format

REDUCTIONS: Final = ("mean", "sum", "none")
_ACCUMULATED: Final = as_format("float32")


def huber_loss(backend: Backend, a: Any, b: Any, *, delta: float, reduction: str) -> Raw:
    """`d**2 / 2` where the difference `d` is at most `delta`, and `delta * (|d| - delta / 2)` beyond."""
    xp = backend.xp
    difference = xp.abs(a - b)
    near = 0.5 * difference * difference
    return _reduce_loss(backend, xp.where(difference <= delta, near, delta * (difference - 0.5 * delta)), reduction)


def l1_loss(backend: Backend, a: Any, b: Any, *, reduction: str) -> Raw:
    """The absolute difference."""
    return _reduce_loss(backend, backend.xp.abs(a - b), reduction)


def mse_loss(backend: Backend, a: Any, b: Any, *, reduction: str) -> Raw:
    """The squared difference."""
    return _reduce_loss(backend, backend.xp.square(a - b), reduction)


def poisson_nll_loss(
    backend: Backend, a: Any, b: Any, *, log_input: bool, full: bool, eps: float, reduction: str
) -> Raw:
    """The negative log likelihood of counts `b` under a Poisson distribution with mean `exp(a)`, or `a`."""
    xp = backend.xp
    loss = xp.exp(a) - b * a if log_input else a - b * xp.log(a + eps)
    if full:
        # Stirling's approximation of log(b!), which does not apply to counts up to one.
        counts = xp.where(b > 1, b, xp.ones_like(b))
        stirling = counts * xp.log(counts) - counts + 0.5 * xp.log(2 * xp.pi * counts)
        loss = loss + xp.where(b > 1, stirling, xp.zeros_like(b))
    return _reduce_loss(backend, loss, reduction)


def _reduce_loss(backend: Backend, loss: Raw, reduction: str) -> Raw:
    if reduction == "none":
        return loss
    if as_format(backend.dtype_of(loss)).bits < _ACCUMULATED.bits:
        loss = backend.astype(loss, _ACCUMULATED.dtype)
    return backend.xp.mean(loss) if reduction == "mean" else backend.xp.sum(loss)


LOSSES: dict[str, tuple[Callable[..., Raw], dict[str, Any]]] = {
    "huber_loss": (huber_loss, {"delta": 1.0}),
    "l1_loss": (l1_loss, {}),
    "mse_loss": (mse_loss, {}),
    "poisson_nll_loss": (poisson_nll_loss, {"log_input": True, "full": False, "eps": 1e-8}),
}
"""By operation: the function, and its options with their defaults; all also take a `reduction`."""
