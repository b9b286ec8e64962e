"""Convert docstrings for Sphinx: they are plain text in which backticks mean code."""

from __future__ import annotations

import ast
import inspect
import itertools
import re
import sys
from functools import cache
from types import ModuleType

_KEPT = re.compile(r"(``.+?``|`[^`]+`|^ *\* )", re.DOTALL | re.MULTILINE)  # code, and the star of a list's item
_MARKS = re.compile(r"([*|\\]|_(?=\W|$))")


def literal(text: str) -> str:
    r"""Return a docstring as reStructuredText: backticks become code, and everything else stays plain text.

    Args:
        text: the docstring; its examples are not changed.

    >>> print(literal("The shape (*spatial, `features`) of `a*`s"))
    The shape (\*spatial, ``features``) of ``a*``\ s
    >>> print(literal("* one: `a` * `b`"))
    * one: ``a`` \* ``b``
    """
    return "\n\n".join(map(_paragraph, text.split("\n\n")))


def _paragraph(text: str) -> str:
    if text.lstrip().startswith(">>>"):
        return text
    return _list_table(text) if text.startswith("|") else _marked(text)


def _list_table(text: str) -> str:
    head, _, *rows = [line.strip("|").split("|") for line in text.splitlines()]
    lines = [".. list-table::", "   :header-rows: 1", ""]
    for row in (head, *rows):
        lines += [
            f"   {'-' if place else '* -'} {_marked(cell.strip())}".replace("   -", "     -")
            for place, cell in enumerate(row)
        ]
    return "\n".join(lines)


def _marked(text: str) -> str:
    pieces = _KEPT.split(text)
    marked = "".join(_kept(piece) if place % 2 else _MARKS.sub(r"\\\1", piece) for place, piece in enumerate(pieces))
    return re.sub(r"(?<=\S``)(?=\w)", r"\\ ", marked)  # a plural s is not code


def _kept(piece: str) -> str:
    return f"``{piece.strip('`')}``" if piece.startswith("`") else piece


def data_docstring(name: str, value: object) -> str:
    """Return the docstring below a constant in the module that defines it.

    Args:
        name: the name of the constant.
        value: the value of the constant, which identifies the module.

    >>> data_docstring(
    ...     "CATEGORIES", sys.modules["supremum.number_kinds"].CATEGORIES
    ... ).partition(";")[0]
    'Categories from the lowest to the highest'
    """
    module = module_of_data(name, value)
    return "" if module is None else _docstrings_of(module)[name]


def module_of_data(name: str, value: object) -> ModuleType | None:
    """Return the module that defines a constant with a docstring; None if there is none.

    Args:
        name: the name of the constant.
        value: the value of the constant.

    >>> module_of_data(
    ...     "CATEGORIES", sys.modules["supremum.number_kinds"].CATEGORIES
    ... ).__name__
    'supremum.number_kinds'
    """
    loaded = [each for key, each in sys.modules.items() if key.split(".")[0] == "supremum"]
    return next((each for each in loaded if vars(each).get(name) is value and name in _docstrings_of(each)), None)


@cache
def _docstrings_of(module: ModuleType) -> dict[str, str]:
    body = ast.parse(inspect.getsource(module)).body
    found: dict[str, str] = {}
    for node, after in itertools.pairwise(body):
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) and isinstance(after.value.value, str):
            found |= {each.id: inspect.cleandoc(after.value.value) for each in targets if isinstance(each, ast.Name)}
    return found
