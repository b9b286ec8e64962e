"""Documents assignment-FRAMEWORK: what frameworks do when a result is written into an existing array.

A row of a table is what is written into, a column is the value that is written or computed with, and `measured` names
the operations and forms ("add in_place", "assign item"). A cell is the code of the dtype after the write, `x` for a
refusal, `n` if only a kernel is missing, `c` if the call aborts the process, or `.` if the cell was not measured.
`values` has Python numbers, as {"TYPE,NUMBER": {OPERATION: outcome}}, with the value after the write.

The forms:

    in_place   the operator or method that writes the result of an operation into its left operand
    operator   `a += b`, if it differs from in_place
    item       assignment to elements, or to the first one where the index matters
    slice, indices, mask, ellipsis
               assignment with these indices: `a[:]`, an array or list of indices, an array of bools, and `a[...]`
    frame      assignment to an element of a column of a DataFrame
    variable   methods of the framework's variable
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from oracles.tables import SCALARS, Framework, Table, grid, named, outcome

NUMBERS: tuple[Any, ...] = (True, -1, 1000, 2**40, 1.5, 70000.0, 1e300, float("inf"), 1.5j)
"""Numbers for which the value after the write is measured too."""
TARGETS = ("bool", "uint8", "int8", "int32", "float16", "float32", "complex64")
REFUSALS = {
    "x": ("refused", ""),
    "n": ("no-kernel", "(?i)OpKernel|could not find|is not registered|not implemented for|not accept dtype|CPU, "),
    "c": ("aborted", "aborts the process"),
}
_IN_ORDER = {sign: REFUSALS[sign] for sign in "ncx"}
Write = Callable[[Any, Any], Any]
"""A function that writes its second argument into its first, and returns the object that then holds the result."""

IN_PLACE = named(
    operator,
    "add:iadd subtract:isub multiply:imul divide:itruediv floor_divide:ifloordiv remainder:imod bitwise_and:iand"
    " bitwise_left_shift:ilshift",
)
MORE_IN_PLACE = named(operator, "pow:ipow bitwise_or:ior bitwise_xor:ixor")


def in_place(writes: Mapping[str, Write], *without: str) -> dict[str, Write]:
    """Return the writes of the form `in_place` by operation and form, except for some operations."""
    return {f"{name} in_place": write for name, write in writes.items() if name not in without}


def assign_in(method: str) -> Write:
    """Return a function that writes with a method of a variable."""

    def write(target: Any, value: Any) -> Any:
        getattr(target, method)(value)
        return target

    return write


IN_VARIABLE = {
    "add variable": assign_in("assign_add"),
    "subtract variable": assign_in("assign_sub"),
    "assign variable": assign_in("assign"),
}
"""The methods of a variable of Keras and of TensorFlow."""


def set_at(index: Any) -> Write:
    """Return a function that assigns to the elements at an index."""

    def write(target: Any, value: Any) -> Any:
        target[index] = value
        return target

    return write


class Store(NamedTuple):
    """How a framework makes and reads what is written into.

    Args:
        framework: the framework.
        target: makes a new object to write into from its key.
        value: makes a value to write from its key, where that is not a Python scalar.
        element: returns the first element of an object that holds a result.
        more: the keys of other operands than one of each dtype and Python numbers.
    """

    framework: Framework
    target: Callable[[str], Any]
    value: Callable[[str], Any]
    element: Callable[[Any], Any]
    more: Sequence[str] = ()

    @property
    def keys(self) -> list[str]:
        """The keys of all operands."""
        return [*self.framework.codes, *self.more, *SCALARS]

    def cells(self, writes: Mapping[str, Write], targets: Iterable[str] | None = None) -> dict[str, Table]:
        """Return the cells, as {OPERATION AND FORM: {INTO: {VALUE: CELL}}}.

        Args:
            writes: functions that write, by operation and form.
            targets: the keys of the objects to write into; None for all keys except Python numbers.
        """
        code_of_write = outcome(_IN_ORDER, self.framework.code_of)

        def cell(write: Write, left: str, right: str) -> str:
            return code_of_write(write, self.target(left), SCALARS[right] if right in SCALARS else self.value(right))

        into = [key for key in self.keys if key not in SCALARS] if targets is None else targets
        keys, asked = {key: key for key in self.keys}, [*itertools.product(into, self.keys)]
        return {name: grid(cell, write, keys, asked) for name, write in writes.items()}

    def numbers(
        self, writes: Mapping[str, Write], names: Iterable[str] = TARGETS, numbers: Iterable[Any] = NUMBERS
    ) -> dict[str, dict[str, dict[str, str]]]:
        """Return what Python numbers become when they are written, as text.

        Args:
            writes: functions that write, by operation and form.
            names: the names of the dtypes to write into; those that the framework lacks are left out.
            numbers: the numbers.
        """
        key_of = {name: code for code, name in self.framework.codes.items()}
        value = outcome(_IN_ORDER, lambda found: f"{self.framework.name_of(found)} {self.element(found)}")

        def described(write: Write, name: str, number: Any) -> dict[str, str]:
            found = value(write, self.target(key_of[name]), number)
            return {"refused" if found in _IN_ORDER else "value": found}

        return {
            f"{name},{number}": {what: described(write, name, number) for what, write in writes.items()}
            for name, number in itertools.product(names, numbers)
            if name in key_of
        }

    def document(self, cells: Mapping[str, Table], numbers: Mapping[str, Any]) -> dict[str, Any]:
        """Return the document of the framework, from what `cells` and `numbers` return."""
        return self.framework.document(REFUSALS, self.keys, cells) | {"values": numbers}
