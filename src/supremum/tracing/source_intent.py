"""What a user's expression says about dtypes: an operator that mixes, a call that names one, a call that does not."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from supremum.errors import UnknownDtypeError, UnknownNameError
from supremum.formats import DType, as_format, format_names
from supremum.jaxprs import BETWEEN, UNRESOLVED, Node, Source
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
# Where functions take a dtype in second place, for when what is called cannot be looked up.
_SECOND_IS_DTYPE = ("astype", "convert_element_type", "asarray", "array", "zeros_like", "ones_like", "empty_like")


@dataclass(frozen=True, slots=True)
class SourceIntent:
    """What an expression says.

    Args:
        kind: `"operator"`; `"call"`; `"index"`; `"other"`, a statement that computes nothing by itself; or `""` where
            there is no source.
        operation: the name of the operation in `supremum.operations`; None where it has no row there.
        names_dtype: whether a call says in which dtype: `astype`, `dtype=`, `jnp.float32(x)`.
        dtype: the dtype it names, where that can be read without running it.
        of_jax: whether a call is known to be one of JAX's own functions.
        called: the text of what a call calls.
        operands: the texts of the operands of an operator.
        numbers: which of those are numbers written there, as operands.
    """

    kind: str
    operation: str | None = None
    names_dtype: bool = False
    dtype: DType | None = None
    of_jax: bool = False
    called: str = ""
    operands: tuple[str, ...] = ()
    numbers: tuple[Operand | None, ...] = ()


NOTHING = SourceIntent("")


def source_intent(node: Node | None, source: Source) -> SourceIntent:
    """What a node of a source file says about dtypes.

    Args:
        node: an expression or statement; None where there is none.
        source: the file it is in.
    """
    if node is None:
        return NOTHING
    if isinstance(node, ast.BinOp):
        return _operator(node.op, (node.left, node.right), source)
    if isinstance(node, ast.AugAssign):
        return _operator(node.op, (node.target, node.value), source)
    if isinstance(node, ast.Compare):
        # Of a chain only the run says which comparison it was.
        both = (node.left, *node.comparators) if len(node.ops) == 1 else ()
        return _operator(node.ops[0], both, source)
    if isinstance(node, ast.UnaryOp):
        return SourceIntent("operator", operands=(source.text(node.operand),), numbers=(None,))
    if isinstance(node, ast.Call):
        return _call(node, source)
    return SourceIntent("index" if isinstance(node, ast.Subscript) else "other")


def _operator(operator: ast.AST, operands: Sequence[ast.expr], source: Source) -> SourceIntent:
    return SourceIntent(
        "operator",
        _OPERATORS.get(type(operator)),
        operands=tuple(map(source.text, operands)),
        numbers=tuple(map(_number, operands)),
    )


def _number(node: ast.expr) -> Operand | None:
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError):
        return None
    return as_operand(value) if isinstance(value, (bool, int, float, complex)) else None


def _call(node: ast.Call, source: Source) -> SourceIntent:
    called = source.value(node.func)
    name = _last_name(node.func)
    of_jax = called is not UNRESOLVED and _is_of_jax(called)
    target = _dtype(called) if isinstance(called, type) else None
    if called is UNRESOLVED and isinstance(node.func, ast.Attribute):
        target = _named(name)  # jnp.float32(x), jnp being a local name
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
    # What a reduction or a product casts is for its accumulation, and no promotion of operands.
    return row.name if row is not None and row.family in (Family.QUESTION, Family.ELEMENTWISE) else None


def _dtype_arguments(node: ast.Call, called: Any, name: str) -> list[ast.expr]:
    """The arguments of a call that are there to say a dtype."""
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
    """Where a function takes a dtype; None where that cannot be known."""
    if called is UNRESOLVED:
        return None
    try:
        parameters = inspect.signature(called).parameters
    except (TypeError, ValueError):
        return None
    return tuple(place for place, name in enumerate(parameters) if name in _DTYPE_KEYWORDS)


def _static(node: ast.expr, source: Source) -> Any:
    """What an argument is, where reading it is enough: a dtype, its name, or an attribute that is called like one."""
    found = source.value(node)
    if found is UNRESOLVED and isinstance(node, ast.Attribute):
        return node.attr
    return found


def _named(value: Any) -> DType | None:
    """The dtype of a value where one is not expected: what is called `"f"` need not be one."""
    return None if isinstance(value, str) and value not in format_names() else _dtype(value)


def _dtype(value: Any) -> DType | None:
    try:
        return None if value is UNRESOLVED else as_format(value).dtype
    except UnknownDtypeError:
        return None
