"""Errors about names, shared by every floor, and the near names they suggest.

Exception
└── SupremumError              mixed into every error of this library
    ├── ArgumentError          (ValueError) a value out of the bounds that the message states
    ├── UnknownNameError       (ValueError) a policy, rule set, operation, ... nobody has heard of
    │   └── UnknownDtypeError  (also TypeError) a dtype that is no number format known here
    ├── UnsupportedJaxError    (RuntimeError) JAX keeps something differently than in the versions known here
    ├── ForbiddenCastError     (TypeError) in `supremum.tracing`: a program casts what it was not to cast
    ├── ScopeError             (RuntimeError) JAX traces a function for another scope than that of the task
    ├── OperandError           (TypeError) something that cannot take part in promotion at all
    └── PromotionError         (TypeError) in `supremum.decisions`: the rules refuse
        └── ScalarOverflowError  (also OverflowError) because a Python number does not fit
"""

from __future__ import annotations

from collections.abc import Iterable


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
        self.near = near_names(str(name), self.choices)
        if self.near:
            hint = "did you mean " + " or ".join(map(repr, self.near)) + "?"
        else:
            hint = "choose from " + ", ".join(self.choices)
        super().__init__(f"{where}{': ' if where else ''}unknown {what} {name!r}: {hint}")

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (self.what, self.name, self.choices, self.where))


class ArgumentError(SupremumError, ValueError):
    """An argument with a known name and a value that makes no sense."""


class UnknownDtypeError(UnknownNameError, TypeError):
    """A dtype that is none of the number formats in `supremum.formats`."""


class OperandError(SupremumError, TypeError):
    """A value that has no dtype to promote: a list, None, a datetime array, ..."""


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
            f"JAX traces this function for another scope, which a task entered in this thread and waits in; {fix}, or "
            "enter it where the function is called, with no `await` in between"
        )

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (self.fix,))


def near_names(name: str, choices: Iterable[str]) -> tuple[str, ...]:
    """The at most three choices nearest to a mistyped name, best first.

    >>> near_names("mixed_flaot16", ["float32", "mixed_float16", "mixed_bfloat16"])
    ('mixed_float16', 'mixed_bfloat16')
    """
    import difflib  # only a failing call pays for it

    by_lower = {choice.lower(): choice for choice in choices}
    found = difflib.get_close_matches(name.lower(), by_lower, n=3, cutoff=0.7)
    return tuple(by_lower[match] for match in found)
