"""Training on several devices and processes: placement of arrays, and reduction of gradients."""

from supremum.training.distributed.distribution import DataParallel, FullyShardedDataParallel
from supremum.training.distributed.process_init import initialize_processes

__all__ = ["DataParallel", "FullyShardedDataParallel", "initialize_processes"]
