"""Documents FRAMEWORK-arrays: functions of whole arrays, such as reductions, and functions of several arrays.

In addition to the tables that `tables` describes, a document has:

    accumulates  {REDUCTION: {CODE: "own" or "wide"}}, for 16-bit floats: "wide" if a reduction of three numbers gives
                 in every order what wider arithmetic gives, rounded once
    foreign      {ORDER: {LEFT: cells}}: the sum of a tensor and a NumPy array, with a column for each code
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Mapping
from typing import Any

from oracles.tables import SCALARS, Call, Framework, Table, grid, named, outcome

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
REDUCTIONS = "sum prod cumulative_sum:cumsum cumulative_prod:cumprod mean var std any all min max"
REFUSALS = {"-": ("refused", ""), "n": ("no-kernel", "")}


def functions_of_two(module: Any, text: str) -> dict[str, Call]:
    """Return functions of two arrays by our names, from a list as in `named`."""
    adapters: dict[str, Callable[[Call], Call]] = {
        "concat": lambda call: lambda a, b: call([a, b]),
        "stack": lambda call: lambda a, b: call([a, b]),
        "diff": lambda call: lambda a, b: call(a, prepend=b),
        "tensordot": lambda call: lambda a, b: call(a, b, 1),
        "clip": lambda call: lambda a, b: call(a, b, b),
    }
    return {name: adapters[name](call) if name in adapters else call for name, call in named(module, text).items()}


def measured(framework: Framework, numbers: Mapping[str, Any]) -> dict[str, Any]:
    """Return the tables, and the dtypes that reductions accumulate in.

    Args:
        framework: the framework to measure.
        numbers: Python numbers by code; empty if the framework accepts none.
    """
    cell = cell_of(framework)
    vectors = {code: framework.make([1, 1, 1], name) for code, name in framework.codes.items()}
    matrices = {code: framework.make([[1, 0], [0, 1]], name) for code, name in framework.codes.items()}
    zero_d = {f"{code}[]": framework.make(1, name) for code, name in framework.codes.items()}
    tables: dict[str, Table] = {"unary function": {}}
    for name, call in framework.reductions.items():
        # Cumulative functions need a dimension, so they are not measured with numbers.
        operands = vectors if name.startswith("cumulative") else vectors | dict(numbers)
        tables["unary function"][name] = {key: cell(call, value) for key, value in operands.items()}
    for name, call in framework.several.items():
        lefts = matrices if name in MATRICES else vectors
        rights = lefts | zero_d | dict(numbers) if name in WITH_NUMBERS else lefts
        tables[f"{name} function"] = grid(cell, call, rights, itertools.product(lefts, rights))
    return {
        "columns": [*vectors, *zero_d, *numbers],
        "tables": tables,
        "accumulates": accumulations(framework),
    }


def cell_of(framework: Framework) -> Callable[..., str]:
    """Return a function that calls a function, and returns the cell: a code, `n` if a kernel is missing, or `-`."""
    return outcome({"n": ("no-kernel", framework.kernel), "-": REFUSALS["-"]}, framework.code_of)


def accumulations(framework: Framework) -> dict[str, dict[str, str]]:
    """Return for each reduction, by code, whether it accumulates 16-bit floats in their own format or a wider one."""
    found: dict[str, dict[str, str]] = {}
    for name, (code, dtype) in itertools.product(PROBED_AS, framework.codes.items()):
        probe, exact = PROBES[PROBED_AS[name]].get(dtype, ((), 0.0))
        call = framework.reductions.get(name)
        if call is None or not probe or len(cell_of(framework)(call, framework.make([1.0], dtype))) < 2:
            continue
        outcomes = [framework.numbers(call(framework.make([*order], dtype))) for order in itertools.permutations(probe)]
        last = {float(each[-1] if isinstance(each, list) else each) for each in outcomes}
        expected = exact / len(probe) if name == "mean" else exact
        is_exact = len(last) == 1 and math.isclose(*last, expected, rel_tol=0.003)
        found.setdefault(name, {})[code] = "wide" if is_exact else "own"
    return found


def arrays_document(framework: Framework, numbers: Mapping[str, Any] = SCALARS) -> dict[str, Any]:
    """Return the document of a framework; the arguments are those of `measured`."""
    found = measured(framework, numbers)
    return framework.document(REFUSALS, found["columns"], found["tables"]) | {"accumulates": found["accumulates"]}


def foreign(framework: Framework, arrays: Mapping[str, Any]) -> dict[str, Any]:
    """Return the dtypes of the sum of each tensor and each NumPy array, in both orders."""
    tensors = {code: framework.make([1, 1, 1], name) for code, name in framework.codes.items()}
    orders = {"tensor numpy": (tensors, arrays), "numpy tensor": (arrays, tensors)}
    cell = cell_of(framework)
    sums = {
        order: {
            left: " ".join(cell(operator.add, value, other) for other in rights.values())
            for left, value in lefts.items()
        }
        for order, (lefts, rights) in orders.items()
    }
    return {"foreign_columns": " ".join(arrays), "foreign": sums}
