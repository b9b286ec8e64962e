"""The place of a process among all of a run, and the environment that tells the process."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from supremum.errors import ArgumentError, shown

HEARTBEATS = (10, 30)
"""Fewest and most seconds without a heartbeat; fewer take a busy machine for a dead one, and more keep the others
waiting."""

MOST_PROCESSES = 65_536
"""On all machines: more than any run has, and few enough for every part of JAX that counts them."""

_COORDINATOR = "SUPREMUM_COORDINATOR"
_PROCESSES = "SUPREMUM_PROCESSES"
_PROCESS_ID = "SUPREMUM_PROCESS_ID"
_HEARTBEAT = "SUPREMUM_HEARTBEAT"


def checked_heartbeat(seconds: int) -> int:
    """The seconds as given, where they are a whole number from 10 to 30."""
    least, most = HEARTBEATS
    if not _is_whole(seconds) or not least <= seconds <= most:
        raise ArgumentError(f"heartbeat={shown(seconds)}: expected a whole number of seconds from {least} to {most}")
    return seconds


@dataclasses.dataclass(frozen=True, slots=True)
class ProcessPlace:
    """Where one process stands in a run of several.

    Args:
        coordinator: `"host:port"` where process 0 listens and all others reach it.
        processes: how many there are, on all machines together.
        process_id: which one this is, from 0.
        heartbeat: seconds without a heartbeat after which a process is taken for dead, 10 to 30.

    Raises:
        ArgumentError: for an address without a port, an id outside the run, or a heartbeat out of its bounds.

    >>> ProcessPlace("10.0.0.1:1234", processes=8, process_id=5).environment()["SUPREMUM_PROCESS_ID"]
    '5'
    """

    coordinator: str
    processes: int
    process_id: int
    heartbeat: int = HEARTBEATS[0]

    def __post_init__(self) -> None:
        host, _, port = self.coordinator.rpartition(":")
        if not host or not port.isdecimal() or len(port) > 5 or not 0 < int(port) < 2**16:
            raise ArgumentError(
                f"coordinator {shown(self.coordinator)}: expected host:port with a port from 1 to 65535, "
                "such as '10.0.0.1:1234'"
            )
        if not _is_whole(self.processes) or not 1 <= self.processes <= MOST_PROCESSES:
            raise ArgumentError(
                f"processes={shown(self.processes)}: expected a whole number from 1 to {MOST_PROCESSES:,}"
            )
        if not _is_whole(self.process_id) or not 0 <= self.process_id < self.processes:
            raise ArgumentError(
                f"process_id={shown(self.process_id)}: "
                f"{self.processes} processes have the ids 0 to {self.processes - 1}"
            )
        checked_heartbeat(self.heartbeat)

    @property
    def is_local(self) -> bool:
        """Whether only processes of this machine can reach the coordinator."""
        host = self.coordinator.rpartition(":")[0]
        return host in ("localhost", "[::1]") or host.startswith("127.")

    def environment(self) -> dict[str, str]:
        """The variables that tell a process its place."""
        return {
            _COORDINATOR: self.coordinator,
            _PROCESSES: str(self.processes),
            _PROCESS_ID: str(self.process_id),
            _HEARTBEAT: str(self.heartbeat),
        }

    @classmethod
    def from_environment(cls, variables: Mapping[str, str]) -> ProcessPlace | None:
        """The place that variables tell of; None where they tell of none.

        Args:
            variables: such as `os.environ`.

        Raises:
            ArgumentError: when some are missing, or are not whole numbers.
        """
        names = (_COORDINATOR, _PROCESSES, _PROCESS_ID, _HEARTBEAT)
        missing = [name for name in names if name not in variables]
        if len(missing) == len(names):
            return None
        if missing:
            raise ArgumentError(f"the environment lacks {', '.join(missing)}: set all of {', '.join(names)}, or none")
        coordinator, *numbers = (variables[name] for name in names)
        for name, number in zip(names[1:], numbers, strict=True):
            if not number.isdecimal() or len(number) > 9:
                raise ArgumentError(f"{name}={shown(number)} in the environment: expected a whole number")
        return cls(coordinator, *map(int, numbers))


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
