"""The place of a process in a run, the port of process 0, and the environment variables that pass the place on."""

from __future__ import annotations

import dataclasses
import errno
import socket
from collections.abc import Mapping

from supremum.errors import ArgumentError, shown

HEARTBEATS = (10, 30)
"""The bounds for the seconds without a heartbeat: fewer mistake a busy machine for a dead one, and more make the other
processes wait."""

MOST_PROCESSES = 65_536
"""The limit for all machines: more than any run needs, and accepted by every part of JAX."""

_VARIABLES = ("SUPREMUM_COORDINATOR", "SUPREMUM_PROCESSES", "SUPREMUM_PROCESS_ID", "SUPREMUM_HEARTBEAT")
"""In the order of the fields of `ProcessPlace`."""


def checked_heartbeat(seconds: int) -> int:
    """Return the seconds if they are a whole number from 10 to 30; raise otherwise."""
    return _checked("heartbeat", seconds, *HEARTBEATS)


@dataclasses.dataclass(frozen=True, slots=True)
class ProcessPlace:
    """The place of one process in a run.

    Args:
        coordinator: `"host:port"` where process 0 listens and the others connect.
        processes: the number of processes on all machines.
        process_id: the id of this process, from 0.
        heartbeat: seconds without a heartbeat until a process counts as dead, 10 to 30.

    Raises:
        ArgumentError: for an address without a port, an id outside the run, or a heartbeat out of its bounds.

    >>> place = ProcessPlace("10.0.0.1:1234", processes=8, process_id=5)
    >>> place.environment()["SUPREMUM_PROCESS_ID"]
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
                "The coordinator must be host:port with a port from 1 to 65535, such as '10.0.0.1:1234', got "
                f"{shown(self.coordinator)}."
            )
        _checked("processes", self.processes, 1, MOST_PROCESSES)
        _checked("process_id", self.process_id, 0, self.processes - 1)
        checked_heartbeat(self.heartbeat)

    @property
    def is_local(self) -> bool:
        """Whether only processes of this machine can reach the coordinator."""
        host = self.coordinator.rpartition(":")[0]
        return host in ("localhost", "[::1]") or host.startswith("127.")

    def environment(self) -> dict[str, str]:
        """The environment variables that pass the place to a process."""
        return dict(zip(_VARIABLES, map(str, dataclasses.astuple(self)), strict=True))

    @classmethod
    def from_environment(cls, variables: Mapping[str, str]) -> ProcessPlace | None:
        """Read the place from environment variables; None if none of them is set.

        Args:
            variables: such as `os.environ`.

        Raises:
            ArgumentError: if some are missing, or are not whole numbers.
        """
        missing = [name for name in _VARIABLES if name not in variables]
        if len(missing) == len(_VARIABLES):
            return None
        if missing:
            raise ArgumentError(
                f"The environment must have all of {', '.join(_VARIABLES)} or none, but lacks {', '.join(missing)}."
            )
        coordinator, *numbers = (variables[name] for name in _VARIABLES)
        for name, number in zip(_VARIABLES[1:], numbers, strict=True):
            if not number.isdecimal() or len(number) > 9:
                raise ArgumentError(f"The environment variable {name} must be a whole number, got {shown(number)}.")
        return cls(coordinator, *map(int, numbers))


def _checked(name: str, value: int, least: int, most: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ArgumentError(f"{name} must be a whole number from {least} to {most:,}, got {shown(value)}.")
    return value


def free_port() -> int:
    """Find a free port of this machine."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def check_port(place: ProcessPlace) -> None:
    """Check that no other program listens on the coordinator's port; call this on the machine of process 0.

    Args:
        place: a place with the coordinator.

    Raises:
        ArgumentError: if the port is in use or not allowed.
    """
    host, _, port = place.coordinator.rpartition(":")
    with socket.socket() as probe:
        # Like JAX, ignore sockets that were closed a moment ago.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host if place.is_local and host != "[::1]" else "", int(port)))
        except PermissionError:
            why = "needs more permissions than this user has"
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                return
            why = "of this machine is in use"
        else:
            return
    coordinator = shown(place.coordinator)
    raise ArgumentError(f"The coordinator {coordinator} cannot listen: port {port} {why}; choose another port.")
