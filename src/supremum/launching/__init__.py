"""Starting, watching and ending the processes of one training run on this machine. This does not need JAX."""

from supremum.launching.launcher import Ended, launch
from supremum.launching.process_place import HEARTBEATS as HEARTBEATS
from supremum.launching.process_place import ProcessPlace
from supremum.launching.process_place import check_port as check_port
from supremum.launching.process_place import checked_heartbeat as checked_heartbeat
from supremum.public_names import public_names

__all__ = ["Ended", "ProcessPlace", "launch"]


def __dir__() -> list[str]:
    return public_names(globals())
