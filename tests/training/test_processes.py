"""JAX processes connected over loopback; tests/launching tests the launcher without JAX."""

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import jax
import pytest

from slowly import exhaustive
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


def launch(tmp_path, how, which, *options):
    """Launch a run; return the finished process and the seconds from the failure until every process ended."""
    mark = tmp_path / "mark"
    command = [sys.executable, "-m", "supremum", "launch", *options, str(STEPS), "--", how, str(which), str(mark)]
    result = subprocess.run(
        command, capture_output=True, text=True, timeout=HARD_TIMEOUT, env=environment(), check=False
    )
    return result, time.time() - mark.stat().st_mtime


@pytest.mark.slow
def test_two_processes_with_two_devices_each_form_one_cluster(tmp_path):
    result, _ = launch(tmp_path, "succeeds", 0, "-n", "2", "--devices-per-process", "2")
    assert result.returncode == 0, result.stderr
    lines = [line for line in result.stdout.splitlines() if "Gloo" not in line]
    assert sorted(lines) == ["[0] 0 2 4 0.5", "[1] 1 2 4 0.5"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("how", "which", "count", "exit_code", "message"),
    [
        ("is killed", 2, 4, 137, "supremum launch: Process 2 of 4 was ended by SIGKILL"),
        exhaustive("is killed", 0, 4, 137, "supremum launch: Process 0 of 4 was ended by SIGKILL"),
        ("hangs", 3, 4, 134, "Process 3 did not react to SIGTERM and had to be killed"),
        ("raises", 1, 2, 1, "  RuntimeError: no more data\nStart the same command again"),
    ],
)
def test_one_failed_process_stops_all_with_a_clear_error(tmp_path, how, which, count, exit_code, message):
    result, seconds = launch(tmp_path, how, which, "-n", str(count))
    assert result.returncode == exit_code
    assert message in result.stderr
    assert seconds < STOPPED_WITHIN


@pytest.mark.slow
def test_without_a_launcher_all_processes_stop_when_one_raises(tmp_path):
    """On its own, JAX waits 300 s for processes that wait for a failed one."""
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
def test_a_script_runs_without_a_cluster_but_not_in_an_incomplete_one():
    code = (
        "from supremum.training import initialize_processes; initialize_processes(); initialize_processes()\n"
        "import jax.extend.backend, os; print(jax.process_count(), jax.distributed.is_initialized())\n"
        "jax.extend.backend.clear_backends()\n"
        "os.environ['JAX_COORDINATOR_ADDRESS'] = '127.0.0.1:1'\n"
        "initialize_processes()"
    )
    result = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=HARD_TIMEOUT,
        env=environment(),
        check=False,
    )
    assert result.stdout.split() == ["1", "False"]
    assert result.stderr.startswith("Traceback")  # nothing is printed before the traceback
    assert "supremum.errors.ArgumentError: JAX could not join the cluster it detected (Number of" in result.stderr


@pytest.mark.slow
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
def test_a_process_skips_the_final_wait_only_after_an_exception(code, exit_code, printed):
    before = (
        "import atexit, sys, jax; from supremum.training import initialize_processes\n"
        "jax.distributed.initialize = lambda *_, **__: None\n"
        "atexit.register(print, 'waited for the others', end='')\n"
        "atexit.register(lambda: sys.excepthook is sys.__excepthook__ or print('a hook was left', end=''))\n"
    )
    command = [sys.executable, "-c", before + code]
    result = subprocess.run(
        command, capture_output=True, text=True, timeout=HARD_TIMEOUT, env=environment(), check=False
    )
    assert (result.returncode, result.stdout) == (exit_code, printed)


def test_a_single_process_does_not_start_jax_distributed(monkeypatch):
    for name, value in ProcessPlace("127.0.0.1:1", 1, 0).environment().items():
        monkeypatch.setenv(name, value)
    initialize_processes()
    assert not jax.distributed.is_initialized()


def test_initialize_processes_after_jax_was_used_raises():
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
def test_invalid_initialize_processes_arguments_raise(arguments, message):
    with pytest.raises(ArgumentError, match=message):
        initialize_processes(**arguments)
