"""`ArrayVariable`: an array with a fixed dtype, to which values are assigned."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from supremum.arrays.array import Array
from supremum.arrays.assignment import check_fits, kept_value, refused_in_place, stored
from supremum.arrays.entry_points import asarray
from supremum.arrays.functions.elementwise import operator_named
from supremum.arrays.wrapped import unwrapped, wrap
from supremum.errors import ArgumentError, OperandError, hide_frames, shown
from supremum.rules import Storing
from supremum.typing import ArrayLike, DTypeLike


class ArrayVariable(Array):
    """An array with a fixed dtype and shape, to which values can be assigned.

    In an operation it acts as the array that it holds. Assignment accepts what the rules in force promote *to* its
    dtype and refuses the rest, under every rule set: nothing is truncated. The same holds for NumPy's arrays. A Python
    number must fit.

    Each assignment replaces the array; values that were read before do not change. An ArrayVariable is for eager code:
    a function that JAX traces sees the value at the time of the trace, and cannot assign to the variable.

    Args:
        value: the first value: anything that `asarray` takes; it is copied.
        dtype: the dtype; None for the dtype of the value, or the rules' default for a Python number.
        library: `"numpy"`, `"jax"` or `"torch"`; None for the library of the value.
        name: a name for errors and the repr; empty for none.

    The operations and their refusals follow TensorFlow RFC 431, promotion modes, "Are there changes expected in
    tf.Variable?".

    >>> import numpy as np, supremum
    >>> with supremum.use_rules("tf-rfc-all"):
    ...     v = ArrayVariable(1)
    ...     v.assign_add(2)
    ArrayVariable(3, dtype=int32)
    >>> with supremum.use_rules("tf-rfc-all"):
    ...     v += np.array(1.5)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    supremum.arrays.errors.InPlaceError: add(int32, float64, into=int32) -> refused   [rules tf-rfc-all]
      ...
    """

    __slots__ = ("name",)

    def __init__(
        self, value: ArrayLike, dtype: DTypeLike | None = None, *, library: str | None = None, name: str = ""
    ) -> None:
        array = asarray(value, dtype, library=library, copy=True)
        # An ArrayVariable has a dtype, so it is never weak.
        super().__init__(array.astype(array.dtype) if array.weak_type else array)
        self.name: str = name

    @property
    def value(self) -> Array:
        """The array that it holds now, which later assignments do not change."""
        return wrap(self._raw)

    def assign(self, value: ArrayLike) -> ArrayVariable:
        """Hold another value.

        Args:
            value: an array of the same library or of NumPy, or a Python number, of the same shape.

        Returns:
            The ArrayVariable.

        Raises:
            InPlaceError: if the rules refuse or do not promote to the dtype, or if a Python number does not fit.
            ArgumentError: for a different shape, or a value that JAX traces.
        """
        raw = kept_value(self, value)
        if tuple(raw.shape) != self.shape:
            raise ArgumentError(f"the value must have the shape {self.shape} of {shown(self)}, got {tuple(raw.shape)}")
        return self._hold(self.backend.asarray(raw, copy=True))

    def assign_add(self, value: ArrayLike) -> ArrayVariable:
        """Add a value; the arguments and errors are those of `assign`. Also `variable += value`."""
        return self._assign_operation("add", value)

    def assign_sub(self, value: ArrayLike) -> ArrayVariable:
        """Subtract a value; the arguments and errors are those of `assign`. Also `variable -= value`."""
        return self._assign_operation("subtract", value)

    def assign_mul(self, value: ArrayLike) -> ArrayVariable:
        """Multiply by a value; the arguments and errors are those of `assign`. Also `variable *= value`."""
        return self._assign_operation("multiply", value)

    def _assign_operation(self, name: str, value: ArrayLike) -> ArrayVariable:
        try:
            result = self._assign(name, operator_named(name), value)
        except Exception as error:
            hide_frames(error)
            raise
        if result is NotImplemented:
            raise OperandError(f"the value must be an array or a Python number, got {type(value).__name__}")
        return result

    def __setitem__(self, index: Any, value: Any) -> None:
        accepted, place = kept_value(self, value), unwrapped(index)
        if self.backend.mutable:
            raw: Any = self.backend.asarray(self._raw, copy=True)
            raw[place] = accepted
        else:
            raw = self._raw.at[place].set(accepted)
        self._hold(raw)

    def _assign(self, name: str, operator: Callable[[Any, Any], Any], other: Any) -> Any:
        with refused_in_place(self, name, (self, other), Storing.KEPT):
            result = operator(self, other)
        if result is NotImplemented:
            return result
        raw = stored(self, result, name, (self, other), Storing.KEPT)
        check_fits(self, name, other)
        return self._hold(raw)

    def __reduce__(self) -> Any:
        return partial(ArrayVariable, name=self.name), (self.value,)

    def __copy__(self) -> ArrayVariable:
        return ArrayVariable(self.value, name=self.name)

    def _hold(self, raw: Any) -> ArrayVariable:
        if self.backend.is_traced(raw):
            raise ArgumentError(
                "the value must not be one that JAX is tracing, because the variable would keep it after the trace; "
                "return it from the traced function, and assign it outside"
            )
        self._raw = raw
        return self
