"""The port where process 0 of a run listens."""

from __future__ import annotations

import errno
import socket

from supremum.errors import ArgumentError, shown
from supremum.launching.process_place import ProcessPlace


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
