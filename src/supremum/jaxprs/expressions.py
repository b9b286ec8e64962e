"""The expressions at positions in source files, read with Python's parser."""

from __future__ import annotations

import ast
import linecache
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from types import ModuleType
from typing import Any, TypeAlias, cast

from supremum.jaxprs.positions import Position

Node: TypeAlias = "ast.expr | ast.stmt"
UNRESOLVED: Any = object()
"""Stands for a value that only running the expression would give."""


class Source:
    """The current content of a source file, which may have been edited since its import.

    Args:
        file: its name, as in code objects; a notebook cell has one too.
    """

    def __init__(self, file: str) -> None:
        linecache.checkcache(file)
        self._lines = linecache.getlines(file)
        self._nodes: dict[tuple[int, int, int, int], Node] = {}
        self._ends: dict[tuple[int, int], list[Node]] = {}
        self.names = _names_of(file)
        try:
            tree = ast.parse("".join(self._lines))
        except (SyntaxError, ValueError):  # a notebook cell with magics, or a file that is not Python
            return
        for node in ast.walk(tree):
            if isinstance(node, (ast.expr, ast.stmt)):
                end = node.end_lineno or 0, node.end_col_offset or 0
                place = (node.lineno, node.col_offset, *end)
                # An expression statement has the position of its expression and comes first: the expression wins.
                self._nodes[place] = node
                self._ends.setdefault(end, []).append(node)

    def node(self, position: Position) -> Node | None:
        """The expression or statement at a position; None if there is none."""
        end = position.end_line, position.end_column
        exact = self._nodes.get((position.line, position.column, *end))
        if exact is not None:
            return exact
        # For a method chain over several lines, Python keeps only the start of the last call.
        around = (
            node
            for node in self._ends.get(end, ())
            if isinstance(node, ast.Call) and (node.lineno, node.col_offset) <= (position.line, position.column)
        )
        return next(around, None)

    def text(self, node: Node) -> str:
        """The source text of a node, on one line."""
        first, last = node.lineno - 1, (node.end_lineno or node.lineno) - 1
        lines = [line.encode() for line in self._lines[first : last + 1]]
        lines[-1] = lines[-1][: node.end_col_offset]
        lines[0] = lines[0][node.col_offset :]
        return " ".join(b"".join(lines).decode(errors="replace").split())

    def line(self, number: int) -> str:
        """A line of the file, stripped; empty if there is none."""
        return self._lines[number - 1].strip() if 0 < number <= len(self._lines) else ""

    def value(self, node: ast.AST) -> Any:
        """The value of an expression in the module; see `value_of`."""
        return value_of(node, self.names)


def value_of(node: ast.AST, names: Mapping[str, Any], *, in_objects: bool = False) -> Any:
    """The value of a constant, a name or a dotted name, read without running user code; else `UNRESOLVED`.

    Only attributes of modules and classes are read, because those of other objects may be properties.

    Args:
        node: the expression.
        names: the values of the names.
        in_objects: whether to read literal containers, elements of dicts, lists and tuples, and attributes in the
            `__dict__` of an object too.

    >>> names = {"weights": {"w": [1.5, 2.5]}}
    >>> value_of(ast.parse("weights['w'][-1]", mode="eval").body, names, in_objects=True)
    2.5
    >>> value_of(ast.parse("weights.copy()", mode="eval").body, names, in_objects=True) is UNRESOLVED
    True
    """
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name):
        return names.get(node.id, UNRESOLVED)
    if isinstance(node, ast.Attribute):
        owner = value_of(node.value, names, in_objects=in_objects)
        if isinstance(owner, (ModuleType, type)):
            return getattr(owner, node.attr, UNRESOLVED)
        held = getattr(owner, "__dict__", None) if in_objects else None
        return held.get(node.attr, UNRESOLVED) if isinstance(held, Mapping) else UNRESOLVED
    if not in_objects:
        return UNRESOLVED
    if isinstance(node, ast.Subscript):
        return _element(value_of(node.value, names, in_objects=True), value_of(node.slice, names, in_objects=True))
    return literal_of(node)


def literal_of(node: ast.AST) -> Any:
    """The value of a literal, such as `-1` or `(1, 2)`; `UNRESOLVED` for other expressions."""
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError):
        return UNRESOLVED


def _element(owner: Any, index: Any) -> Any:
    """An element of a dict, list or tuple."""
    if type(owner) is dict and isinstance(index, (str, int)):
        return cast("dict[Any, Any]", owner).get(index, UNRESOLVED)
    if type(owner) in (list, tuple) and type(index) is int and -len(owner) <= index < len(owner):
        return cast("Sequence[Any]", owner)[index]
    return UNRESOLVED


def _names_of(file: str) -> Mapping[str, Any]:
    """The global names of the module imported from a file."""
    for module in list(sys.modules.values()):
        if getattr(module, "__file__", None) == file:
            return vars(module)
    main = sys.modules.get("__main__")
    return vars(main) if main is not None and file.startswith("<") else {}


class Sources:
    """Source files, each read once."""

    def __init__(self) -> None:
        self.source = cache(Source)
        self.node = cache(self._node)
        self.text = cache(self._text)

    def _node(self, position: Position) -> Node | None:
        """The expression or statement at a position."""
        return self.source(position.file).node(position)

    def _text(self, position: Position) -> str:
        """The source text at a position, on one line; the whole line if there is no expression."""
        node, source = self.node(position), self.source(position.file)
        return source.line(position.line) if node is None else source.text(node)
