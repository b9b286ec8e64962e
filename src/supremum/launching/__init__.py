"""Local processes of one training run: started, watched and ended together. Needs no JAX."""

from supremum.launching.exit_report import Ended
from supremum.launching.launcher import launch
from supremum.launching.process_place import Place

__all__ = ["Ended", "Place", "launch"]
