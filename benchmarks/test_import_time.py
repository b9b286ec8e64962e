"""What `import supremum` adds to `import numpy`, in a fresh interpreter each time, beside what ml_dtypes alone adds.

    make bench

The rounds of the two are interleaved by hand: both are read from the same children.
"""

import statistics
import subprocess
import sys

ROUNDS = 15


def _seconds(statement):
    script = f"import time, numpy; start = time.perf_counter(); {statement}; print(time.perf_counter() - start)"
    return float(subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout)


def test_import_time(benchmark):
    times = {"import ml_dtypes": [], "import supremum": []}

    def measure():
        for statement, taken in times.items():
            taken.append(_seconds(statement))

    benchmark.pedantic(measure, rounds=ROUNDS)
    medians = {statement: statistics.median(taken) for statement, taken in times.items()}
    benchmark.extra_info |= {statement: f"{1e3 * median:.1f} ms" for statement, median in medians.items()}
    print("", *(f"{statement}: {1e3 * median:.1f} ms over numpy" for statement, median in medians.items()), sep="\n")
