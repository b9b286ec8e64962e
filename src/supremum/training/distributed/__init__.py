"""Training on several devices and processes: placement of arrays, and reduction of gradients."""

from supremum.training.distributed.distribution import DataParallel, FullyShardedDataParallel
from supremum.training.distributed.process_init import initialize_processes
from supremum.training.distributed.sharding import committed, placed, placed_alike, specs

__all__ = [
    "DataParallel", "FullyShardedDataParallel", "committed", "initialize_processes", "placed", "placed_alike", "specs",
]  # fmt: skip
