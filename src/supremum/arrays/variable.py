"""`Variable`: an array with a dtype that never changes, to which values are assigned."""

from __future__ import annotations

from functools import partial
from typing import Any

from supremum.arrays.array import Array, wrap
from supremum.arrays.assignment import accepted_value, check_fits, refused_in_place, stored
from supremum.arrays.conversion import cast, convert
from supremum.arrays.operators import apply_operator
from supremum.arrays.wrapped import WrappedArray, unwrapped_index
from supremum.errors import ArgumentError, OperandError, shown
from supremum.rules import Storing


class Variable(Array):
    """An array whose dtype and shape never change, and to which values can be assigned.

    In an operation it is the array it holds. Assigning takes what the rules in force bring *to* its dtype and refuses
    the rest, under every rule set: nothing is truncated. NumPy's arrays are treated as any others, and a Python number
    has to fit.

    Each assignment puts another array in its place; what was read before stays as it was. A Variable is for eager
    code: a function that JAX traces sees the value that it has at that time, and cannot assign to it.

    Args:
        value: the first value: anything that `asarray` takes; it is copied.
        dtype: its dtype; None for that of the value, which a Python number takes from the rules.
        library: `"numpy"`, `"jax"` or `"torch"`; None for the one the value is from.
        name: a name for errors and the repr; empty for none.

    The operations and their refusals are those of spec/tensorflow-rfc-431-promotion-modes.md, "Are there changes
    expected in tf.Variable?".

    >>> import numpy as np, supremum
    >>> with supremum.use_rules("tf-rfc-all"):
    ...     v = Variable(1)
    ...     v.assign_add(2)
    Variable(3, dtype=int32)
    >>> with supremum.use_rules("tf-rfc-all"):
    ...     v += np.array(1.5)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    supremum.arrays.errors.InPlaceError: add(int32, float64, into=int32) -> refused   [rules tf-rfc-all]
      ...
    """

    __slots__ = ("name",)

    def __init__(self, value: Any, dtype: Any = None, *, library: Any = None, name: str = "") -> None:
        raw, key = convert(value, dtype, library=library, copy=True)
        # Only what has no dtype of its own is weak, and a Variable has one.
        super().__init__(cast(WrappedArray(raw, key), key.dtype)[0] if key.weak else raw)
        self.name = name

    @property
    def value(self) -> Array:
        """The array it holds now; later assignments leave it as it is."""
        return wrap(self._raw)

    def assign(self, value: Any) -> Variable:
        """Hold another value.

        Args:
            value: an array of the same library or of NumPy, or a Python number, of the same shape.

        Returns:
            The Variable.

        Raises:
            InPlaceError: if the rules refuse or lead to another dtype, or a Python number does not fit.
            ArgumentError: for another shape, or a value that JAX is tracing.
        """
        raw = accepted_value(self, value, Storing.KEPT)
        if tuple(raw.shape) != self.shape:
            raise ArgumentError(f"{shown(self)} has the shape {self.shape}, and what is assigned {tuple(raw.shape)}")
        return self._hold(self.backend.asarray(raw, copy=True))

    def assign_add(self, value: Any) -> Variable:
        """Add a value, as `assign` takes one; also `variable += value`."""
        return self._assigned("add", value)

    def assign_sub(self, value: Any) -> Variable:
        """Subtract a value, as `assign` takes one; also `variable -= value`."""
        return self._assigned("subtract", value)

    def assign_mul(self, value: Any) -> Variable:
        """Multiply by a value, as `assign` takes one; also `variable *= value`."""
        return self._assigned("multiply", value)

    def _assigned(self, name: str, value: Any) -> Variable:
        result = self._assign(name, value)
        if result is NotImplemented:
            raise OperandError(f"a {type(value).__name__} cannot be assigned: give an array or a Python number")
        return result

    def __setitem__(self, index: Any, value: Any) -> None:
        accepted, place = accepted_value(self, value, Storing.KEPT), unwrapped_index(index)
        if self.backend.mutable:
            raw = self.backend.asarray(self._raw, copy=True)
            raw[place] = accepted
        else:
            raw = self._raw.at[place].set(accepted)
        self._hold(raw)

    def _assign(self, name: str, other: Any) -> Any:
        with refused_in_place(self, name, (self, other), Storing.KEPT):
            result = apply_operator(name, (self, other))
        if result is NotImplemented:
            return result
        raw = stored(self, result, name, (self, other), Storing.KEPT)
        check_fits(self, name, other)
        return self._hold(raw)

    def __reduce__(self) -> Any:
        return partial(Variable, name=self.name), (self.value,)

    def __copy__(self) -> Variable:
        return Variable(self.value, name=self.name)

    def _hold(self, raw: Any) -> Variable:
        if self.backend.is_traced(raw):
            raise ArgumentError(
                "a value that JAX is tracing cannot be assigned to a Variable, where it would outlive the trace: "
                "return it from the traced function, and assign it outside"
            )
        self._raw = raw
        return self
