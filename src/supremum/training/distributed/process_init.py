"""Joining the processes of one training run: one call per process, before any other use of JAX."""

from __future__ import annotations

import atexit
import dataclasses
import os
import signal
import sys
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import jax

from supremum.errors import ArgumentError
from supremum.launching import HEARTBEATS, ProcessPlace, check_port, checked_heartbeat


def initialize_processes(
    coordinator: str | None = None,
    processes: int | None = None,
    process_id: int | None = None,
    *,
    heartbeat: int | None = None,
) -> AbstractContextManager[None]:
    """Join the other processes of the run, after which `jax.devices()` lists the devices of all of them.

    Call it first in a script: JAX must not have been used yet. Arguments take precedence over `supremum launch`, and
    that over the cluster that JAX detects (SLURM, Open MPI, Cloud TPU, ...). Without any of these it does nothing, and
    the script runs as a single process. A second call does nothing.

    A process that fails with an exception exits at once. With JAX alone it would wait up to 300 s for the others, and
    they for it. When used as a context manager, `with initialize_processes():`, this stops when the block ends without
    an exception. No Python hook is replaced.

    Args:
        coordinator: `"host:port"` where process 0 listens; give this and the next two arguments, or none of the three.
        processes: the number of processes on all machines.
        process_id: the number of this process, from 0.
        heartbeat: seconds without a heartbeat after which a process counts as dead and the others abort, 10 to 30;
            None for the launcher's value, or 10.

    Returns:
        A context manager, which a script can ignore.

    Raises:
        ArgumentError: if only some of the three are given, if JAX has been used already, or if the port is in use.

    >>> initialize_processes(processes=2, process_id=0)
    Traceback (most recent call last):
        ...
    supremum.errors.ArgumentError: coordinator is missing: give coordinator, processes and process_id, or none of them
    """
    place = _given(coordinator, processes, process_id) or ProcessPlace.from_environment(os.environ)
    if place is not None and heartbeat is not None:
        place = dataclasses.replace(place, heartbeat=heartbeat)
    seconds = checked_heartbeat(HEARTBEATS[0] if heartbeat is None else heartbeat)
    if jax.distributed.is_initialized() or (place is not None and place.processes == 1):
        return nullcontext()
    config: Any = jax.config
    collectives = config.jax_cpu_collectives_implementation
    config.update("jax_cpu_collectives_implementation", "gloo")
    joined = False
    try:
        joined = _join_detected(seconds) if place is None else _join(place)
    except RuntimeError as error:
        # JaxRuntimeError means that the distributed service failed, not that JAX was used too early.
        if isinstance(error, jax.errors.JaxRuntimeError):
            raise
        raise ArgumentError(
            "JAX has been used before the processes were joined: call initialize_processes() first in the script, "
            "before arrays are made, devices are counted or a model is built"
        ) from error
    finally:
        if not joined:
            config.update("jax_cpu_collectives_implementation", collectives)
    return _JoinedRun() if joined else nullcontext()


def _given(coordinator: str | None, processes: int | None, process_id: int | None) -> ProcessPlace | None:
    given = {"coordinator": coordinator, "processes": processes, "process_id": process_id}
    missing = [name for name, value in given.items() if value is None]
    if len(missing) == len(given):
        return None
    if coordinator is None or processes is None or process_id is None:
        verb = "is" if len(missing) == 1 else "are"
        raise ArgumentError(
            f"{' and '.join(missing)} {verb} missing: give coordinator, processes and process_id, or none of them"
        )
    return ProcessPlace(coordinator, processes, process_id)


def _join(place: ProcessPlace) -> bool:
    if place.process_id == 0:
        check_port(place)
    jax.distributed.initialize(
        place.coordinator,
        place.processes,
        place.process_id,
        heartbeat_timeout_seconds=place.heartbeat,
        cluster_detection_method="deactivate",
        # The service has no password, so it listens on the local address only if all processes are local.
        coordinator_bind_address=place.coordinator if place.is_local else None,
    )
    return True


def _join_detected(heartbeat: int) -> bool:
    """Whether JAX has found a cluster and joined it."""
    try:
        jax.distributed.initialize(heartbeat_timeout_seconds=heartbeat)
    except ValueError as error:
        # JAX says this if it detected no cluster; other messages are about an incomplete one.
        if "coordinator_address should be defined" not in str(error):
            raise ArgumentError(
                f"JAX could not join the cluster it detected ({error}): give coordinator, processes and process_id"
            ) from error
        return False
    return True


class _JoinedRun:
    """Exit the process at once if an exception ends it, until the context is left without an exception.

    At exit, JAX waits until all processes exit, while the others wait in an all-reduce for the failed one. The
    interpreter stores an uncaught exception in `sys.last_value`, so no hook needs to be replaced.
    """

    def __init__(self) -> None:
        self._earlier = getattr(sys, "last_value", None)
        # This runs before JAX's exit function, which was registered when JAX was imported.
        atexit.register(self._end_at_once)

    def _end_at_once(self) -> None:
        error = getattr(sys, "last_value", None)
        if error is not None and error is not self._earlier:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(128 + signal.SIGINT if isinstance(error, KeyboardInterrupt) else 1)

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:  # an exception may still end the process
            atexit.unregister(self._end_at_once)
