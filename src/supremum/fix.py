"""The fix of a refusal: explicit casts as a value, and the code to type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from supremum.data_frames import NULLABLE_NAME_OF, POLARS_NAME_OF
from supremum.formats import CATEGORIES, FORMATS, DType, Format, as_format
from supremum.framework_dtypes import TINYGRAD_NAME_OF
from supremum.operands import Operand

MOST_OPERANDS = 40
"""The most operands that a message lists.

>>> casts = [FixCast(position, np.dtype("float32")) for position in range(50)]
>>> str(Fix(tuple(casts))).rpartition(" and ")[2]
'10 more'
"""


class Spelling(NamedTuple):
    """How casts are written in a library.

    Args:
        array: the cast of an array `{0}` to a dtype `{1}`.
        number: the array of a Python number `{0}` with a dtype `{1}`.
        names: the names of dtypes that differ from those of formats.
        real: the real part of an array `{0}`.

    >>> SPELLINGS["polars"].array.format("a", "Int8")
    'a.cast(pl.Int8)'
    """

    array: str = "{0}.astype('{1}')"
    number: str = "np.asarray({0}, '{1}')"
    names: Mapping[str, str] = {}
    real: str = "{0}.real"


_USUAL, _NULLABLE = Spelling(), Spelling(names=NULLABLE_NAME_OF)
_OF_C = {"bool": "bool_"}
SPELLINGS: dict[str, Spelling] = {
    "torch": Spelling("{0}.to(torch.{1})", "torch.tensor({0}, dtype=torch.{1})"),
    "polars": Spelling("{0}.cast(pl.{1})", "pl.lit({0}, pl.{1})", POLARS_NAME_OF),
    "pyarrow": Spelling("{0}.cast(pa.{1}())", "pa.scalar({0}, pa.{1}())", _OF_C),
    "mlx": Spelling("{0}.astype(mx.{1})", "mx.array({0}, mx.{1})", _OF_C),
    "tinygrad": Spelling("{0}.cast(dtypes.{1})", "Tensor({0}, dtype=dtypes.{1})", TINYGRAD_NAME_OF),
    # NumPy converts numbers: TensorFlow and Keras read large ints as int32, and TensorFlow makes no float of True.
    "tensorflow": Spelling("tf.cast({0}, '{1}')", "tf.constant(np.asarray({0}, '{1}'))", real="tf.math.real({0})"),
    "paddle": Spelling(number="paddle.full([], {0}, '{1}')", real="{0}.real()"),  # `to_tensor` makes no float8
    "keras": Spelling("ops.cast({0}, '{1}')", "ops.convert_to_tensor(np.asarray({0}, '{1}'))", real="ops.real({0})"),
}
"""The libraries whose casts are not those of NumPy, under the usual names of their modules.

>>> sorted(SPELLINGS)[:3]
['keras', 'mlx', 'paddle']
"""


class FixCast(NamedTuple):
    """An explicit cast of one operand.

    Args:
        position: the index of the operand.
        dtype: the dtype to cast it to.
        is_number: whether it is a Python number, which has no `astype`.
        drops_imaginary: whether to keep only the real part, which needs an explicit `.real`.
        through: the dtype to cast it to before taking its real part, if NumPy cannot take the parts of its own dtype.
        library: the library that casts, for the code, such as `"torch"`; empty for wrapped arrays.
        on_host: whether NumPy does the cast, because the library cannot convert the operand's dtype.
        nullable: whether it is a nullable column of pandas, which it stays.
        is_truncated: whether it is a Python number that becomes an int first, for libraries that make no int of others.

    >>> print(FixCast(1, np.dtype("float32"), library="torch"))
    b.to(torch.float32)
    """

    position: int
    dtype: DType
    is_number: bool = False
    drops_imaginary: bool = False
    through: DType | None = None
    library: str = ""
    on_host: bool = False
    nullable: bool = False
    is_truncated: bool = False

    @classmethod
    def of(cls, position: int, operand: Operand, dtype: DType) -> FixCast:
        """Make the cast of an operand. A cast of a complex number to bool keeps both parts."""
        is_number, category = operand.is_python_scalar, as_format(dtype).category
        is_split = operand.category == "complex" and category != "complex"
        through = None if is_number or not is_split or operand.format.is_builtin else _split_as(operand.format).dtype
        drops_imaginary = is_split and category != "bool"
        is_truncated = is_number and category == CATEGORIES[1] != operand.category
        cast = cls(position, dtype, is_number, drops_imaginary, through, operand.library)
        return cast._replace(nullable=operand.nullable, is_truncated=is_truncated)

    def __str__(self) -> str:
        spelling = SPELLINGS.get(self.library, _NULLABLE if self.nullable else _USUAL)
        value = letter(self.position)
        if self.is_number:
            value += ".real" if self.drops_imaginary else ""
            value = f"int({value})" if self.is_truncated and self.library in SPELLINGS else value
            return _spelled(spelling.number, value, self.dtype, spelling)
        value = f"np.asarray({value})" if self.on_host else value
        if self.through is not None:
            value = _spelled(spelling.array, value, self.through, spelling)
        if self.drops_imaginary:
            value = spelling.real.format(value)
        return _spelled(spelling.array, value, self.dtype, spelling)


def _spelled(template: str, value: str, dtype: DType, spelling: Spelling) -> str:
    return template.format(value, spelling.names.get(str(dtype), dtype))


def _split_as(row: Format) -> Format:
    """The narrowest complex format that holds the given one and has parts in NumPy."""
    return next(each for each in FORMATS if each.category == "complex" and each.is_builtin and each.holds(row))


@dataclass(frozen=True, slots=True)
class Fix:
    """Explicit casts that make a refused call work; `str` gives the code to type.

    Args:
        casts: at most one for each operand.

    >>> float32 = as_format("float32").dtype
    >>> str(Fix((FixCast(0, float32), FixCast(1, float32, is_number=True))))
    "a.astype('float32') and np.asarray(b, 'float32')"
    """

    casts: tuple[FixCast, ...]

    def apply(self, operands: Sequence[Operand]) -> tuple[Operand, ...]:
        """The operands after the casts, which the same rules accept."""
        casts = {cast.position: cast for cast in self.casts}
        return tuple(_cast(op, casts[i]) if i in casts else op for i, op in enumerate(operands))

    def spelled_in(self, library: str, is_own: Sequence[bool]) -> Fix:
        """The same casts in the code of a library.

        Args:
            library: the library of the operands whose own is not known.
            is_own: whether the code of each operand is that of its own library.
        """
        casts = (each if is_own[each.position] else each._replace(library=library) for each in self.casts)
        return Fix(tuple(casts))

    def expressions(self) -> dict[str, str]:
        """The code to write for each operand that is cast, by the operand's letter."""
        return {letter(cast.position): str(cast) for cast in self.casts}

    def __str__(self) -> str:
        written = list(self.expressions().values())
        rest = [f"{len(written) - MOST_OPERANDS:,} more"] * (len(written) > MOST_OPERANDS)
        return " and ".join(written[:MOST_OPERANDS] + rest)


def _cast(operand: Operand, conversion: FixCast) -> Operand:
    """An operand after a cast, with the value that it then holds, for rules that depend on values."""
    value = operand.held if operand.value is None else operand.value
    cast = operand.with_dtype(conversion.dtype)
    if value is None or operand.ndim != 0 or not as_format(conversion.dtype).is_builtin:
        return cast
    with np.errstate(all="ignore"):
        scalar = np.asarray(value.real if conversion.drops_imaginary else value).astype(conversion.dtype)
    return replace(cast, held=scalar.item())


def letter(position: int) -> str:
    """The name of the operand at a position in explanations: a, b, c, ... and x26, x27, ... beyond z.

    >>> letter(0), letter(25), letter(26)
    ('a', 'z', 'x26')
    """
    return chr(ord("a") + position) if position < 26 else f"x{position}"
