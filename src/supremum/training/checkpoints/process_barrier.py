"""A barrier for the processes of one run, which all save and load together."""

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
    """Wait at the end of the block until every process is there; where one failed, the block fails in all.

    Raises:
        CheckpointError: where another process failed; it has the error itself.

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
    """Whether this is the process that does what one of them has to do."""
    return jax.process_index() == 0


def is_spread(value: Any) -> bool:
    """Whether it is an array of JAX that other processes hold, or share."""
    return isinstance(value, jax.Array) and not isinstance(value, Tracer) and not value.is_fully_addressable
