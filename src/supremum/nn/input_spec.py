"""What a layer takes: shapes and dtypes of its inputs, checked before they are cast.

spec/keras-rfc-293-mixed-precision.md, "InputSpecs".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from supremum.formats import DType, as_format


@dataclass(frozen=True)
class InputSpec:
    """What one input has to be; what is None or empty may be anything.

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
