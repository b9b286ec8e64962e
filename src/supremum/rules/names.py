"""The names of rule sets, and the rule sets that JAX's flags select for the names that follow them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from functools import partial
from typing import Literal, NamedTuple, TypeAlias

from supremum.argument_checks import flag
from supremum.errors import UnknownNameError
from supremum.rules.jax_flags import is_explicit_x64, is_strict, is_x64

_WIDTHS = ("x64", "x32", "explicit-x64")
_STANDARD, _STRICT = (tuple(f"jax-{kind}{width}" for width in _WIDTHS) for kind in ("", "strict-"))
_NAMES: dict[str, tuple[str, ...]] = {
    "jax": (*_STANDARD, *_STRICT),
    "numpy": ("numpy",),
    "numpy_legacy": ("numpy-legacy",),
    "torch": ("torch",),
    "keras": ("keras",),
    "tf_rfc": ("tf-rfc-all", "tf-rfc-safe", "tf-rfc-none"),
    "tf": ("tf-off", "tf-all", "tf-safe"),
    "paddle": ("paddle",),
    "mlx": ("mlx",),
    "tinygrad": ("tinygrad",),
    "polars": ("polars", "polars-1"),
    "pyarrow": ("pyarrow",),
    "pandas": ("pandas", "pandas-nullable"),
    "array_api": ("array-api",),
}
"""The modules of this package, and the names of the rule sets in each."""
HOMES: dict[str, tuple[str, str]] = {
    name: (module, name.upper().replace("-", "_")) for module, names in _NAMES.items() for name in names
}
"""For each name, its module and the value in it."""
RuleName: TypeAlias = Literal[
    "jax", "jax-strict",
    "jax-x64", "jax-x32", "jax-explicit-x64", "jax-strict-x64", "jax-strict-x32", "jax-strict-explicit-x64",
    "numpy", "numpy-legacy", "torch", "keras", "tf-rfc-all", "tf-rfc-safe", "tf-rfc-none", "tf-off", "tf-all",
    "tf-safe", "paddle", "mlx", "tinygrad", "polars", "polars-1", "pyarrow", "pandas", "pandas-nullable", "array-api",
]  # fmt: skip
"""The names of `rule_names()`, for type checkers and for completion in editors.

>>> from typing import get_args
>>> get_args(RuleName) == tuple(rule_names())
True
"""
FOLLOWS_JAX = "jax"
"""The name of the rules that follow all of JAX's flags."""
JAX_ALIASES: dict[str, tuple[str, ...]] = {FOLLOWS_JAX: (*_STANDARD, *_STRICT), "jax-strict": _STRICT}
"""The names that follow JAX's flags, and the rule sets that each may stand for."""


def rule_names() -> tuple[str, ...]:
    """Every name of a rule set.

    >>> rule_names()[:3], "torch" in rule_names()
    (('jax', 'jax-strict', 'jax-x64'), True)
    """
    return (*JAX_ALIASES, *HOMES)


def canonical_name(name: object, *, in_jax: object = True) -> str:
    """The name of one rule set: `"jax"` and `"jax-strict"` become the one that JAX's flags select now.

    Args:
        name: the name.
        in_jax: True if JAX holds the arrays, or if there are none. For arrays of other libraries, which keep 64 bits
            whatever JAX's flags say, the two names become `"jax-x64"` and `"jax-strict-x64"`.

    Raises:
        UnknownNameError: for an unknown name; the message suggests similar ones.
    """
    if not isinstance(name, str) or (name not in JAX_ALIASES and name not in HOMES):
        raise UnknownNameError("rule set", name, rule_names())
    if not isinstance(in_jax, bool):
        in_jax = flag("in_jax", in_jax)
    if name in JAX_ALIASES:
        return name_of_jax(strict=name != FOLLOWS_JAX) if in_jax else JAX_ALIASES[name][0]
    return name


def name_of_jax(*, strict: bool = False) -> str:
    """The name of the rule set that JAX's flags select.

    Args:
        strict: whether to select a strict rule set whatever `jax_numpy_dtype_promotion` says.
    """
    names = _STRICT if strict or is_strict() else _STANDARD
    return names[0] if is_x64() else names[2] if is_explicit_x64() else names[1]


class FlagQuestion(NamedTuple):
    """A question about JAX's flags that distinguishes rule sets.

    Args:
        ask: returns the current answer.
        answer_under: returns the answer under the flags that select the rule set of a name.
    """

    ask: Callable[[], Hashable]
    answer_under: Callable[[str], Hashable]


def question(answers: Mapping[str, Hashable]) -> FlagQuestion | None:
    """Find the question about the fewest flags that distinguishes the answers of the rule sets of one name.

    Args:
        answers: the answer of each rule set, by name; all the rule sets that one name in `JAX_ALIASES` may stand for.

    Returns:
        The question; None if all answers are equal.
    """
    if len(set(answers.values())) == 1:
        return None
    questions = (
        FlagQuestion(is_strict, _STRICT.__contains__),
        FlagQuestion(is_x64, (_STANDARD[0], _STRICT[0]).__contains__),
        FlagQuestion(partial(name_of_jax, strict=_STANDARD[0] not in answers), str),
    )
    return next(each for each in questions if _tells_apart(each, answers))


def _tells_apart(asked: FlagQuestion, answers: Mapping[str, Hashable]) -> bool:
    # Sets compare the hashes first; NumPy says that float64 == None.
    answers_of: dict[Hashable, set[Hashable]] = {}
    for name, answer in answers.items():
        answers_of.setdefault(asked.answer_under(name), set()).add(answer)
    return all(len(each) == 1 for each in answers_of.values())
