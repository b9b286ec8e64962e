"""Where in the source an equation was written.

JAX keeps code objects and offsets in them (`jax_compat.raw_frames`); Python says which line and columns an offset
stands for.
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
    """A place in the source: a call, an operator, whatever Python was running.

    Args:
        file: the file.
        function: the function, with the classes and functions it stands in.
        line: the first line, counted from 1; 0 where Python does not say.
        end_line: the last line.
        column: where it begins in the first line, in bytes of UTF-8, counted from 0.
        end_column: where it ends in the last line.
    """

    file: str
    function: str
    line: int
    end_line: int
    column: int
    end_column: int

    @property
    def owner(self) -> str:
        """Who wrote the file; see `owner_of`."""
        return owner_of(self.file)

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True)
class Frames:
    """The calls that led to an equation, within the function that it belongs to.

    Args:
        positions: of the user's calls and of libraries', innermost first; JAX's own and Python's are left out.
        entry: the function of JAX that the innermost of them called; empty where JAX keeps no frame of it.
        in_custom_rule: whether it belongs to a derivative rule of a function with `jax.custom_jvp` or `custom_vjp`, of
            which JAX kept no frames: the innermost position is the call of the function whose rule it is.
    """

    positions: tuple[Position, ...]
    entry: str
    in_custom_rule: bool


NO_FRAMES = Frames((), "", False)
# How functions of JAX that convert on request appear in its frames: methods and functions, and calls of scalar types.
EXPLICIT_ENTRIES = frozenset({"astype", "_astype", "convert_element_type", "_ScalarMeta.__call__"})
"""Entries whose only purpose is a cast, for calls whose source does not say what they call."""
_CUSTOM_RULES = frozenset({"custom_jvp.__call__", "custom_vjp.__call__"})
_COMPREHENSIONS = ("<listcomp>", "<setcomp>", "<dictcomp>")
# Wrappers of JAX around its public functions, and ours around two of them, which say nothing about what was called.
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
            # Until Python 3.12 a comprehension is a function, which the one around it calls.
            within_comprehension = False
        elif owner_of(code.co_filename) != BETWEEN:
            within_comprehension = code.co_name in _COMPREHENSIONS
            positions.append(position_of(code, offset))
        elif not positions and not any(wrapper in code.co_qualname for wrapper in _WRAPPERS):
            entry = code.co_qualname
    return Frames(tuple(positions), entry, bool(positions) and entry in _CUSTOM_RULES)


def user_place(equation: JaxprEqn) -> str:
    """The user's innermost line that led to an equation, as `file:line`; empty where none is known.

    >>> import jax
    >>> user_place(jax.make_jaxpr(jax.numpy.sin)(1.0).eqns[0])
    ''
    """
    return next((str(position) for position in frames_of(equation).positions if position.owner == USER), "")


# By identity: code objects of two files that read alike are equal. They are kept too, so that identities stay theirs.
_known: Bounded[tuple[int, int], tuple[CodeType, Position]] = Bounded(16_384)


def position_of(code: CodeType, offset: int) -> Position:
    """The position that an offset in a code object stands for."""
    key = id(code), offset
    found = _known.get(key)
    if found is None:
        # Two bytes for each instruction.
        line, end_line, column, end_column = next(islice(code.co_positions(), offset // 2, None), (None,) * 4)
        position = Position(
            code.co_filename,
            code.co_qualname,
            line or 0,
            end_line or line or 0,
            column or 0,
            end_column or column or 0,
        )
        found = _known[key] = code, position
    return found[1]
