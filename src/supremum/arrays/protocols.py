"""What NumPy and PyTorch ask an `Array` when one of their own functions is called with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from supremum.arrays.assignment import assigned, refused_in_place, stored
from supremum.arrays.operators import APPLIED
from supremum.errors import UnknownNameError
from supremum.operations import as_operation

if TYPE_CHECKING:
    from supremum.arrays.array import Array


def array_ufunc(self: Array, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
    """NumPy's functions of elements, and its arrays' operators: ours of the same name.

    Raises:
        TypeError: for those we do not have, their methods such as `reduce`, and their options.
    """
    from supremum.arrays.array import wrap  # it imports this module

    if ufunc.signature is not None and method == "__call__":  # of arrays as a whole, such as matmul
        from supremum.arrays.numpy_functions import route  # it imports the namespaces

        return route(ufunc, inputs, options)
    outputs = options.pop("out", ())
    given = [name for name, value in options.items() if value is not True]
    operation = _operation(ufunc.__name__)
    if operation is None or method != "__call__" or given:
        what = f"np.{ufunc.__name__}{'' if method == '__call__' else '.' + method}"
        options_given = f" with {', '.join(given)}" if given else ""
        raise TypeError(
            f"{what}{options_given} of an Array follows no rules: there are supremum.ops and the functions of "
            f"supremum.namespace, or give NumPy's own array, np.{ufunc.__name__}(x.unwrap())"
        )
    if not outputs:
        return APPLIED[operation].apply(inputs)
    # `array += Array`, and `out=`: what is written to keeps its dtype.
    (output,) = outputs
    kept = wrap(output)
    with refused_in_place(kept, operation, inputs):
        result = APPLIED[operation].apply(inputs)
    if result is NotImplemented:
        return result
    kept.unwrap()[...] = stored(kept, result, operation, inputs)
    return output


@lru_cache(maxsize=4096)
def _operation(name: str) -> str | None:
    try:
        found = as_operation(name).name
    except UnknownNameError:
        return None
    return found if found in APPLIED else None


def array_function(
    self: Array, function: Callable[..., Any], types: Sequence[type], args: Any, kwargs: Mapping[str, Any]
) -> Any:
    """NumPy's other functions: that of the array API standard, where it has the same one.

    Raises:
        TypeError: where it has not.
    """
    from supremum.arrays.numpy_functions import route  # it imports the namespaces

    return route(function, args, dict(kwargs))


def torch_function(
    cls: type[Array], function: Callable[..., Any], types: Sequence[type], args: Any = (), kwargs: Any = None
) -> Any:
    """PyTorch's functions of elements, and its tensors' operators: ours of the same name.

    Raises:
        TypeError: for others, and for options.
    """
    from supremum.arrays.array import Array, wrap  # they import this module
    from supremum.arrays.backends.torch import NAMES
    from supremum.arrays.ops import FUNCTIONS

    name = getattr(function, "__name__", str(function))
    given = sorted(option for option, value in (kwargs or {}).items() if value is not None)
    if name.startswith("__") and hasattr(Array, name) and not given:
        left = wrap(args[0])
        result = getattr(left, name)(*args[1:])
        return args[0] if result is left else result
    plain = name.removesuffix("_")
    # What torch calls by the name of one of ours and means something else by, such as `torch.equal`.
    found = (
        None if plain in NAMES else FUNCTIONS.get({theirs: ours for ours, theirs in NAMES.items()}.get(plain, plain))
    )
    if found is None or given:
        options = f" with {', '.join(given)}" if given else ""
        raise TypeError(
            f"torch's {name}{options} of an Array follows no rules: there are supremum.ops and the functions of "
            f"supremum.namespace, or give torch its own tensor, torch.{name}(x.unwrap())"
        )
    if plain == name:
        return found(*args)
    # `tensor += Array`: what is written to keeps its dtype.
    assigned(wrap(args[0]), found(*args), found.__name__, args)
    return args[0]
