"""Processes with JAX in them, on loopback; what the launcher does without JAX is tested in tests/launching."""

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import jax
import pytest

from supremum.errors import ArgumentError
from supremum.launching import ProcessPlace
from supremum.training import initialize_processes

STEPS = Path(__file__).parent / "process_steps.py"
# Long enough that only a real hang fails on a loaded machine; JAX alone would wait 300 s for a process that failed.
HARD_TIMEOUT = 900
STOPPED_WITHIN = 240


def environment():
    return {key: value for key, value in os.environ.items() if not key.startswith("JAX_NUM_CPU")} | {
        "JAX_PLATFORMS": "cpu"
    }


def launched(tmp_path, how, which, *options):
    """What a launched run gave, and the seconds from the failure to the end of everything."""
    mark = tmp_path / "mark"
    command = [sys.executable, "-m", "supremum", "launch", *options, str(STEPS), "--", how, str(which), str(mark)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=HARD_TIMEOUT, env=environment(), check=False)
    return done, time.time() - mark.stat().st_mtime


@pytest.mark.slow
def test_two_processes_of_two_devices_are_one_run(tmp_path):
    done, _ = launched(tmp_path, "succeeds", 0, "-n", "2", "--devices-per-process", "2")
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stdout.splitlines() if "Gloo" not in line]
    assert sorted(lines) == ["[0] 0 2 4 0.5", "[1] 1 2 4 0.5"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("how", "which", "count", "exit_code", "message"),
    [
        ("is killed", 2, 4, 137, "supremum launch: Process 2 of 4 was ended by SIGKILL"),
        ("is killed", 0, 4, 137, "supremum launch: Process 0 of 4 was ended by SIGKILL"),
        ("hangs", 3, 4, 134, "Process 3 did not react to SIGTERM and had to be killed"),
        ("raises", 1, 2, 1, "  RuntimeError: no more data\nStart the same command again"),
    ],
)
def test_when_one_fails_all_end_with_a_clear_error(tmp_path, how, which, count, exit_code, message):
    done, seconds = launched(tmp_path, how, which, "-n", str(count))
    assert done.returncode == exit_code
    assert message in done.stderr
    assert seconds < STOPPED_WITHIN


@pytest.mark.slow
def test_without_a_launcher_the_others_stop_when_one_raises(tmp_path):
    """JAX alone waits 300 s for those that wait for the one that failed."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        coordinator = f"127.0.0.1:{probe.getsockname()[1]}"
    started = [
        subprocess.Popen(
            [sys.executable, str(STEPS), "raises", "1", str(tmp_path / "mark")],
            env=environment() | ProcessPlace(coordinator, 2, process_id).environment(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        for process_id in range(2)
    ]
    try:
        errors = [process.communicate(timeout=HARD_TIMEOUT)[1] for process in started]
    finally:
        for process in started:
            process.kill()
    assert time.time() - (tmp_path / "mark").stat().st_mtime < STOPPED_WITHIN
    assert all(process.returncode for process in started)
    assert "RuntimeError: no more data" in errors[1]


@pytest.mark.slow
def test_a_script_runs_alone_too_but_not_in_half_a_cluster():
    code = (
        "from supremum.training import initialize_processes; initialize_processes(); initialize_processes()\n"
        "import jax.extend.backend, os; print(jax.process_count(), jax.distributed.is_initialized())\n"
        "jax.extend.backend.clear_backends()\n"
        "os.environ['JAX_COORDINATOR_ADDRESS'] = '127.0.0.1:1'\n"
        "initialize_processes()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=HARD_TIMEOUT,
        env=environment(),
        check=False,
    )
    assert done.stdout.split() == ["1", "False"]
    assert done.stderr.startswith("Traceback")  # nothing was said before
    assert "supremum.errors.ArgumentError: JAX could not join the cluster it detected (Number of" in done.stderr


@pytest.mark.parametrize(
    ("code", "exit_code", "printed"),
    [
        ("initialize_processes('127.0.0.1:1', 2, 1)", 0, "waited for the others"),
        ("initialize_processes('127.0.0.1:1', 2, 1); raise RuntimeError", 1, ""),
        ("initialize_processes('127.0.0.1:1', 2, 1); raise KeyboardInterrupt", 130, ""),
        ("initialize_processes('127.0.0.1:1', 2, 1); raise SystemExit(3)", 3, "waited for the others"),
        ("with initialize_processes('127.0.0.1:1', 2, 1): raise RuntimeError", 1, ""),
        ("with initialize_processes('127.0.0.1:1', 2, 1): pass\nraise RuntimeError", 1, "waited for the others"),
    ],
)
def test_only_a_process_that_ends_by_an_exception_ends_without_waiting(code, exit_code, printed):
    before = (
        "import atexit, sys, jax; from supremum.training import initialize_processes\n"
        "jax.distributed.initialize = lambda *_, **__: None\n"
        "atexit.register(print, 'waited for the others', end='')\n"
        "atexit.register(lambda: sys.excepthook is sys.__excepthook__ or print('a hook was left', end=''))\n"
    )
    command = [sys.executable, "-c", before + code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=HARD_TIMEOUT, env=environment(), check=False)
    assert (done.returncode, done.stdout) == (exit_code, printed)


def test_a_run_of_one_process_needs_nothing(monkeypatch):
    for name, value in ProcessPlace("127.0.0.1:1", 1, 0).environment().items():
        monkeypatch.setenv(name, value)
    initialize_processes()
    assert not jax.distributed.is_initialized()


def test_after_jax_was_used_it_is_too_late():
    jax.devices()
    with pytest.raises(ArgumentError, match=r"JAX has been used .*: call initialize_processes\(\) first in the script"):
        initialize_processes("127.0.0.1:1", 2, 0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"processes": 2}, "coordinator and process_id are missing: give coordinator, processes and process_id"),
        ({"coordinator": "a:1", "processes": 2}, "process_id is missing: give"),
        (
            {"coordinator": "a:1", "processes": 2, "process_id": 2},
            "process_id must be a whole number from 0 to 1, got 2",
        ),
        (
            {"coordinator": "a:1", "processes": 2, "process_id": 0, "heartbeat": 31},
            "heartbeat must be a whole number from 10 to 30, got 31",
        ),
        ({"heartbeat": 9}, "heartbeat must be a whole number from 10 to 30, got 9"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(arguments, message):
    with pytest.raises(ArgumentError, match=message):
        initialize_processes(**arguments)
