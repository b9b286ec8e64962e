"""Starting, watching and ending the processes of one training run on this machine. This does not need JAX."""

from typing import Any

from supremum.launching.launcher import Ended, launch
from supremum.launching.process_place import HEARTBEATS as HEARTBEATS
from supremum.launching.process_place import ProcessPlace
from supremum.launching.process_place import check_port as check_port
from supremum.launching.process_place import checked_heartbeat as checked_heartbeat
from supremum.public_names import public_names
from supremum.renamed_names import renamed_name

__all__ = ["Ended", "ProcessPlace", "launch"]


def __getattr__(name: str) -> Any:
    return renamed_name(__name__, name)


def __dir__() -> list[str]:
    return public_names(globals())
