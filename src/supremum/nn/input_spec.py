"""What a layer takes: shapes and dtypes of its inputs, checked before they are cast.

spec/keras-rfc-293-mixed-precision.md, "InputSpecs".
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from supremum.errors import ArgumentError
from supremum.formats import DType, as_format


@dataclass(frozen=True)
class InputSpec:
    """What one input must be; what is None or empty may be anything.

    Args:
        shape: the whole shape, with None for axes of any length.
        ndim: the number of axes.
        min_ndim: the least number of them.
        max_ndim: the largest.
        axes: lengths of some axes, by index, negative ones from the end.
        dtype: the dtype before the cast. A floating one makes the layer refuse all others, although it would cast
            them: leave it out unless that is meant.

    >>> InputSpec(min_ndim=2, axes={-1: 3}).problem((4, 5), "float32")
    'has 5 along axis -1, and 3 is expected'
    >>> InputSpec(min_ndim=2, axes={-1: 3}).problem((4, 3), "float32")
    """

    shape: tuple[int | None, ...] | None = None
    ndim: int | None = None
    min_ndim: int | None = None
    max_ndim: int | None = None
    axes: Mapping[int, int] = field(default_factory=dict[int, int])
    dtype: Any = None

    def __post_init__(self) -> None:
        if self.dtype is not None:
            object.__setattr__(self, "dtype", as_format(self.dtype).dtype)

    def problem(self, shape: tuple[int, ...], dtype: DType | str) -> str | None:
        """What is wrong with an input, in words; None if nothing is.

        Args:
            shape: of the input.
            dtype: of the input, before any cast.
        """
        if self.dtype is not None and as_format(dtype).dtype != self.dtype:
            return f"is {as_format(dtype)}, and {as_format(self.dtype)} is expected"
        count = len(shape)
        expected = len(self.shape) if self.shape is not None else self.ndim
        if expected is not None and count != expected:
            return f"has {count} axes, and {expected} are expected"
        if self.min_ndim is not None and count < self.min_ndim:
            return f"has {count} axes, and at least {self.min_ndim} are expected"
        if self.max_ndim is not None and count > self.max_ndim:
            return f"has {count} axes, and at most {self.max_ndim} are expected"
        lengths = dict(enumerate(self.shape)) if self.shape is not None else {}
        for axis, length in {**lengths, **self.axes}.items():
            if length is None:
                continue
            if not -count <= axis < count:
                return f"has {count} axes, and {length} is expected along axis {axis}"
            if shape[axis] != length:
                return f"has {shape[axis]} along axis {axis}, and {length} is expected"
        return None


InputSpecs: TypeAlias = "InputSpec | tuple[InputSpec | None, ...] | list[InputSpec | None] | Mapping[str, InputSpec]"
"""What inputs must be: the first one, the positional ones, or some by the names of arguments."""


def check_inputs(
    specs: InputSpecs | None, call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    """Raise if inputs do not fit their specifications.

    Args:
        specs: the specifications; None for anything.
        call: what they are for, whose arguments have names.
        args: the positional ones.
        kwargs: the others.

    Raises:
        ArgumentError: for the first that is not.
    """
    if specs is None:
        return
    if isinstance(specs, InputSpec):
        specs = (specs,)
    pairs: list[tuple[str, InputSpec | None, Any]]
    if isinstance(specs, Mapping):
        bound = inspect.signature(call).bind_partial(*args, **kwargs).arguments
        pairs = [(name, specs[name], bound[name]) for name in specs if name in bound]
    else:
        pairs = [(f"input {number}", *pair) for number, pair in enumerate(zip(specs, args, strict=False))]
    for name, each, given in pairs:
        if each is None or given is None:
            continue
        if isinstance(given, (list, tuple, dict)):
            raise ArgumentError(f"{name} is a {type(given).__name__}, and one array is expected")
        problem = each.problem(np.shape(given), _dtype_of(given))
        if problem is not None:
            raise ArgumentError(f"{name} {problem}")


def _dtype_of(value: Any) -> Any:
    return value.dtype if hasattr(value, "dtype") else np.asarray(value).dtype
