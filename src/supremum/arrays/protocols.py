"""NumPy's and PyTorch's protocols: their own functions called with an `Array`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from supremum.arrays.assignment import assigned, refused_in_place, stored
from supremum.arrays.decided import Decided
from supremum.arrays.functions.elementwise import ELEMENTWISE_OPERATIONS, FUNCTIONS
from supremum.arrays.numpy_functions import route
from supremum.arrays.wrapped import WrappedArray, new_array, raw_and_key
from supremum.errors import UnknownNameError
from supremum.operations import as_operation


def array_ufunc(ufunc: np.ufunc, method: str, inputs: Sequence[Any], options: Mapping[str, Any]) -> Any:
    """The result of the operation with the name of a ufunc, which operators of NumPy's arrays call too.

    Args:
        ufunc: NumPy's function.
        method: `"__call__"`, or the name of the method that was called.
        inputs: the positional arguments.
        options: the arguments by name, including `out`.

    Raises:
        TypeError: for a ufunc that is not an operation, for methods such as `reduce`, and for options.
    """
    operation = _operation(ufunc)
    if operation is not None and method == "__call__" and not options:
        return operation.operator(*inputs)
    if ufunc.signature is not None and method == "__call__":  # it takes whole arrays, such as matmul
        return route(ufunc, inputs, options)
    given = [name for name, value in options.items() if name != "out" and value is not True]
    if operation is None or method != "__call__" or given:
        what = f"np.{ufunc.__name__}{'' if method == '__call__' else '.' + method}"
        raise _unsupported(what, given, f"NumPy's own array, {what}")
    outputs = options.get("out", ())
    if not outputs:
        return operation.operator(*inputs)
    # `array += Array` and `out=` write into an array, which keeps its dtype.
    (output,) = outputs
    kept = _as_wrapped(output)
    with refused_in_place(kept, operation.name, inputs):
        result = operation.operator(*inputs)
    if result is NotImplemented:
        return result
    kept.unwrap()[...] = stored(kept, result, operation.name, inputs)
    return output


def _unsupported(what: str, options: Sequence[str], instead: str) -> TypeError:
    given = f" with {', '.join(options)}" if options else ""
    return TypeError(
        f"{what}{given} does not support an Array; use supremum.ops or a function of supremum.namespace, or pass "
        f"{instead}(x.unwrap())"
    )


def _as_wrapped(value: Any) -> WrappedArray:
    return value if isinstance(value, WrappedArray) else new_array(*raw_and_key(value))


@lru_cache(maxsize=4096)
def _operation(ufunc: np.ufunc) -> Decided | None:
    try:
        return None if ufunc.signature else ELEMENTWISE_OPERATIONS.get(as_operation(ufunc.__name__).name)
    except UnknownNameError:
        return None


@lru_cache(maxsize=4096)
def _of_torch(function: Callable[..., Any]) -> tuple[str, str, Decided | None]:
    """The name of a function of PyTorch, its name without the mark of functions in place, and the operation."""
    from supremum.arrays.backends.torch import NAMES  # only where torch is loaded

    name = getattr(function, "__name__", str(function))
    plain = name.removesuffix("_")
    # Some names mean something else in PyTorch, such as `torch.equal`.
    ours = {theirs: ours for ours, theirs in NAMES.items()}.get(plain, plain)
    return name, plain, None if plain in NAMES else FUNCTIONS.get(ours)


def torch_function(
    array_class: type[WrappedArray], function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Any:
    """The result of the operation with the name of a function of PyTorch, which operators of tensors call too.

    Args:
        array_class: the class of the operators that PyTorch may call.
        function: PyTorch's function.
        args: its positional arguments.
        kwargs: its arguments by name.

    Raises:
        TypeError: for all other functions, and for options.
    """
    name, plain, found = _of_torch(function)
    if found is not None and plain == name and not kwargs:
        return found.call(*args)
    given = sorted(option for option, value in kwargs.items() if value is not None)
    if name.startswith("__") and hasattr(array_class, name) and not given:
        left: Any = _as_wrapped(args[0])
        result = getattr(left, name)(*args[1:])
        return args[0] if result is left else result
    if found is None or given:
        raise _unsupported(f"torch's {name}", given, f"torch's own tensor, torch.{name}")
    if plain == name:
        return found.call(*args)
    # `tensor += Array` writes into the tensor, which keeps its dtype.
    assigned(_as_wrapped(args[0]), found.call(*args), found.name, args)
    return args[0]
