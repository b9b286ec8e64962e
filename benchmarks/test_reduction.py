"""The time of an all-reduce in float16 compared with float32, by 4 processes on one machine.

make bench
"""

import json
import re
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parent / "reduction_of_processes.py"


def test_float16_compared_with_float32(benchmark, figures):
    def run():
        command = [sys.executable, "-m", "supremum", "launch", "-n", "4", "--timeout", "200", SCRIPT]
        printed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=220).stdout
        return json.loads(re.search(r"times (.*)", printed)[1])

    taken = benchmark.pedantic(run, rounds=1)
    what = "an all-reduce of 4,194,304 gradients in float16, 4 processes"
    figures.compare(what, taken["float16"], taken["float32"], "in float32")
