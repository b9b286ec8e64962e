"""A barrier for the processes of one run, which save and load together."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import jax
import numpy as np
from jax.core import Tracer
from jax.experimental import multihost_utils

from supremum.training.checkpoints.errors import CheckpointError


@contextmanager
def together() -> Generator[None]:
    """Wait at the end of the block until every process reaches it; if one fails, the block fails in all.

    Raises:
        CheckpointError: if another process failed; that process raises its own error.

    >>> with together():
    ...     print("every process does this")
    every process does this
    """
    failure: Exception | None = None
    try:
        yield
    except Exception as error:
        failure = error
    if jax.process_count() > 1:
        fine = np.asarray(multihost_utils.process_allgather(np.bool_(failure is None)))
        if failure is None and not fine.all():
            others = ", ".join(map(str, np.flatnonzero(~fine)))
            raise CheckpointError(f"process {others} of {len(fine)} failed, so all were stopped; see its own error")
    if failure is not None:
        raise failure


def is_first() -> bool:
    """Whether this is the process that does what only one process must do."""
    return jax.process_index() == 0


def is_spread(value: Any) -> bool:
    """Whether a value is a JAX array with parts or copies in other processes."""
    return isinstance(value, jax.Array) and not isinstance(value, Tracer) and not value.is_fully_addressable
