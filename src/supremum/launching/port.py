"""The port on which process 0 of a run listens."""

from __future__ import annotations

import errno
import socket

from supremum.errors import ArgumentError, shown
from supremum.launching.process_place import ProcessPlace


def free_port() -> int:
    """A free port of this machine."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def check_port(place: ProcessPlace) -> None:
    """Refuse a port on which another program listens; to be called where process 0 is to run.

    Args:
        place: with the coordinator.

    Raises:
        ArgumentError: if it is taken; the message has the port.
    """
    host, _, port = place.coordinator.rpartition(":")
    with socket.socket() as probe:
        # What was closed a moment ago does not count, as it does not for JAX.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host if place.is_local and host != "[::1]" else "", int(port)))
        except PermissionError:
            raise ArgumentError(
                f"coordinator {shown(place.coordinator)}: this user may not listen on port {port}"
            ) from None
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                raise ArgumentError(
                    f"coordinator {shown(place.coordinator)}: port {port} of this machine is in use: give another port"
                ) from None
