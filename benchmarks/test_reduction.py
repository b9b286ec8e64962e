"""The time of an all-reduce in float16 compared with float32, by 4 processes on one machine.

make bench
"""

import json
import re
from pathlib import Path

from processes import run_processes

SCRIPT = Path(__file__).parent / "reduction_of_processes.py"


def test_float16_compared_with_float32(benchmark, figures):
    def run():
        _, printed = run_processes(SCRIPT, processes=4)
        return json.loads(re.search(r"times (.*)", printed[0])[1])

    taken = benchmark.pedantic(run, rounds=1)
    what = "an all-reduce of 4,194,304 gradients in float16, 4 processes"
    figures.compare(what, taken["float16"], taken["float32"], "in float32")
