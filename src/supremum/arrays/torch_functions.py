"""PyTorch's functions called with an `Array`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from supremum.arrays.assignment import assigned
from supremum.arrays.decided import Decided
from supremum.arrays.errors import unsupported
from supremum.arrays.functions.elementwise import FUNCTIONS
from supremum.arrays.wrapped import WrappedArray, as_wrapped


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
        OperandError: for all other functions, and for options.
    """
    name, plain, found = _of_torch(function)
    if found is not None and plain == name and not kwargs:
        return found.call(*args)
    given = sorted(option for option, value in kwargs.items() if value is not None)
    if name.startswith("__") and hasattr(array_class, name) and not given:
        left: Any = as_wrapped(args[0])
        result = getattr(left, name)(*args[1:])
        return args[0] if result is left else result
    if found is None or given:
        raise unsupported(f"torch's {name}", given, f"torch's own tensors, torch.{name}(x.unwrap())")
    if plain == name:
        return found.call(*args)
    # `tensor += Array` writes into the tensor, which keeps its dtype.
    assigned(as_wrapped(args[0]), found.call(*args), found.name, args)
    return args[0]
