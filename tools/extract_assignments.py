"""Measure what frameworks do when a result is written into an existing array, and write the results as JSON.

    venv/bin/python tools/extract_assignments.py paddle

The program writes tests/conformance/oracles/assignment-FRAMEWORK.json. The frameworks are `numpy-legacy`, `paddle`,
`tensorflow`, `keras`, `mlx`, `tinygrad`, `pyarrow`, `pandas` and `pandas-nullable`, in the environments that
`extract_oracles` describes. The tests measure the other frameworks directly.

The document has the form that `extract_oracles` describes. A row of a table is what is written into, a column is the
value that is written or computed with, and `measured` names the operations and forms ("add in_place", "assign item").
A cell is the code of the dtype after the write, `x` for a refusal, `n` if only a kernel is missing, `c` if the call
aborts the process, or `.` if the cell was not measured. `values` has Python numbers, as
{"TYPE,NUMBER": {OPERATION: outcome}}, with the value after the write. TensorFlow has tables for each of its modes.

The forms:

    in_place   the operator or method that writes the result of an operation into its left operand
    operator   `a += b`, if it differs from in_place
    item       assignment to elements
    variable   methods of the framework's variable
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import operator
import os
import re
import warnings
from collections.abc import Callable
from typing import Any

from extract_oracles import PADDLE_CODES, SCALARS, TARGET, dump, tables
from oracle_keras import CODES as KERAS_CODES
from oracle_mlx import CODES as MLX_CODES
from oracle_mlx import cpu, ones
from oracle_mlx import name_of as mlx_name_of
from oracle_numpy_legacy import CODES as NUMPY_CODES
from oracle_pandas import NULLABLE_CODES as PANDAS_NULLABLE_CODES
from oracle_pandas import name_in_pandas
from oracle_pandas import name_of as pandas_name_of
from oracle_pyarrow import CODES as PYARROW_CODES
from oracle_pyarrow import make as pyarrow_of
from oracle_pyarrow import name_of as pyarrow_name
from oracle_tensorflow import CODES as TENSORFLOW_CODES
from oracle_tensorflow import MODES, by_mode
from oracle_tinygrad import CODES as TINYGRAD_CODES
from oracle_tinygrad import FORMATS as TINYGRAD_FORMATS
from oracle_tinygrad import is_defined, make, numbers_in, use_cpu
from oracle_tinygrad import name_of as tinygrad_name_of

NUMBERS: tuple[Any, ...] = (True, -1, 1000, 2**40, 1.5, 70000.0, 1e300, float("inf"), 1.5j)
"""Numbers for which the value after the write is measured too."""
TARGETS = ("bool", "uint8", "int8", "int32", "float16", "float32", "complex64")
REFUSALS = {"x": "refused", "n": "no-kernel", "c": "aborted"}
NO_KERNEL = re.compile(r"OpKernel|could not find|is not registered|not implemented for|not accept dtype|CPU, ", re.I)
Write = Callable[[Any, Any], Any]
"""A function that writes its second argument into its first, and returns the object that then holds the result."""

IN_PLACE: dict[str, Write] = {
    "add": operator.iadd, "subtract": operator.isub, "multiply": operator.imul, "divide": operator.itruediv,
    "floor_divide": operator.ifloordiv, "remainder": operator.imod,
    "bitwise_and": operator.iand, "bitwise_left_shift": operator.ilshift,
}  # fmt: skip


def written(write: Write, target: Any, value: Any) -> Any:
    """Return the object that holds the result, or the sign of a refusal."""
    try:
        return write(target, value)
    except Exception as error:  # frameworks refuse with many kinds of exceptions
        return "n" if NO_KERNEL.search(str(error)) else "x"


def assign_in(method: str) -> Write:
    """Return a function that writes with a method of a variable."""

    def write(target: Any, value: Any) -> Any:
        getattr(target, method)(value)
        return target

    return write


def measured(
    writes: dict[str, Write],
    keys: list[str],
    target: Callable[[str], Any],
    value: Callable[[str], Any],
    code: Callable[[Any], str],
    targets: list[str] | None = None,
) -> dict[str, dict[str, dict[str, str]]]:
    """Return the cells, as {OPERATION AND FORM: {INTO: {VALUE: CELL}}}.

    Args:
        writes: functions that write, by operation and form.
        keys: the operands.
        target: makes a new object to write into from its key.
        value: makes a value to write from its key.
        code: returns the code of the dtype of an object that holds a result.
        targets: the keys of the objects to write into; None for all keys except Python numbers.
    """
    into = [key for key in keys if key not in SCALARS] if targets is None else targets

    def cell(write: Write, left: str, right: str) -> str:
        found = written(write, target(left), value(right))
        return found if isinstance(found, str) else code(found)

    return {
        what: {left: {right: cell(write, left, right) for right in keys} for left in into}
        for what, write in writes.items()
    }


def numbers(
    writes: dict[str, Write],
    make: Callable[[str], Any],
    show: Callable[[Any], str],
    targets: tuple[str, ...] = TARGETS,
) -> dict[str, dict[str, dict[str, str]]]:
    """Return what Python numbers become when they are written, as text.

    Args:
        writes: functions that write, by operation and form.
        make: makes an object to write into from the name of its dtype.
        show: returns the dtype and value of an object that holds a result, as text.
        targets: the names of the dtypes to write into.
    """
    found: dict[str, dict[str, dict[str, str]]] = {}
    for name in targets:
        for number in NUMBERS:
            row = found[f"{name},{number}"] = {}
            for what, write in writes.items():
                outcome = written(write, make(name), number)
                row[what] = {"refused": outcome} if isinstance(outcome, str) else {"value": show(outcome)}
    return found


def numpy_legacy() -> dict[str, Any]:
    """Measure NumPy before NEP 50, which warns about Python ints that are out of range and wraps them around."""
    import numpy as np

    warnings.simplefilter("ignore")
    code_of = {name: code for code, name in NUMPY_CODES.items()}
    keys = [*NUMPY_CODES, *(f"{code}[]" for code in NUMPY_CODES), *SCALARS]

    def make(key: str) -> Any:
        if key in SCALARS:
            return SCALARS[key]
        return np.ones(() if key.endswith("[]") else (1,), NUMPY_CODES[key.removesuffix("[]")])

    def set_all(target: Any, value: Any) -> Any:
        target[...] = value
        return target

    writes = {f"{name} in_place": write for name, write in IN_PLACE.items()} | {"assign item": set_all}
    cells = measured(writes, keys, make, make, lambda array: code_of[array.dtype.name])
    return {
        "framework": "numpy-legacy",
        "version": np.__version__,
        "codes": NUMPY_CODES,
        "refusals": REFUSALS,
        "columns": " ".join(keys),
        "tables": tables(cells, keys),
        "values": numbers({"assign item": set_all}, lambda name: np.ones(1, name), lambda a: f"{a.dtype.name} {a[0]}"),
    }


def paddle() -> dict[str, Any]:
    """Measure Paddle's CPU build, in which `a.add_(b)` changes the dtype of `a` to that of the result.

    Assigning a Python complex number to items of a real tensor aborts the process. These cells are `c` without a call.
    """
    os.environ["GLOG_minloglevel"] = "2"  # noqa: SIM112  (read at import; silences a warning per promotion)
    import paddle as pd

    code_of = {name: code for code, name in PADDLE_CODES.items()}
    keys = [*PADDLE_CODES, *(f"{code}[]" for code in PADDLE_CODES), *SCALARS]

    def make(key: str) -> Any:
        if key in SCALARS:
            return SCALARS[key]
        return pd.full([] if key.endswith("[]") else [1], 1, PADDLE_CODES[key.removesuffix("[]")])

    def code(tensor: Any) -> str:
        return code_of[str(tensor.dtype).removeprefix("paddle.")]

    def set_items_unless_it_aborts(target: Any, value: Any) -> Any:
        if isinstance(value, complex) and not target.is_complex():
            return "c"
        target[...] = value
        return target

    methods = {
        "add": "add_", "subtract": "subtract_", "multiply": "multiply_", "divide": "divide_",
        "floor_divide": "floor_divide_", "remainder": "remainder_", "bitwise_and": "bitwise_and_",
        "bitwise_left_shift": "bitwise_left_shift_",
    }  # fmt: skip
    writes = {f"{name} in_place": assign_in(method) for name, method in methods.items()}
    writes |= {"add operator": operator.iadd, "divide operator": operator.itruediv}
    cells = measured(writes, keys, make, make, code)
    # A 0-d tensor cannot be indexed.
    cells |= measured({"assign item": set_items_unless_it_aborts}, keys, make, make, code, list(PADDLE_CODES))
    return {
        "framework": "paddle",
        "version": pd.__version__,
        "codes": PADDLE_CODES,
        "refusals": REFUSALS,
        "columns": " ".join(keys),
        "tables": tables(cells, keys),
        "values": numbers(
            {"assign item": set_items_unless_it_aborts},
            lambda name: pd.full([1], 1, name),
            lambda tensor: f"{str(tensor.dtype).removeprefix('paddle.')} {tensor.astype('complex64').item()}",
        ),
    }


def keras() -> dict[str, Any]:
    """Measure Keras' variable on the JAX backend, which narrows 64 bits to 32; tensors cannot be written into."""
    os.environ["KERAS_BACKEND"] = "jax"
    import jax.numpy as jnp
    import keras as k

    warnings.simplefilter("ignore")
    # Leave out dtypes that JAX narrows: there are no tensors of them.
    codes = {code: name for code, name in KERAS_CODES.items() if jnp.ones((), name).dtype.name == name}
    code_of = {name: code for code, name in codes.items()}
    keys = [*codes, *SCALARS]

    def variable(name: str) -> Any:
        return k.Variable(jnp.ones((), name), dtype=name)

    methods = {"add": "assign_add", "subtract": "assign_sub", "assign": "assign"}
    writes = {f"{name} variable": assign_in(method) for name, method in methods.items()}
    cells = measured(
        writes,
        keys,
        lambda key: variable(codes[key]),
        lambda key: SCALARS[key] if key in SCALARS else jnp.ones((), codes[key]),
        lambda found: code_of[found.value.dtype.name],
    )
    return {
        "framework": "keras",
        "version": k.__version__,
        "codes": codes,
        "refusals": REFUSALS,
        "columns": " ".join(keys),
        "tables": tables(cells, keys),
        "values": numbers(writes, variable, lambda found: f"{found.value.dtype.name} {found.value.item()}"),
    }


def mlx() -> dict[str, Any]:
    """Measure MLX's CPU build, in which `a += b` changes the dtype of `a` to that of the result."""
    mx = cpu()
    code_of = {name: code for code, name in MLX_CODES.items()}
    keys = [*MLX_CODES, *SCALARS]

    def make(key: str) -> Any:
        return SCALARS[key] if key in SCALARS else ones(mx, MLX_CODES[key])

    def code(array: Any) -> str:
        mx.eval(array)
        return code_of[mlx_name_of(array)]

    def set_first(target: Any, value: Any) -> Any:
        target[0] = value
        return target

    writes = {f"{name} in_place": write for name, write in IN_PLACE.items()} | {"assign item": set_first}
    cells = measured(writes, keys, make, make, code)
    return {
        "framework": "mlx",
        "version": mx.__version__,
        "codes": MLX_CODES,
        "refusals": REFUSALS,
        "columns": " ".join(keys),
        "tables": tables(cells, keys),
        "values": numbers(
            {"assign item": set_first},
            lambda name: ones(mx, name),
            lambda array: f"{mlx_name_of(array)} {array.tolist()[0]}",
        ),
    }


def tinygrad() -> dict[str, Any]:
    """Measure tinygrad's tensors. A row is a tensor in memory, since a weak tensor has no memory to write into."""
    use_cpu()
    code_of = {name: code for code, name in TINYGRAD_CODES.items()}
    keys = [*TINYGRAD_CODES, *SCALARS]

    def target(name: str) -> Any:
        return make([1, 1], name).contiguous().realize()

    def value(key: str) -> Any:
        return SCALARS[key] if key in SCALARS else make([1, 1], TINYGRAD_CODES[key])

    def set_all(tensor: Any, given: Any) -> Any:
        tensor[0:2] = given
        return tensor

    # `%=` makes a new tensor: there is no method for it.
    operators = {name: write for name, write in IN_PLACE.items() if name != "remainder"}
    operators |= {"pow": operator.ipow, "bitwise_or": operator.ior, "bitwise_xor": operator.ixor}
    operators |= {"bitwise_right_shift": operator.irshift}
    writes = {f"{name} in_place": write for name, write in operators.items()}
    writes |= {"assign item": set_all, "assign variable": assign_in("assign")}

    def checked(write: Write) -> Write:
        def call(tensor: Any, given: Any) -> Any:
            result = write(tensor, given)
            if not is_defined(result):
                raise TypeError("tinygrad does not compute this graph")
            return result

        return call

    cells = measured(
        {name: checked(write) for name, write in writes.items()},
        keys,
        lambda key: target(TINYGRAD_CODES[key]),
        value,
        lambda tensor: code_of[tinygrad_name_of(tensor)],
        [*TINYGRAD_FORMATS],
    )
    return {
        "framework": "tinygrad",
        "version": importlib.metadata.version("tinygrad"),
        "codes": TINYGRAD_CODES,
        "refusals": REFUSALS,
        "columns": " ".join(keys),
        "tables": tables(cells, keys),
        "values": numbers(
            {"assign item": lambda tensor, given: set_all(tensor, given).realize()},
            target,
            lambda tensor: f"{tinygrad_name_of(tensor)} {numbers_in(tensor)[0]}",
            tuple(name for name in TARGETS if name in code_of),
        ),
    }


def pandas() -> dict[str, Any]:
    """Measure columns of NumPy's dtypes, for which `a += b` gives the name `a` to a new column if the dtype changes."""
    return _pandas(nullable=False)


def pandas_nullable() -> dict[str, Any]:
    """Measure pandas' nullable columns."""
    return _pandas(nullable=True)


def _pandas(*, nullable: bool) -> dict[str, Any]:
    import pandas as pd

    warnings.simplefilter("ignore")
    codes = PANDAS_NULLABLE_CODES if nullable else NUMPY_CODES
    code_of = {name: code for code, name in codes.items()}
    keys = [*codes, *SCALARS]

    def column(name: str) -> Any:
        return pd.Series([1, 1], dtype=name_in_pandas(name, nullable=nullable))

    def set_all(target: Any, value: Any) -> Any:
        target.iloc[:] = value
        return target

    # pandas has no operator for shifts.
    writes = {f"{name} in_place": write for name, write in IN_PLACE.items() if "shift" not in name}
    cells = measured(
        writes | {"assign item": set_all},
        keys,
        lambda key: column(codes[key]),
        lambda key: SCALARS[key] if key in SCALARS else column(codes[key]),
        lambda found: code_of.get(pandas_name_of(found), "x"),
    )
    return {
        "framework": "pandas-nullable" if nullable else "pandas",
        "version": pd.__version__,
        "codes": codes,
        "refusals": REFUSALS,
        "columns": " ".join(keys),
        "tables": tables(cells, keys),
        "values": numbers(
            {"assign item": set_all},
            column,
            lambda found: f"{pandas_name_of(found)} {found.iloc[0]}",
            tuple(name for name in TARGETS if name in code_of),
        ),
    }


def pyarrow() -> dict[str, Any]:
    """Measure PyArrow, whose arrays are immutable: `a += b` makes an array, and `fill_null` replaces nulls."""
    import pyarrow as pa
    import pyarrow.compute as pc

    code_of = {name: code for code, name in PYARROW_CODES.items()}
    keys = [*PYARROW_CODES, *SCALARS]

    def value(key: str) -> Any:
        return SCALARS[key] if key in SCALARS else pyarrow_of([1], PYARROW_CODES[key])

    def fill(array: Any, given: Any) -> Any:
        return pc.fill_null(pa.nulls(1, array.type), given)

    # There are no operators `//` and `%`.
    operators = {name: write for name, write in IN_PLACE.items() if name not in ("floor_divide", "remainder")}
    writes = {f"{name} in_place": write for name, write in operators.items()} | {"assign item": fill}
    cells = measured(writes, keys, value, value, lambda array: code_of[pyarrow_name(array)])
    return {
        "framework": "pyarrow",
        "version": pa.__version__,
        "codes": PYARROW_CODES,
        "refusals": REFUSALS,
        "columns": " ".join(keys),
        "tables": tables(cells, keys),
        "values": numbers(
            {"assign item": fill},
            lambda name: pyarrow_of([1], name),
            lambda array: f"{pyarrow_name(array)} {array[0].as_py()}",
            tuple(name for name in TARGETS if name in code_of),
        ),
    }


def measure_tensorflow(mode: str) -> dict[str, Any]:
    """Measure one mode of TensorFlow, in this process. Variables have methods only, since they reject `+=`.

    `np.` before a code stands for a NumPy array.
    """
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import numpy as np
    import tensorflow as tf

    tf.experimental.numpy.experimental_enable_numpy_behavior(dtype_conversion_mode=mode)
    code_of = {name: code for code, name in TENSORFLOW_CODES.items()}
    arrays = [f"np.{code}" for code, name in TENSORFLOW_CODES.items() if name != "bfloat16"]
    keys = [*TENSORFLOW_CODES, *arrays, *SCALARS]

    def tensor(name: str) -> Any:
        return tf.cast(tf.ones((), "int32"), name)

    def value(key: str) -> Any:
        if key in SCALARS:
            return SCALARS[key]
        name = TENSORFLOW_CODES[key.removeprefix("np.")]
        return np.ones((), name) if key.startswith("np.") else tensor(name)

    def variable(name: str) -> Any:
        return tf.Variable(tensor(name))

    methods = {"add": "assign_add", "subtract": "assign_sub", "assign": "assign"}
    writes = {f"{name} variable": assign_in(method) for name, method in methods.items()}
    targets = [key for key in keys if key in TENSORFLOW_CODES]
    cells = measured(
        writes,
        keys,
        lambda key: variable(TENSORFLOW_CODES[key]),
        value,
        lambda found: code_of[found.dtype.name],
        targets,
    )
    cells |= measured(
        {"assign item": lambda target, what: tf.tensor_scatter_nd_update(target, [[0]], what)},
        keys,
        lambda key: tf.reshape(tensor(TENSORFLOW_CODES[key]), [1]),
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
    version, modes = by_mode(__file__)
    return {
        "framework": "tensorflow",
        "version": version,
        "codes": TENSORFLOW_CODES,
        "refusals": REFUSALS,
        "modes": modes,
    }


FRAMEWORKS: dict[str, Callable[[], dict[str, Any]]] = {
    "keras": keras,
    "mlx": mlx,
    "numpy-legacy": numpy_legacy,
    "paddle": paddle,
    "pandas": pandas,
    "pandas-nullable": pandas_nullable,
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
