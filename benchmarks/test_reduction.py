"""All-reduces in float16 beside those in float32, of 4 processes on loopback.

make bench
"""

import json
import re
import statistics
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parent / "reduction_of_processes.py"


def test_float16_beside_float32(benchmark):
    def run():
        command = [sys.executable, "-m", "supremum", "launch", "-n", "4", "--timeout", "200", SCRIPT]
        told = subprocess.run(command, capture_output=True, text=True, check=True, timeout=220).stdout
        return json.loads(re.search(r"times (.*)", told)[1])

    taken = benchmark.pedantic(run, rounds=1)
    ratios = sorted(a / b for a, b in zip(taken["float16"], taken["float32"], strict=True))
    whole, half = (statistics.median(taken[dtype]) * 1e3 for dtype in ("float32", "float16"))
    ratio, low, high = statistics.median(ratios), ratios[len(ratios) // 10], ratios[-len(ratios) // 10 - 1]
    benchmark.extra_info["ratio"] = ratio
    told = f"{ratio:.2f} x (80 % of rounds: {low:.2f} to {high:.2f}), {half:.0f} and {whole:.0f} ms"
    print(f"\n4,194,304 gradients of 4 processes, float16 beside float32: {told}", end="")
