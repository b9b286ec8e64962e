"""Access to parts of JAX that differ between versions or that JAX does not document.

All other modules use public JAX and `jax.extend` only. The versions are JAX 0.10.2 and 0.12.0.1;
`tests/test_jax_compat.py` fails if one of these functions no longer works.
"""

# pyright: reportPrivateImportUsage=false, reportUnnecessaryIsInstance=false
# JAX 0.12 has one class under the names Jaxpr and ClosedJaxpr, and its stubs leave the second out.

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from types import CodeType
from typing import TYPE_CHECKING, Any

import jax
from jax.extend import source_info_util
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var
from jax.extend.core import primitives as _primitives
from jax.interpreters import xla

from supremum.errors import UnsupportedJaxError, shown

if TYPE_CHECKING:
    from jax.core import AbstractValue

# JAX's annotations describe one version; this file supports several.
_jax: Any = jax
_closed: Any = ClosedJaxpr
_new_equation: Any = _jax.extend.core.new_jaxpr_eqn

CLOSED_IS_OPEN: bool = _closed is Jaxpr
"""Whether JAX has one class for functions with and without the values of their constants.

In JAX 0.10 a `ClosedJaxpr` holds a `Jaxpr` and its constants. From 0.12 on, one class has both names: the constants are
its first operands, and those with a value attached are its `constvars`.

>>> CLOSED_IS_OPEN == (jax.extend.core.ClosedJaxpr is jax.extend.core.Jaxpr)
True
"""


class _Primitives:
    """The primitives of `jax.extend.core.primitives`; the error for a missing one names JAX's version."""

    def __getattr__(self, name: str) -> Any:
        try:
            return getattr(_primitives, name)
        except AttributeError:
            if not name.endswith("_p"):  # Python and its tools look up such names on any object
                raise
            raise _unsupported(f"there is no primitive {shown(name.removesuffix('_p'))}") from None


primitives: _Primitives = _Primitives()
"""JAX adds, renames and removes primitives without notice; `log2` and `one_minus_square` came after 0.10.

>>> primitives.dot_general_p.name
'dot_general'
"""


CUSTOM_VMAP = "custom_vmap_call"
"""The primitive that calls a function with a custom rule for `jax.vmap`; `jax.extend` does not export it.

>>> from jax.custom_batching import custom_vmap
>>> double = custom_vmap(lambda x: 2 * x)
>>> _ = double.def_vmap(lambda size, batched, x: (2 * x, True))
>>> jax.make_jaxpr(double)(1.0).eqns[0].primitive.name == CUSTOM_VMAP
True
"""

# Functions in parameters of other primitives are found by their type, but how operands map to arguments is unknown.
CALLS: Mapping[str, str] = {
    primitives.jit_p.name: "jaxpr",
    primitives.closed_call_p.name: "call_jaxpr",
    primitives.call_p.name: "call_jaxpr",
    primitives.remat_p.name: "jaxpr",
    "shard_map": "jaxpr",
}
"""Primitives that call one function with exactly their operands, and the parameter that holds the function.

JAX documents neither the names of parameters nor that of `shard_map`, which `jax.extend` does not export.

>>> equation = jax.make_jaxpr(jax.jit(lambda x: x + 1))(1.0).eqns[0]
>>> equation.params[CALLS[equation.primitive.name]].eqns[0].primitive
add
"""

WITH_RULE: Mapping[str, str] = {
    primitives.custom_jvp_call_p.name: "call_jaxpr",
    primitives.custom_vjp_call_p.name: "call_jaxpr",
    CUSTOM_VMAP: "call",
}
"""The same for primitives whose function has a custom rule for derivatives or `vmap`.

>>> equation = jax.make_jaxpr(jax.nn.relu)(1.0).eqns[0]
>>> equation.primitive, WITH_RULE[equation.primitive.name] in equation.params
(custom_jvp_call, True)
"""


INLINE: Any = _jax.Inline.JAX_EARLY if hasattr(jax, "Inline") else True
"""The value for `jax.jit(function, inline=INLINE)` with which no call appears in the jaxpr of the caller.

Until JAX 0.10 this is `inline=True`. From 0.11 on True means that the call is inlined when the jaxpr is lowered.

>>> jax.make_jaxpr(jax.jit(lambda x: x + 1, inline=INLINE))(1.0).eqns[0].primitive
add
"""


def parameter(equation: JaxprEqn, name: str) -> Any:
    """Return a parameter of an equation.

    JAX renames parameters without notice: `scan` has no `num_consts`, `num_carry` and `linear` from 0.12 on.

    Args:
        equation: the equation.
        name: the name of the parameter.

    Raises:
        UnsupportedJaxError: if the equation has no parameter of that name.

    >>> parameter(jax.make_jaxpr(jax.numpy.sqrt)(1.0).eqns[0], "accuracy")
    >>> equation = jax.make_jaxpr(jax.numpy.sqrt)(1.0).eqns[0]
    >>> parameter(equation, "length")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    supremum.errors.UnsupportedJaxError: 'sqrt' has no parameter 'length' (it has: accuracy) in JAX ...
    """
    try:
        return equation.params[name]
    except KeyError:
        known = ", ".join(equation.params) or "none"
        what = f"{shown(equation.primitive.name)} has no parameter {shown(name)} (it has: {known})"
        raise _unsupported(what) from None


def _unsupported(what: str) -> UnsupportedJaxError:
    return UnsupportedJaxError(
        f"{what} in JAX {jax.__version__}; this version of Supremum was tested with JAX 0.10 to 0.12: "
        "pip install 'jax>=0.10,<0.13'"
    )


def open_jaxpr(function: Jaxpr | ClosedJaxpr) -> Jaxpr:
    """Return the jaxpr of a function, with or without the values of its constants.

    Args:
        function: the value of a parameter of an equation, or the result of `jax.make_jaxpr`.

    >>> open_jaxpr(jax.make_jaxpr(lambda x: x + 1)(1.0)).eqns[0].primitive
    add
    """
    return function.jaxpr if isinstance(function, ClosedJaxpr) else function


def with_constants(jaxpr: Jaxpr, constants: Sequence[Any]) -> ClosedJaxpr:
    """Attach the values of its constants to a function.

    Args:
        jaxpr: the function; from JAX 0.12 on its first operands are the constants.
        constants: their values.

    >>> array = jax.numpy.arange(3.0)
    >>> program = jax.make_jaxpr(lambda x: x + array)(1.0)
    >>> again = with_constants(open_jaxpr(program), program.consts)
    >>> jax.extend.core.jaxpr_as_fun(again)(1.0)
    [Array([1., 2., 3.], dtype=float32)]
    """
    return ClosedJaxpr(jaxpr, constants)


def without_constants(function: Jaxpr | ClosedJaxpr) -> Jaxpr:
    """Remove the values of its constants from a function; JAX stores them separately for derivative rules.

    Args:
        function: a function with or without the values of its constants.

    >>> array = jax.numpy.arange(3.0)
    >>> program = jax.make_jaxpr(lambda x: x + array)(1.0)
    >>> len(program.consts), isinstance(without_constants(program), Jaxpr)
    (1, True)
    """
    return _closed(function, ()) if CLOSED_IS_OPEN else open_jaxpr(function)


def raw_frames(equation: JaxprEqn) -> Iterator[tuple[CodeType, int]]:
    """Return the code objects, with instruction offsets, that were running when an equation was made.

    They come from `source_info.traceback`, which JAX does not document. If it is missing or looks different, there are
    none: the origin of casts is then unknown, and nothing else changes.

    Args:
        equation: the equation.

    Yields:
        The frames, innermost first, up to where the tracing of the function began.

    >>> (equation,) = jax.make_jaxpr(lambda x: x + 1)(1.0).eqns
    >>> "<lambda>" in [code.co_name for code, _ in raw_frames(equation)]
    True
    """
    source: Any = equation.source_info
    frames: Any = getattr(source.traceback, "raw_frames", None)
    return iter(()) if frames is None else zip(*frames(), strict=True)


def cast_equation(operand: Var | Literal, result: Var, scope: str, like: JaxprEqn | None) -> JaxprEqn:
    """Make an equation that casts a variable or a literal to the dtype of a variable.

    `jax.extend` makes an equation from all parameters of its primitive, which JAX does not document, and from the
    position and the name stack of another equation.

    Args:
        operand: the variable or literal.
        result: the variable that holds the result.
        scope: the `jax.named_scope` to put around the equation.
        like: the equation whose position and scopes the new one has; None for none.

    >>> (equation,) = jax.make_jaxpr(lambda x: x.astype("bfloat16"))(1.0).eqns
    >>> cast = cast_equation(equation.invars[0], equation.outvars[0], "norm", None)
    >>> cast.params["new_dtype"], scope_names(cast.source_info.name_stack)
    (dtype(bfloat16), ('norm',))
    """
    aval: Any = result.aval
    params = {"new_dtype": aval.dtype, "weak_type": False, "sharding": None}
    place: Any = source_info_util.new_source_info() if like is None else like.source_info
    place = place.replace(name_stack=place.name_stack.extend(scope))
    ctx = None if like is None else like.ctx
    return _new_equation([operand], [result], primitives.convert_element_type_p, params, set(), place, ctx)


def broadcast_equation(operand: Var, result: Var, like: JaxprEqn) -> JaxprEqn:
    """Make an equation that broadcasts a variable of the same number of dimensions to the shape of another.

    Args:
        operand: the variable.
        result: the variable that holds the result.
        like: as for `cast_equation`.

    >>> widened = jax.make_jaxpr(lambda x: jax.numpy.broadcast_to(x, (2, 3)))
    >>> (equation,) = widened(jax.numpy.ones((1, 3))).eqns
    >>> made = broadcast_equation(equation.invars[0], equation.outvars[0], equation)
    >>> made.params["shape"]
    (2, 3)
    """
    aval: Any = result.aval
    sharding = aval.sharding if any(axis is not None for axis in aval.sharding.spec) else None
    params = {"shape": aval.shape, "broadcast_dimensions": tuple(range(len(aval.shape))), "sharding": sharding}
    place = like.source_info
    return _new_equation([operand], [result], primitives.broadcast_in_dim_p, params, set(), place, like.ctx)


def type_text(aval: AbstractValue) -> str:
    """The dtype and the shape of an abstract value as JAX prints them, such as `float32[8,128]`.

    `str_short` is not documented.

    Args:
        aval: the abstract value.

    >>> type_text(jax.typeof(jax.numpy.ones((8, 128))))
    'float32[8,128]'
    """
    return aval.str_short()


@lru_cache(maxsize=4096)
def scope_names(stack: source_info_util.NameStack) -> tuple[str, ...]:
    """The names of the `jax.named_scope` blocks in the name stack of an equation, outermost first.

    The entries of the stack are instances of private classes, `Scope` and `Transform`.

    Args:
        stack: `equation.source_info.name_stack`.

    >>> def double(x):
    ...     with jax.named_scope("encoder"), jax.named_scope("norm"):
    ...         return 2 * x
    >>> scope_names(jax.make_jaxpr(double)(1.0).eqns[0].source_info.name_stack)
    ('encoder', 'norm')
    """
    return tuple(entry.name for entry in stack.stack if type(entry).__name__ == "Scope")


@lru_cache(maxsize=4096)
def is_transposed(stack: source_info_util.NameStack) -> bool:
    """Whether an equation belongs to a backward pass, by its name stack.

    Args:
        stack: `equation.source_info.name_stack`.

    >>> gradient = jax.make_jaxpr(jax.grad(jax.numpy.sin))(1.0)
    >>> [is_transposed(equation.source_info.name_stack) for equation in gradient.eqns]
    [False, False, True]
    """
    return any(type(entry).__name__ == "Transform" and entry.name == "transpose" for entry in stack.stack)


def function_name(jaxpr: Jaxpr) -> str:
    """The name of the Python function that a jaxpr was traced from; empty if JAX does not keep it.

    Args:
        jaxpr: the function.

    >>> def double(x):
    ...     return 2 * x
    >>> function_name(open_jaxpr(jax.make_jaxpr(double)(1.0)))
    'double'
    """
    return str(getattr(jaxpr.debug_info, "func_name", ""))


def argument_names(jaxpr: Jaxpr) -> tuple[str, ...]:
    """The names of the arguments of the Python function that a jaxpr was traced from, with paths in containers.

    Args:
        jaxpr: the function.

    Returns:
        One name for each input; an empty one if JAX does not keep it, as for constants.

    >>> def scale(x, state):
    ...     return x * state["w"]
    >>> argument_names(open_jaxpr(jax.make_jaxpr(scale)(1.0, {"w": 2.0})))
    ('x', "state['w']")
    """
    names = tuple(getattr(jaxpr.debug_info, "arg_names", None) or ())
    return tuple(map(str, names)) if len(names) == len(jaxpr.invars) else ("",) * len(jaxpr.invars)


def function_place(jaxpr: Jaxpr) -> str:
    """The place of the Python function that a jaxpr was traced from, as `file:line`; empty if JAX does not keep it.

    Args:
        jaxpr: the function.

    >>> def double(x):
    ...     return 2 * x
    >>> function_place(open_jaxpr(jax.make_jaxpr(double)(1.0))).rpartition(":")[2]
    '1'
    """
    file, line = (getattr(jaxpr.debug_info, name, None) for name in ("func_filename", "func_lineno"))
    return f"{file}:{line}" if file and line else ""


def is_backend_running() -> bool:
    """Whether JAX has started a backend, such as the CPU's; this starts none.

    Every public call that could say so starts one, and `jax.distributed.initialize` then raises. If JAX has no such
    function any more, the answer is no.

    >>> array = jax.numpy.ones(2)
    >>> is_backend_running()
    True
    """
    bridge: Any = getattr(_jax._src, "xla_bridge", None)
    return bool(getattr(bridge, "backends_are_initialized", bool)())


def register_operand(kind: type, convert: Callable[[Any], Any]) -> None:
    """Register the conversion of an operand of a primitive, for a class and its subclasses.

    Args:
        kind: a class of this package.
        convert: a function that takes the object, and returns an array or raises.

    >>> class Text(str): ...
    >>> register_operand(Text, float)
    >>> jax.lax.sin(Text("0"))
    Array(0., dtype=float32, weak_type=True)
    """
    xla.canonicalize_dtype_handlers[kind] = convert
