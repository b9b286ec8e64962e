"""NumPy's and PyTorch's protocols: their own functions called with an `Array`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from supremum.arrays.assignment import assigned, refused_in_place, stored
from supremum.arrays.dispatch import ELEMENTWISE_OPERATIONS
from supremum.arrays.functions.elementwise import FUNCTIONS
from supremum.arrays.numpy_functions import route
from supremum.arrays.wrapped import Wrap, WrappedArray, raw_and_key
from supremum.errors import UnknownNameError
from supremum.operations import as_operation


def array_ufunc(wrap: Wrap, ufunc: np.ufunc, method: str, inputs: Sequence[Any], options: Mapping[str, Any]) -> Any:
    """The operation with the name of a ufunc of NumPy, which its arrays' operators call too.

    Args:
        wrap: makes an `Array` of an array of a library and its key.
        ufunc: NumPy's function.
        method: `"__call__"`, or the name of the method that was called.
        inputs: as it was called.
        options: likewise, `out` included.

    Raises:
        TypeError: for a ufunc that is not an operation, for methods such as `reduce`, and for options.
    """
    if ufunc.signature is not None and method == "__call__":  # of arrays as a whole, such as matmul
        return route(wrap, ufunc, inputs, options)
    given = [name for name, value in options.items() if name != "out" and value is not True]
    operation = _operation(ufunc.__name__)
    if operation is None or method != "__call__" or given:
        what = f"np.{ufunc.__name__}{'' if method == '__call__' else '.' + method}"
        options_given = f" with {', '.join(given)}" if given else ""
        raise TypeError(
            f"{what}{options_given} of an Array follows no rules; use supremum.ops or a function of "
            f"supremum.namespace, or pass NumPy's own array, np.{ufunc.__name__}(x.unwrap())"
        )
    outputs = options.get("out", ())
    if not outputs:
        result = ELEMENTWISE_OPERATIONS[operation].apply(inputs)
        return result if result is NotImplemented else wrap(*result)
    # With `array += Array` and `out=` the array that is written to keeps its dtype.
    (output,) = outputs
    kept = _as_wrapped(output)
    with refused_in_place(kept, operation, inputs):
        result = ELEMENTWISE_OPERATIONS[operation].apply(inputs)
    if result is NotImplemented:
        return result
    kept.unwrap()[...] = stored(kept, result, operation, inputs)
    return output


def _as_wrapped(value: Any) -> WrappedArray:
    return value if isinstance(value, WrappedArray) else WrappedArray(*raw_and_key(value))


@lru_cache(maxsize=4096)
def _operation(name: str) -> str | None:
    try:
        found = as_operation(name).name
    except UnknownNameError:
        return None
    return found if found in ELEMENTWISE_OPERATIONS else None


def torch_function(
    wrap: Wrap,
    array_class: type[WrappedArray],
    function: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
) -> Any:
    """The operation with the name of a function of PyTorch, which its tensors' operators call too.

    Args:
        wrap: makes an `Array` of an array of a library and its key.
        array_class: the class whose operators PyTorch may ask for.
        function: PyTorch's.
        args: as it was called.
        kwargs: likewise.

    Raises:
        TypeError: for other functions, and for options.
    """
    from supremum.arrays.backends.torch import NAMES  # only where torch is loaded

    name = getattr(function, "__name__", str(function))
    given = sorted(option for option, value in kwargs.items() if value is not None)
    if name.startswith("__") and hasattr(array_class, name) and not given:
        left: Any = args[0] if isinstance(args[0], WrappedArray) else wrap(*raw_and_key(args[0]))
        result = getattr(left, name)(*args[1:])
        return args[0] if result is left else result
    plain = name.removesuffix("_")
    # Some names mean something else in torch, such as `torch.equal`.
    found = (
        None if plain in NAMES else FUNCTIONS.get({theirs: ours for ours, theirs in NAMES.items()}.get(plain, plain))
    )
    if found is None or given:
        options = f" with {', '.join(given)}" if given else ""
        raise TypeError(
            f"torch's {name}{options} of an Array follows no rules; use supremum.ops or a function of "
            f"supremum.namespace, or pass torch's own tensor, torch.{name}(x.unwrap())"
        )
    if plain == name:
        return wrap(*found(*args))
    # With `tensor += Array` the tensor keeps its dtype.
    assigned(_as_wrapped(args[0]), found(*args), found.__name__, args)
    return args[0]
