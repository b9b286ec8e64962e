"""The fix of a refusal: explicit casts as a value, and the code to type."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from supremum.data_frames import NULLABLE_NAME_OF
from supremum.formats import FORMATS, DType, Format, as_format
from supremum.operands import Operand

MOST_OPERANDS = 40
"""The most operands that a message lists.

>>> casts = [FixCast(position, np.dtype("float32")) for position in range(50)]
>>> str(Fix(tuple(casts))).rpartition(" and ")[2]
'10 more'
"""


class FixCast(NamedTuple):
    """An explicit cast of one operand.

    Args:
        position: the index of the operand.
        dtype: the dtype to cast it to.
        is_number: whether it is a Python number, which has no `astype`.
        drops_imaginary: whether to keep only the real part, which needs an explicit `.real`.
        through: the dtype to cast it to before taking its real part, if NumPy cannot take the parts of its own dtype.
        library: the library of an array that is not wrapped; tensors of PyTorch have no `astype`.
        on_host: whether NumPy does the cast, because the library cannot convert the operand's dtype.
        nullable: whether it is a nullable column of pandas, which it stays.

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

    @classmethod
    def of(cls, position: int, operand: Operand, dtype: DType) -> FixCast:
        """Make the cast of an operand. A cast of a complex number to bool keeps both parts."""
        is_number, category = operand.is_python_scalar, as_format(dtype).category
        is_split = operand.category == "complex" and category != "complex"
        through = None if is_number or not is_split or operand.format.is_builtin else _split_as(operand.format).dtype
        drops_imaginary = is_split and category != "bool"
        return cls(position, dtype, is_number, drops_imaginary, through, operand.library, nullable=operand.nullable)

    def __str__(self) -> str:
        value = letter(self.position)
        if self.is_number:
            return f"np.asarray({value}{'.real' if self.drops_imaginary else ''}, {str(self.dtype)!r})"
        value = f"np.asarray({value})" if self.on_host else value
        value += "" if self.through is None else self._cast(self.through)
        return f"{value}{'.real' if self.drops_imaginary else ''}{self._cast(self.dtype)}"

    def _cast(self, dtype: DType) -> str:
        if self.library == "torch":
            return f".to(torch.{dtype})"
        name = str(dtype)
        return f".astype({NULLABLE_NAME_OF.get(name, name) if self.nullable else name!r})"


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
