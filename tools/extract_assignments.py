"""Measure what frameworks do when a result is written into an existing array, and write the results as JSON.

    venv/bin/python tools/extract_assignments.py paddle

The program writes tests/conformance/oracles/assignment-FRAMEWORK.json. The frameworks are `numpy-legacy`, `paddle`,
`tensorflow`, `keras`, `mlx`, `tinygrad`, `pyarrow`, `pandas`, `pandas-nullable`, `polars` and `polars-1`, in the
environments that `extract_oracles` describes. Each assignment_*.py measures one of them. The tests measure the other
frameworks directly.

The document has the form that `extract_oracles` describes. A row of a table is what is written into, a column is the
value that is written or computed with, and `measured` names the operations and forms ("add in_place", "assign item").
A cell is the code of the dtype after the write, `x` for a refusal, `n` if only a kernel is missing, `c` if the call
aborts the process, or `.` if the cell was not measured. `values` has Python numbers, as
{"TYPE,NUMBER": {OPERATION: outcome}}, with the value after the write. TensorFlow has tables for each of its modes.

The forms:

    in_place   the operator or method that writes the result of an operation into its left operand
    operator   `a += b`, if it differs from in_place
    item       assignment to elements, or to the first one where the index matters
    slice, indices, mask, ellipsis
               assignment with these indices: `a[:]`, an array or list of indices, an array of bools, and `a[...]`
    frame      assignment to an element of a column of a DataFrame
    variable   methods of the framework's variable
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from typing import Any

from assignment_keras import keras
from assignment_mlx import mlx
from assignment_numpy_legacy import numpy_legacy
from assignment_paddle import paddle
from assignment_pandas import pandas, pandas_nullable
from assignment_polars import polars
from assignment_pyarrow import pyarrow
from assignment_tensorflow import measure_tensorflow, tensorflow
from assignment_tinygrad import tinygrad
from extract_oracles import TARGET, dump
from oracle_tensorflow import MODES

FRAMEWORKS: dict[str, Callable[[], dict[str, Any]]] = {
    "keras": keras,
    "mlx": mlx,
    "numpy-legacy": numpy_legacy,
    "paddle": paddle,
    "pandas": pandas,
    "pandas-nullable": pandas_nullable,
    "polars": polars,
    "polars-1": polars,
    "pyarrow": pyarrow,
    "tensorflow": tensorflow,
    "tinygrad": tinygrad,
}


def main() -> None:
    """Measure the framework that the command line names, and write the JSON."""
    parser = argparse.ArgumentParser(description="Measure what a framework does when it writes into arrays.")
    parser.add_argument("framework", choices=[*sorted(FRAMEWORKS), *MODES])
    arguments = parser.parse_args()
    if arguments.framework in MODES:  # `tensorflow` starts this program once for each mode
        print(json.dumps(measure_tensorflow(arguments.framework)))
        return
    target = TARGET / f"assignment-{arguments.framework}.json"
    document = FRAMEWORKS[arguments.framework]()
    target.write_text(dump(document) + "\n", encoding="utf-8")
    print(f"{document['framework']} {document['version']}: {target}")


if __name__ == "__main__":
    main()
