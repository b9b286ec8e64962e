"""What the source of an expression says about dtypes: an operator mixes them, a call may name one."""

from __future__ import annotations

import ast
import inspect
from dataclasses import dataclass
from typing import Any

from supremum.errors import UnknownDtypeError, UnknownNameError
from supremum.formats import DType, as_format, format_names
from supremum.jaxprs import BETWEEN, UNRESOLVED, Node, Source, literal_of
from supremum.operands import Operand, as_operand
from supremum.operations import Family, as_operation

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
        operands: the source texts of an operator's operands.
        numbers: for each of these, the number literal as an operand; None for other expressions.
    """

    kind: str
    operation: str | None = None
    names_dtype: bool = False
    dtype: DType | None = None
    of_jax: bool = False
    called: str = ""
    operands: tuple[str, ...] = ()
    numbers: tuple[Operand | None, ...] = ()


NO_SOURCE = SourceIntent("")


def source_intent(node: Node | None, source: Source) -> SourceIntent:
    """What a node of a source file says about dtypes.

    Args:
        node: an expression or statement; None if there is none.
        source: the file of the node.
    """
    if node is None:
        return NO_SOURCE
    if isinstance(node, ast.Call):
        return _call(node, source)
    if isinstance(node, (ast.BinOp, ast.AugAssign, ast.UnaryOp, ast.Compare)):
        operator = node.ops[0] if isinstance(node, ast.Compare) else node.op
        operands = operand_nodes(node)
        texts, numbers = tuple(map(source.text, operands)), tuple(map(_number, operands))
        return SourceIntent("operator", _OPERATORS.get(type(operator)), operands=texts, numbers=numbers)
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
    target = _dtype(called) if isinstance(called, type) else None
    if called is UNRESOLVED and isinstance(node.func, ast.Attribute):
        target = _named(name)  # jnp.float32(x) where jnp is a local name
    if target is not None:
        return SourceIntent("call", names_dtype=True, dtype=target, of_jax=of_jax)
    for argument in _dtype_arguments(node, called, name):
        if not (isinstance(argument, ast.Constant) and argument.value is None):
            return SourceIntent("call", names_dtype=True, dtype=_dtype(_static(argument, source)), of_jax=of_jax)
    for argument in node.args:
        if (target := _named(_static(argument, source))) is not None:
            return SourceIntent("call", names_dtype=True, dtype=target, of_jax=of_jax)
        # tree.map(partial(jnp.asarray, dtype=jnp.bfloat16), tree)
        if isinstance(argument, ast.Call) and argument.args and _last_name(argument.func) == "partial":
            inner = _call(ast.Call(argument.args[0], argument.args[1:], argument.keywords), source)
            if inner.names_dtype:
                return inner
    return SourceIntent("call", _operation(called, name), of_jax=of_jax, called=source.text(node.func))


def _last_name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _is_of_jax(called: Any) -> bool:
    module = getattr(called, "__module__", None) or getattr(type(called), "__module__", "")
    return isinstance(module, str) and module.partition(".")[0] == BETWEEN


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
    found = [keyword.value for keyword in node.keywords if keyword.arg in _DTYPE_KEYWORDS]
    if name == "astype" and isinstance(node.func, ast.Attribute) and len(node.args) == 1:
        found += node.args
    places = _dtype_places(called)
    if places is None:
        places = (1,) if name in _SECOND_IS_DTYPE else ()
    if not any(isinstance(argument, ast.Starred) for argument in node.args):
        found += [node.args[place] for place in places if place < len(node.args)]
    return found


def _dtype_places(called: Any) -> tuple[int, ...] | None:
    """The positions of a function's dtype parameters; None if the function is unknown."""
    if called is UNRESOLVED:
        return None
    try:
        parameters = inspect.signature(called).parameters
    except (TypeError, ValueError):
        return None
    return tuple(place for place, name in enumerate(parameters) if name in _DTYPE_KEYWORDS)


def _static(node: ast.expr, source: Source) -> Any:
    """The value of an argument as far as the source shows it: a dtype, its name, or the name of an attribute."""
    found = source.value(node)
    return node.attr if found is UNRESOLVED and isinstance(node, ast.Attribute) else found


def _named(value: Any) -> DType | None:
    """The dtype that an argument stands for if no dtype is expected there; `"f"` does not count."""
    return None if isinstance(value, str) and value not in format_names() else _dtype(value)


def _dtype(value: Any) -> DType | None:
    try:
        return None if value is UNRESOLVED else as_format(value).dtype
    except UnknownDtypeError:
        return None
