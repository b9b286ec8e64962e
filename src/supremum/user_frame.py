"""The line of the user's code that led here, found by skipping the frames of Supremum and of other libraries.

An installed package is a library, such as one whose `jit` traces the user's function. If only libraries called
Supremum, the calling library counts as the user.
"""

from __future__ import annotations

import inspect
import sys
import warnings
from types import FrameType

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
