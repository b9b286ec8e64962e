"""Arguments to trace a function with, described as text: arrays by dtype and shape, in any containers."""

from __future__ import annotations

import ast
import inspect
import pkgutil
import re
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import jax

from supremum.errors import ArgumentError, shown
from supremum.formats import as_format
from supremum.reports import plural
from supremum.tracing.expressions import UNRESOLVED, literal_of

_SIGNED = re.compile(r"s(\d+)")  # XLA's name of a signed integer
_KEY = re.compile(r"key(<\w+>)?(?=\[|\s*[,)\]}]|\s*$)")
# Text in quotes, or the empty brackets of an array without dimensions, which Python does not accept.
_EMPTY = re.compile(r"""('[^']*'|"[^"]*")|(?<=\w)\[\s*\]""")
_MADE = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")
# XLA counts the elements of an array in 64 bits.
_DIGITS = 18
_WHAT = "arrays such as f32[8,128] or key[], numbers, and dicts, lists and tuples of them, or module:make_args"


def parse_arguments(text: str) -> tuple[Any, ...]:
    """Parse the arguments to trace a function with.

    Args:
        text: arrays as JAX prints them, `f32[8,128]` or `float32[8,128]`, random keys, `key[]`, and numbers, strings,
            True, False and None, separated by commas; dicts, lists and tuples of these.

    Raises:
        ArgumentError: for anything else.
        UnknownDtypeError: for an unknown dtype.

    >>> parse_arguments("bf16[8,128], f32[], 0.5")
    (ShapeDtypeStruct(shape=(8, 128), dtype=bfloat16), ShapeDtypeStruct(shape=(), dtype=float32), 0.5)
    >>> parse_arguments(
    ...     "{'w': f32[2], 'b': [i8[], None]}, key[]"
    ... )  # doctest: +NORMALIZE_WHITESPACE
    ({'w': ShapeDtypeStruct(shape=(2,), dtype=float32), 'b': [ShapeDtypeStruct(shape=(), dtype=int8), None]},
     ShapeDtypeStruct(shape=(), dtype=key<fry>))
    """
    python = _EMPTY.sub(lambda match: match[1] or "[()]", _KEY.sub("key", text))
    try:
        tree = ast.parse(f"f({python}\n)", mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise _unknown(text) from error
    # A bracket that closes too early would make something else of the call.
    if not isinstance(tree, ast.Call) or not isinstance(tree.func, ast.Name) or tree.keywords:
        raise _unknown(text)
    return tuple(_value(node, python) for node in tree.args)


def arguments_maker(name: str) -> Callable[[], tuple[Any, ...]] | None:
    """A function that makes the arguments, if a text names one as `module:make_args`; None for any other text.

    Args:
        name: the text.

    Returns:
        A function that imports the module, calls the function and returns its result, as a tuple: a result that is
        not a tuple is the only argument.
    """
    if not _MADE.fullmatch(name.strip()):
        return None

    def make() -> tuple[Any, ...]:
        arguments = pkgutil.resolve_name(name.strip())()
        return arguments if type(arguments) is tuple else (arguments,)

    return make


def check_call(name: str, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    """Check that a function can be called with some positional arguments.

    Args:
        name: the name of the function, for the message.
        function: the function; one whose parameters are unknown takes any.
        arguments: the arguments.

    Raises:
        ArgumentError: if their number is wrong.

    >>> check_call("scale", lambda x, factor: x * factor, (1.0,))
    Traceback (most recent call last):
        ...
    supremum.errors.ArgumentError: scale(x, factor) cannot be called with 1 argument: missing a required argument: \
'factor'; --args must describe each of them.
    """
    try:
        signature = inspect.signature(function)
    except (ValueError, TypeError):  # a built-in function
        return
    try:
        signature.bind(*arguments)
    except TypeError as error:
        parameters, count = ", ".join(signature.parameters), plural(len(arguments), "argument")
        raise ArgumentError(
            f"{name}({parameters}) cannot be called with {count}: {error}; --args must describe each of them."
        ) from None


def _unknown(text: str) -> ArgumentError:
    return ArgumentError(f"Arguments must be {_WHAT}, got {shown(text)}.")


def _value(node: ast.expr, text: str) -> Any:
    """The value of one argument.

    Args:
        node: the argument.
        text: all arguments, for messages.
    """
    match node:
        case ast.Dict(keys=keys, values=values) if None not in keys:
            return {_key(key, text): _value(value, text) for key, value in zip(keys, values, strict=True)}
        case ast.List(elts=elements):
            return [_value(element, text) for element in elements]
        case ast.Tuple(elts=elements):
            return tuple(_value(element, text) for element in elements)
        case ast.Name(id="key"):
            return _array("key", ())
        case ast.Subscript(value=ast.Name(id=name), slice=shape):
            lengths = literal_of(shape)
            lengths = lengths if isinstance(lengths, tuple) else (lengths,)
            if all(type(length) is int and length >= 0 for length in lengths):
                return _array(name, lengths)
        case _:
            value = _number(node)
            if value is not UNRESOLVED:
                return value
    raise _unknown(ast.unparse(node).replace("[()]", "[]"))


def _key(node: ast.expr | None, text: str) -> Any:
    key = literal_of(node) if node is not None else UNRESOLVED
    if not isinstance(key, (str, int)):
        raise ArgumentError(f"The keys of a dict must be strings or ints, got {shown(text)}.")
    return key


def _number(node: ast.expr) -> Any:
    """A number, a string, True, False or None."""
    value = literal_of(node)
    if isinstance(value, (bool, int, float, complex, str)) or value is None:
        return value
    with suppress(ValueError):  # inf and nan
        return float(ast.unparse(node))
    return UNRESOLVED


def _array(name: str, shape: tuple[int, ...]) -> jax.ShapeDtypeStruct:
    if any(len(str(length)) > _DIGITS for length in shape):
        raise ArgumentError(f"The lengths of an array must have at most {_DIGITS} digits, got {shown(list(shape))}.")
    if name == "key":
        return jax.ShapeDtypeStruct(shape, jax.eval_shape(lambda: jax.random.key(0)).dtype)
    signed = _SIGNED.fullmatch(name)
    return jax.ShapeDtypeStruct(shape, as_format(name if signed is None else f"i{signed[1]}").dtype)
