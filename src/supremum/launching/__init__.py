"""Local processes of one training run: started, watched and ended together. Needs no JAX."""

from supremum.launching.exit_report import Ended
from supremum.launching.launcher import launch
from supremum.launching.port import check_port as check_port
from supremum.launching.process_place import HEARTBEATS as HEARTBEATS
from supremum.launching.process_place import Place
from supremum.launching.process_place import checked_heartbeat as checked_heartbeat

__all__ = ["Ended", "Place", "launch"]
