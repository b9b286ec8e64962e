"""The time `import supremum` adds to `import numpy` in a new process, beside the time ml_dtypes alone adds.

    make bench

The rounds of the two are interleaved by hand: both are read from the same children.
"""

import subprocess
import sys

ROUNDS = 15


def _seconds(statement):
    script = f"import time, numpy; start = time.perf_counter(); {statement}; print(time.perf_counter() - start)"
    return float(subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout)


def test_import_time(benchmark, figures):
    times = {"import ml_dtypes": [], "import supremum": []}

    def measure():
        for statement, taken in times.items():
            taken.append(_seconds(statement))

    benchmark.pedantic(measure, rounds=ROUNDS)
    ours, theirs = times["import supremum"], times["import ml_dtypes"]
    figures.compare("`import supremum` after `import numpy`", ours, theirs, "`import ml_dtypes`")
