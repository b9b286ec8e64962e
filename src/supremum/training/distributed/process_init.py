"""Joining the processes of one training run: one line per process, before anything else of JAX."""

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
    """Join the other processes of the run, so that `jax.devices()` are those of all.

    The first line of a script: JAX must not have been used. Arguments win over what `supremum launch` says, and that
    over the cluster that JAX detects (SLURM, Open MPI, Cloud TPU, ...). With none of them, and when called again, it
    does nothing, so that a script runs alone, too.

    A process that ends by an exception ends at once: JAX alone would have it wait for the others up to 300 s, and them
    for it. As a context manager, `with initialize_processes():`, it stops doing so when the block ends without an
    exception. No hook of Python is replaced.

    Args:
        coordinator: `"host:port"` where process 0 listens; together with the next two, or none of the three.
        processes: how many there are on all machines.
        process_id: which one this is, from 0.
        heartbeat: seconds without a heartbeat after which a process is taken for dead and the others abort, 10 to 30;
            None is what the launcher says, or 10.

    Returns:
        A context manager, which a script can ignore.

    Raises:
        ArgumentError: for arguments that do not fit together, after JAX has been used, or for a port that is in use.

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
    collectives: Any = jax.config.values["jax_cpu_collectives_implementation"]
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    joined = False
    try:
        joined = _join_detected(seconds) if place is None else _join(place)
    except RuntimeError as error:
        # Of what JAX raises here, errors of its service are a class of their own.
        if isinstance(error, jax.errors.JaxRuntimeError):
            raise
        raise ArgumentError(
            "JAX has been used before the processes were joined: call initialize_processes() first in the script, "
            "before arrays are made, devices are counted or a model is built"
        ) from error
    finally:
        if not joined:
            jax.config.update("jax_cpu_collectives_implementation", collectives)
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
        # The service has no passwords, so it listens on the local address if all processes are local.
        coordinator_bind_address=place.coordinator if place.is_local else None,
    )
    return True


def _join_detected(heartbeat: int) -> bool:
    """Whether JAX has found a cluster and joined it."""
    try:
        jax.distributed.initialize(heartbeat_timeout_seconds=heartbeat)
    except ValueError as error:
        # Its words where it has detected none; others are about a cluster that lacks something.
        if "coordinator_address should be defined" not in str(error):
            raise ArgumentError(
                f"JAX could not join the cluster it detected ({error}): give coordinator, processes and process_id"
            ) from error
        return False
    return True


class _JoinedRun:
    """Ends the process at once when it ends by an exception, until the context is left without one.

    JAX waits at the exit until all processes come there, while they wait in an all-reduce for the one that failed. The
    interpreter keeps an exception that nobody caught in `sys.last_value`, so no hook has to be replaced.
    """

    def __init__(self) -> None:
        self._earlier = getattr(sys, "last_value", None)
        # Runs before JAX's own exit function, which was registered when it was imported.
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
