"""The dtypes that frameworks store in an existing array: with in-place operators, `out=` and assignment to elements."""

from __future__ import annotations

import enum
from collections.abc import Callable

from supremum.formats import CATEGORIES, Format


class Storing(enum.Enum):
    """What a framework stores in an existing array."""

    KEPT = "these rules store only results of that dtype"
    SAME_KIND = "the framework casts results within their kind and to higher kinds"
    CAST = "the framework casts every stored value"


_LOST = {"integer": "everything except whether it is zero", "float": "the fraction", "complex": "the imaginary part"}


def is_no_higher(source: Format, target: Format) -> bool:
    """Whether one format has the same category as another or a lower one, as in PyTorch's `can_cast`.

    >>> from supremum.formats import as_format
    >>> is_no_higher(as_format("float64"), as_format("float16")), is_no_higher(as_format("int8"), as_format("bool"))
    (True, False)
    """
    return CATEGORIES.index(source.category) <= CATEGORIES.index(target.category)


def objection(how: Storing, source: Format, target: Format, is_same_kind: Callable[[Format, Format], bool]) -> str:
    """Why a result cannot be stored in an array; empty if it can.

    Supremum stores less than the frameworks: a result never loses its fraction or its imaginary part.

    Args:
        how: what the framework stores.
        source: the format of the result.
        target: the format of the array.
        is_same_kind: whether the framework casts the one to the other in place, where kinds matter to it.

    >>> from supremum.formats import as_format
    >>> float64, float32, int8 = map(as_format, ("float64", "float32", "int8"))
    >>> objection(Storing.SAME_KIND, float64, float32, is_no_higher)
    ''
    >>> objection(Storing.KEPT, float64, float32, is_no_higher)
    'float64 cannot be stored in float32: these rules store only results of that dtype'
    >>> objection(Storing.CAST, float64, int8, is_no_higher)
    'float64 cannot be stored in int8: the framework would silently drop the fraction'
    """
    refuses = {Storing.KEPT: source is not target, Storing.SAME_KIND: not is_same_kind(source, target)}
    if refuses.get(how):
        return f"{source} cannot be stored in {target}: {how.value}"
    return objection_to_loss(str(source), source.category, target)


def objection_to_loss(source: str, category: str, target: Format) -> str:
    """Why Supremum refuses a cast that the framework makes; empty if it allows it.

    Args:
        source: the name of the value, for the message.
        category: its category.
        target: the format of the array.
    """
    if CATEGORIES.index(category) <= CATEGORIES.index(target.category):
        return ""
    lost = _LOST["integer"] if target.category == CATEGORIES[0] else _LOST[category]
    return f"{source} cannot be stored in {target}: the framework would silently drop {lost}"


def account(how: Storing, source: Format, target: Format) -> tuple[str, ...]:
    """Why a result can be stored in an array, one sentence each; none if both have the same format."""
    if source is target:
        return ()
    checked = () if target.holds(source) else (f"a value outside the range of {target} is an error",)
    return (f"{source} is stored in {target}: {how.value}", *checked)
