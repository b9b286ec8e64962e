"""Tests of the launcher, its guard and `ProcessPlace`; tests/training has the tests that need JAX."""

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from supremum.cli.app import app
from supremum.errors import ArgumentError
from supremum.launching import ProcessPlace, launch, launcher, orphan_guard
from supremum.launching.launcher import cause
from supremum.launching.orphan_guard import Guard

LAUNCH = [sys.executable, "-m", "supremum", "launch"]
# Only a real hang takes that long, even on a busy machine. Processes that should be ended sleep longer.
HARD_TIMEOUT = 300


@pytest.fixture
def script(tmp_path):
    def write(text):
        path = tmp_path / "script.py"
        path.write_text(
            "import os, signal, subprocess, sys, time\nme = int(os.environ['SUPREMUM_PROCESS_ID'])\n" + text
        )
        return path

    return write


def run(*args, **environment):
    return subprocess.run(
        [*LAUNCH, *map(str, args)],
        capture_output=True,
        text=True,
        timeout=HARD_TIMEOUT,
        env=os.environ | environment,
        check=False,
    )


def run_here(path, **options):
    lines = []
    ended = launch(path, show=lambda *line: lines.append(line), timeout=HARD_TIMEOUT, **options)
    return ended, lines


def is_running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def processes_of(text):
    """Return the ids of the processes whose command line contains a text."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):  # the process has ended
            if text in path.read_text(errors="replace") and is_running(path.parent.name):
                found.append(path.parent.name)
    return found


def guards_of(pid):
    """Return the ids of those children of a process that are guards."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return sorted(set(children) & set(processes_of(orphan_guard.__file__)))


def wait_until(condition):
    end = time.monotonic() + HARD_TIMEOUT
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_each_process_gets_its_place_and_the_arguments(script):
    path = script(
        "print(me, sys.argv[1:], os.environ['SUPREMUM_PROCESSES'], os.environ['SUPREMUM_HEARTBEAT'],"
        " os.environ['SUPREMUM_COORDINATOR'], os.environ['JAX_NUM_CPU_DEVICES'])\n"
        "print('to the other stream', file=sys.stderr)"
    )
    done = run("-n", 3, "--heartbeat", 20, "--devices-per-process", 2, path, "--", "--lr", "3", "--", "x")
    assert done.returncode == 0, done.stderr
    lines = sorted(done.stdout.splitlines())
    expected = r"\[{0}\] {0} \['--lr', '3', '--', 'x'\] 3 20 (127\.0\.0\.1:\d+) 2"
    found = [re.fullmatch(expected.format(number), line) for number, line in enumerate(lines)]
    assert len(found) == 3
    assert all(found)
    assert len({match[1] for match in found}) == 1
    assert sorted(done.stderr.splitlines()) == [f"[{number}] to the other stream" for number in range(3)]


@pytest.mark.slow
def test_prefixes_have_colours_on_a_terminal(script):
    path = script("print('x')")
    assert "\x1b" not in run(path).stdout
    coloured = run("-n", 2, path, FORCE_COLOR="1").stdout
    assert "\x1b[36m[0]\x1b[0m x" in coloured
    assert "\x1b[32m[1]\x1b[0m x" in coloured


def test_lines_are_shown_whole_and_in_order(script):
    path = script(
        "word = str(me) * 30_000\n"
        "for number in range(20):\n"
        "    for piece in (f'{number} ', word, word, ' end\\n'):\n"
        "        sys.stdout.write(piece)\n"
        "        sys.stdout.flush()\n"
        "sys.stdout.write('no newline é')"
    )
    ended, lines = run_here(path, processes=2)
    assert ended.exit_code == 0
    for me in range(2):
        own = [line for process_id, stream, line in lines if (process_id, stream) == (me, 1)]
        assert own == [f"{number} {str(me) * 60_000} end" for number in range(20)] + ["no newline é"]


def test_the_first_failure_sets_the_exit_code_and_ends_the_others(script, tmp_path):
    path = script(
        f"open(f'{tmp_path}/{{me}}', 'w').write(str(os.getpid()))\n"
        "if me == 1:\n"
        f"    while len(os.listdir({str(tmp_path)!r})) < 4: time.sleep(0.01)\n"
        "    for number in range(10): print('line', number, file=sys.stderr)\n"
        "    print('    @     0x7f6f2be40634  some::frame()', file=sys.stderr)\n"
        "    sys.exit(7)\n"
        "time.sleep(1000)"
    )
    done = CliRunner().invoke(app, ["launch", "-n", "3", str(path)])
    assert done.exit_code == 7
    message = done.stderr[done.stderr.index("supremum launch: ") :].splitlines()
    assert re.fullmatch(
        r"supremum launch: Process 1 of 3 ended with exit code 7 \d+\.\d s after the start; the others were ended.",
        message[0],
    )
    # SIGTERM was enough: no process is reported as hung.
    assert message[1:-1] == ["Its last lines on standard error:", *(f"  line {number}" for number in range(2, 10))]
    assert "restores its last checkpoint" in message[-1]
    assert not any(is_running((tmp_path / str(me)).read_text()) for me in range(3))


def test_a_killed_process_is_reported_with_its_signal(script):
    path = script("os.kill(os.getpid(), signal.SIGKILL) if me == 0 else time.sleep(1000)")
    ended, _ = run_here(path, processes=2)
    assert ended.exit_code == 137
    assert ended.message.startswith("Process 0 of 2 was ended by SIGKILL ")
    assert "react" not in ended.message


def test_the_cause_is_a_killed_process_before_a_failed_one_before_an_aborted_one():
    assert cause({0: -signal.SIGABRT, 1: -signal.SIGKILL}) == 1
    assert cause({0: -signal.SIGABRT, 1: 1, 2: -signal.SIGKILL}) == 2
    assert cause({0: -signal.SIGABRT, 1: 1}) == 1
    assert cause({1: -signal.SIGABRT, 2: -signal.SIGABRT}) == 1


def test_a_killed_process_is_reported_even_if_others_fail_first(script, monkeypatch):
    # The system closes the connections of a killed process first, which may make others fail before it has ended.
    monkeypatch.setattr(launcher, "_SETTLING_SECONDS", HARD_TIMEOUT)
    path = script("if me == 0: sys.exit(3)\ntime.sleep(0.2)\nos.kill(os.getpid(), signal.SIGKILL)")
    ended, _ = run_here(path, processes=2)
    assert ended.message.startswith("Process 1 of 2 was ended by SIGKILL ")


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    "ignore_sigterm", ["signal.signal(signal.SIGTERM, signal.SIG_IGN)", "os.kill(os.getpid(), signal.SIGSTOP)"]
)
def test_a_process_that_ignores_sigterm_is_killed_and_reported(script, tmp_path, monkeypatch, ignore_sigterm):
    monkeypatch.setattr(launcher, "_GRACE_SECONDS", 1.0)
    path = script(
        f"ready = {str(tmp_path / 'ready')!r}\n"
        "if me == 1:\n"
        "    while not os.path.exists(ready): time.sleep(0.01)\n"
        "    time.sleep(0.2)\n"
        "    sys.exit(3)\n"
        "if me == 0:\n"
        "    open(ready, 'w').write(str(os.getpid()))\n"
        f"    {ignore_sigterm}\n"
        "time.sleep(1000)"
    )
    ended, _ = run_here(path, processes=3)
    assert ended.exit_code == 3
    assert "\nProcess 0 did not react to SIGTERM and had to be killed" in ended.message
    assert not is_running((tmp_path / "ready").read_text())


FAMILY = (
    "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(1000)'])\n"
    "print(os.getpid(), child.pid)\n"
    "time.sleep(1000)"
)


def started_family(path):
    """Start a launcher with two processes that each start a child; return it and the ids of all four."""
    running = subprocess.Popen(
        [*LAUNCH, "-n", "2", str(path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    pids = [pid for _ in range(2) for pid in running.stdout.readline().split()[1:]]
    assert len(pids) == 4
    assert all(map(is_running, pids))
    return running, pids


@pytest.mark.one_in(2)
@pytest.mark.parametrize(("number", "exit_code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_to_the_launcher_ends_all_processes(script, number, exit_code):
    running, pids = started_family(script(FAMILY))
    running.send_signal(number)
    _, errors = running.communicate(timeout=HARD_TIMEOUT)
    assert running.returncode == exit_code
    assert f"supremum launch: {number.name}: all processes were ended." in errors
    wait_until(lambda: not any(map(is_running, pids)))


def test_all_processes_end_when_the_launcher_is_killed(script):
    running, pids = started_family(script(FAMILY))
    guards = guards_of(running.pid)
    assert len(guards) == 1
    running.kill()
    wait_until(lambda: not any(map(is_running, [*pids, *guards])))
    running.communicate(timeout=HARD_TIMEOUT)


@pytest.mark.slow
def test_no_process_survives_a_launcher_that_is_killed_while_it_starts(script):
    """Every process is watched from the moment it starts."""
    path = script(FAMILY)
    for milliseconds in range(0, 300, 20):
        running = subprocess.Popen(
            [sys.executable, "-c", f"from supremum.launching import launch\nprint(flush=True)\n"
             f"launch({str(path)!r}, show=print, processes=4)"], stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        running.stdout.readline()
        time.sleep(milliseconds / 1000)
        running.kill()
        running.wait()
        wait_until(lambda: not processes_of(str(path)))
        running.stdout.close()


def test_the_guard_forgets_ended_processes(script):
    """A new process may have the id of one that ended."""
    forgotten = []

    class RecordingGuard(Guard):
        def forget(self, pid):
            forgotten.append(pid)
            super().forget(pid)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(launcher, "Guard", RecordingGuard)
        _, lines = run_here(script("print(os.getpid())"), processes=3)
    assert sorted(forgotten) == sorted(int(line) for _, _, line in lines)
    assert guards_of(os.getpid()) == []


@pytest.mark.slow
def test_a_run_continues_without_its_guard(script):
    running = subprocess.Popen(
        [*LAUNCH, "-n", "2", str(script("print('up', flush=True)\ntime.sleep(2)\nprint('done')"))],
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    running.stdout.readline()
    for pid in guards_of(running.pid):
        os.kill(int(pid), signal.SIGKILL)
    output, _ = running.communicate(timeout=HARD_TIMEOUT)
    assert output.count("done") == 2
    assert running.returncode == 0


@pytest.mark.slow
def test_a_port_in_use_is_refused(script):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = run("-n", 2, "--coordinator", f"127.0.0.1:{port}", script("print('started')"))
        assert done.returncode == 2
        assert done.stdout == ""
        assert done.stderr == (
            f"supremum: The coordinator '127.0.0.1:{port}' cannot listen: port {port} of this machine is in use; "
            "choose another port.\n"
        )
        others = run_here(script("print('started')"), processes=1, first_id=1, total=2, coordinator=f"127.0.0.1:{port}")
        assert others[0].exit_code == 0  # process 0 may be listening already
        code = f"import supremum.training as t; t.initialize_processes('127.0.0.1:{port}', 2, 0)"
        alone = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        assert f"port {port} of this machine is in use" in alone.stderr
    again = run_here(script("print('started')"), processes=1, coordinator=f"127.0.0.1:{port}")
    assert again[0].exit_code == 0


def test_the_children_of_an_ended_process_end_and_do_not_delay_the_run(script):
    path = script("child = subprocess.Popen(['sleep', '1000'])\nprint(child.pid)\nsys.stdout.write('unfinished')")
    ended, lines = run_here(path, processes=1)
    assert ended.exit_code == 0
    assert [line for _, _, line in lines[1:]] == ["unfinished"]
    wait_until(lambda: not is_running(lines[0][2]))


@pytest.mark.slow
def test_a_run_ends_at_its_timeout(script):
    done = run("-n", 2, "--timeout", 1.5, script("time.sleep(1000)"))
    assert done.returncode == 124
    assert "The run exceeded its --timeout of 1.5 s" in done.stderr


def test_a_failing_show_function_ends_all_processes(script):
    def fails(*_):
        raise BrokenPipeError

    path = script("print(os.getpid(), flush=True)\ntime.sleep(1000)")
    handler = signal.getsignal(signal.SIGINT)
    with pytest.raises(BrokenPipeError):
        launch(path, show=fails, processes=2)
    assert signal.getsignal(signal.SIGINT) is handler
    children = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()
    assert not any(str(path) in Path(f"/proc/{pid}/cmdline").read_text() for pid in children if is_running(pid))


def test_processes_of_a_second_machine_have_the_next_ids(script):
    path = script("print(me, os.environ['SUPREMUM_PROCESSES'], os.environ['SUPREMUM_COORDINATOR'])")
    ended, lines = run_here(path, processes=2, first_id=2, total=4, coordinator="10.0.0.1:1234")
    assert ended.exit_code == 0
    assert sorted(lines) == [(number, 1, f"{number} 4 10.0.0.1:1234") for number in (2, 3)]


@pytest.mark.slow
def test_the_preemption_service_of_jax_is_off_by_default(script):
    path = script("print(os.environ['JAX_ENABLE_PREEMPTION_SERVICE'])")
    assert run(path).stdout == "[0] 0\n"
    assert run(path, JAX_ENABLE_PREEMPTION_SERVICE="1").stdout == "[0] 1\n"


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["none.py"], "The script must be a Python file, but there is no file 'none.py'."),
        (["-n", "0", __file__], "The number of processes must be from 1 to 1,024, got 0."),
        (["--devices-per-process", "0", __file__], "The number of devices per process must be from 1 to 1,024, got 0."),
        (["--heartbeat", "9", __file__], "heartbeat must be a whole number from 10 to 30, got 9."),
        (["--heartbeat", "31", __file__], "heartbeat must be a whole number from 10 to 30, got 31."),
        (["--timeout", "0", __file__], "The timeout must be greater than 0 s, got 0 s."),
        (["--coordinator", "10.0.0.1", __file__], "The coordinator must be host:port with a port from 1 to 65535"),
        (
            ["--coordinator", "10.0.0.1:70000", __file__],
            "The coordinator must be host:port with a port from 1 to 65535",
        ),
        (["--first-id", "1", __file__], "A first id of 1 needs --total"),
        (
            ["-n", "2", "--first-id", "3", "--total", "4", __file__],
            "The ids of 4 processes must be from 0 to 3, got 3 to 4;",
        ),
        (["--first-id", "-1", "--total", "4", __file__], "The ids of 4 processes must be from 0 to 3, got -1 to -1;"),
        (
            ["--total", "4", __file__],
            "Only 1 of 4 processes are on this machine, so all machines need --coordinator host:port",
        ),
    ],
)
def test_a_usage_error_is_one_line_with_exit_code_2(args, message):
    result = CliRunner().invoke(app, ["launch", *args])
    assert result.exit_code == 2
    assert result.stderr.startswith(f"supremum: {message}")
    assert len(result.stderr.splitlines()) == 1


def test_a_place_round_trips_through_the_environment():
    place = ProcessPlace("[::1]:1234", processes=5, process_id=3, heartbeat=12)
    variables = place.environment()
    assert ProcessPlace.from_environment({"HOME": "/", **variables}) == place
    assert ProcessPlace.from_environment({"HOME": "/"}) is None
    for name in variables:
        with pytest.raises(ArgumentError, match=f"all of SUPREMUM_COORDINATOR, .* or none, but lacks {name}\\."):
            ProcessPlace.from_environment({key: value for key, value in variables.items() if key != name})
    with pytest.raises(ArgumentError, match="SUPREMUM_PROCESS_ID must be a whole number, got '-1'"):
        ProcessPlace.from_environment(variables | {"SUPREMUM_PROCESS_ID": "-1"})


@pytest.mark.parametrize(
    ("coordinator", "local"),
    [("127.0.0.1:1", True), ("localhost:1", True), ("[::1]:1", True), ("10.0.0.1:1", False), ("node001:1", False)],
)
def test_a_coordinator_on_the_loopback_interface_is_local(coordinator, local):
    assert ProcessPlace(coordinator, 2, 0).is_local is local


@pytest.mark.parametrize(
    "wrong",
    [
        {"processes": 0},
        {"processes": 2.0},
        {"process_id": 2},
        {"process_id": -1},
        {"process_id": True},
        {"heartbeat": 10.5},
    ],
)
def test_wrong_places_are_refused(wrong):
    ((name, value),) = wrong.items()
    with pytest.raises(
        ArgumentError, match=f"^{name} must be a whole number from .*, got {re.escape(repr(value))}\\.$"
    ):
        ProcessPlace(**({"coordinator": "10.0.0.1:1", "processes": 2, "process_id": 0} | wrong))
