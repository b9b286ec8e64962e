"""The processes of one run on this machine, connected by `jax.distributed.initialize()` as those of a SLURM job."""

import os
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

# Only a real hang takes that long, even on a busy machine.
_TIMEOUT = 900


def run_processes(script, *arguments, processes, devices=1, **environment):
    """Run a script in several processes; when one fails, kill the others, as `srun --kill-on-bad-exit` does.

    Args:
        script: the Python file.
        arguments: its arguments.
        processes: how many to start.
        devices: the number of CPU devices of each.
        environment: further environment variables.

    Returns:
        The exit codes, None for each process that was killed because another one had failed; and what each printed.
    """
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    variables = {
        "JAX_PLATFORMS": "cpu",
        "JAX_NUM_CPU_DEVICES": devices,
        "JAX_COORDINATOR_PORT": port,
        "JAX_COORDINATOR_BIND_ADDRESS": f"127.0.0.1:{port}",
        "PYTHONWARNINGS": "ignore",
        "SLURM_JOB_ID": 1,
        "SLURM_STEP_NODELIST": "127.0.0.1",
        "SLURM_NTASKS": processes,
        **environment,
    }
    started = []
    with tempfile.TemporaryDirectory() as folder:
        outputs = [Path(folder, str(number)) for number in range(processes)]
        try:
            for number, output in enumerate(outputs):
                own = variables | {"SLURM_PROCID": number, "SLURM_LOCALID": number}
                changed = {name: str(value) for name, value in own.items()}
                with output.open("w") as file:
                    process = subprocess.Popen(
                        [sys.executable, *map(str, (script, *arguments))],
                        env=os.environ | changed,
                        stdout=file,
                        stderr=subprocess.STDOUT,
                    )
                started.append(process)
            codes = _exit_codes(started)
        finally:
            for process in started:
                process.kill()
                process.wait()
        return codes, [output.read_text() for output in outputs]


def _exit_codes(started):
    """Wait until all processes have ended or one has failed."""
    end = time.monotonic() + _TIMEOUT
    while True:
        codes = [process.poll() for process in started]
        if None not in codes or any(codes):
            return codes
        assert time.monotonic() < end, "the processes did not end"
        time.sleep(0.05)
