"""The expressions at positions in source files, and what they say about dtypes: operators mix them, calls name them."""

from __future__ import annotations

import ast
import inspect
import linecache
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import Any, TypeAlias, cast

from supremum.errors import UnknownDtypeError, UnknownNameError, printable
from supremum.formats import DType, as_format, format_names
from supremum.jaxprs import BETWEEN, Position
from supremum.operands import Operand, as_operand
from supremum.operations import Family, as_operation

Node: TypeAlias = "ast.expr | ast.stmt"
UNRESOLVED: Any = object()
"""Stands for a value that only running the expression would give."""
_OPERATORS: dict[type[ast.AST], str | None] = {
    ast.Add: "add", ast.Sub: "subtract", ast.Mult: "multiply", ast.Div: "divide", ast.FloorDiv: "floor_divide",
    ast.Mod: "remainder", ast.Pow: "pow", ast.MatMult: None, ast.BitAnd: "bitwise_and", ast.BitOr: "bitwise_or",
    ast.BitXor: "bitwise_xor", ast.LShift: "bitwise_left_shift", ast.RShift: "bitwise_right_shift",
    ast.Lt: "less", ast.LtE: "less_equal", ast.Gt: "greater", ast.GtE: "greater_equal", ast.Eq: "equal",
    ast.NotEq: "not_equal",
}  # fmt: skip
_DTYPE_KEYWORDS = ("dtype", "preferred_element_type", "new_dtype", "param_dtype", "result_type")
# Functions whose second argument is a dtype, for calls whose function cannot be looked up.
_SECOND_IS_DTYPE = ("astype", "convert_element_type", "asarray", "array", "zeros_like", "ones_like", "empty_like")


class Source:
    """The current content of a source file, which may have been edited since its import.

    Args:
        file: its name, as in code objects; a notebook cell has one too.
    """

    def __init__(self, file: str) -> None:
        linecache.checkcache(file)
        self._lines = linecache.getlines(file)
        self._nodes: dict[tuple[int, int, int, int], Node] = {}
        self._ends: dict[tuple[int, int], list[Node]] = {}
        self.names: Mapping[str, Any] = _names_of(file)
        try:
            tree = ast.parse("".join(self._lines))
        except (SyntaxError, ValueError):  # a notebook cell with magics, or a file that is not Python
            return
        for node in ast.walk(tree):
            if isinstance(node, (ast.expr, ast.stmt)):
                end = node.end_lineno or 0, node.end_col_offset or 0
                place = (node.lineno, node.col_offset, *end)
                # An expression statement has the position of its expression and comes first: the expression wins.
                self._nodes[place] = node
                self._ends.setdefault(end, []).append(node)

    def node(self, position: Position) -> Node | None:
        """The expression or statement at a position; None if there is none."""
        end = position.end_line, position.end_column
        exact = self._nodes.get((position.line, position.column, *end))
        if exact is not None:
            return exact
        # For a method chain over several lines, Python keeps only the start of the last call.
        around = (
            node
            for node in self._ends.get(end, ())
            if isinstance(node, ast.Call) and (node.lineno, node.col_offset) <= (position.line, position.column)
        )
        return next(around, None)

    def text(self, node: Node) -> str:
        """The source text of a node, on one line."""
        first, last = node.lineno - 1, (node.end_lineno or node.lineno) - 1
        lines = [line.encode() for line in self._lines[first : last + 1]] or [b""]
        lines[-1] = lines[-1][: node.end_col_offset]
        lines[0] = lines[0][node.col_offset :]
        return printable(" ".join(b"".join(lines).decode(errors="replace").split()))

    def line(self, number: int) -> str:
        """A line of the file, stripped; empty if there is none."""
        return printable(self._lines[number - 1].strip()) if 0 < number <= len(self._lines) else ""

    def value(self, node: ast.AST) -> Any:
        """The value of an expression in the module; see `value_of`."""
        return value_of(node, self.names)


def value_of(node: ast.AST, names: Mapping[str, Any], *, in_objects: bool = False) -> Any:
    """The value of a constant, a name or a dotted name, read without running user code; else `UNRESOLVED`.

    Only attributes of modules and classes are read, because those of other objects may be properties.

    Args:
        node: the expression.
        names: the values of the names.
        in_objects: whether to read literal containers, elements of dicts, lists and tuples, and attributes in the
            `__dict__` of an object too.

    >>> names = {"weights": {"w": [1.5, 2.5]}}
    >>> value_of(
    ...     ast.parse("weights['w'][-1]", mode="eval").body, names, in_objects=True
    ... )
    2.5
    >>> value_of(
    ...     ast.parse("weights.copy()", mode="eval").body, names, in_objects=True
    ... ) is UNRESOLVED
    True
    """
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name):
        return names.get(node.id, UNRESOLVED)
    if isinstance(node, ast.Attribute):
        owner = value_of(node.value, names, in_objects=in_objects)
        if isinstance(owner, (ModuleType, type)):
            return getattr(owner, node.attr, UNRESOLVED)
        attributes = getattr(owner, "__dict__", None) if in_objects else None
        return attributes.get(node.attr, UNRESOLVED) if isinstance(attributes, Mapping) else UNRESOLVED
    if not in_objects:
        return UNRESOLVED
    if isinstance(node, ast.Subscript):
        return _element(value_of(node.value, names, in_objects=True), value_of(node.slice, names, in_objects=True))
    return literal_of(node)


def literal_of(node: ast.AST) -> Any:
    """The value of a literal, such as `-1` or `(1, 2)`; `UNRESOLVED` for other expressions."""
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError):
        return UNRESOLVED


def _element(owner: Any, index: Any) -> Any:
    """An element of a dict, list or tuple."""
    if type(owner) is dict and isinstance(index, (str, int)):
        return cast("dict[Any, Any]", owner).get(index, UNRESOLVED)
    if type(owner) in (list, tuple) and type(index) is int and -len(owner) <= index < len(owner):
        return cast("Sequence[Any]", owner)[index]
    return UNRESOLVED


def _names_of(file: str) -> Mapping[str, Any]:
    """The global names of the module imported from a file."""
    for module in list(sys.modules.values()):
        if getattr(module, "__file__", None) == file:
            return vars(module)
    main = sys.modules.get("__main__")
    return vars(main) if main is not None and file.startswith("<") else {}


class Sources:
    """Source files, each read once."""

    def __init__(self) -> None:
        self.source: Callable[[str], Source] = cache(Source)
        self.node: Callable[[Position], Node | None] = cache(self._node)
        self.text: Callable[[Position], str] = cache(self._text)
        self.intent: Callable[[Position], SourceIntent] = cache(self._intent)

    def _node(self, position: Position) -> Node | None:
        """The expression or statement at a position."""
        return self.source(position.file).node(position)

    def _text(self, position: Position) -> str:
        """The source text at a position, on one line; the whole line if there is no expression."""
        node, source = self.node(position), self.source(position.file)
        return source.line(position.line) if node is None else source.text(node)

    def _intent(self, position: Position) -> SourceIntent:
        """What the expression at a position says about dtypes; without source, as much as its instruction tells."""
        node = self.node(position)
        return _intent_of_form(position.form) if node is None else source_intent(node, self.source(position.file))


@dataclass(frozen=True, slots=True)
class SourceIntent:
    """What an expression says about dtypes.

    Args:
        kind: `"operator"`, `"call"`, `"index"`, `"other"` for a statement that computes nothing itself, or `""` without
            source.
        operation: the name of the operation in `supremum.operations`; None if it has no row there.
        names_dtype: whether a call names a dtype, as `astype`, `dtype=` and `jnp.float32(x)` do.
        dtype: that dtype, if it can be read without running the call.
        of_jax: whether a call is known to call a function of JAX.
        called: the source text of the called function.
        operands: the source texts of an operator's operands, or of the arrays that a function of JAX is called with.
        numbers: for each of these, the number literal as an operand; None for other expressions.
        in_place: whether it is an operator that writes its result into the first operand, as `+=` does.
        makes_arrays: for each of these, whether it calls NumPy or JAX, which make arrays and scalars with a dtype.
    """

    kind: str
    operation: str | None = None
    names_dtype: bool = False
    dtype: DType | None = None
    of_jax: bool = False
    called: str = ""
    operands: tuple[str, ...] = ()
    numbers: tuple[Operand | None, ...] = ()
    in_place: bool = False
    makes_arrays: tuple[bool, ...] = ()


NO_SOURCE = SourceIntent("")


@cache
def _intent_of_form(form: str) -> SourceIntent:
    if not form:
        return NO_SOURCE
    (node,) = ast.parse(form).body
    return source_intent(node.value if isinstance(node, ast.Expr) else node, Source(""))


def source_intent(node: Node, source: Source) -> SourceIntent:
    """What a node of a source file says about dtypes.

    Args:
        node: an expression or statement.
        source: the file of the node.
    """
    if isinstance(node, ast.Call):
        return _call(node, source)
    if isinstance(node, (ast.BinOp, ast.AugAssign, ast.UnaryOp, ast.Compare)):
        operator = node.ops[0] if isinstance(node, ast.Compare) else node.op
        operands = operand_nodes(node)
        texts, numbers = tuple(map(source.text, operands)), tuple(map(_number, operands))
        arrays = tuple(_makes_array(each, source) for each in operands)
        operation = _OPERATORS.get(type(operator))
        return SourceIntent(
            "operator",
            operation,
            operands=texts,
            numbers=numbers,
            in_place=isinstance(node, ast.AugAssign),
            makes_arrays=arrays,
        )
    return SourceIntent("index" if isinstance(node, ast.Subscript) else "other")


def operand_nodes(node: Node | None) -> tuple[ast.expr, ...]:
    """The operands of an operator or the positional arguments of a call; empty for other nodes.

    Args:
        node: an expression or statement.
    """
    match node:
        case ast.BinOp():
            return (node.left, node.right)
        case ast.AugAssign():
            return (node.target, node.value)
        case ast.UnaryOp():
            return (node.operand,)
        case ast.Compare(ops=[_]):  # in a chain, only the run tells which comparison it was
            return (node.left, *node.comparators)
        case ast.Call() if not any(isinstance(each, ast.Starred) for each in node.args):
            return tuple(node.args)
        case _:
            return ()


def _number(node: ast.expr) -> Operand | None:
    value = literal_of(node)
    return as_operand(value) if isinstance(value, (bool, int, float, complex)) else None


def _call(node: ast.Call, source: Source) -> SourceIntent:
    called = source.value(node.func)
    name = _last_name(node.func)
    of_jax = called is not UNRESOLVED and _is_of_jax(called)
    target = known_dtype(called) if isinstance(called, type) else None
    if called is UNRESOLVED and isinstance(node.func, ast.Attribute):
        target = _named(name)  # jnp.float32(x) where jnp is a local name
    if target is not None:
        return SourceIntent("call", names_dtype=True, dtype=target, of_jax=of_jax)
    for argument in _dtype_arguments(node, called, name):
        if not (isinstance(argument, ast.Constant) and argument.value is None):
            return SourceIntent("call", names_dtype=True, dtype=known_dtype(_static(argument, source)), of_jax=of_jax)
    for argument in node.args:
        if (target := _named(_static(argument, source))) is not None:
            return SourceIntent("call", names_dtype=True, dtype=target, of_jax=of_jax)
        # tree.map(partial(jnp.asarray, dtype=jnp.bfloat16), tree)
        if isinstance(argument, ast.Call) and argument.args and _last_name(argument.func) == "partial":
            inner = _call(ast.Call(argument.args[0], argument.args[1:], argument.keywords), source)
            if inner.names_dtype:
                return inner
    operands = _array_arguments(node) if of_jax else ()
    return SourceIntent(
        "call",
        _operation(called, name),
        of_jax=of_jax,
        called=source.text(node.func),
        operands=tuple(map(source.text, operands)),
        makes_arrays=tuple(_makes_array(each, source) for each in operands),
    )


def _array_arguments(node: ast.Call) -> tuple[ast.expr, ...]:
    """The positional arguments of a call that may be arrays; the elements of a list, as `jnp.stack` takes one."""
    arguments = [each for each in operand_nodes(node) if not isinstance(literal_of(each), str)]
    if len(arguments) == 1 and isinstance(arguments[0], (ast.List, ast.Tuple)):
        arguments = arguments[0].elts
    return () if any(isinstance(each, ast.Starred) for each in arguments) else tuple(arguments)


def _last_name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _makes_array(node: ast.expr, source: Source) -> bool:
    if not isinstance(node, ast.Call):
        return False
    called = source.value(node.func)
    return called is not UNRESOLVED and _package_of(called) in (BETWEEN, "numpy")


def _is_of_jax(called: Any) -> bool:
    return _package_of(called) == BETWEEN


def _package_of(called: Any) -> str:
    module = getattr(called, "__module__", None) or getattr(type(called), "__module__", "")
    return module.partition(".")[0] if isinstance(module, str) else ""


def _operation(called: Any, name: str) -> str | None:
    known = getattr(called, "__name__", None) if called is not UNRESOLVED and _is_of_jax(called) else name
    try:
        row = as_operation(known) if known else None
    except UnknownNameError:
        return None
    # Reductions and products cast in order to accumulate, which is not a promotion of operands.
    return row.name if row is not None and row.family in (Family.QUESTION, Family.ELEMENTWISE) else None


def _dtype_arguments(node: ast.Call, called: Any, name: str) -> list[ast.expr]:
    """The arguments of a call that stand for a dtype."""
    arguments = [keyword.value for keyword in node.keywords if keyword.arg in _DTYPE_KEYWORDS]
    if name == "astype" and isinstance(node.func, ast.Attribute) and len(node.args) == 1:
        arguments += node.args
    places = [1] if name in _SECOND_IS_DTYPE else []
    if called is not UNRESOLVED:
        with suppress(TypeError, ValueError):
            parameters = inspect.signature(called).parameters
            places = [place for place, name in enumerate(parameters) if name in _DTYPE_KEYWORDS]
    if not any(isinstance(argument, ast.Starred) for argument in node.args):
        arguments += [node.args[place] for place in places if place < len(node.args)]
    return arguments


def _static(node: ast.expr, source: Source) -> Any:
    """The value of an argument as far as the source shows it: a dtype, its name, or the name of an attribute."""
    value = source.value(node)
    return node.attr if value is UNRESOLVED and isinstance(node, ast.Attribute) else value


def _named(value: Any) -> DType | None:
    """The dtype that an argument stands for if no dtype is expected there; `"f"` does not count."""
    return None if isinstance(value, str) and value not in format_names() else known_dtype(value)


def known_dtype(value: object) -> DType | None:
    """The dtype that a value stands for; None if there is none."""
    try:
        return None if value is UNRESOLVED else as_format(value).dtype
    except UnknownDtypeError:
        return None
