"""Errors about arrays, other than those of promotion.

Exception
└── SupremumError
    ├── LibraryError       (TypeError) operands from two libraries, or from an unknown one
    ├── DeviceError        (ValueError) operands on two devices
    ├── RuntimeDtypeError  (TypeError) the rules need a dtype or a function that the library does not have
    ├── ComputationError   (RuntimeError) the library failed to compute
    ├── NarrowingError     (OverflowError) values out of range of the narrower integer dtype of a decision
    ├── PromotionError     (TypeError) in `supremum.decisions`: the rules refuse
    │   └── InPlaceError   a result or a value that cannot be stored in an array that keeps its dtype
    └── TensorInPlaceError (ValueError) the same in `tensor += array`
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import cast

from supremum.decisions import Decision, PromotionError
from supremum.errors import OperandError, SupremumError, listed
from supremum.fix import Fix
from supremum.operations import ASSIGN


class LibraryError(SupremumError, TypeError):
    """Operands of two libraries other than NumPy, or of a library that is not supported.

    NumPy's arrays follow the other operand into its library; between two other libraries nothing is converted
    implicitly.

    >>> import jax.numpy as jnp, supremum
    >>> supremum.namespace("numpy").sqrt(jnp.ones(2))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    supremum.arrays.errors.LibraryError: sqrt: a, as the namespace, must be an array of numpy, got one of jax; use ...
    """


class DeviceError(SupremumError, ValueError):
    """Operands on two devices."""


class RuntimeDtypeError(SupremumError, TypeError):
    """The rules need a dtype or a computation that the library does not have.

    Args:
        what: what the library does not have.
        remedy: what to do, if that is not to cast first.
        decision: the decision of the rules, which finds the casts that help.

    >>> import jax.numpy as jnp, supremum
    >>> with supremum.use_rules("numpy"):
    ...     supremum.asarray(jnp.ones(2, "int32")) * 0.5  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    supremum.arrays.errors.RuntimeDtypeError: ... the rules decide float64, ... which JAX does not have while its ...
    """

    def __init__(self, what: str, remedy: str = "", decision: Decision | None = None) -> None:
        super().__init__(what, remedy)
        self.what: str = what
        self.remedy: str = remedy
        self.decision: Decision | None = decision

    @property
    def fix(self) -> Fix | None:
        """Casts after which the library computes, tried on it; None if there are none, or if `remedy` is set."""
        decision = None if self.remedy else self.decision
        return None if decision is None else decision.find_fix(decision.operands)

    def __str__(self) -> str:
        remedy = self.remedy or (f"cast first, with {fix}" if (fix := self.fix) is not None else "")
        return f"{self.what}; {remedy}" if remedy else self.what

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (str(self),))


class ComputationError(SupremumError, RuntimeError):
    """The library failed to compute: shapes that do not fit, too little memory, ...

    It also has the class of the library's error, such as `ValueError` or `numpy.linalg.LinAlgError`, and that error is
    its cause.

    Args:
        message: the function, its operands, and the library's message.

    >>> import numpy as np, supremum
    >>> supremum.asarray(np.ones(2, "int8")) + np.ones(3, "int8")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    supremum.arrays.errors.ComputationError: add(int8[2], int8[3]) failed in numpy: operands could not be broadcast ...
    """

    def __init__(self, message: str) -> None:
        self.args: tuple[object, ...] = (message,)

    def __str__(self) -> str:
        return str(self.args[0])

    def __reduce__(self) -> tuple[object, ...]:
        return (computation_error, (type(self).__bases__[-1], *self.args))


def computation_error(kind: type[Exception], message: str) -> ComputationError:
    """A `ComputationError` that also has another class, where that is possible."""
    return _combined_class(kind)(message)


@functools.cache
def _combined_class(kind: type[Exception]) -> type[ComputationError]:
    if issubclass(ComputationError, kind):
        return ComputationError
    try:
        return cast("type[ComputationError]", type(ComputationError.__name__, (ComputationError, kind), {}))
    except TypeError:  # some classes that are written in C cannot be combined
        return ComputationError


def unsupported(what: str, options: Sequence[str], instead: str) -> OperandError:
    """The error for a function of a library that takes no `Array`, or takes it without some options.

    Args:
        what: the function.
        options: the names of the options that were given.
        instead: the library's own arrays, and a call with them.
    """
    suffix = f" with {listed(options)}" if options else ""
    return OperandError(
        f"{what}{suffix} does not support an Array; use supremum.ops or a function of supremum.namespace, or pass "
        f"{instead}"
    )


class NarrowingError(SupremumError, OverflowError):
    """Values that are out of range of the narrower integer dtype of a decision.

    >>> import numpy as np, supremum
    >>> with supremum.use_rules("jax-x32"):
    ...     supremum.asarray(np.array([2**40])) + 1  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    supremum.arrays.errors.NarrowingError: the rules compute int64 in int32, which does not hold 1099511627776 ...
    """


class InPlaceError(PromotionError):
    """A result or a value that cannot be stored in an array, which keeps its dtype.

    >>> import numpy as np, supremum
    >>> x = supremum.asarray(np.ones(2, "int8"))
    >>> x += 0.5
    Traceback (most recent call last):
        ...
    supremum.arrays.errors.InPlaceError: add(int8, float*, into=int8) -> refused   [rules jax-x64]
      a    int8
      b    float* (0.5)
      why  float* is the least upper bound: int8 -> int16 -> int32 -> int64 -> float*
           float* is a weak kind and has dtype float64 unless an operand is strong
           float64 cannot be stored in int8: these rules store only results of that dtype
      or assign the result to a new name
    """

    def __str__(self) -> str:
        advice = "" if self.decision.operation == ASSIGN.name else "\n  or assign the result to a new name"
        return f"{self.decision}{advice}"


class TensorInPlaceError(SupremumError, ValueError):
    """The `InPlaceError` of a tensor of PyTorch that is not wrapped: `tensor += array`, or `tensor.add_(array)`.

    It is not a `TypeError`, because PyTorch's in-place operators read a `TypeError` as "not supported", and Python
    would then silently bind the name on the left to a new array.

    Attributes:
        decision: the refusal.

    >>> import supremum
    >>> refused = supremum.explain("int8", "float32", operation="add", into="int8")
    >>> isinstance(TensorInPlaceError(refused), TypeError)
    False
    """

    def __init__(self, decision: Decision) -> None:
        self.decision: Decision = decision
        super().__init__(str(InPlaceError(decision)))

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (self.decision,))
