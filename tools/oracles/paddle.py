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
from typing import Any, NamedTuple

os.environ["GLOG_minloglevel"] = "2"  # noqa: SIM112  (read at import; silences a warning per promotion)
import numpy as np
import paddle as pd

from oracles import casts, tables
from oracles.arrays import Framework, arrays_document, foreign, functions_of_two
from oracles.assignments import Store, assign_in, in_place
from oracles.casts import OWN

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


def name_of(result: Any) -> str:
    """Return the name of the dtype of a result."""
    return str(result.dtype).removeprefix("paddle.")


def code_of(name: str) -> str:
    """Return the code of the name of a dtype."""
    return tables.code_of(CODES, name)


def make(key: str) -> Any:
    """Make a tensor; in static mode it is a constant of the current program."""
    return pd.full([] if key.endswith("[]") else [1], 1, CODES[key.removesuffix("[]")])


def operand(key: str) -> Any:
    """Make a tensor or a Python scalar."""
    return tables.SCALARS[key] if key in tables.SCALARS else make(key)


def cell(call: tables.Call, *arguments: Any, meeting: str | None = None) -> str:
    """Return the cell of a call: the code of its result, or the sign of the exception that it raised.

    The error of a missing kernel tells the promoted type only if the kernel is `meeting`; None means any kernel.
    """
    try:
        result = call(*arguments)
    except Exception as error:  # Paddle refuses with many kinds of exceptions
        if kernel := KERNEL.search(str(error)):
            return f"({code_of(kernel[1])})" if meeting in (None, kernel[2]) else "()"
        return tables.sign_of(error, REFUSALS)
    return code_of(name_of(result))


def takes_scalars(table: tables.Table) -> bool:
    """Return whether any call with a Python scalar got as far as a result type."""
    cells = (cell for left, row in table.items() for right, cell in row.items() if {left, right} & {*tables.SCALARS})
    return any(len(cell.strip("()")) > 1 for cell in cells)  # signs of refusals have one character


def without_scalars(table: tables.Table) -> tables.Table:
    """Return the table without the rows and columns of Python scalars."""
    return {
        left: {right: cell for right, cell in row.items() if right not in tables.SCALARS}
        for left, row in table.items()
        if left not in tables.SCALARS
    }


def binary_calls() -> dict[str, dict[str, tables.Call]]:
    """Return the calls with two operands, by form."""

    def loss(function: tables.Call) -> tables.Call:
        # The default, a mean over the result, would add another kernel.
        return lambda left, right: function(left, right, reduction="none")

    functions = tables.named(pd, BINARY)
    functions |= {name: loss(function) for name, function in tables.named(pd.nn.functional, LOSSES).items()}
    functions["where"] = lambda left, right: pd.where(pd.full([1], 1, "bool"), left, right)
    return {"function": functions, "operator": tables.OPERATORS}


def paddle() -> dict[str, Any]:
    """Measure functions and operators, eager and static."""
    binary = binary_calls()
    operands = {key: operand(key) for key in KEYS}
    cells: dict[str, tables.Table] = {}
    for form, calls in binary.items():
        for name, call in calls.items():
            table: tables.Table = {}
            for left, right in tables.pairs(KEYS):
                same = left.removesuffix("[]") == right.removesuffix("[]")
                meeting = "none" if name in UNPROMOTED and not same else MEETING.get(name)
                table.setdefault(left, {})[right] = cell(call, operands[left], operands[right], meeting=meeting)
            cells[f"{name} {form}"] = table if takes_scalars(table) else without_scalars(table)
    for form, calls in {"function": tables.named(pd, UNARY), "operator": tables.UNARY_OPERATORS}.items():
        asked = KEYS if form == "function" else KEYS[: -len(tables.SCALARS)]
        cells[f"unary {form}"] = {
            # A missing kernel names the operand's type here, not the type of the result.
            name: {key: cell(call, operands[key], meeting="none") for key in asked}
            for name, call in calls.items()
        }

    def out_of_range(operation: str, tensor: Any, scalar: Any) -> dict[str, str]:
        found = cell(tables.OPERATORS[operation], tensor, scalar)
        if found not in CODES:
            return {"refused": found}
        return {"type": found, "value": str(tables.OPERATORS[operation](tensor, scalar).item())}

    values = {
        f"{name},{scalar}": {
            operation: out_of_range(operation, make(code_of(name)), scalar)
            for operation in ("add", "multiply", "less_than")
        }
        for name, scalar in VALUES
    }
    found = tables.document("paddle", pd.__version__, CODES, REFUSALS, KEYS, cells)
    return found | {"differing": tables.differing(static_differences(binary, cells)), "values": values}


def static_differences(
    binary: dict[str, dict[str, tables.Call]], cells: dict[str, tables.Table]
) -> dict[str, dict[str, tables.Table]]:
    """Return the cells of static programs that differ from eager ones, by form and operation.

    To run a program for each cell would take minutes. One program for all cells of a form declares their types; only
    cells that declare a type different from eager mode's are run. This process cannot return to eager mode.
    """
    pd.enable_static()
    executor = pd.static.Executor(pd.CPUPlace())

    def run(call: tables.Call, *keys: str) -> Any:
        with pd.static.program_guard(pd.static.Program()):
            result = call(*map(operand, keys))
            return Fetched(executor.run(fetch_list=[result], return_numpy=False)[0]._dtype())

    static: dict[str, dict[str, tables.Table]] = {}
    for form, calls in binary.items():
        found = static[f"static {form}"] = {}
        with pd.static.program_guard(pd.static.Program()):
            operands = {key: operand(key) for key in KEYS}
            declared = {
                (name, left, right): cell(call, operands[left], operands[right])
                for (name, call), (left, right) in itertools.product(calls.items(), tables.pairs(KEYS))
            }
        for (name, left, right), promise in declared.items():
            eager = cells[f"{name} {form}"].get(left, {}).get(right, promise).strip("()")
            if promise not in CODES or promise == eager:
                continue
            ran = cell(run, calls[name], left, right)
            if ran in CODES and ran != eager:
                found.setdefault(name, {}).setdefault(left, {})[right] = ran
    pd.disable_static()
    return static


def paddle_arrays() -> dict[str, Any]:
    """Measure functions of whole arrays; many kernels are missing."""
    framework = Framework(
        codes=CODES,
        reductions={
            **tables.named(pd, "sum prod mean var std any all min max"),
            "cumulative_sum": lambda a: pd.cumsum(a, 0),
            "cumulative_prod": lambda a: pd.cumprod(a, 0),
        },
        several={
            **functions_of_two(pd, "matmul vecdot outer cross concat stack diff tensordot"),
            # The bounds must be numbers or tensors with one element.
            "clip": lambda a, b: pd.clip(a, *[b[:1] if isinstance(b, pd.Tensor) and b.ndim else b] * 2),
            "solve": pd.linalg.solve,
        },
        make=lambda value, name: pd.to_tensor(value, "float64").astype(name),
        dtype_of=name_of,
        floats=lambda result: result.astype("float64").tolist(),
        kernel="is not registered|Unsupported tensor data type|Invalid tensor data type",
    )
    of_numpy = {code: np.ones(3, name) for code, name in CODES.items() if name in OWN}
    return arrays_document("paddle", pd.__version__, framework) | foreign(framework, of_numpy)


def paddle_casts() -> dict[str, Any]:
    """Measure casts of values, eager."""
    # NumPy does not know these; each of their values is a float64, so that this cast is exact.
    foreign_names = ("bfloat16", "float8_e4m3fn", "float8_e5m2")
    own = [name for name in OWN if name not in ("uint16", "uint32", "uint64")]

    def source(numbers: list[Any], name: str) -> Any:
        if name in foreign_names:
            return pd.to_tensor(np.array(numbers, "float32")).astype(name)
        return pd.to_tensor(np.array(numbers, name))

    def values(tensor: Any) -> list[Any]:
        return (tensor.astype("float32") if name_of(tensor) in foreign_names else tensor).numpy().tolist()

    return casts.measured("paddle", pd.__version__, (*own, *foreign_names), source, pd.cast, values)


def assignment_paddle() -> dict[str, Any]:
    """Measure writes: `a.add_(b)` changes the dtype of `a` to that of the result.

    Assigning a Python complex number to items of a real tensor aborts the process. These cells are `c` without a call.
    """

    def set_items_unless_it_aborts(target: Any, value: Any) -> Any:
        if isinstance(value, complex) and not target.is_complex():
            return "c"
        target[...] = value
        return target

    store = Store(
        codes=CODES,
        target=make,
        value=make,
        dtype_of=name_of,
        element=lambda tensor: tensor.astype("complex64").item(),
        more=[f"{code}[]" for code in CODES],
    )
    operations = "add subtract multiply divide floor_divide remainder bitwise_and bitwise_left_shift"
    writes = in_place({name: assign_in(f"{name}_") for name in operations.split()})
    writes |= {"add operator": operator.iadd, "divide operator": operator.itruediv}
    assignment = {"assign item": set_items_unless_it_aborts}
    # A 0-d tensor cannot be indexed.
    cells = store.cells(writes) | store.cells(assignment, CODES)
    return store.document("paddle", pd.__version__, cells, store.numbers(assignment))


DOCUMENTS = tables.by_name(paddle, paddle_arrays, paddle_casts, assignment_paddle)
