"""Training on several devices and processes: placement of arrays, and reduction of gradients.

`jax.distributed` connects the processes, which other programs start.
"""

from supremum.public_names import public_names
from supremum.training.distributed.distribution import DataParallel
from supremum.training.distributed.fully_sharded import FullyShardedDataParallel

__all__ = ["DataParallel", "FullyShardedDataParallel"]


def __dir__() -> list[str]:
    return public_names(globals())
