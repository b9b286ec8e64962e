"""Measure the promotion rules of an installed framework, and write them as JSON.

    python -m venv venv
    venv/bin/pip install 'paddlepaddle==3.3.1'
    venv/bin/python tools/extract_oracles.py paddle

The program writes tests/conformance/oracles/FRAMEWORK.json. Each framework has one function in FRAMEWORKS, which needs
only that framework and the standard library, so that each can have a separate virtual environment. The frameworks:

    paddle        'paddlepaddle==3.3.1'
    numpy-legacy  'numpy==1.26.4'
    tensorflow    'tensorflow-cpu==2.21.0'
    keras         'keras==3.15.1' and 'jax'
    mlx           'mlx[cpu]==0.32.4' and 'numpy'
    tinygrad      'tinygrad==0.14.0' and 'numpy'
    polars        'polars==2.1.0'
    polars-1      'polars==1.30.0'
    pyarrow       'pyarrow==26.0.1' and 'numpy'
    pandas        'pandas==3.1.1' and 'numpy==2.4.6'; also for pandas-nullable and pandas-mixed

With `-arrays` after the name, functions of whole arrays such as sums are measured, with `-casts` what casts make of
values, and with `-missing` which results are missing. The files oracle_*.py describe what
their documents have in addition to this:

    framework, version
    codes      {CODE: DTYPE}: a short name for each dtype
    refusals   {SIGN: REASON}: what the sign of a refusal stands for
    columns    the operands, in the order of the cells of a row
    tables     a list of tables. `measured` lists the operations and forms ("add function") with these results. `rows`
               has a row for each left operand, with a cell for each column. Operations with one operand share a table,
               which has a row for each operation
    differing  {FORM: {OPERATIONS: {LEFT: "RIGHT=CELL ..."}}}: forms that mostly agree with the form in their name
               ("static function" with "function"); only the cells that differ are listed
    values     {"TYPE,VALUE": {OPERATION: outcome}}: Python scalars that the type cannot hold

An operand is a code for a tensor with a dimension, `code[]` for a zero-dimensional tensor, or `bool()`, `int*`,
`float*` or `complex*` for a Python scalar. Every value is one. A cell is the code of the result, the sign of a refusal,
`(code)` if only the kernel for the promoted type is missing, `()` if the promoted type is unknown, too, or `.` if the
cell was not measured. A table without rows for Python scalars belongs to a function that accepts no Python scalars.
"""

from __future__ import annotations

import argparse
import json
import operator
import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from oracle_arrays import keras_arrays, mlx_arrays, numpy_legacy_arrays, paddle_arrays, tensorflow_arrays
from oracle_casts import mlx_casts, numpy_casts, paddle_casts, polars_casts, tensorflow_casts
from oracle_keras import keras
from oracle_missing import pandas_missing, polars_missing, pyarrow_missing
from oracle_mlx import mlx
from oracle_numpy_legacy import numpy_legacy
from oracle_pandas import (
    pandas,
    pandas_arrays,
    pandas_casts,
    pandas_mixed,
    pandas_nullable,
    pandas_nullable_arrays,
    pandas_nullable_casts,
)
from oracle_polars import polars
from oracle_pyarrow import pyarrow, pyarrow_arrays, pyarrow_casts
from oracle_tensorflow import tensorflow
from oracle_tinygrad import tinygrad, tinygrad_arrays, tinygrad_casts

TARGET = Path(__file__).parent.parent / "tests/conformance/oracles"

SCALARS: dict[str, Any] = {"bool()": True, "int*": 1, "float*": 1.0, "complex*": 1 + 0j}

OPERATORS: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "floor_divide": operator.floordiv,
    "remainder": operator.mod,
    "pow": operator.pow,
    "equal": operator.eq,
    "not_equal": operator.ne,
    "less_than": operator.lt,
    "less_equal": operator.le,
    "greater_than": operator.gt,
    "greater_equal": operator.ge,
    "bitwise_and": operator.and_,
    "bitwise_or": operator.or_,
    "bitwise_xor": operator.xor,
    "bitwise_left_shift": operator.lshift,
    "bitwise_right_shift": operator.rshift,
}
UNARY_OPERATORS: dict[str, Callable[..., Any]] = {
    "abs": operator.abs,
    "negative": operator.neg,
    "positive": operator.pos,
    "bitwise_not": operator.invert,
}

Table = dict[str, dict[str, str]]
"""{LEFT: {RIGHT: CELL}}, or {OPERATION: {OPERAND: CELL}} for operations with one operand."""


def pairs(operands: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield all ordered pairs, except for two Python scalars, which Python itself would combine."""
    for left in operands:
        for right in operands:
            if left not in SCALARS or right not in SCALARS:
                yield left, right


def takes_scalars(table: Table) -> bool:
    """Return whether any call with a Python scalar got as far as a result type."""
    cells = (cell for left, row in table.items() for right, cell in row.items() if {left, right} & {*SCALARS})
    return any(len(cell.strip("()")) > 1 for cell in cells)  # signs of refusals have one character


def without_scalars(table: Table) -> Table:
    """Return the table without the rows and columns of Python scalars."""
    return {
        left: {right: cell for right, cell in row.items() if right not in SCALARS}
        for left, row in table.items()
        if left not in SCALARS
    }


def tables(measured: Mapping[str, Table], columns: list[str]) -> list[dict[str, Any]]:
    """Return the measured tables as text, operations with the same table together."""
    found: dict[str, list[str]] = {}
    for name, table in measured.items():
        rows = {left: " ".join(row.get(right, ".") for right in columns) for left, row in table.items()}
        found.setdefault(json.dumps(rows), []).append(name)
    return [{"measured": names, "rows": json.loads(rows)} for rows, names in found.items()]


def differing(measured: Mapping[str, Mapping[str, Table]]) -> dict[str, dict[str, dict[str, str]]]:
    """Return {FORM: {OPERATION: cells}} as text, operations with the same cells together."""
    document: dict[str, dict[str, dict[str, str]]] = {}
    for form, operations in measured.items():
        found: dict[str, list[str]] = {}
        for name, table in operations.items():
            rows = {left: " ".join(f"{right}={cell}" for right, cell in row.items()) for left, row in table.items()}
            found.setdefault(json.dumps(rows), []).append(name)
        document[form] = {" ".join(names): json.loads(rows) for rows, names in found.items()}
    return document


class Fetched(NamedTuple):
    """The dtype of a result that was computed."""

    dtype: Any


# --- Paddle -----------------------------------------------------------------------------------------------------------

PADDLE_CODES = {
    "b1": "bool", "u1": "uint8", "i1": "int8", "i2": "int16", "i4": "int32", "i8": "int64",
    "bf": "bfloat16", "f2": "float16", "f4": "float32", "f8": "float64", "c8": "complex64", "c16": "complex128",
    "e4m3fn": "float8_e4m3fn", "e5m2": "float8_e5m2",
}  # fmt: skip
PADDLE_BINARY = (
    "add subtract multiply divide floor_divide pow remainder"
    " equal not_equal less_than less_equal greater_than greater_equal"
    " logical_and logical_or logical_xor bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift"
    " fmax fmin maximum minimum logaddexp nextafter atan2 copysign hypot"
)
PADDLE_UNARY = (
    "exp expm1 log log1p log2 log10 sqrt reciprocal sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh"
    " abs negative positive square logical_not bitwise_not"
    " ceil floor round trunc sign signbit isfinite isinf isnan conj real imag"
)
PADDLE_LOSSES = {
    "huber_loss": "smooth_l1_loss",
    "l1_loss": "l1_loss",
    "mse_loss": "mse_loss",
    "poisson_nll_loss": "poisson_nll_loss",
}
PADDLE_REFUSALS = {
    "-": ("promotion", "Type promotion only support"),
    "x": ("no-entry", "Invalid enum data type for type promote"),
    "~": ("mixed-types", "does not match the type of data"),
    "s": ("needs-tensor", "must be Tensor|must be tensor|must be scalar, Tensor|has no attribute '(shape|dtype)'"),
    "r": ("rank", "rank should be same|shape must equal"),
    "o": ("no-operator", r"unsupported operand type|bad operand type|on a bool tensor is not supported"),
    "v": ("overflow", "returned a result with an exception set"),
    "n": ("no-numpy-type", "data type '.*' not understood"),
    "()": ("no-kernel", r"kernel output args \(0\) defs should equal op outputs"),
    "t": ("type-check", r"Check data type error|The (data )?type of '.*' in|argument \(position|only accept Tensor"),
}
"""Each sign with its reason and a pattern for the message; the first pattern that matches counts. Only "promotion" (the
pair is refused) and "no-entry" (a type is not in the promotion table) are about promotion."""

PADDLE_KERNEL = re.compile(r"The kernel with key \(CPU, [^,]*, (\w+)\) of kernel `(\w+)` is not")
PADDLE_MEETING = {
    "where": "where",
    "atan2": "atan2",
    "poisson_nll_loss": "multiply",
    "logaddexp": "maximum",
    "hypot": "add",
}
"""For functions made of several kernels: the one that takes both operands. Earlier ones tell nothing of promotion."""
PADDLE_UNPROMOTED = {name for name in PADDLE_BINARY.split() if name.startswith("bitwise_")}
"""Functions that pass two types to the kernel unchanged."""

PADDLE_VALUES = [
    *[("bool", 2), ("uint8", 256), ("uint8", -1), ("int8", 1000), ("int16", 40000)],
    *[("int32", 2**40), ("int64", 2**63), ("float16", 70000), ("float16", 70000.0)],
    *[("bfloat16", 1e39), ("float32", 1e39), ("complex64", 1e39)],
]


def paddle() -> dict[str, Any]:
    """Measure Paddle's CPU build.

    The forms "function" and "operator" are eager. If a CPU kernel is missing, the message names the type that the
    kernel was looked up for, which is the promoted type. "static function" and "static operator" list only the cells of
    two operands in which the result of a static program has a different type than in eager mode.
    """
    os.environ["GLOG_minloglevel"] = "2"  # noqa: SIM112  (read at import; silences a warning per promotion)
    import paddle as pd

    code_of = {name: code for code, name in PADDLE_CODES.items()}

    def attempt(call: Callable[..., Any], *arguments: Any, meeting: str | None = None) -> str:
        """Return the cell of a call: the code of its result, or the sign of the exception that it raised.

        The error of a missing kernel tells the promoted type only if the kernel is `meeting`; None means any kernel.
        """
        try:
            return code_of[str(call(*arguments).dtype).removeprefix("paddle.")]
        except KeyError:  # the type of the result has no code: PADDLE_CODES is incomplete
            raise
        except Exception as error:  # Paddle refuses with many kinds of exceptions
            message = str(error)
        if kernel := PADDLE_KERNEL.search(message):
            return f"({code_of[kernel[1]]})" if meeting in (None, kernel[2]) else "()"
        for sign, (_, pattern) in PADDLE_REFUSALS.items():
            if re.search(pattern, message):
                return sign
        raise ValueError(f"no pattern in PADDLE_REFUSALS matches: {message}")

    def operand(key: str) -> Any:
        """Return an operand, which in static mode is a constant of the current program."""
        if key in SCALARS:
            return SCALARS[key]
        return pd.full([] if key.endswith("[]") else [1], 1, PADDLE_CODES[key.removesuffix("[]")])

    def loss(name: str) -> Callable[..., Any]:
        function = getattr(pd.nn.functional, name)
        # The default, a mean over the result, would add another kernel.
        return lambda left, right: function(left, right, reduction="none")

    functions: dict[str, Callable[..., Any]] = {name: getattr(pd, name) for name in PADDLE_BINARY.split()}
    functions |= {name: loss(function) for name, function in PADDLE_LOSSES.items()}
    functions["where"] = lambda left, right: pd.where(pd.full([1], 1, "bool"), left, right)
    binary = {"function": functions, "operator": OPERATORS}
    unary = {"function": {name: getattr(pd, name) for name in PADDLE_UNARY.split()}, "operator": UNARY_OPERATORS}
    keys = [*PADDLE_CODES, *(f"{code}[]" for code in PADDLE_CODES), *SCALARS]

    operands = {key: operand(key) for key in keys}
    measured: dict[str, Table] = {}
    for form, calls in binary.items():
        for name, call in calls.items():
            table: Table = {}
            for left, right in pairs(operands):
                same = left.removesuffix("[]") == right.removesuffix("[]")
                meeting = "none" if name in PADDLE_UNPROMOTED and not same else PADDLE_MEETING.get(name)
                table.setdefault(left, {})[right] = attempt(call, operands[left], operands[right], meeting=meeting)
            measured[f"{name} {form}"] = table if takes_scalars(table) else without_scalars(table)
    for form, calls in unary.items():
        asked = keys if form == "function" else keys[: -len(SCALARS)]
        measured[f"unary {form}"] = {
            # A missing kernel names the operand's type here, not the type of the result.
            name: {key: attempt(call, operands[key], meeting="none") for key in asked}
            for name, call in calls.items()
        }

    values: dict[str, dict[str, Any]] = {}
    for name, scalar in PADDLE_VALUES:
        row = values[f"{name},{scalar}"] = {}
        tensor = operand(code_of[name])
        for operation in ("add", "multiply", "less_than"):
            call = OPERATORS[operation]
            cell = attempt(call, tensor, scalar)
            known = cell in PADDLE_CODES
            row[operation] = {"type": cell, "value": str(call(tensor, scalar).item())} if known else {"refused": cell}

    pd.enable_static()
    executor = pd.static.Executor(pd.CPUPlace())

    def run(call: Callable[..., Any], *path: str) -> Any:
        with pd.static.program_guard(pd.static.Program()):
            result = call(*map(operand, path))
            return Fetched(executor.run(fetch_list=[result], return_numpy=False)[0]._dtype())

    # To run a program for each cell would take minutes. One program for all cells of a form declares their types; only
    # cells that declare a type different from eager mode's are run.
    static: dict[str, dict[str, Table]] = {}
    for form, calls in binary.items():
        found = static[f"static {form}"] = {}
        with pd.static.program_guard(pd.static.Program()):
            operands = {key: operand(key) for key in keys}
            declared = {
                (name, left, right): attempt(call, operands[left], operands[right])
                for name, call in calls.items()
                for left, right in pairs(operands)
            }
        for (name, left, right), promise in declared.items():
            eager = measured[f"{name} {form}"].get(left, {}).get(right, promise).strip("()")
            if promise not in PADDLE_CODES or promise == eager:
                continue
            ran = attempt(run, calls[name], left, right)
            if ran in PADDLE_CODES and ran != eager:
                found.setdefault(name, {}).setdefault(left, {})[right] = ran

    return {
        "framework": "paddle",
        "version": pd.__version__,
        "codes": PADDLE_CODES,
        "refusals": {sign: reason for sign, (reason, _) in PADDLE_REFUSALS.items()},
        "columns": " ".join(keys),
        "tables": tables(measured, keys),
        "differing": differing(static),
        "values": values,
    }


# --- the document -----------------------------------------------------------------------------------------------------

FRAMEWORKS: dict[str, Callable[[], dict[str, Any]]] = {
    "keras": keras,
    "keras-arrays": keras_arrays,
    "mlx": mlx,
    "mlx-arrays": mlx_arrays,
    "mlx-casts": mlx_casts,
    "numpy-legacy": numpy_legacy,
    "numpy-legacy-arrays": numpy_legacy_arrays,
    "numpy-legacy-casts": numpy_casts,
    "paddle": paddle,
    "paddle-arrays": paddle_arrays,
    "paddle-casts": paddle_casts,
    "polars": polars,
    "polars-casts": polars_casts,
    "polars-missing": polars_missing,
    "polars-1": polars,
    "pyarrow": pyarrow,
    "pyarrow-arrays": pyarrow_arrays,
    "pyarrow-casts": pyarrow_casts,
    "pyarrow-missing": pyarrow_missing,
    "pandas": pandas,
    "pandas-arrays": pandas_arrays,
    "pandas-casts": pandas_casts,
    "pandas-missing": pandas_missing,
    "pandas-mixed": pandas_mixed,
    "pandas-nullable": pandas_nullable,
    "pandas-nullable-arrays": pandas_nullable_arrays,
    "pandas-nullable-casts": pandas_nullable_casts,
    "polars-1-casts": polars_casts,
    "tensorflow": tensorflow,
    "tensorflow-arrays": tensorflow_arrays,
    "tensorflow-casts": tensorflow_casts,
    "tinygrad": tinygrad,
    "tinygrad-arrays": tinygrad_arrays,
    "tinygrad-casts": tinygrad_casts,
}


def dump(tree: Any, indent: str = "") -> str:
    """Return JSON with one line for each row of a table."""
    deeper = indent + " "
    if isinstance(tree, list) and any(isinstance(leaf, dict) for leaf in tree):
        return "[\n" + ",\n".join(f"{deeper}{dump(leaf, deeper)}" for leaf in tree) + f"\n{indent}]"
    if not isinstance(tree, dict) or not tree or "type" in tree or "refused" in tree:
        return json.dumps(tree)
    rows = [f"{deeper}{json.dumps(key)}: {dump(leaf, deeper)}" for key, leaf in tree.items()]
    return "{\n" + ",\n".join(rows) + f"\n{indent}}}"


def main() -> None:
    """Measure the framework that the command line names, and write the JSON."""
    parser = argparse.ArgumentParser(description="Measure the promotion rules of a framework.")
    parser.add_argument("framework", choices=sorted(FRAMEWORKS))
    arguments = parser.parse_args()
    target = TARGET / f"{arguments.framework}.json"
    document = FRAMEWORKS[arguments.framework]()
    target.write_text(dump(document) + "\n", encoding="utf-8")
    print(f"{document['framework']} {document['version']}: {target}")


if __name__ == "__main__":
    main()
