"""The source positions of equations, and the owners of source files: the user, a library, or code between the two.

JAX stores code objects and offsets into them (`jax_compat.raw_frames`). Python maps an offset to a line and columns.
The instruction there tells an operator from a call, also where there is no source.
"""

from __future__ import annotations

import os
import site
import sysconfig
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import islice
from opcode import opname
from pathlib import Path
from types import CodeType

import jax
from jax.extend.core import JaxprEqn

from supremum.bounded_cache import Bounded
from supremum.jax_compat import raw_frames
from supremum.jaxprs.equations import as_equation
from supremum.user_frame import source_name

USER = ""
"""The owner of every file without another known owner."""
BETWEEN = "jax"
"""The owner of frames between a caller and the function it calls: files of JAX, Python and parts of this package."""

OURS = "supremum"
"""The owner of this package's other files."""

_INSTALLED = ("site-packages", "dist-packages")
_TYPED_IN = (
    *("<stdin>", "<stdin-", "<string>", "<console>", "<input>"),
    *("<python-input", "<ipython-input", "<bpython-input", "<pyshell#", "<doctest"),
)
_OPERATORS = ("+", "-", "*", "/", "//", "%", "**", "@", "&", "|", "^", "<<", ">>")
_COMPARISONS = ("<", "<=", "==", "!=", ">", ">=")
_OURS = str(Path(__file__).parents[1])
# Like JAX's files, the files that trace and rewrite programs, and that call the functions of `nn.custom_vjp` and
# `nn.custom_jvp`, appear between a layer and the functions it calls.
_TRACING = tuple(f"{_OURS}{os.sep}{folder}{os.sep}" for folder in ("jaxprs", "tracing"))
_CUSTOM_DERIVATIVES = str(Path(_OURS, "nn", "custom_derivatives.py"))
_JAX = str(Path(jax.__file__).parent)
_PYTHON = tuple({sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")})
_SITES = tuple({*site.getsitepackages(), sysconfig.get_path("purelib"), sysconfig.get_path("platlib")})


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
        form: the expression as the compiled instruction tells it, with `_` for its parts, such as `"_ * _"` or
            `"_()"`; empty for other instructions.

    >>> import jax
    >>> (equation,) = jax.make_jaxpr(lambda x: x + 1)(1.0).eqns
    >>> position = frames_of(equation).positions[0]
    >>> (
    ...     position.function,
    ...     position.line,
    ...     position.end_column - position.column,
    ...     position.owner,
    ...     position.form,
    ... )
    ('<lambda>', 1, 5, '', '_ + _')
    """

    file: str
    function: str
    line: int
    end_line: int
    column: int
    end_column: int
    form: str = ""

    @property
    def owner(self) -> str:
        """The owner of the file; see `owner_of`."""
        return owner_of(self.file)

    def __str__(self) -> str:
        return f"{source_name(self.file)}:{self.line}"


@dataclass(frozen=True, slots=True)
class Frames:
    """The calls that led to an equation, within the traced function that contains it.

    Args:
        positions: the calls in users' and libraries' code, innermost first, without those in JAX and Python.
        entry: the JAX function that the innermost of them called; empty if JAX has no frame of it.
        in_custom_rule: whether the equation belongs to a derivative rule of a `jax.custom_jvp` or `custom_vjp`. JAX
            keeps no frames of the rule, so the innermost position is the call of the function.

    >>> import jax, jax.numpy as jnp
    >>> (equation,) = jax.make_jaxpr(lambda x: jnp.sin(x))(1.0).eqns
    >>> frames = frames_of(equation)
    >>> [position.function for position in frames.positions], frames.in_custom_rule
    (['<lambda>'], False)
    """

    positions: tuple[Position, ...]
    entry: str
    in_custom_rule: bool


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
    known = _known.get(key)
    if known is None:
        # Two bytes for each instruction.
        line, end_line, column, end_column = next(islice(code.co_positions(), offset // 2, None), (None,) * 4)
        ends = line or 0, end_line or line or 0, column or 0, end_column or column or 0
        known = _known[key] = code, Position(code.co_filename, code.co_qualname, *ends, _form(code.co_code, offset))
    return known[1]


def _form(instructions: bytes, offset: int) -> str:
    # While a call runs, the offset may be in the cache that follows its instruction.
    while offset > 0 and opname[instructions[offset]] == "CACHE":
        offset -= 2
    code, argument = instructions[offset : offset + 2]
    is_call = opname[code].startswith("CALL") and "INTRINSIC" not in opname[code]
    return "_()" if is_call else _forms().get((code, argument), "")


@cache
def _forms() -> dict[tuple[int, int], str]:
    """The operators, by the code and the argument of the instruction that Python compiles them to."""
    expressions = [*(f"_ {operator} _" for operator in (*_OPERATORS, *_COMPARISONS)), "-_", "~_", "_[_]"]
    forms = {text: text for text in expressions} | {f"_ {operator}= _": f"_ {operator}= _" for operator in _OPERATORS}
    forms |= {f"if {text}: pass": text for text in expressions}  # some versions compile conditions differently
    table: dict[tuple[int, int], str] = {}
    for text, form in forms.items():
        instructions = compile(text, "", "exec").co_code
        for code, argument in zip(instructions[::2], instructions[1::2], strict=True):
            if opname[code].startswith(("BINARY_", "COMPARE_", "UNARY_NEGATIVE", "UNARY_INVERT")):
                table[code, argument] = form
    return table


@lru_cache(maxsize=4096)
def owner_of(file: str) -> str:
    """The owner of a file: `USER`, `BETWEEN`, or the name of an installed package.

    A file in the folders of Python's package manager belongs to a library. An editable installation lies elsewhere and
    belongs to the user.

    Args:
        file: the name of a file, as in code objects.

    >>> (
    ...     owner_of("/home/me/train.py"),
    ...     owner_of("/usr/lib/python3.11/site-packages/flax/linen/linear.py"),
    ... )
    ('', 'flax')
    """
    if _under(file, _JAX) or file.startswith(_TRACING) or file == _CUSTOM_DERIVATIVES:
        return BETWEEN
    if _under(file, _OURS):
        return OURS
    inside = installed_file(file)
    if inside is not None:
        return _package(inside)
    if any(_under(file, root) for root in _PYTHON):
        return BETWEEN
    # Wrappers that libraries generate at run time, and Python's frozen modules.
    return BETWEEN if file.startswith("<") and not file.startswith(_TYPED_IN) else USER


def installed_file(file: str) -> str | None:
    """The path of a file within Python's folder of packages; None for a file that lies elsewhere.

    >>> installed_file("/usr/lib/python3.11/site-packages/flax/linen/linear.py")
    'flax/linen/linear.py'
    """
    for root in _SITES:
        if _under(file, root):
            return file[len(root) + 1 :]
    for part in _INSTALLED:
        _, separator, inside = file.rpartition(f"/{part}/")
        if separator:
            return inside
    return None


def _package(inside: str) -> str:
    name = Path(inside).parts[0].removesuffix(".py")
    return BETWEEN if name in ("jax", "jaxlib") else name


def _under(file: str, root: str) -> bool:
    return file.startswith(root) and file[len(root) : len(root) + 1] in ("/", "\\")
