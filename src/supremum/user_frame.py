"""The line of the user's code that led here, found by skipping the frames of Supremum and of other libraries.

An installed package is a library, such as one whose `jit` traces the user's function. If only libraries called
Supremum, the calling library counts as the user.
"""

from __future__ import annotations

import dis
import inspect
import sys
import warnings
from types import FrameType
from typing import Any

from supremum.errors import printable

_BETWEEN = frozenset({"supremum", "numpy", "jax", "torch", "array_api_compat", "contextlib", "functools"})
_INSTALLED = ("site-packages", "dist-packages")


def _frame() -> FrameType:
    frame = inspect.currentframe()
    assert frame is not None  # CPython has frames
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _BETWEEN:
        frame = frame.f_back
    user: FrameType | None = frame
    while user is not None and any(folder in user.f_code.co_filename for folder in _INSTALLED):
        user = user.f_back
    return user or frame


def users_line() -> str:
    """The line of the user's program that led here, as `file:line`."""
    frame = _frame()
    return f"{source_name(frame.f_code.co_filename)}:{frame.f_lineno}"


def source_name(file: str) -> str:
    """The name of a source file for people: `In[3]` for a cell of a notebook, whose file has a number for a name.

    Args:
        file: the file, as in code objects.

    >>> source_name("model.py")
    'model.py'
    """
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    name_of_cell = getattr(getattr(shell, "compile", None), "format_code_name", None)  # since IPython 8
    cell = None if name_of_cell is None else name_of_cell(file)
    return printable(file if cell is None else cell[1])


def compares_with(frame: FrameType, symbol: str, right: object, *, is_only_reflected: bool) -> bool:
    """Whether a frame is at a comparison with a given right operand, such as `1.5 < array`.

    Args:
        frame: the frame.
        symbol: of the comparison.
        right: the operand whose method Python called.
        is_only_reflected: whether Python calls that method only for a right operand, because the method for a left one
            has a different symbol. For `==` and `!=` it is the same; the right operand is then known if it is a name.
    """
    before = None
    for instruction in dis.get_instructions(frame.f_code):
        if instruction.offset == frame.f_lasti:
            is_typed = instruction.opname == "COMPARE_OP" and instruction.argval == symbol
            return is_typed and (is_only_reflected or (before is not None and _loads(frame, before, right)))
        before = instruction
    return False


def _loads(frame: FrameType, instruction: dis.Instruction, value: object) -> bool:
    """Whether an instruction loads a value by its name."""
    if not instruction.opname.startswith(("LOAD_FAST", "LOAD_DEREF", "LOAD_NAME", "LOAD_GLOBAL")):
        return False
    loaded: Any = instruction.argval
    name = loaded if isinstance(loaded, str) else loaded[-1]  # Python 3.13 loads two names by one instruction
    return frame.f_locals.get(name, frame.f_globals.get(name)) is value


def warn_user(message: str, category: type[Warning]) -> None:
    """Warn about the user's line, from any depth in Supremum.

    Args:
        message: the text of the warning.
        category: the class of the warning.
    """
    frame = _frame()
    warnings.warn_explicit(
        message,
        category,
        frame.f_code.co_filename,
        frame.f_lineno,
        module=frame.f_globals.get("__name__"),
        registry=frame.f_globals.setdefault("__warningregistry__", {}),
    )
