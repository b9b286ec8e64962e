"""Measure what TensorFlow stores in existing arrays, for extract_assignments."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from assignment_cells import REFUSALS, assign_in, measured, numbers
from extract_oracles import SCALARS, tables
from oracle_tensorflow import CODES, by_mode


def measure_tensorflow(mode: str) -> dict[str, Any]:
    """Measure one mode of TensorFlow, in this process. Variables have methods only, since they reject `+=`.

    `np.` before a code stands for a NumPy array.
    """
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import numpy as np
    import tensorflow as tf

    tf.experimental.numpy.experimental_enable_numpy_behavior(dtype_conversion_mode=mode)
    code_of = {name: code for code, name in CODES.items()}
    arrays = [f"np.{code}" for code, name in CODES.items() if name != "bfloat16"]
    keys = [*CODES, *arrays, *SCALARS]

    def tensor(name: str) -> Any:
        return tf.cast(tf.ones((), "int32"), name)

    def value(key: str) -> Any:
        if key in SCALARS:
            return SCALARS[key]
        name = CODES[key.removeprefix("np.")]
        return np.ones((), name) if key.startswith("np.") else tensor(name)

    def variable(name: str) -> Any:
        return tf.Variable(tensor(name))

    methods = {"add": "assign_add", "subtract": "assign_sub", "assign": "assign"}
    writes = {f"{name} variable": assign_in(method) for name, method in methods.items()}
    targets = [key for key in keys if key in CODES]
    cells = measured(
        writes,
        keys,
        lambda key: variable(CODES[key]),
        value,
        lambda found: code_of[found.dtype.name],
        targets,
    )
    cells |= measured(
        {"assign item": lambda target, what: tf.tensor_scatter_nd_update(target, [[0]], what)},
        keys,
        lambda key: tf.reshape(tensor(CODES[key]), [1]),
        lambda key: (
            [SCALARS[key]] if key in SCALARS else value(key).reshape(1) if "np." in key else tf.reshape(value(key), [1])
        ),
        lambda found: code_of[found.dtype.name],
        targets,
    )
    shown = numbers(writes, variable, lambda found: f"{found.dtype.name} {found.numpy().item()}")
    return {"columns": " ".join(keys), "tables": tables(cells, keys), "values": shown, "version": tf.__version__}


def tensorflow() -> dict[str, Any]:
    """Measure all modes of TensorFlow as shipped."""
    version, modes = by_mode(str(Path(__file__).with_name("extract_assignments.py")))
    return {
        "framework": "tensorflow",
        "version": version,
        "codes": CODES,
        "refusals": REFUSALS,
        "modes": modes,
    }
