"""Training on several devices and processes: placement of arrays, and reduction of gradients."""

from supremum.public_names import public_names
from supremum.training.distributed.distribution import DataParallel
from supremum.training.distributed.fully_sharded import FullyShardedDataParallel
from supremum.training.distributed.process_init import initialize_processes

__all__ = ["DataParallel", "FullyShardedDataParallel", "initialize_processes"]


def __dir__() -> list[str]:
    return public_names(globals())
