"""Measure writes into arrays, for extract_assignments: cells of tables, and values of Python numbers."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from typing import Any

from extract_oracles import SCALARS, Table, tables

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
    except BaseException as error:  # frameworks refuse with many kinds of exceptions, and Polars panics
        return "n" if NO_KERNEL.search(str(error)) else "x"


def assign_in(method: str) -> Write:
    """Return a function that writes with a method of a variable."""

    def write(target: Any, value: Any) -> Any:
        getattr(target, method)(value)
        return target

    return write


def set_at(index: Any) -> Write:
    """Return a function that assigns to the elements at an index."""

    def write(target: Any, value: Any) -> Any:
        target[index] = value
        return target

    return write


def measured(
    writes: dict[str, Write],
    keys: list[str],
    target: Callable[[str], Any],
    value: Callable[[str], Any],
    code: Callable[[Any], str],
    targets: list[str] | None = None,
) -> dict[str, Table]:
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
    given: tuple[Any, ...] = NUMBERS,
) -> dict[str, dict[str, dict[str, str]]]:
    """Return what Python numbers become when they are written, as text.

    Args:
        writes: functions that write, by operation and form.
        make: makes an object to write into from the name of its dtype.
        show: returns the dtype and value of an object that holds a result, as text.
        targets: the names of the dtypes to write into.
        given: the numbers.
    """
    found: dict[str, dict[str, dict[str, str]]] = {}
    for name in targets:
        for number in given:
            row = found[f"{name},{number}"] = {}
            for what, write in writes.items():
                outcome = written(write, make(name), number)
                row[what] = {"refused": outcome} if isinstance(outcome, str) else {"value": show(outcome)}
    return found


def document(
    framework: str,
    version: str,
    codes: Mapping[str, str],
    cells: Mapping[str, Table],
    keys: list[str],
    values: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the document that `extract_assignments` describes.

    Args:
        framework: its name.
        version: its version.
        codes: the name of each dtype, by its code.
        cells: what `measured` returns.
        keys: the operands, in the order of the columns.
        values: what `numbers` returns.
    """
    return {
        "framework": framework,
        "version": version,
        "codes": codes,
        "refusals": REFUSALS,
        "columns": " ".join(keys),
        "tables": tables(cells, keys),
        "values": values,
    }
