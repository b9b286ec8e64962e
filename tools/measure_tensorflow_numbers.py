"""Measure what TensorFlow computes from Python numbers at the limits of dtypes, and write the results as JSON.

    python -m venv venv
    venv/bin/pip install 'tensorflow-cpu==2.21.0'
    venv/bin/python tools/measure_tensorflow_numbers.py

The program writes tests/conformance/oracles/tensorflow-numbers.json. For each mode, dtype, operation and number, it has
the dtype and the elements of the result, or `null` if TensorFlow raises. The tensor is always [3, 10].
"""

from __future__ import annotations

import json
import operator
import subprocess
import sys
from pathlib import Path
from typing import Any

TARGET = Path(__file__).parent.parent / "tests/conformance/oracles/tensorflow-numbers.json"
MODES = ("off", "all", "safe")
DTYPES = ("uint8", "int8", "int16", "uint16", "int32", "int64", "float16", "bfloat16", "float32", "float64")
NUMBERS = ("256", "255", "1000", "70000", "16777217", "2147483647", "2147483648", "-1", "1000000.0", "1e+39", "1e-08")
NUMBERS += ("65519.9999", "0.1")
OPERATIONS = {"add": operator.add, "multiply": operator.mul, "divide": operator.truediv, "less": operator.lt}


def measure(mode: str) -> dict[str, Any]:
    """Return all results in a mode; a process can enter only one mode."""
    import numpy as np
    import tensorflow as tf

    if mode != "off":
        tf.experimental.numpy.experimental_enable_numpy_behavior(dtype_conversion_mode=mode)
    found: dict[str, Any] = {"version": tf.__version__}
    for dtype in DTYPES:
        tensor = tf.constant([3, 10], dtype=dtype)
        for name, operation in OPERATIONS.items():
            for text in NUMBERS:
                try:
                    result = operation(tensor, json.loads(text))
                    elements = [str(each) for each in np.asarray(result).astype(float).tolist()]
                    found[f"{dtype} {name} {text}"] = [result.dtype.name, *elements]
                except Exception:  # TensorFlow refuses with many kinds of exceptions
                    found[f"{dtype} {name} {text}"] = None
    return found


def main() -> None:
    """Print the results in the mode that the command line names, or write those of all modes, each from a process."""
    if len(sys.argv) > 1:
        print(json.dumps(measure(sys.argv[1])))
        return
    tables: dict[str, Any] = {}
    for mode in MODES:
        done = subprocess.run([sys.executable, __file__, mode], capture_output=True, text=True, check=True)
        tables[mode] = json.loads(done.stdout.splitlines()[-1])
    versions = {table.pop("version") for table in tables.values()}
    document = {"framework": "tensorflow", "version": versions.pop(), "modes": tables}
    TARGET.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
