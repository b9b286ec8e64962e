"""The rows of reports: a source line, an operation of a program at it, and how they become plain data."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any, TypeVar, cast

from supremum.argument_checks import chosen
from supremum.reports.source_context import SourceRange
from supremum.user_frame import source_name

_KEYS = {"line": "where", "scope": "scope", "primitive": "primitive"}


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceLine:
    """An expression of a program.

    Args:
        file: the file of the user's expression. If no user code led there, a library's file, or empty.
        line: the line in that file.
        expression: the source text, on one line.

    >>> SourceLine(file="model.py", line=3, expression="x + y").where
    'model.py:3'
    """

    file: str
    line: int
    expression: str

    @property
    def where(self) -> str:
        """The user's line, as `file:line`; `"-"` if there is none."""
        return f"{source_name(self.file)}:{self.line}" if self.file else "-"

    def to_dict(self) -> dict[str, Any]:
        """The row as plain data for JSON; numbers that are not finite are None."""
        return plain_fields(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationRow(SourceLine):
    """An operation of a program.

    Args:
        file: the file of the user's expression. If no user code led there, a library's file, or empty.
        line: the line in that file.
        expression: the source text, on one line.
        scope: the enclosing `jax.named_scope` blocks, such as `"encoder/norm"`; layers of Flax open them.
        primitive: the JAX primitive, such as `"exp"`.
        backward: whether it belongs to a backward pass.
        path: the user's calls that led to the operation, outermost first; the last one is the expression.

    >>> row = OperationRow(
    ...     file="model.py",
    ...     line=3,
    ...     expression="x + y",
    ...     scope="head",
    ...     primitive="add",
    ...     backward=False,
    ... )
    >>> row.where, row.calls
    ('model.py:3', [])
    """

    scope: str
    primitive: str
    backward: bool
    path: tuple[SourceRange, ...] = ()

    @property
    def calls(self) -> list[str]:
        """The calls that led to the expression, innermost first, as `file:line function`."""
        return [f"{_file_name(at.file)}:{at.line} {at.function}" for at in reversed(self.path[:-1])]

    def to_dict(self) -> dict[str, Any]:
        """The row as plain data for JSON; numbers that are not finite are None."""
        return plain_fields(self) | {"path": [f"{at.file}:{at.line} {at.function}" for at in self.path]}


Row = TypeVar("Row", bound=OperationRow)


def rows_by(key: str, rows: Iterable[Row]) -> dict[str, list[Row]]:
    """Group rows by line, scope or primitive.

    Args:
        key: `"line"`, `"scope"` or `"primitive"`.
        rows: the rows.

    Raises:
        UnknownNameError: for another key.

    >>> rows_by("scope", [])
    {}
    """
    name = _KEYS[chosen("key of a report", key, _KEYS)]
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(getattr(row, name), []).append(row)
    return groups


def short_names(files: Iterable[str]) -> dict[str, str]:
    """Map each file to its name, or to its whole path where several files have the same name.

    Args:
        files: the files of a report.

    >>> short_names(["a/model.py", "b/model.py", "b/data.py"])
    {'a/model.py': 'a/model.py', 'b/model.py': 'b/model.py', 'b/data.py': 'data.py'}
    """
    names = {file: _file_name(file) for file in files}
    counts = Counter(names.values())
    return {file: name if counts[name] == 1 else source_name(file) for file, name in names.items()}


def _file_name(file: str) -> str:
    """The name of a file without its folder, or of a notebook's cell."""
    return Path(source_name(file)).name


def short_place(names: Mapping[str, str], at: SourceLine | SourceRange) -> str:
    """A line, as `file:line` with the file's short name; `"-"` if there is none.

    Args:
        names: the short names of files, as `short_names` returns them.
        at: the line.

    >>> row = SourceLine(file="a/model.py", line=3, expression="x + y")
    >>> short_place(short_names([row.file]), row)
    'model.py:3'
    """
    return f"{names[at.file]}:{at.line}" if at.file else "-"


def plain_fields(value: object) -> dict[str, Any]:
    """The fields of a dataclass as plain data for JSON.

    Args:
        value: the dataclass; see `plain_data` for what becomes of its fields.

    >>> plain_fields(SourceLine(file="model.py", line=3, expression="x + y"))
    {'file': 'model.py', 'line': 3, 'expression': 'x + y'}
    """
    row: Any = value
    return {field.name: plain_data(getattr(row, field.name)) for field in fields(row)}


def plain_data(value: object) -> Any:
    """Convert a value to plain data for JSON; numbers that are not finite are None.

    Args:
        value: the value. What has a `to_dict` decides for itself; other dataclasses become dicts of their fields.

    >>> plain_data({1: (2.0, float("inf"))})
    {'1': [2.0, None]}
    """
    row: Any = value
    if hasattr(row, "to_dict"):
        return row.to_dict()
    if is_dataclass(value):
        return plain_fields(value)
    if isinstance(value, Mapping):
        entries = cast("Mapping[Any, Any]", value)
        return {str(key): plain_data(each) for key, each in entries.items()}
    if isinstance(value, (tuple, list)):
        return [plain_data(each) for each in cast("Iterable[Any]", value)]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
