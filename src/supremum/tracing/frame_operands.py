"""The values of an expression's operands in the frame where it raised, read without running user code."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from types import FrameType, ModuleType
from typing import Any, cast

UNREADABLE: Any = object()
"""Stands for a value that only evaluating the expression again would give."""


def operand_nodes(node: ast.AST | None) -> tuple[ast.expr, ...]:
    """The operands of an operator or the positional arguments of a call; empty for other nodes.

    Args:
        node: an expression or statement.
    """
    if isinstance(node, ast.BinOp):
        return (node.left, node.right)
    if isinstance(node, ast.AugAssign):
        return (node.target, node.value)
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        return (node.left, *node.comparators)
    if isinstance(node, ast.Call) and not any(isinstance(each, ast.Starred) for each in node.args):
        return tuple(node.args)
    return ()


def read(node: ast.expr, frame: FrameType) -> Any:
    """The value of an expression: a number, a name, or an attribute or element of one.

    Properties, calls and operators would run user code, so an expression that needs them is `UNREADABLE`.

    Args:
        node: the expression.
        frame: the frame to look names up in.

    >>> import sys
    >>> weights, here = {"w": [1.5, 2.5]}, sys._getframe()
    >>> read(ast.parse("weights['w'][1]", mode="eval").body, here)
    2.5
    >>> read(ast.parse("weights.copy()", mode="eval").body, here) is UNREADABLE
    True
    """
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError):
        pass
    if isinstance(node, ast.Name):
        for names in (frame.f_locals, frame.f_globals, frame.f_builtins):
            if node.id in names:
                return names[node.id]
    elif isinstance(node, ast.Attribute):
        owner = read(node.value, frame)
        if isinstance(owner, (ModuleType, type)):
            return getattr(owner, node.attr, UNREADABLE)
        held = getattr(owner, "__dict__", None)
        return held.get(node.attr, UNREADABLE) if isinstance(held, Mapping) else UNREADABLE
    elif isinstance(node, ast.Subscript):
        return _element(read(node.value, frame), read(node.slice, frame))
    return UNREADABLE


def _element(owner: Any, index: Any) -> Any:
    """An element of a dict, list or tuple."""
    if type(owner) is dict and isinstance(index, (str, int)):
        return cast("dict[Any, Any]", owner).get(index, UNREADABLE)
    if type(owner) in (list, tuple) and type(index) is int and -len(owner) <= index < len(owner):
        return cast("Sequence[Any]", owner)[index]
    return UNREADABLE
