"""Signatures of NumPy's functions, the same with every version of NumPy."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

_UNSET: Any = getattr(np, "_NoValue", None)
# What NumPy's functions in C take: before NumPy 2.4 `inspect` finds no signature for them, or only `*args, **kwargs`.
_IN_C: Mapping[Callable[..., Any], Callable[..., Any]] = {
    np.bincount: lambda x, /, weights=None, minlength=0: None,
    np.concatenate: lambda arrays, /, axis=0, out=None, *, dtype=None, casting="same_kind": None,
    np.dot: lambda a, b, out=None: None,
    np.empty_like: lambda prototype, /, dtype=None, order="K", subok=True, shape=None, *, device=None: None,
    np.inner: lambda a, b, /: None,
    np.result_type: lambda *arrays_and_dtypes: None,
    np.where: lambda condition, x=None, y=None, /: None,
} | dict.fromkeys(
    (np.matmul, np.vecdot),
    lambda x1, x2, /, out=None, *, axes=_UNSET, axis=_UNSET, keepdims=False, casting="same_kind", order="K",
    dtype=None, subok=True, signature=None: None,
)  # fmt: skip


def numpy_signature(function: Callable[..., Any]) -> inspect.Signature:
    """The signature of a function of NumPy that is called with an `Array`.

    Args:
        function: NumPy's function.

    >>> numpy_signature(np.concatenate)
    <Signature (arrays, /, axis=0, out=None, *, dtype=None, casting='same_kind')>
    """
    return inspect.signature(_IN_C.get(function, function))
