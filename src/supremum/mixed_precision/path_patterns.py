"""Patterns of paths: regular expressions that match a whole path, or a whole scope that contains it."""

from __future__ import annotations

import re

from supremum.errors import ArgumentError, OperandError, shown


def check_pattern(pattern: object, owner: str) -> None:
    """Check a pattern.

    Args:
        pattern: a regular expression.
        owner: what the pattern belongs to, for errors.

    Raises:
        OperandError: for anything that is not a string; a `TypeError`.
        ArgumentError: for an invalid regular expression; a `ValueError`.
    """
    if not isinstance(pattern, str):
        raise OperandError(f"a pattern of {owner} must be a string, got {shown(pattern)}")
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        fix = f"to match the text literally, write {re.escape(pattern)!r}"
        raise ArgumentError(f"the pattern {shown(pattern)} is not a regular expression ({error}): {fix}") from None


def scopes_of(path: str) -> tuple[str, ...]:
    """Return a path and the scopes that contain it, from the inside out.

    >>> scopes_of("encoder/norm/scale")
    ('encoder/norm/scale', 'encoder/norm', 'encoder')
    """
    names = path.split("/")
    return tuple("/".join(names[:depth]) for depth in range(len(names), 0, -1))


def matches(pattern: str, scopes: tuple[str, ...]) -> bool:
    """Whether a pattern matches one of the scopes of a path."""
    return any(re.fullmatch(pattern, scope) for scope in scopes)
