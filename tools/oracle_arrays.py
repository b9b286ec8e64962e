"""Measure functions of whole arrays: reductions, and functions of several arrays.

`extract_oracles.py keras-arrays`, `mlx-arrays`, `numpy-legacy-arrays`, `paddle-arrays` and `tensorflow-arrays` call
this module. In addition to the tables that `extract_oracles` describes, the document has:

    accumulates  {REDUCTION: {CODE: "own" or "wide"}}, for 16-bit floats: "wide" if a reduction of three numbers gives
                 in every order what wider arithmetic gives, rounded once
    foreign      {ORDER: {LEFT: cells}}: the sum of a tensor and a NumPy array, with a column for each code
"""

from __future__ import annotations

import itertools
import json
import math
import operator
import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

MATRICES = ("matmul", "solve")
"""Functions measured with matrices; the others are measured with vectors of three numbers."""
WITH_NUMBERS = ("clip",)
"""Functions that are measured with 0-d arrays and Python numbers, too."""

# Three numbers whose sum or product depends on the order if each step is rounded to the format; and the exact result.
PROBES: dict[str, dict[str, tuple[tuple[float, ...], float]]] = {
    "sum": {
        "float16": ((2048.0, 1.0, -2048.0), 1.0),
        "bfloat16": ((256.0, 1.0, -256.0), 1.0),
    },
    "prod": {
        "float16": ((256.0, 256.0, 2.0**-8), 256.0),
        "bfloat16": ((1.0078125, 1.0078125, 1.25), 1.2734375),
    },
}
PROBED_AS = {"sum": "sum", "prod": "prod", "cumulative_sum": "sum", "mean": "sum", "cumulative_prod": "prod"}
ORDERS = ("tensor numpy", "numpy tensor")


class Framework(NamedTuple):
    """The functions of a framework that is measured.

    Args:
        codes: the names of dtypes by code.
        reductions: functions of one array, by name.
        several: functions of two arrays, by name; `clip` takes the second array for both bounds.
        make: makes an array from nested lists of numbers and the name of a dtype.
        dtype_of: returns the name of a result's dtype, with `*` if it is weak.
        floats: returns the numbers of a result as Python floats.
        kernel: a pattern that matches the messages of missing kernels.
    """

    codes: Mapping[str, str]
    reductions: Mapping[str, Callable[[Any], Any]]
    several: Mapping[str, Callable[[Any, Any], Any]]
    make: Callable[[Any, str], Any]
    dtype_of: Callable[[Any], str]
    floats: Callable[[Any], Any]
    kernel: str = "$^"

    def cell(self, call: Callable[..., Any], *operands: Any) -> str:
        """Return the cell of a call: the code of its result, `n` if a kernel is missing, `-` for other refusals."""
        try:
            name = self.dtype_of(call(*operands))
        except Exception as error:  # frameworks refuse with many kinds of exceptions
            return "n" if re.search(self.kernel, str(error)) else "-"
        found = next((code for code, dtype in self.codes.items() if dtype == name.removesuffix("*")), "-")
        return found + "*" * name.endswith("*")


def measured(framework: Framework, numbers: Mapping[str, Any]) -> dict[str, Any]:
    """Return the tables, and the dtypes that reductions accumulate in.

    Args:
        framework: the framework to measure.
        numbers: Python numbers by code; empty if the framework accepts none.
    """
    vectors = {code: framework.make([1, 1, 1], name) for code, name in framework.codes.items()}
    matrices = {code: framework.make([[1, 0], [0, 1]], name) for code, name in framework.codes.items()}
    zero_d = {f"{code}[]": framework.make(1, name) for code, name in framework.codes.items()}
    found = {
        "unary function": {
            # Cumulative functions need a dimension, so they are not measured with numbers.
            name: {
                key: framework.cell(call, value)
                for key, value in (vectors | ({} if name.startswith("cumulative") else dict(numbers))).items()
            }
            for name, call in framework.reductions.items()
        }
    }
    for name, call in framework.several.items():
        operands = dict(matrices if name in MATRICES else vectors)
        if name in WITH_NUMBERS:
            operands |= zero_d | dict(numbers)
        found[f"{name} function"] = {
            left: {right: framework.cell(call, value, operands[right]) for right in operands}
            for left, value in (matrices if name in MATRICES else vectors).items()
        }
    accumulates = {
        name: how for name in PROBED_AS if name in framework.reductions and (how := accumulations(framework, name))
    }
    return {
        "columns": " ".join([*vectors, *zero_d, *numbers]),
        "tables": found,
        "accumulates": accumulates,
    }


def accumulations(framework: Framework, name: str) -> dict[str, str]:
    """Return, by code, whether a reduction accumulates 16-bit floats in their own format or in a wider one."""
    call, found = framework.reductions[name], {}
    for code, dtype in framework.codes.items():
        probe, exact = PROBES[PROBED_AS[name]].get(dtype, ((), 0.0))
        if not probe or len(framework.cell(call, framework.make([1.0], dtype))) < 2:
            continue
        outcomes = [framework.floats(call(framework.make([*order], dtype))) for order in itertools.permutations(probe)]
        last = {float(each[-1] if isinstance(each, list) else each) for each in outcomes}
        expected = exact / len(probe) if name == "mean" else exact
        is_exact = len(last) == 1 and math.isclose(*last, expected, rel_tol=0.003)
        found[code] = "wide" if is_exact else "own"
    return found


def foreign(framework: Framework, arrays: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """Return the dtypes of the sum of each tensor and each NumPy array, in both orders."""
    tensors = {code: framework.make([1, 1, 1], name) for code, name in framework.codes.items()}
    sides = {"tensor": tensors, "numpy": arrays}
    return {
        order: {
            left: " ".join(framework.cell(operator.add, value, other) for other in sides[order.split()[1]].values())
            for left, value in sides[order.split()[0]].items()
        }
        for order in ORDERS
    }


def _named(module: Any, names: str) -> dict[str, Callable[..., Any]]:
    """Return the functions that a module has, by our name, from a list of `name` or `our_name:their_name`."""
    pairs = [name.partition(":") for name in names.split()]
    return {ours: found for ours, _, theirs in pairs if (found := getattr(module, theirs or ours, None)) is not None}


_CUMULATIVE = "cumulative_sum:cumsum cumulative_prod:cumprod"


def keras_arrays() -> dict[str, Any]:
    """Measure Keras on JAX with x64 off, where there are no arrays of 64 bits."""
    os.environ["KERAS_BACKEND"] = "jax"
    import jax.numpy as jnp
    import keras as k

    from extract_oracles import SCALARS, tables
    from oracle_keras import CODES, NARROWED

    ops = k.ops
    framework = Framework(
        codes={code: name for code, name in CODES.items() if code not in NARROWED},
        reductions=_named(ops, f"sum prod {_CUMULATIVE} mean var std any all min max"),
        several={
            **_named(ops, "matmul outer cross solve"),
            "concat": lambda a, b: ops.concatenate([a, b]),
            "stack": lambda a, b: ops.stack([a, b]),
            "tensordot": lambda a, b: ops.tensordot(a, b, 1),
            "clip": lambda a, b: ops.clip(a, b, b),
        },
        make=lambda value, name: jnp.asarray(value).astype(name),
        dtype_of=lambda result: str(result.dtype),
        floats=lambda result: jnp.asarray(result, "float32").tolist(),
        kernel="lu does not accept dtype|sub does not accept dtype|Unsupported dtype|Complex values have no ordering",
    )
    return _document("keras", k.__version__, framework, measured(framework, SCALARS), tables)


def mlx_arrays() -> dict[str, Any]:
    """Measure MLX's CPU build, which computes when a result is evaluated."""
    from extract_oracles import SCALARS, tables
    from oracle_mlx import CODES, cpu, dtype, name_of

    mx = cpu()

    def evaluated(call: Callable[..., Any]) -> Callable[..., Any]:
        def compute(*operands: Any) -> Any:
            result = call(*operands)
            mx.eval(result)
            return result

        return compute

    several = {
        **_named(mx, "matmul vecdot outer"),
        **_named(mx.linalg, "cross solve"),
        "concat": lambda a, b: mx.concatenate([a, b]),
        "stack": lambda a, b: mx.stack([a, b]),
        "tensordot": lambda a, b: mx.tensordot(a, b, 1),
        "clip": lambda a, b: mx.clip(a, b, b),
    }
    reductions = _named(mx, f"sum prod {_CUMULATIVE} mean var std any all min max")
    framework = Framework(
        codes=CODES,
        reductions={name: evaluated(call) for name, call in reductions.items()},
        several={name: evaluated(call) for name, call in several.items()},
        make=lambda value, name: mx.array(value, dtype=dtype(mx, name)),
        dtype_of=name_of,
        floats=lambda result: result.astype(mx.float64).tolist(),
    )
    return _document("mlx", mx.__version__, framework, measured(framework, SCALARS), tables)


def numpy_legacy_arrays() -> dict[str, Any]:
    """Measure NumPy before NEP 50."""
    import warnings

    import ml_dtypes  # noqa: F401  (registers its dtypes with NumPy)
    import numpy as np

    from extract_oracles import SCALARS, tables
    from oracle_numpy_legacy import CODES, FOREIGN

    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    framework = Framework(
        codes=CODES | FOREIGN,
        reductions=_named(np, f"sum prod {_CUMULATIVE} mean var std any all min max"),
        several={
            **_named(np, "matmul outer cross"),
            "concat": lambda a, b: np.concatenate([a, b]),
            "stack": lambda a, b: np.stack([a, b]),
            "diff": lambda a, b: np.diff(a, prepend=b),
            "tensordot": lambda a, b: np.tensordot(a, b, 1),
            "clip": lambda a, b: np.clip(a, b, b),
            "solve": np.linalg.solve,
        },
        make=lambda value, name: np.asarray(value).astype(name),
        dtype_of=lambda result: np.asarray(result).dtype.name,
        floats=lambda result: np.asarray(result).astype("float64").tolist(),
    )
    return _document("numpy-legacy", np.__version__, framework, measured(framework, SCALARS), tables)


def paddle_arrays() -> dict[str, Any]:
    """Measure Paddle's CPU build, which lacks many kernels."""
    os.environ["GLOG_minloglevel"] = "2"  # noqa: SIM112  (read at import; silences a warning per promotion)
    import numpy as np
    import paddle as pd

    from extract_oracles import PADDLE_CODES, SCALARS, tables

    framework = Framework(
        codes=PADDLE_CODES,
        reductions={
            **_named(pd, "sum prod mean var std any all min max"),
            "cumulative_sum": lambda a: pd.cumsum(a, 0),
            "cumulative_prod": lambda a: pd.cumprod(a, 0),
        },
        several={
            **_named(pd, "matmul vecdot outer cross"),
            "concat": lambda a, b: pd.concat([a, b]),
            "stack": lambda a, b: pd.stack([a, b]),
            "diff": lambda a, b: pd.diff(a, prepend=b),
            "tensordot": lambda a, b: pd.tensordot(a, b, 1),
            # The bounds must be numbers or tensors with one element.
            "clip": lambda a, b: pd.clip(a, *[b[:1] if isinstance(b, pd.Tensor) and b.ndim else b] * 2),
            "solve": pd.linalg.solve,
        },
        make=lambda value, name: pd.to_tensor(value, "float64").astype(name),
        dtype_of=lambda result: str(result.dtype).removeprefix("paddle."),
        floats=lambda result: result.astype("float64").tolist(),
        kernel="is not registered|Unsupported tensor data type|Invalid tensor data type",
    )
    own = {code: name for code, name in PADDLE_CODES.items() if hasattr(np, name.replace("bool", "bool_"))}
    beside = foreign(framework, {code: np.ones(3, name) for code, name in own.items()})
    return _document("paddle", pd.__version__, framework, measured(framework, SCALARS), tables) | {
        "foreign_columns": " ".join(own),
        "foreign": beside,
    }


def measure_tensorflow(mode: str) -> dict[str, Any]:
    """Measure one mode of TensorFlow, in this process."""
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import ml_dtypes
    import numpy as np
    import tensorflow as tf
    from tensorflow.python.framework.weak_tensor import WeakTensor

    from extract_oracles import SCALARS
    from oracle_tensorflow import CODES, REFUSALS

    tf.experimental.numpy.experimental_enable_numpy_behavior(dtype_conversion_mode=mode)
    framework = Framework(
        codes=CODES,
        reductions={
            **_named(tf, "sum:reduce_sum prod:reduce_prod mean:reduce_mean any:reduce_any all:reduce_all"),
            **_named(tf, "min:reduce_min max:reduce_max"),
            **_named(tf.math, f"{_CUMULATIVE} var:reduce_variance std:reduce_std"),
        },
        several={
            **_named(tf.linalg, "matmul cross solve"),
            "concat": lambda a, b: tf.concat([a, b], 0),
            "stack": lambda a, b: tf.stack([a, b]),
            "tensordot": lambda a, b: tf.tensordot(a, b, 1),
            "clip": lambda a, b: tf.clip_by_value(a, b, b),
        },
        make=lambda value, name: tf.cast(tf.constant(value, "float64"), name),
        dtype_of=lambda result: tf.as_dtype(result.dtype).name + "*" * isinstance(result, WeakTensor),
        floats=lambda result: tf.cast(result, "float64").numpy().tolist(),
        kernel="|".join(REFUSALS[sign][1] for sign in "na"),
    )
    arrays = {code: np.ones(3, getattr(ml_dtypes, name, name)) for code, name in CODES.items()}
    return measured(framework, SCALARS) | {
        "foreign_columns": " ".join(arrays),
        "foreign": foreign(framework, arrays),
        "version": tf.__version__,
        "codes": dict(CODES),
    }


def tensorflow_arrays() -> dict[str, Any]:
    """Measure all modes of TensorFlow as shipped; a process cannot leave a mode, so each has its own process."""
    from extract_oracles import tables
    from oracle_tensorflow import MODES

    modes = {}
    for mode in MODES:
        ran = subprocess.run([sys.executable, __file__, mode], stdout=subprocess.PIPE, check=True)
        modes[mode] = json.loads(ran.stdout.splitlines()[-1])
        modes[mode]["tables"] = tables(modes[mode]["tables"], modes[mode]["columns"].split())
    versions = {document.pop("version") for document in modes.values()}
    codes = [document.pop("codes") for document in modes.values()]
    return {
        "framework": "tensorflow",
        "version": versions.pop(),
        "codes": codes[0],
        "refusals": REFUSED,
        "modes": modes,
    }


REFUSED = {"-": "refused", "n": "no-kernel"}


def _document(
    name: str, version: str, framework: Framework, document: dict[str, Any], tables: Callable[..., Any]
) -> dict[str, Any]:
    keys = document["columns"].split()
    return {
        "framework": name,
        "version": version,
        "codes": dict(framework.codes),
        "refusals": REFUSED,
        **document,
        "tables": tables(document["tables"], keys),
    }


if __name__ == "__main__":
    print(json.dumps(measure_tensorflow(sys.argv[1])))
