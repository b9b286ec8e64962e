"""What differs between versions of JAX, or that JAX does not promise, and how this package reads it.

Everything else is public JAX and `jax.extend`. The versions are JAX 0.10.2 and 0.12.0.1; `tests/test_jax_compat.py`
notices when one of these readings no longer holds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from types import CodeType
from typing import Any

import jax
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn
from jax.extend.core import primitives as _primitives

from supremum.errors import UnsupportedJaxError, shown

# JAX's annotations are those of one version; this file reads several.
_jax: Any = jax
_closed: Any = ClosedJaxpr

CLOSED_IS_OPEN: bool = _closed is Jaxpr
"""Whether there is one class for functions with and without the values of their constants.

To JAX 0.10 a `ClosedJaxpr` holds a `Jaxpr` and its constants. From 0.12 on there is one class with both names: its
constants are operands, the first ones, and those with a value attached are `constvars`.
"""


class _Primitives:
    """The primitives of `jax.extend.core.primitives`, with an error that names JAX's version for those it lacks."""

    def __getattr__(self, name: str) -> Any:
        try:
            return getattr(_primitives, name)
        except AttributeError:
            if not name.endswith("_p"):  # what Python and its tools ask of any object
                raise
            raise _unsupported(f"there is no primitive {shown(name.removesuffix('_p'))}") from None


primitives = _Primitives()
"""JAX adds, renames and removes primitives without notice; `log2` and `one_minus_square` came after 0.10."""


INLINE: Any = _jax.Inline.JAX_EARLY if hasattr(jax, "Inline") else True
"""For `jax.jit(function, inline=INLINE)`: a function that leaves nothing in the jaxpr of the function that calls it.

Until JAX 0.10 that is `inline=True`. From 0.11 on True means that the call is inlined when the jaxpr is lowered.
"""


def parameter(equation: JaxprEqn, name: str) -> Any:
    """A parameter of an equation.

    JAX renames parameters without notice: `scan` has no `num_consts`, `num_carry` and `linear` from 0.12 on.

    Args:
        equation: the equation.
        name: the name of the parameter.

    Raises:
        UnsupportedJaxError: if the equation has no parameter of that name.

    >>> parameter(jax.make_jaxpr(jax.numpy.sqrt)(1.0).eqns[0], "accuracy")
    >>> parameter(jax.make_jaxpr(jax.numpy.sqrt)(1.0).eqns[0], "length")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    supremum.errors.UnsupportedJaxError: 'sqrt' has no parameter 'length' (it has: accuracy) in JAX ...
    """
    try:
        return equation.params[name]
    except KeyError:
        known = ", ".join(equation.params) or "none"
        raise _unsupported(
            f"{shown(equation.primitive.name)} has no parameter {shown(name)} (it has: {known})"
        ) from None


def _unsupported(what: str) -> UnsupportedJaxError:
    return UnsupportedJaxError(
        f"{what} in JAX {jax.__version__}; this version of Supremum was tested with JAX 0.10 to 0.12: "
        "pip install 'jax>=0.10,<0.13'"
    )


def open_jaxpr(function: Jaxpr | ClosedJaxpr) -> Jaxpr:
    """The program of a function, whether or not it comes with the values of its constants.

    Args:
        function: what a parameter of an equation holds, or what `jax.make_jaxpr` gives.
    """
    return function.jaxpr if isinstance(function, ClosedJaxpr) else function


def with_constants(jaxpr: Jaxpr, constants: Sequence[Any]) -> ClosedJaxpr:
    """A function with the values of its constants.

    Args:
        jaxpr: the function; from JAX 0.12 on its first operands are the constants.
        constants: their values.
    """
    return ClosedJaxpr(jaxpr, constants)


def without_constants(function: Jaxpr | ClosedJaxpr) -> Jaxpr:
    """A function whose constants have no values: JAX keeps those of derivative rules beside them.

    Args:
        function: a function with or without the values of its constants.
    """
    return _closed(function, ()) if CLOSED_IS_OPEN else open_jaxpr(function)


def raw_frames(equation: JaxprEqn) -> Iterator[tuple[CodeType, int]]:
    """The code objects, and the offsets of the instructions in them, that were running when an equation was made.

    They are in `source_info.traceback`, which no document promises. Where it is not, or looks different, there are
    none: casts are then of unknown origin, and nothing else changes.

    Args:
        equation: the equation.

    Yields:
        The frames, innermost first, up to where the tracing of the function began.
    """
    source: Any = equation.source_info
    frames: Any = getattr(source.traceback, "raw_frames", None)
    return iter(()) if frames is None else zip(*frames(), strict=True)


@lru_cache(maxsize=4096)
def scope_names(stack: Any) -> tuple[str, ...]:
    """The names of the `jax.named_scope` blocks in the name stack of an equation, outermost first.

    Its entries are of private classes, `Scope` and `Transform`.

    Args:
        stack: `equation.source_info.name_stack`.
    """
    return tuple(entry.name for entry in stack.stack if type(entry).__name__ == "Scope")


@lru_cache(maxsize=4096)
def is_transposed(stack: Any) -> bool:
    """Whether the name stack of an equation has it in a backward pass.

    Args:
        stack: `equation.source_info.name_stack`.
    """
    return any(type(entry).__name__ == "Transform" and entry.name == "transpose" for entry in stack.stack)


def function_name(jaxpr: Jaxpr) -> str:
    """The name of the Python function that a jaxpr was traced from; empty where JAX does not keep it.

    Args:
        jaxpr: the function.
    """
    return str(getattr(jaxpr.debug_info, "func_name", ""))


def function_place(jaxpr: Jaxpr) -> str:
    """Where the Python function that a jaxpr was traced from is written, as `file:line`; empty where JAX does not say.

    Args:
        jaxpr: the function.
    """
    file, line = (getattr(jaxpr.debug_info, name, None) for name in ("func_filename", "func_lineno"))
    return f"{file}:{line}" if file and line else ""
