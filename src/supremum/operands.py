"""Operands: arrays, dtypes and Python scalars in one form, `Operand`."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias, cast

import numpy as np

from supremum.data_frames import NULLABLE_NAMES, is_missing_value, nullable_format
from supremum.errors import OperandError, UnknownDtypeError, near_names
from supremum.formats import CATEGORIES, DType, Format, as_format
from supremum.framework_dtypes import is_weak_dtype
from supremum.typing import ArrayLike, DTypeLike, Scalar

OperandLike: TypeAlias = "ArrayLike | DTypeLike"
"""An array, a column, a dtype or its name, a Python number, `int`, `float`, `complex`, or an `Operand`.

>>> alike: list[OperandLike] = ["int8", np.int8, np.ones(3, "int8"), as_operand("int8")]
>>> {as_operand(each).name for each in alike}
{'int8'}
"""

WEAK_NAMES: dict[str, str] = {"int*": "integer", "float*": "float", "complex*": "complex"}
"""The names of weak kinds, and the category that each stands for.

>>> [as_operand(name).category for name in WEAK_NAMES]
['integer', 'float', 'complex']
"""
_WEAK_NAME_OF_CATEGORY = {category: name for name, category in WEAK_NAMES.items()}
# Exact types only: np.float64 is a subclass of float, an IntEnum of int, and neither is weak.
_CATEGORY_OF_TYPE: dict[type, str] = {int: "integer", float: "float", complex: "complex"}
TYPE_OF_CATEGORY: dict[str, type[Any]] = {CATEGORIES[0]: bool} | {c: kind for kind, c in _CATEGORY_OF_TYPE.items()}
"""The Python type of each category; it includes `bool`, although `bool` is not weak.

>>> TYPE_OF_CATEGORY[as_format("bfloat16").category]
<class 'float'>
"""


@dataclass(frozen=True, slots=True)
class Operand:
    """One input of an operation, as promotion sees it.

    Args:
        category: `"bool"`, `"integer"`, `"float"` or `"complex"`.
        dtype: its dtype; None for a Python scalar, whose dtype the rule set chooses.
        weak: whether it has only a category and no fixed dtype: Python scalars, and JAX arrays made of them.
        ndim: number of dimensions; None if only a dtype is known, which counts as an array.
        value: the value of a Python scalar, if it is known.
        held: the value of a 0-d NumPy array or NumPy scalar, for older rules that depend on values.
        library: the library of an array that is not wrapped, such as `"torch"`, for the code in explanations.
        nullable: whether it is a column of a data frame that may have missing values, or `pd.NA` itself.

    >>> operand = as_operand(3)
    >>> operand.name, operand.weak, operand.value, operand.with_dtype("int8").name
    ('int*', True, 3, 'int8')
    """

    category: str
    dtype: DType | None
    weak: bool = False
    ndim: int | None = None
    value: Scalar | None = None
    held: Scalar | None = field(default=None, repr=False, compare=False)
    library: str = field(default="", repr=False, compare=False)
    nullable: bool = False

    @property
    def is_python_scalar(self) -> bool:
        """Whether this is a Python number, or the type of one; a Python `bool` counts, although it is not weak."""
        return self.dtype is None or self.value is not None

    @property
    def is_missing_value(self) -> bool:
        """Whether this is `pd.NA`, which the rules see as a NaN that only nullable columns hold."""
        return self.nullable and self.dtype is None

    @property
    def format(self) -> Format:
        """The format of the dtype; a Python scalar without a dtype has none."""
        return as_format(self.dtype)

    @property
    def name(self) -> str:
        """The name of the operand in tables, such as `"int8"` or `"float*"`."""
        if self.is_missing_value:
            return "pd.NA"
        if self.weak:
            return _WEAK_NAME_OF_CATEGORY[self.category]
        return self.format.name

    def with_dtype(self, dtype: object) -> Operand:
        """The same operand after an explicit cast: strong, of the given dtype."""
        target = as_format(dtype, columns=True)
        return replace(self, category=target.category, dtype=target.dtype, weak=False, value=None, held=None)

    def __str__(self) -> str:
        if self.is_missing_value:
            return self.name
        if self.dtype is None:
            return self.name if self.value is None else f"{self.name} ({number_text(self.value)})"
        if self.value is not None:
            return f"{self.name} ({self.value!r})"
        shape = "[]" if self.ndim == 0 else ""
        mark = " (weak)" if self.weak else nullable_mark(self.nullable)
        return f"{self.format.name}{shape}{mark}"


Operands: TypeAlias = tuple[Operand, ...]
"""The operands of one call, in order.

>>> operands: Operands = (as_operand("int8"), as_operand(2.5))
>>> [operand.name for operand in operands]
['int8', 'float*']
"""


def nullable_mark(nullable: bool) -> str:
    """What explanations add to the name of a dtype if there may be missing values.

    >>> str(as_operand("Int8")), nullable_mark(False)
    ('int8 (nullable)', '')
    """
    return " (nullable)" if nullable else ""


def without_flag(operand: Operand) -> str:
    """What to ask instead of a question about a nullable operand, for messages.

    >>> without_flag(as_operand("Int8"))
    "use 'int8', and rules='pandas-nullable' for nullable columns of pandas"
    """
    return f"use '{operand.name}', and rules='pandas-nullable' for nullable columns of pandas"


def number_text(value: Scalar) -> str:
    """A Python number as it is written in explanations and tables.

    >>> number_text(1000), number_text(10**5000)
    ('1000', 'an integer of 16610 bits')
    """
    # Python refuses to print integers of more than 4300 digits, and 400 digits are unreadable.
    if isinstance(value, int) and value.bit_length() > 256:
        return f"an integer of {value.bit_length()} bits"
    return repr(value)


def weak_name(category: str) -> str:
    """The name of the weak kind of a category, such as `"int*"` for `"integer"`.

    >>> weak_name("integer"), weak_name("float")
    ('int*', 'float*')
    """
    return _WEAK_NAME_OF_CATEGORY[category]


def as_operand(value: OperandLike, position: int | None = None) -> Operand:
    """Convert anything that can be promoted to an operand.

    Args:
        value: an array (NumPy, JAX, PyTorch, TensorFlow, Paddle, MLX, tinygrad, or anything with `dtype` and `ndim`),
            a column of pandas, Polars or PyArrow, `pd.NA`, a dtype of one of these libraries or the name of one
            (`"Int8"` is pandas' name of a nullable dtype), a Python scalar, one of the types `int`, `float`, `complex`
            (or their names `"int*"`, ...), or an operand.
        position: the index of the argument, counted from 0, for error messages.

    Raises:
        OperandError: if the value has no dtype to promote: lists, None, datetime or structured arrays, ...
        UnknownDtypeError: if a string names no dtype.

    >>> as_operand(np.zeros(3, np.int8))
    Operand(category='integer', dtype=dtype('int8'), weak=False, ndim=1, value=None, nullable=False)
    >>> str(as_operand(2.5)), str(as_operand(np.float64(2.5)))
    ('float* (2.5)', 'float64[]')
    """
    kind = cast("type[object]", type(value))
    if kind in _CATEGORY_OF_TYPE:
        return Operand(_CATEGORY_OF_TYPE[kind], None, weak=True, ndim=0, value=cast("Scalar", value))
    if isinstance(value, Operand):
        return value
    if kind is bool:
        return Operand(CATEGORIES[0], np.dtype(bool), ndim=0, value=cast("bool", value))
    if isinstance(value, type) and value in _CATEGORY_OF_TYPE:
        return Operand(_CATEGORY_OF_TYPE[value], None, weak=True, ndim=0)
    which = "" if position is None else f"argument {position}"
    return _operand_of_name(value, which) if isinstance(value, str) else _operand_of_object(value, which)


def _operand_of_name(name: str, which: str) -> Operand:
    """The operand of the name of a dtype or of a weak kind; `which` is the argument that it is, for errors."""
    if name in WEAK_NAMES:
        return Operand(WEAK_NAMES[name], None, weak=True, ndim=0)
    if name in NULLABLE_NAMES:
        return _of_format(as_format(NULLABLE_NAMES[name]), nullable=True)
    try:
        return _of_format(as_format(name, columns=True))
    except UnknownDtypeError as error:
        where = ": ".join(filter(None, (which, error.where)))
        raise UnknownDtypeError(error.what, error.name, error.choices, where, _near(name, error)) from None


def _operand_of_object(value: Any, which: str) -> Operand:
    """The operand of an array, a column or a dtype; `which` is the argument that it is, for errors."""
    dtype, ndim = (None, None) if isinstance(value, type) else (_attribute(value, "dtype"), _ndim(value))
    if not isinstance(cast("object", dtype), np.dtype):
        nullable = _nullable_operand(value, ndim)
        if nullable is not None:
            return nullable
    try:
        if dtype is None or not isinstance(ndim, int):
            return replace(_of_format(as_format(value, columns=True)), weak=is_weak_dtype(value))
        target = as_format(dtype)
    except UnknownDtypeError:
        raise OperandError(_not_an_operand(value, dtype, which)) from None
    # Only bool has no weak form: JAX marks some bool arrays weak and then ignores the mark.
    weak = _is_weak(value, dtype) and target.category in _WEAK_NAME_OF_CATEGORY
    scalar = _item(value) if ndim == 0 and target.is_builtin else None
    return Operand(target.category, target.dtype, weak=weak, ndim=ndim, held=scalar, library=library_of(value))


def _nullable_operand(value: object, ndim: object) -> Operand | None:
    """The operand of `pd.NA`, or of a column or a dtype that may have missing values; None for anything else."""
    if is_missing_value(value):
        return replace(as_operand(math.nan), nullable=True)
    column = nullable_format(value)
    return None if column is None else _of_format(column, ndim if isinstance(ndim, int) else None, nullable=True)


def _near(name: str, error: UnknownDtypeError) -> tuple[str, ...]:
    """The names to suggest for an unknown one; only a capital can tell that a nullable dtype is meant."""
    is_nullable = name != name.lower()
    return (*(near_names(name, NULLABLE_NAMES)[:1] if is_nullable else ()), *error.near)


_LIBRARIES = {"numpy": "numpy", "jax": "jax", "jaxlib": "jax", "torch": "torch"}
"""The library for the top-level package of an array's class."""


def library_of(value: object) -> str:
    """The library of an array; empty for other libraries and for wrapped arrays.

    >>> import jax.numpy as jnp
    >>> library_of(np.ones(2)), library_of(jnp.ones(2)), library_of([1, 2])
    ('numpy', 'jax', '')
    """
    packages = (kind.__module__.partition(".")[0] for kind in type(value).__mro__)
    return next((_LIBRARIES[package] for package in packages if package in _LIBRARIES), "")


def _item(value: object) -> Scalar | None:
    """The value of a NumPy scalar or array, also in an `Array`; other libraries' may be remote or not computed yet."""
    unwrap = _attribute(value, "unwrap")
    value = unwrap() if callable(unwrap) else value
    return cast("Any", value).item() if isinstance(value, (np.ndarray, np.generic)) else None


def _is_weak(value: object, dtype: object) -> bool:
    """Whether JAX or tinygrad marks an array as weak."""
    return is_weak_dtype(dtype) or bool(_attribute(value, "weak_type"))


def _ndim(value: object) -> object:
    """The number of dimensions; None if it is unknown. TensorFlow's variables have only a shape."""
    ndim = _attribute(value, "ndim")
    return _attribute(_attribute(value, "shape"), "rank") if ndim is None else ndim


def _attribute(value: object, name: str) -> Any:
    try:
        return getattr(value, name, None)
    except Exception:  # if a property of an unknown class raises, the value is not an operand
        return None


def parse_operand(text: str) -> Operand:
    """Parse an operand as it is typed on a command line.

    Args:
        text: a Python number such as `256`, `-1.5`, `1j`, `inf` or `True`; a weak kind such as `int*`; a dtype, which
            stands for an array with dimensions, or a nullable column such as `Int8`; or a dtype and `[]`, which stands
            for a 0-d array.

    Raises:
        UnknownDtypeError: if `text` is anything else.

    >>> [
    ...     str(parse_operand(text))
    ...     for text in ("uint8", "UInt8", "uint8[]", "256", "1e3", "True", "float*")
    ... ]
    ['uint8', 'uint8 (nullable)', 'uint8[]', 'int* (256)', 'float* (1000.0)', 'bool (True)', 'float*']
    """
    if text in ("True", "False"):
        return as_operand(text == "True")
    for number in (int, float, complex):
        try:
            return as_operand(number(text))
        except ValueError:
            continue
    name = text.removesuffix("[]")
    if name == text:
        return as_operand(text)
    if name in NULLABLE_NAMES:  # columns have a dimension
        raise UnknownDtypeError("dtype", text, NULLABLE_NAMES, near=(name,))
    return _of_format(as_format(name, columns=True), ndim=0)


def _of_format(target: Format, ndim: int | None = None, *, nullable: bool = False) -> Operand:
    return Operand(target.category, target.dtype, ndim=ndim, nullable=nullable)


def _not_an_operand(value: object, dtype: object, which: str) -> str:
    what = type(value).__name__ if dtype is None else f"dtype {dtype}"
    return (
        f"{which or 'an operand'} must be a numeric array, a dtype or its name, a Python number, or one of the types "
        f"int, float, complex, got {what}"
    )
