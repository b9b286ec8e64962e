"""Specify the shapes and dtypes of a layer's inputs, which are checked before they are cast.

Keras RFC 293, mixed precision, "InputSpecs".
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
    """The requirements on one input; None or an empty mapping allows anything.

    Args:
        shape: the whole shape, with None for axes of any length.
        ndim: the number of axes.
        min_ndim: the smallest number of axes.
        max_ndim: the largest number of axes.
        axes: the lengths of some axes, by index; negative indices count from the end.
        dtype: the dtype before the cast. With a floating dtype the layer refuses all others, although it could cast
            them; leave it out unless this is intended.

    >>> InputSpec(min_ndim=2, axes={-1: 3}).problem((4, 5), "float32")
    'must have length 3 along axis -1, got 5'
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
        """Describe how an input breaks the requirements; None if it meets them.

        Args:
            shape: the shape of the input.
            dtype: the dtype of the input, before any cast.
        """
        if self.dtype is not None and as_format(dtype).dtype != self.dtype:
            return f"must be {as_format(self.dtype)}, got {as_format(dtype)}"
        count = len(shape)
        expected = len(self.shape) if self.shape is not None else self.ndim
        if expected is not None and count != expected:
            return f"must have {expected} axes, got {count}"
        if self.min_ndim is not None and count < self.min_ndim:
            return f"must have at least {self.min_ndim} axes, got {count}"
        if self.max_ndim is not None and count > self.max_ndim:
            return f"must have at most {self.max_ndim} axes, got {count}"
        lengths = dict(enumerate(self.shape)) if self.shape is not None else {}
        for axis, length in {**lengths, **self.axes}.items():
            if length is None:
                continue
            if not -count <= axis < count:
                return f"must have length {length} along axis {axis}, got {count} axes"
            if shape[axis] != length:
                return f"must have length {length} along axis {axis}, got {shape[axis]}"
        return None


InputSpecs: TypeAlias = "InputSpec | tuple[InputSpec | None, ...] | list[InputSpec | None] | Mapping[str, InputSpec]"
"""The requirements on the first input, on the positional inputs, or on inputs by argument name."""


def check_inputs(
    specs: InputSpecs | None, call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    """Raise if inputs do not meet their specifications.

    Args:
        specs: the specifications; None allows anything.
        call: the function that takes the inputs, which has the argument names.
        args: the positional inputs.
        kwargs: the keyword inputs.

    Raises:
        ArgumentError: for the first input that does not.
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
            raise ArgumentError(f"{name} must be one array, got {type(given).__name__}")
        problem = each.problem(np.shape(given), _dtype_of(given))
        if problem is not None:
            raise ArgumentError(f"{name} {problem}")


def _dtype_of(value: Any) -> Any:
    return value.dtype if hasattr(value, "dtype") else np.asarray(value).dtype
