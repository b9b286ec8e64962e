"""Ctrl-C at any moment, also during imports, gives exit code 130 and no traceback."""

import os
import signal
import subprocess
import sys
import time

import pytest

from slowly import for_each

COMMANDS = {
    "table": ["table"],
    "casts": ["casts", "program.py"],
    "demo": ["demo", "--epochs", "500"],
    "explore": ["explore"],
}
# The command handles Ctrl-C before the first of these; the next ones interrupt imports.
SECONDS = 0.03, 0.1, 0.2, 0.3, 0.4, 0.6, 0.8, 1.2, 2.0, 4.0


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
@for_each("seconds", SECONDS, one_in=0, one_slow_in=2)
def test_ctrl_c_ends_every_command(tmp_path, command, seconds):
    (tmp_path / "program.py").write_text("import time\ntime.sleep(0.5)\n")
    start = "import supremum_command, sys; print('started', flush=True); supremum_command.main()"
    process = subprocess.Popen(
        [sys.executable, "-c", start, *command],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout.readline() == "started\n"
    time.sleep(seconds)
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=300)
    # During its exit, Python ends by the signal itself, which a shell also reports as 130.
    assert process.returncode in (0, 130, -signal.SIGINT), (process.returncode, errors)
    assert "Traceback" not in errors, errors
    assert len(errors.splitlines()) <= 1, errors
    assert sorted(path.name for path in tmp_path.iterdir()) == ["program.py"]
