"""How a call is read: what identifies it, and the arrays and promoted numbers in it.

Each form of a call, which is the types of its arguments by position and the names of the others, has a reader of its
own, compiled when the form is new. Looking at the type of every argument in each call would take as long as adding.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import lru_cache
from operator import attrgetter
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from supremum.arrays.backends import Key, Raw
from supremum.arrays.operand_keys import NUMBERS, number_key
from supremum.arrays.wrapped import WrappedArray
from supremum.rules import SCOPE

Numbers: TypeAlias = "Mapping[Any, Key]"
"""The keys of Python numbers by their types and values."""
Read: TypeAlias = "tuple[tuple[Hashable, ...], tuple[Raw, ...]]"
"""What identifies a call, or a part of one; and the arrays and promoted numbers in it."""


class Reader(NamedTuple):
    """What reads calls of a form.

    Args:
        read: takes the arguments of a call, those by name, and the known keys of numbers under the rules in force. It
            raises `TypeError` for arguments that may change, and `AttributeError` for an array that is new from a tree
            of JAX and has no key yet.
        by_value: whether the calls have other arguments than arrays and promoted numbers.
    """

    read: Callable[[Sequence[Any], Mapping[str, Any], Numbers], Read]
    by_value: bool


def form_of(args: Sequence[Any], options: Mapping[str, Any]) -> tuple[Hashable, ...]:
    """The form of a call: the types of its arguments by position, and the names of the others."""
    return (*map(_class_of, args), *options)


_class_of = attrgetter("__class__")


def reader_of(
    function: Hashable, form: Sequence[Hashable], *, promotes: bool, operands: int = sys.maxsize, by_rank: bool = False
) -> Reader:
    """Compile the reader of a form.

    Args:
        function: what identifies calls with arrays and promoted numbers alone, beside the keys of these.
        form: the form.
        promotes: whether numbers among the arguments by position are promoted.
        operands: how many of the arguments by position can be operands.
        by_rank: whether the number of dimensions of each array identifies a call, too.

    Raises:
        TypeError: for arguments that may change.
    """
    kinds = [each for each in form if isinstance(each, type)]
    count, by_value = len(kinds), len(kinds) < len(form)
    places = [f"value_{i}" for i in range(len(form))]
    known, held, ranks, lines = list[str](), list[str](), list[str](), list[str]()
    if count:
        lines.append(f"{', '.join(places[:count])}, = args")
    if by_value:
        lines += f"{', '.join(places[count:])}, = options.values()", "others = ()"
    for i, place in enumerate(places):
        is_operand = promotes and i < min(count, operands)
        role = role_of(kinds[i], is_operand) if i < count else "option"
        by_value |= role not in ("array", "operand")
        known.append(_IDENTIFYING.get(role, "{0}").format(place))
        if role == "array":
            held.append(f"({place}._raw,)")
            ranks.append(f"{place}._raw.ndim")
        elif role == "operand":
            held.append(f"({place},)")
        elif role == "sequence":
            read = f"{place}, held_{i} = read_sequence({place}, {'numbers' if is_operand else None})"
            if is_operand:
                lines.append(read)
            else:  # most are shapes and axes, which are read here, in fewer steps
                lines += f"held_{i} = ()", f"for each in {place}:", " if each.__class__ is not int:"
                lines += f"  {read}", "  break"
                lines += ["else:", f" {place} = (*{place},)"] * (kinds[i] is list)
            held.append(f"held_{i}")
            ranks.append(f"*map(rank, held_{i})")
        elif role == "option":
            lines += f"kind_{i} = {place}.__class__", f"if kind_{i} not in plain:"
            lines += f" {place}, held = read_sequence(({place},))", " others += held"
            known.append(f"kind_{i}")
    if count < len(form):
        held.append("others")
        ranks.append("*map(rank, others)")
    found = "".join(f"{each}, " for each in known + ranks * by_rank)
    lines.append(f"return (head, {found}), {' + '.join(held).replace(',) + (', ', ') or '()'}")
    # Calls with other arguments are identified by an object of their form, because True equals 1.
    head = object() if by_value else function
    scope: dict[str, Any] = {"head": head, "plain": _VALUES, "rank": _rank}
    scope |= {"read_sequence": read_sequence, "key_of_new": _key_of_new}
    exec("def read(args, options, numbers):\n " + "\n ".join(lines), scope)  # no text of a user is in it
    return Reader(scope["read"], by_value)


# Numbers that the rules treat alike are one.
_IDENTIFYING = {
    "array": "{0}._key",
    "operand": "numbers.get(({0}.__class__, {0})) or key_of_new({0})",
    "inexact": "repr({0})",
}
_VALUES: frozenset[type] = frozenset({bool, int, str, type(None)})
_NO_VALUES: frozenset[type] = frozenset()


@lru_cache(maxsize=4096)
def role_of(kind: type, is_operand: bool) -> str:
    """What identifies an argument of a type.

    Args:
        kind: its class.
        is_operand: whether it can be an operand, so that a number is promoted.

    Returns:
        `"array"` and `"operand"`, a promoted number: its key. `"value"`: itself. `"inexact"`: its text, because 0.0
        equals -0.0. `"sequence"`: its elements.

    Raises:
        TypeError: for an argument that may change.
    """
    if issubclass(kind, WrappedArray):
        return "array"
    if is_operand and kind in NUMBERS:
        return "operand"
    if kind in _VALUES or issubclass(kind, (type, np.dtype)) or (issubclass(kind, np.integer) and not is_operand):
        return "value"
    if kind in (float, complex):
        return "inexact"
    if kind in (tuple, list):
        return "sequence"
    raise TypeError(kind)


def read_sequence(values: Sequence[Any], numbers: Numbers | None = None) -> Read:
    """Read the elements of a list or a tuple.

    Args:
        values: the elements.
        numbers: the known keys of numbers, if they are promoted; None if the elements cannot be operands.

    Raises:
        TypeError: for elements that may change.
    """
    if len(values) == 2:  # the same as below, in fewer steps
        one, other = values
        if one.__class__ is other.__class__ and isinstance(one, WrappedArray):
            return (one._key, other._key), (one._raw, other._raw)  # pyright: ignore[reportPrivateUsage]
    are_operands = numbers is not None
    plain = _NO_VALUES if are_operands else _VALUES
    known: list[Hashable] = []
    raws: list[Raw] = []
    for value in values:
        kind = value.__class__
        if kind in plain:
            known += kind, value
        elif isinstance(value, WrappedArray):
            known.append(value._key)  # pyright: ignore[reportPrivateUsage]
            raws.append(value._raw)  # pyright: ignore[reportPrivateUsage]
        else:
            role = role_of(kind, are_operands)
            if role == "sequence":
                part, held = read_sequence(value, numbers)
                raws += held
            elif role == "operand":
                part = _key_of_new(value)
                raws.append(value)
            else:
                part = repr(value) if role == "inexact" else value
            known += kind, part
    return (*known,), (*raws,)


def _key_of_new(number: Any) -> Hashable:
    return number_key(SCOPE.get().rules, number)


def _rank(raw: Raw) -> int:
    return getattr(raw, "ndim", 0)


def frozen(options: Mapping[str, Any]) -> tuple[Hashable, ...]:
    """What identifies checked options: nothing if there are none."""
    return ((*options, read_sequence((*options.values(),))[0]),) if options else ()
