"""Errors, shared by every floor, the near names they suggest, and how they show values.

Exception
└── SupremumError              mixed into every error of this library
    ├── ArgumentError          (ValueError) a value out of the bounds that the message states
    ├── UnknownNameError       (ValueError) a policy, rule set, operation, ... nobody has heard of
    │   └── UnknownDtypeError  (also TypeError) a dtype that is no number format known here
    ├── FileError              (OSError) the file system does not let us read or write
    ├── UnsupportedJaxError    (RuntimeError) JAX keeps something differently than in the versions known here
    ├── ForbiddenCastError     (TypeError) in `supremum.tracing`: a program casts what it was not to cast
    ├── ScopeError             (RuntimeError) JAX traces a function for another scope than that of the task
    ├── OperandError           (TypeError) something that cannot take part in promotion at all
    └── PromotionError         (TypeError) in `supremum.decisions`: the rules refuse
        └── ScalarOverflowError  (also OverflowError) because a Python number does not fit
"""

from __future__ import annotations

import reprlib
from collections.abc import Iterable
from itertools import islice
from typing import Any

LONGEST = 200
"""Characters of a value in a message."""
_MOST_NAMES = 40
_LONGEST_LIST = 1000


class SupremumError(Exception):
    """Mixed into every exception this library raises on purpose."""


class UnknownNameError(SupremumError, ValueError):
    """A name that is not in its list; the message has the near names.

    Args:
        what: what kind of thing was looked up, such as `"policy"`.
        name: the name that was not found.
        choices: every name that would have been.
        where: where the name was given, such as `"argument 1"`; empty where that is plain.

    Attributes:
        what: as given.
        name: as given.
        choices: as given.
        where: as given.
        near: the choices that look like `name`, best first.
    """

    def __init__(self, what: str, name: object, choices: Iterable[str], where: str = "") -> None:
        self.what = what
        self.name = name
        self.choices = tuple(choices)
        self.where = where
        self.near = near_names(name if isinstance(name, str) else shown(name), self.choices)
        if self.near:
            hint = "did you mean " + " or ".join(map(shown, self.near)) + "?"
        else:
            hint = "choose from " + listed(self.choices)
        super().__init__(f"{where}{': ' if where else ''}unknown {what} {shown(name)}: {hint}")

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (self.what, self.name, self.choices, self.where))


class ArgumentError(SupremumError, ValueError):
    """An argument with a known name and a value that makes no sense."""


class UnknownDtypeError(UnknownNameError, TypeError):
    """A dtype that is none of the number formats in `supremum.formats`."""


class OperandError(SupremumError, TypeError):
    """A value that has no dtype to promote: a list, None, a datetime array, ..."""


class FileError(SupremumError, OSError):
    """A path that the file system does not let us read or write; has `errno` and `filename`."""

    def __str__(self) -> str:
        return str(self.args[0])


class UnsupportedJaxError(SupremumError, RuntimeError):
    """The installed version of JAX keeps something differently than the versions that this library supports."""


class ModelInUseError(SupremumError, RuntimeError):
    """A model is to be changed while another thread trains it."""


class ScopeError(SupremumError, RuntimeError):
    """JAX traces a function for another scope than the one in force in the task or thread that runs.

    JAX keeps what it traces for by thread. It does not follow tasks across `await`, nor into new tasks and threads.

    Args:
        fix: what is in force, and how a function is traced for it.
    """

    def __init__(self, fix: str) -> None:
        self.fix = fix
        super().__init__(
            f"JAX traces this function for another scope, which a task entered in this thread; {fix}, or "
            "enter the scope where the function is called, without an `await` in between"
        )

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (self.fix,))


def listed(names: Iterable[str]) -> str:
    """Names with commas between, as messages show them: those of a long list that come first.

    >>> listed(["float16", "bfloat16"])
    'float16, bfloat16'
    >>> listed(f"layers/{number}/kernel" for number in range(1000))[-39:]
    'layers/38/kernel, layers/39/kernel, ...'
    """
    first = list(islice(names, _MOST_NAMES + 1))
    text = ", ".join(first[:_MOST_NAMES] + ["..."] * (len(first) > _MOST_NAMES))
    return text if len(text) <= _LONGEST_LIST else f"{text[:_LONGEST_LIST]}..."


def near_names(name: str, choices: Iterable[str]) -> tuple[str, ...]:
    """The at most three choices nearest to a mistyped name, best first.

    >>> near_names("mixed_flaot16", ["float32", "mixed_float16", "mixed_bfloat16"])
    ('mixed_float16', 'mixed_bfloat16')
    """
    import difflib  # only a failing call pays for it

    if len(name) > LONGEST:
        return ()
    by_lower = {choice.lower(): choice for choice in choices}
    found = difflib.get_close_matches(name.lower(), by_lower, n=3, cutoff=0.7)
    return tuple(by_lower[match] for match in found)


def shown(value: object) -> str:
    """A value as messages show it: its `repr`, of bounded length, and made in bounded time.

    Args:
        value: anything, also what has a broken `repr`.

    >>> shown("mixed_flaot16")
    "'mixed_flaot16'"
    >>> shown([0.5] * 1_000_000)
    '[0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, ...]'
    >>> len(shown("a" * 1_000_000))
    200
    """
    return shortened(_REPR.repr(value))


def shortened(text: str) -> str:
    """A text as messages show it: its start and its end, if it is long.

    >>> shortened("a" * 150 + "b" * 150)[95:105]
    'aaaa...bbb'
    """
    half = (LONGEST - 3) // 2
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3 - half]}...{text[-half:]}"


class _Repr(reprlib.Repr):
    """The standard library's bounded `repr`, which lets through what fits, and numbers with too many digits."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlevel = 3
        self.maxlist = self.maxtuple = self.maxset = self.maxfrozenset = self.maxdict = self.maxdeque = 20
        self.maxarray = 20
        self.maxstring = self.maxlong = self.maxother = LONGEST

    def repr_dict(self, x: dict[Any, Any], level: int) -> str:
        # In its own order, where the standard library sorts.
        if x and level <= 0:
            return "{...}"
        pairs = [f"{self.repr1(key, level - 1)}: {self.repr1(x[key], level - 1)}" for key in islice(x, self.maxdict)]
        return "{" + ", ".join(pairs + ["..."] * (len(x) > self.maxdict)) + "}"

    def repr_int(self, x: int, level: int) -> str:
        # Beyond some thousands of digits Python refuses to write a number out.
        return super().repr_int(x, level) if x.bit_length() < 10_000 else f"an int of {x.bit_length():,} bits"


_REPR = _Repr()
