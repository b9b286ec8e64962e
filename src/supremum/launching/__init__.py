"""Local processes of one training run: started, watched and ended together. Needs no JAX."""

from supremum.launching.launcher import launch
from supremum.launching.place import Place
from supremum.launching.report import Ended

__all__ = ["Ended", "Place", "launch"]
