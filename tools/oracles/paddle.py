"""Measure Paddle's CPU build: `pip install paddlepaddle==3.3.1`.

The forms "function" and "operator" are eager. If a CPU kernel is missing, the message names the type that the kernel
was looked up for, which is the promoted type. "static function" and "static operator" list only the cells of two
operands in which the result of a static program has a different type than in eager mode.
"""

from __future__ import annotations

import itertools
import operator
import os
import re
from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

os.environ["GLOG_minloglevel"] = "2"  # noqa: SIM112  (read at import; silences a warning per promotion)
import numpy as np
import paddle as pd

from oracles import tables
from oracles.arrays import arrays_document, foreign, functions_of_two
from oracles.assignments import Store, assign_in, in_place
from oracles.casts import OWN, casts_document

CODES = tables.codes("b1 u1 i1 i2 i4 i8 bf f2 f4 f8 c8 c16 e4m3fn e5m2")
KEYS = [*CODES, *(f"{code}[]" for code in CODES), *tables.SCALARS]
BINARY = (
    "add subtract multiply divide floor_divide pow remainder"
    " equal not_equal less_than less_equal greater_than greater_equal"
    " logical_and logical_or logical_xor bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift"
    " fmax fmin maximum minimum logaddexp nextafter atan2 copysign hypot"
)
UNARY = (
    "exp expm1 log log1p log2 log10 sqrt reciprocal sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh"
    " abs negative positive square logical_not bitwise_not"
    " ceil floor round trunc sign signbit isfinite isinf isnan conj real imag"
)
LOSSES = "huber_loss:smooth_l1_loss l1_loss mse_loss poisson_nll_loss"
REFUSALS = {
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
"""Only "promotion" (the pair is refused) and "no-entry" (a type is not in the promotion table) are about promotion."""

KERNEL = re.compile(r"The kernel with key \(CPU, [^,]*, (\w+)\) of kernel `(\w+)` is not")
MEETING = tables.names("where atan2 poisson_nll_loss:multiply logaddexp:maximum hypot:add")
"""For functions made of several kernels: the one that takes both operands. Earlier ones tell nothing of promotion."""
UNPROMOTED = {name for name in BINARY.split() if name.startswith("bitwise_")}
"""Functions that pass two types to the kernel unchanged."""

VALUES = [
    *[("bool", 2), ("uint8", 256), ("uint8", -1), ("int8", 1000), ("int16", 40000)],
    *[("int32", 2**40), ("int64", 2**63), ("float16", 70000), ("float16", 70000.0)],
    *[("bfloat16", 1e39), ("float32", 1e39), ("complex64", 1e39)],
]


class Fetched(NamedTuple):
    """The dtype of a result that a static program computed."""

    dtype: Any


def make(value: Any, name: str) -> Any:
    """Make a tensor of a number or lists of numbers."""
    # NumPy does not know all formats; each value of the others is a float32, so that this cast is exact.
    return pd.to_tensor(np.array(value, name if name in OWN else "float32")).astype(name)


def name_of(result: Any) -> str:
    """Return the name of the dtype of a result."""
    return str(result.dtype).removeprefix("paddle.")


def numbers_in(tensor: Any) -> Any:
    """Return the numbers in a tensor."""
    return (tensor if name_of(tensor) in OWN else tensor.astype("float32")).numpy().tolist()


PADDLE = tables.Framework(
    "paddle",
    pd.__version__,
    CODES,
    make,
    name_of,
    numbers_in,
    reductions=tables.named(pd, "sum prod mean var std any all min max cumulative_sum:cumsum")
    | {"cumulative_prod": lambda a: pd.cumprod(a, 0)},
    several={
        **functions_of_two(pd, "matmul vecdot outer cross concat stack diff tensordot"),
        # The bounds must be numbers or tensors with one element.
        "clip": lambda a, b: pd.clip(a, *[b[:1] if isinstance(b, pd.Tensor) and b.ndim else b] * 2),
        "solve": pd.linalg.solve,
    },
    kernel="is not registered|Unsupported tensor data type|Invalid tensor data type",
)


def operand(key: str) -> Any:
    """Make a tensor or a Python scalar; in static mode the tensor is a constant of the current program."""
    if key in tables.SCALARS:
        return tables.SCALARS[key]
    return pd.full([] if key.endswith("[]") else [1], 1, CODES[key.removesuffix("[]")])


def cell(call: tables.Call, *arguments: Any, meeting: str | None = None) -> str:
    """Return the cell of a call: the code of its result, or the sign of the exception that it raised.

    The error of a missing kernel tells the promoted type only if the kernel is `meeting`; None means any kernel.
    """
    try:
        return PADDLE.code_of(call(*arguments))
    except Exception as error:  # Paddle refuses with many kinds of exceptions
        if kernel := KERNEL.search(str(error)):
            return f"({PADDLE.code_of_name(kernel[1])})" if meeting in (None, kernel[2]) else "()"
        return tables.sign_of(error, REFUSALS)


def binary_calls() -> dict[str, dict[str, tables.Call]]:
    """Return the calls with two operands, by form."""
    losses = tables.named(pd.nn.functional, LOSSES)
    functions = {
        **tables.named(pd, BINARY),
        # The default, a mean over the result, would add another kernel.
        **{name: partial(loss, reduction="none") for name, loss in losses.items()},
        "where": lambda left, right: pd.where(pd.full([1], 1, "bool"), left, right),
    }
    return {"function": functions, "operator": tables.OPERATORS}


def binary_cell(operands: Mapping[str, Any], name: str, call: tables.Call, left: str, right: str) -> str:
    """Return the cell of a call with two operands, from its name and the keys of the operands."""
    same = left.removesuffix("[]") == right.removesuffix("[]")
    meeting = "none" if name in UNPROMOTED and not same else MEETING.get(name)
    return cell(call, operands[left], operands[right], meeting=meeting)


def paddle() -> dict[str, Any]:
    """Measure functions and operators, eager and static."""
    binary = binary_calls()
    operands = {key: operand(key) for key in KEYS}
    tensors = {key: tensor for key, tensor in operands.items() if key not in tables.SCALARS}
    of_tensors = [pair for pair in tables.pairs(KEYS) if not {*pair} & tables.SCALARS.keys()]
    with_scalars = [pair for pair in tables.pairs(KEYS) if {*pair} & tables.SCALARS.keys()]
    cells: dict[str, tables.Table] = {}
    for form, calls in binary.items():
        for name, call in calls.items():
            measure = partial(binary_cell, operands, name)
            every = {key: key for key in KEYS}
            table = cells[f"{name} {form}"] = tables.grid(measure, call, every, of_tensors)
            rows = tables.grid(measure, call, every, with_scalars)
            # Signs of refusals have one character: rows without any result type are left out.
            if any(len(cell.strip("()")) > 1 for row in rows.values() for cell in row.values()):
                for left, row in rows.items():
                    table[left] = table.get(left, {}) | row
    # A missing kernel names the operand's type here, not the type of the result.
    unary_cell = partial(cell, meeting="none")
    cells["unary function"] = tables.unary_cells(unary_cell, tables.named(pd, UNARY), operands)
    cells["unary operator"] = tables.unary_cells(unary_cell, tables.UNARY_OPERATORS, tensors)
    values = PADDLE.out_of_range(cell, ("add", "multiply", "less_than"), VALUES)
    static = static_cells(binary, cells)
    differing = {f"static {form}": tables.differing(cells, static, form) for form in binary}
    return PADDLE.document(REFUSALS, KEYS, cells) | {"differing": differing, "values": values}


def static_cells(binary: dict[str, dict[str, tables.Call]], cells: dict[str, tables.Table]) -> dict[str, tables.Table]:
    """Return the cells of static programs that differ from eager ones, by operation and form.

    To run a program for each cell would take minutes. One program for all cells of a form declares their types; only
    cells that declare a type different from eager mode's are run. This process cannot return to eager mode.
    """
    pd.enable_static()
    executor = pd.static.Executor(pd.CPUPlace())

    def run(call: tables.Call, *keys: str) -> Any:
        with pd.static.program_guard(pd.static.Program()):
            result = call(*map(operand, keys))
            return Fetched(executor.run(fetch_list=[result], return_numpy=False)[0]._dtype())

    static: dict[str, tables.Table] = {}
    for form, calls in binary.items():
        with pd.static.program_guard(pd.static.Program()):
            operands = {key: operand(key) for key in KEYS}
            declared = tables.grids(cell, form, calls, operands)
        for (name, call), (left, right) in itertools.product(calls.items(), tables.pairs(KEYS)):
            measured = f"{name} {form}"
            promise = declared[measured][left][right]
            eager = cells[measured].get(left, {}).get(right, promise).strip("()")
            if promise in CODES and promise != eager:
                ran = cell(run, call, left, right)
                if ran in CODES and ran != eager:
                    static.setdefault(measured, {}).setdefault(left, {})[right] = ran
    pd.disable_static()
    return static


def paddle_arrays() -> dict[str, Any]:
    """Measure functions of whole arrays; many kernels are missing."""
    of_numpy = {code: np.ones(3, name) for code, name in CODES.items() if name in OWN}
    return arrays_document(PADDLE) | foreign(PADDLE, of_numpy)


def paddle_casts() -> dict[str, Any]:
    """Measure casts of values, eager."""
    narrow = [name for name in CODES.values() if name not in OWN]
    return casts_document(PADDLE, pd.cast, [*(name for name in OWN if name in CODES.values()), *narrow])


def assignment_paddle() -> dict[str, Any]:
    """Measure writes: `a.add_(b)` changes the dtype of `a` to that of the result.

    Assigning a Python complex number to items of a real tensor aborts the process. These cells are `c` without a call.
    """

    def set_items_unless_it_aborts(target: Any, value: Any) -> Any:
        if isinstance(value, complex) and not target.is_complex():
            raise TypeError("this aborts the process")
        target[...] = value
        return target

    zero_d = [f"{code}[]" for code in CODES]
    store = Store(PADDLE, PADDLE.one, PADDLE.one, lambda tensor: tensor.astype("complex64").item(), zero_d)
    operations = "add subtract multiply divide floor_divide remainder bitwise_and bitwise_left_shift"
    writes = in_place({name: assign_in(f"{name}_") for name in operations.split()})
    writes |= {"add operator": operator.iadd, "divide operator": operator.itruediv}
    assignment = {"assign item": set_items_unless_it_aborts}
    # A 0-d tensor cannot be indexed.
    return store.document(store.cells(writes) | store.cells(assignment, CODES), store.numbers(assignment))


DOCUMENTS = tables.by_name(paddle, paddle_arrays, paddle_casts, assignment_paddle)
