"""The source positions of equations.

JAX stores code objects and offsets into them (`jax_compat.raw_frames`); Python maps an offset to a line and columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from types import CodeType

from jax.extend.core import JaxprEqn

from supremum.bounded_cache import Bounded
from supremum.jax_compat import raw_frames
from supremum.jaxprs.equations import as_equation
from supremum.jaxprs.frame_owner import BETWEEN, USER, owner_of


@dataclass(frozen=True, slots=True)
class Position:
    """The source range of a call, an operator or another instruction.

    Args:
        file: the file.
        function: the qualified name of the function.
        line: the first line, counted from 1; 0 if Python does not know it.
        end_line: the last line.
        column: the start in the first line, in bytes of UTF-8, counted from 0.
        end_column: the end in the last line.
    """

    file: str
    function: str
    line: int
    end_line: int
    column: int
    end_column: int

    @property
    def owner(self) -> str:
        """The owner of the file; see `owner_of`."""
        return owner_of(self.file)

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True)
class Frames:
    """The calls that led to an equation, within the traced function that contains it.

    Args:
        positions: the calls in users' and libraries' code, innermost first, without those in JAX and Python.
        entry: the JAX function that the innermost of them called; empty if JAX has no frame of it.
        in_custom_rule: whether the equation belongs to a derivative rule of a `jax.custom_jvp` or `custom_vjp`. JAX
            keeps no frames of the rule, so the innermost position is the call of the function.
    """

    positions: tuple[Position, ...]
    entry: str
    in_custom_rule: bool


NO_FRAMES = Frames((), "", False)
EXPLICIT_ENTRIES = frozenset({"astype", "_astype", "convert_element_type", "_ScalarMeta.__call__"})
"""The entries that only cast, for calls whose source does not tell which function they call."""
_CUSTOM_RULES = frozenset({"custom_jvp.__call__", "custom_vjp.__call__"})
_COMPREHENSIONS = ("<listcomp>", "<setcomp>", "<dictcomp>")
# Wrappers around JAX's public functions, by JAX and by us, which do not tell which function was called.
_WRAPPERS = (
    "reraise_with_filtered_traceback",
    "_forward_operator_to_aval",
    "_forward_method_to_aval",
    "PjitFunction",
    "_scoped.<locals>.call",
)


def frames_of(equation: JaxprEqn) -> Frames:
    """The calls that led to an equation.

    >>> import jax, jax.numpy as jnp
    >>> (equation,) = jax.make_jaxpr(lambda x: x + 1)(1.0).eqns
    >>> [position.function for position in frames_of(equation).positions]
    ['<lambda>']
    """
    positions: list[Position] = []
    entry = ""
    within_comprehension = False
    for code, offset in raw_frames(as_equation(equation)):
        if within_comprehension:
            # Until Python 3.12 a comprehension is a function that the enclosing function calls.
            within_comprehension = False
        elif owner_of(code.co_filename) != BETWEEN:
            within_comprehension = code.co_name in _COMPREHENSIONS
            positions.append(position_of(code, offset))
        elif not positions and not any(wrapper in code.co_qualname for wrapper in _WRAPPERS):
            entry = code.co_qualname
    return Frames(tuple(positions), entry, bool(positions) and entry in _CUSTOM_RULES)


def user_place(equation: JaxprEqn) -> str:
    """The user's innermost line that led to an equation, as `file:line`; empty if unknown.

    >>> import jax
    >>> user_place(jax.make_jaxpr(jax.numpy.sin)(1.0).eqns[0])
    ''
    """
    return next((str(position) for position in frames_of(equation).positions if position.owner == USER), "")


# Keyed by id, because code objects of two files with the same text are equal. The values keep them alive.
_known: Bounded[tuple[int, int], tuple[CodeType, Position]] = Bounded(16_384)


def position_of(code: CodeType, offset: int) -> Position:
    """The source position of an offset in a code object."""
    key = id(code), offset
    found = _known.get(key)
    if found is None:
        # Two bytes for each instruction.
        line, end_line, column, end_column = next(islice(code.co_positions(), offset // 2, None), (None,) * 4)
        ends = line or 0, end_line or line or 0, column or 0, end_column or column or 0
        found = _known[key] = code, Position(code.co_filename, code.co_qualname, *ends)
    return found[1]
