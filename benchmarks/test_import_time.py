"""The time of `import supremum` after `import numpy`, compared with that of `import ml_dtypes`, in new processes.

make bench
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
