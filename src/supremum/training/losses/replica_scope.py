"""The scope in which a loss is of one device's part of a batch."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import jax

# Part of JAX's cache key: a loss that a user jitted is traced again inside of a replica.
_axis: Any = jax.make_user_context(default_value=None)


@contextmanager
def replicas(axis_name: str) -> Generator[None]:
    """The time in which losses are of a part of a batch.

    A loss is reduced so that the mean over the replicas is the loss of the whole batch.

    Args:
        axis_name: the axis of the mesh that the parts lie along.
    """
    with _axis(axis_name):
        yield


def replica_axis() -> str | None:
    """The axis that the parts of a batch lie along; None where a loss sees the whole batch."""
    return _axis.value
