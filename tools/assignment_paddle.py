"""Measure what Paddle stores in existing arrays, for extract_assignments."""

from __future__ import annotations

import operator
import os
from typing import Any

from assignment_cells import assign_in, document, measured, numbers
from extract_oracles import PADDLE_CODES as CODES
from extract_oracles import SCALARS


def paddle() -> dict[str, Any]:
    """Measure Paddle's CPU build, in which `a.add_(b)` changes the dtype of `a` to that of the result.

    Assigning a Python complex number to items of a real tensor aborts the process. These cells are `c` without a call.
    """
    os.environ["GLOG_minloglevel"] = "2"  # noqa: SIM112  (read at import; silences a warning per promotion)
    import paddle as pd

    code_of = {name: code for code, name in CODES.items()}
    keys = [*CODES, *(f"{code}[]" for code in CODES), *SCALARS]

    def make(key: str) -> Any:
        if key in SCALARS:
            return SCALARS[key]
        return pd.full([] if key.endswith("[]") else [1], 1, CODES[key.removesuffix("[]")])

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
    cells |= measured({"assign item": set_items_unless_it_aborts}, keys, make, make, code, list(CODES))
    values = numbers(
        {"assign item": set_items_unless_it_aborts},
        lambda name: pd.full([1], 1, name),
        lambda tensor: f"{str(tensor.dtype).removeprefix('paddle.')} {tensor.astype('complex64').item()}",
    )
    return document("paddle", pd.__version__, CODES, cells, keys, values)
