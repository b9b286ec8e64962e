"""The time of `import supremum` after `import numpy`, compared with that of `import ml_dtypes`, in new processes.

make bench
"""

import os
import subprocess
import sys

ROUNDS = 15


def _seconds(statement):
    script = f"import time, numpy; start = time.perf_counter(); {statement}; print(time.perf_counter() - start)"
    # An installed package is compiled to bytecode.
    compiled = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    run = [sys.executable, "-c", script]
    return float(subprocess.run(run, capture_output=True, text=True, check=True, env=compiled).stdout)


def test_import_time(benchmark, figures):
    times = {"import ml_dtypes": [], "import supremum": []}

    def measure():
        for statement, taken in times.items():
            taken.append(_seconds(statement))

    benchmark.pedantic(measure, rounds=ROUNDS)
    ours, theirs = times["import supremum"], times["import ml_dtypes"]
    figures.compare("`import supremum` after `import numpy`", ours, theirs, "`import ml_dtypes`")
