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
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from oracles.tables import SCALARS, Call, Table, document, grid, named

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
REFUSED = {"-": "refused", "n": "no-kernel"}


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

    def cell(self, call: Call, *operands: Any) -> str:
        """Return the cell of a call: the code of its result, `n` if a kernel is missing, `-` for other refusals."""
        try:
            name = self.dtype_of(call(*operands))
        except Exception as error:  # frameworks refuse with many kinds of exceptions
            return "n" if re.search(self.kernel, str(error)) else "-"
        found = next((code for code, dtype in self.codes.items() if dtype == name.removesuffix("*")), "-")
        return found + "*" * name.endswith("*")


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
    vectors = {code: framework.make([1, 1, 1], name) for code, name in framework.codes.items()}
    matrices = {code: framework.make([[1, 0], [0, 1]], name) for code, name in framework.codes.items()}
    zero_d = {f"{code}[]": framework.make(1, name) for code, name in framework.codes.items()}
    tables: dict[str, Table] = {"unary function": {}}
    for name, call in framework.reductions.items():
        # Cumulative functions need a dimension, so they are not measured with numbers.
        operands = vectors if name.startswith("cumulative") else vectors | dict(numbers)
        tables["unary function"][name] = {key: framework.cell(call, value) for key, value in operands.items()}
    for name, call in framework.several.items():
        lefts = matrices if name in MATRICES else vectors
        rights = lefts | zero_d | dict(numbers) if name in WITH_NUMBERS else lefts
        tables[f"{name} function"] = grid(framework.cell, call, rights, itertools.product(lefts, rights))
    accumulates = {
        name: how for name in PROBED_AS if name in framework.reductions and (how := accumulations(framework, name))
    }
    return {"columns": [*vectors, *zero_d, *numbers], "tables": tables, "accumulates": accumulates}


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


def arrays_document(
    name: str, version: str, framework: Framework, numbers: Mapping[str, Any] = SCALARS
) -> dict[str, Any]:
    """Return the document of a framework; the arguments are its name, its version, and those of `measured`."""
    found = measured(framework, numbers)
    head = document(name, version, framework.codes, REFUSED, found["columns"], found["tables"])
    return head | {"accumulates": found["accumulates"]}


def foreign(framework: Framework, arrays: Mapping[str, Any]) -> dict[str, Any]:
    """Return the dtypes of the sum of each tensor and each NumPy array, in both orders."""
    tensors = {code: framework.make([1, 1, 1], name) for code, name in framework.codes.items()}
    orders = {"tensor numpy": (tensors, arrays), "numpy tensor": (arrays, tensors)}
    sums = {
        order: {
            left: " ".join(framework.cell(operator.add, value, other) for other in rights.values())
            for left, value in lefts.items()
        }
        for order, (lefts, rights) in orders.items()
    }
    return {"foreign_columns": " ".join(arrays), "foreign": sums}
