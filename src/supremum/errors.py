"""The errors of all packages, the similar names that they suggest, and the display of values in messages.

Exception
└── SupremumError              mixed into every error of this library
    ├── ArgumentError          (ValueError) a value out of the bounds that it states
    ├── UnknownNameError       (ValueError) an unknown policy, rule set, operation, ...
    │   └── UnknownDtypeError  (also TypeError) a dtype that is not a number format
    ├── FileError              (OSError) the file system does not let us read or write
    ├── MissingPackageError    (ModuleNotFoundError) a package of an extra is missing
    ├── UnsupportedJaxError    (RuntimeError) JAX differs from the supported versions
    ├── ModelInUseError        (RuntimeError) another thread trains the model
    ├── ForbiddenCastError     (TypeError) in `supremum.tracing`: a forbidden cast
    ├── ScopeError             (RuntimeError) JAX traces a function for another scope
    ├── OperandError           (TypeError) a value that cannot be promoted at all
    └── PromotionError         (TypeError) in `supremum.decisions`: the rules refuse
        ├── ScalarOverflowError  (also OverflowError) because a Python number does not fit
        └── InPlaceError         in `supremum.arrays`: an array that is written into cannot store it
"""

from __future__ import annotations

import re
import reprlib
from collections.abc import Iterable
from itertools import islice
from typing import Any

LONGEST = 200
"""Characters of a value in a message.

>>> len(shown("x" * 1_000_000)) == LONGEST
True
"""
_PACKAGE = __name__.partition(".")[0]
_MOST_NAMES = 40
_SHORT = 3
_LONGEST_LIST = 1000
# Control characters can change a terminal, and neither they nor lone surrogates can be part of an XML file.
_UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


class SupremumError(Exception):
    """Base of every exception that this library raises on purpose.

    >>> import supremum
    >>> try:
    ...     supremum.explain("int8", "flaot32")
    ... except SupremumError as error:
    ...     print(error)
    argument 1: unknown dtype 'flaot32': did you mean 'float32'?
    """

    def __str__(self) -> str:
        return printable(super().__str__())


class UnknownNameError(SupremumError, ValueError):
    """A name that is not in its list; the message suggests similar names.

    Args:
        what: the kind of thing that was looked up, such as `"policy"`.
        name: the name that was not found.
        choices: every valid name.
        where: the place where the name was given, such as `"argument 1"`; empty if that is obvious.
        near: the choices to suggest; empty for those that look like `name`.

    Attributes:
        what: as given.
        name: as given.
        choices: as given.
        where: as given.
        near: the suggested choices, best first.

    >>> import supremum
    >>> supremum.get_rules("jax-64")
    Traceback (most recent call last):
        ...
    supremum.errors.UnknownNameError: unknown rule set 'jax-64': did you mean 'jax-x64'?
    >>> UnknownNameError(
    ...     "policy", "mixed_flaot16", ["float32", "mixed_float16", "mixed_bfloat16"]
    ... ).near
    ('mixed_float16', 'mixed_bfloat16')
    """

    def __init__(
        self, what: str, name: object, choices: Iterable[str], where: str = "", near: tuple[str, ...] = ()
    ) -> None:
        self.what = what
        self.name = name
        self.choices: tuple[str, ...] = tuple(choices)
        self.where = where
        looked_up = name if isinstance(name, str) else shown(name)
        self.near: tuple[str, ...] = near or near_names(looked_up, self.choices)
        if self.near:
            hint = "did you mean " + " or ".join(map(shown, self.near)) + "?"
        else:
            hint = "choose from " + listed(self.choices)
        super().__init__(f"{where}{': ' if where else ''}unknown {what} {shown(name)}: {hint}")

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (self.what, self.name, self.choices, self.where, self.near))


class ArgumentError(SupremumError, ValueError):
    """An argument with an invalid value.

    >>> import supremum
    >>> supremum.explain("int8", "int8", operation="sqrt")
    Traceback (most recent call last):
        ...
    supremum.errors.ArgumentError: sqrt takes 1 operand, got 2
    """


class UnknownDtypeError(UnknownNameError, TypeError):
    """A dtype that is not one of the number formats in `supremum.formats`.

    >>> import supremum
    >>> supremum.result_type("int8", "flaot32")
    Traceback (most recent call last):
        ...
    supremum.errors.UnknownDtypeError: argument 1: unknown dtype 'flaot32': did you mean 'float32'?
    """


class OperandError(SupremumError, TypeError):
    """A value that has no dtype to promote: a list, None, a datetime array, ...

    >>> import supremum
    >>> supremum.result_type("int8", [1, 2])  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    supremum.errors.OperandError: argument 1 must be a numeric array, a dtype or its name, a Python number, ... got list
    """


class FileError(SupremumError, OSError):
    """A path that the file system does not let us read or write; has `errno` and `filename`.

    >>> from supremum import training
    >>> try:
    ...     training.load_arrays("missing.safetensors")
    ... except FileError as error:
    ...     print(error.filename, error.errno, error)
    missing.safetensors 2 missing.safetensors: there is no such file
    """

    def __str__(self) -> str:
        return printable(str(self.args[0]))


class MissingPackageError(SupremumError, ModuleNotFoundError):
    """A package that is not installed; the message names the extra to install, and `name` the package.

    >>> from supremum.extras import missing_packages
    >>> error = missing_packages("A plot", ["matplotlib"])
    >>> error.name, str(error)
    ('matplotlib', "A plot needs matplotlib; install with: pip install 'supremum[plot]'")
    """


class UnsupportedJaxError(SupremumError, RuntimeError):
    """The installed version of JAX differs from the supported versions in a part that this library needs.

    >>> from supremum.jax_compat import primitives
    >>> primitives.log_2_p  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    supremum.errors.UnsupportedJaxError: there is no primitive 'log_2' in JAX ...
    """


class ModelInUseError(SupremumError, RuntimeError):
    """An attempt to change a model while another thread trains it.

    >>> import numpy as np
    >>> from concurrent.futures import ThreadPoolExecutor
    >>> from supremum import nn, training
    >>> model = training.Sequential([nn.Dense(1)])
    >>> model.compile("sgd", "mse")
    >>> x, y = np.ones((4, 2), "float32"), np.ones((4, 1), "float32")
    >>> batches = (
    ...     ThreadPoolExecutor().submit(model.fit, x, y).result() for _ in range(2)
    ... )
    >>> model.fit(batches)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    supremum.errors.ModelInUseError: cannot run fit: the model is in use by fit in thread 'MainThread'; wait until ...
    """


class ScopeError(SupremumError, RuntimeError):
    """JAX traces a function for a different scope than the one in force in the running task or thread.

    JAX stores its scope per thread. It does not follow tasks across `await`, nor into new tasks and threads.

    Args:
        fix: the scope in force, and how to trace a function for it.

    >>> import contextvars, jax, jax.numpy as jnp, supremum
    >>> x = supremum.asarray(jnp.ones(2))
    >>> task = contextvars.Context()  # a task that entered no rules
    >>> with supremum.use_rules("numpy"):
    ...     try:
    ...         task.run(jax.jit(lambda x: x + x), x)
    ...     except ScopeError as error:
    ...         print(str(error).partition(";")[0])
    JAX traces this function for another scope, which a task entered in this thread
    """

    def __init__(self, fix: str) -> None:
        self.fix = fix
        super().__init__(
            f"JAX traces this function for another scope, which a task entered in this thread; {fix}, or "
            "enter the scope where the function is called, without an `await` in between"
        )

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (self.fix,))


def hide_frames(error: Exception) -> None:
    """Remove the frames of this library from the traceback of one of its errors, up to the first frame that is not.

    A refusal is about the user's line, and its message says the rest. A bare `raise` then adds the callers only.

    Args:
        error: the error that is being handled; errors of other libraries keep their frames.

    >>> hide_frames(OSError("another library keeps its frames"))
    """
    if not isinstance(error, SupremumError):
        return
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_globals.get("__name__", "").partition(".")[0] == _PACKAGE:
        trace = trace.tb_next
    error.__traceback__ = trace


def listed(names: Iterable[str]) -> str:
    """Join names by commas for a message; a long list is cut off.

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
    import difflib  # import it only for an error

    if len(name) > LONGEST:
        return ()
    by_lower = {choice.lower(): choice for choice in choices}
    cutoff = 0.7 if len(name) > _SHORT else 0.6  # one wrong letter of three
    matches = difflib.get_close_matches(name.lower(), by_lower, n=3, cutoff=cutoff)
    return tuple(by_lower[match] for match in matches)


def shown(value: object) -> str:
    """Show a value in a message: its `repr`, with bounded length and computed in bounded time.

    Args:
        value: anything, even with a broken `repr`.

    >>> shown("mixed_flaot16")
    "'mixed_flaot16'"
    >>> shown([0.5] * 1_000_000)
    '[0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, ...]'
    >>> len(shown("a" * 1_000_000))
    200
    """
    return shortened(_REPR.repr(value))


def printable(text: str) -> str:
    r"""Replace control characters, except newlines and tabs, by their escapes.

    >>> print(printable("conv\x1b[31m"))
    conv\x1b[31m
    """
    return _UNPRINTABLE.sub(lambda match: repr(match[0])[1:-1], text)


def shortened(text: str) -> str:
    """Shorten a text for a message: a long text keeps its start and its end. Control characters become escapes.

    >>> shortened("a" * 150 + "b" * 150)[95:105]
    'aaaa...bbb'
    """
    text = printable(text)
    half = (LONGEST - 3) // 2
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3 - half]}...{text[-half:]}"


class _Repr(reprlib.Repr):
    """The bounded `repr` of the standard library, with higher limits; it also shows ints with too many digits."""

    def repr_dict(self, x: dict[Any, Any], level: int) -> str:
        # Keep the order of the dict; the standard library sorts the keys.
        if x and level <= 0:
            return "{...}"
        pairs = [f"{self.repr1(key, level - 1)}: {self.repr1(x[key], level - 1)}" for key in islice(x, self.maxdict)]
        return "{" + ", ".join(pairs + ["..."] * (len(x) > self.maxdict)) + "}"

    def repr_int(self, x: int, level: int) -> str:
        # Python refuses to print a number of more than a few thousand digits.
        return super().repr_int(x, level) if x.bit_length() < 10_000 else f"an int of {x.bit_length():,} bits"


_REPR = _Repr()
_REPR.maxlevel = 3
_REPR.maxlist = _REPR.maxtuple = _REPR.maxset = _REPR.maxfrozenset = _REPR.maxdict = _REPR.maxdeque = 20
_REPR.maxarray = 20
_REPR.maxstring = _REPR.maxlong = _REPR.maxother = LONGEST
