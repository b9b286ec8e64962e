"""NumPy's ufuncs and their methods, such as `np.add.reduce`, called with an `Array`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np

from supremum.arrays.assignment import change_elements, check_mutable, write_result
from supremum.arrays.backend_errors import computation_errors
from supremum.arrays.backends import Raw
from supremum.arrays.errors import unsupported
from supremum.arrays.functions.elementwise import ELEMENTWISE_OPERATIONS
from supremum.arrays.indexed_updates import UPDATES
from supremum.arrays.namespaces import namespace_in
from supremum.arrays.numpy_functions import is_left, name_in_standard, rank, route
from supremum.arrays.promoting_function import PromotingFunction
from supremum.arrays.wrapped import unwrapped, wrap
from supremum.errors import UnknownNameError
from supremum.operations import as_operation


def array_ufunc(ufunc: np.ufunc, method: str, inputs: Sequence[Any], options: Mapping[str, Any]) -> Any:
    """The result of the operation with the name of a ufunc, which operators of NumPy's arrays call too.

    Args:
        ufunc: NumPy's function.
        method: `"__call__"`, or the name of the method that was called.
        inputs: the positional arguments.
        options: the arguments by name; NumPy makes a tuple of `out`.

    Raises:
        OperandError: for a ufunc that is not an operation, and for methods and options that no rule decides.
        InPlaceError: if the rules do not store the result in the dtype of the array that is written into.
    """
    operation = _operation(ufunc)
    if operation is not None and method == "__call__" and not options:
        return operation.operator(*inputs)
    if ufunc.signature is not None and method == "__call__":  # it takes whole arrays, such as matmul
        return route(ufunc, inputs, options)
    defaults = {name for name, default in _DEFAULTS.items() if name in options and is_left(options[name], default)}
    non_defaults = {name: value for name, value in options.items() if name not in {"out", *defaults}}
    call = None if operation is None else _METHODS[method](ufunc, operation, *inputs, **non_defaults)
    if call is None:
        what = f"np.{ufunc.__name__}{'' if method == '__call__' else '.' + method}"
        instead = f"np.asarray(x){', indices' if method in ('at', 'reduceat') else ''}"
        raise unsupported(what, [*non_defaults], f"NumPy's own arrays, {what}({instead})")
    (out,) = options.get("out", (None,))
    # `array += Array` and `out=` write into an array, which keeps its dtype.
    return call.compute() if out is None else write_result(out, f"np.{ufunc.__name__}", *call)


@lru_cache(maxsize=4096)
def _operation(ufunc: np.ufunc) -> PromotingFunction | None:
    try:
        return None if ufunc.signature else ELEMENTWISE_OPERATIONS.get(as_operation(ufunc.__name__).name)
    except UnknownNameError:
        return None


_DEFAULTS = {"where": True, "subok": True, "dtype": None, "signature": None, "casting": "same_kind", "order": "K"}


class _Call(NamedTuple):
    """What computes a method of a ufunc.

    Args:
        operation: the name of the operation that decides.
        operands: its operands; empty if the rules decide about the result alone.
        compute: returns the result.
    """

    operation: str
    operands: Sequence[Any]
    compute: Callable[[], Any]


# Each of these takes the ufunc, its operation, the arguments, and the options without `out` that are not left at their
# defaults. It returns None for calls that no rule decides.


def _call(ufunc: np.ufunc, operation: PromotingFunction, *inputs: Any, **options: Any) -> _Call | None:
    return None if options else _Call(operation.name, inputs, partial(operation.operator, *inputs))


def _routed(functions: Mapping[str, Callable[..., Any]]) -> Callable[..., _Call | None]:
    """A method that is one of NumPy's functions along the first dimension.

    Args:
        functions: NumPy's functions, by the names of the operations.
    """

    def method(ufunc: np.ufunc, operation: PromotingFunction, *inputs: Any, **options: Any) -> _Call | None:
        function = functions.get(operation.name)
        if function is None or not options.keys() <= inspect.signature(function).parameters.keys():
            return None
        compute = partial(route, function, inputs, {"axis": 0, **options})
        return _Call(name_in_standard(function), () if "dtype" in options else inputs, compute)

    return method


def _accumulate(ufunc: np.ufunc, operation: PromotingFunction, *inputs: Any, **options: Any) -> _Call | None:
    if operation.name not in _CUMULATIVE or not options.keys() <= {"axis"}:
        return _accumulate_by_function(ufunc, operation, *inputs, **options)
    return _Call(operation.name, (*inputs, *inputs), partial(_cumulative, operation, *inputs, **options))


def _cumulative(operation: PromotingFunction, x: Any, *, axis: int = 0) -> Any:
    """The results of an operation on all elements up to each one, computed for 1, 2, 4, ... elements at a time."""
    xp = namespace_in(wrap(x).backend)
    results = xp.moveaxis(operation.call(x, x), axis, 0)
    count = 1
    while count < len(results):
        results = xp.concat([results[:count], operation.call(results[:-count], results[count:])])
        count *= 2
    return xp.moveaxis(results, 0, axis)


def _outer(ufunc: np.ufunc, operation: PromotingFunction, a: Any, b: Any, **options: Any) -> _Call | None:

    def compute() -> Any:
        first = a
        if rank(a) and rank(b):
            array = wrap(a)
            first = namespace_in(array.backend).reshape(array, array.shape + (1,) * rank(b))
        return operation.call(first, b)

    return None if options else _Call(operation.name, (a, b), compute)


def _at(ufunc: np.ufunc, operation: PromotingFunction, target: Any, index: Any, *values: Any) -> _Call | None:
    # Functions of one operand have no value.
    return (
        _Call(operation.name, (), partial(_update, ufunc, operation.name, target, index, *values)) if values else None
    )


def _update(ufunc: np.ufunc, name: str, target: Any, index: Any, value: Any) -> None:
    """Update elements of an array in place; elements whose index is repeated are updated as often."""
    array, place = wrap(target), unwrapped(index)
    backend = array.backend
    update = f"{UPDATES[name]}(value)" if name in UPDATES else f"set(np.{ufunc.__name__}(x[index], value))"
    check_mutable(array, f"x = x.at[index].{update}")

    def change(raw: Raw, operand: Raw) -> Raw:
        host = backend.numpy(raw)
        ufunc.at(host, place, backend.numpy(operand))
        return backend.asarray(host, device=array.device)

    with computation_errors(f"np.{ufunc.__name__}.at", backend, target, index, value):
        raw = change_elements(array, name, value, change)
        if raw is not array.unwrap():  # other elements may have changed on the way to the dtype of the computation
            array.unwrap()[place] = backend.item(raw, place)


_REDUCE: Mapping[str, Callable[..., Any]] = {
    "add": np.sum, "multiply": np.prod, "maximum": np.max, "minimum": np.min, "logical_and": np.all,
    "logical_or": np.any,
}  # fmt: skip
_CUMULATIVE = ("maximum", "minimum", "fmax", "fmin", "logical_and", "logical_or", "bitwise_and", "bitwise_or")
"""Operations for which the grouping of operands makes no difference, and which change none that equals the other."""
_accumulate_by_function = _routed({"add": np.cumsum, "multiply": np.cumprod})
_METHODS: Mapping[str, Callable[..., _Call | None]] = {
    "__call__": _call, "reduce": _routed(_REDUCE), "accumulate": _accumulate, "outer": _outer, "at": _at,
    "reduceat": lambda *_, **__: None,
}  # fmt: skip
