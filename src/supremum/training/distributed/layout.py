"""Which variables are split over the model axes of a mesh, and along which of their axes."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

import jax
from jax.sharding import PartitionSpec as P

from supremum.argument_checks import mapping, text
from supremum.errors import ArgumentError, OperandError, UnknownNameError, listed, near_names, shown


class Layout:
    """Partitions of variables over the model axes of a mesh, by patterns of their paths; the first match wins.

    Args:
        partitions: a `jax.sharding.PartitionSpec`, or a tuple, by pattern. A pattern is a regular expression that must
            match the whole path of a variable, such as `"dense/kernel"`. Other variables are whole on every device.
        sizes: the sizes of the model axes, by name.

    Raises:
        OperandError: for anything but a mapping from strings to partitions; a `TypeError`.
        ArgumentError: for an invalid regular expression, and for a partition that uses an axis twice; a `ValueError`.
        UnknownNameError: for a partition with an axis that is not a model axis; a `ValueError`.

    >>> layout = Layout({".*/kernel": (None, "model")}, {"model": 4})
    >>> tuple(layout.spec("dense/kernel", (16, 32)))
    (None, 'model')
    >>> try:
    ...     layout.check({"d/kernel": (16, 30)})
    ... except ArgumentError as error:
    ...     print(error)
    layout '.*/kernel' cannot split 'd/kernel' of shape (16, 30) by (None, 'model'): axis 1 must be divisible by 4
    """

    def __init__(self, partitions: Mapping[str, P | Sequence[Any]], sizes: Mapping[str, int]) -> None:
        self._sizes = dict(sizes)
        by_pattern = mapping("layout", partitions, "{'.*/kernel': PartitionSpec(None, 'model')}")
        self._specs = {key: self._partition(key, value) for key, value in by_pattern.items()}

    def _partition(self, pattern: str, value: Any) -> P:
        _check_pattern(pattern)
        if not isinstance(value, (P, tuple, list)):
            raise OperandError(
                f"layout[{shown(pattern)}] must be a PartitionSpec or a tuple, got {shown(value)}; use "
                "PartitionSpec(None, 'model') to split the second axis"
            )
        parts = tuple(cast("Sequence[Any]", value))
        names = [name for part in parts for name in _names_of(part)]
        for name in names:
            if text(f"a mesh axis of layout[{shown(pattern)}]", name) not in self._sizes:
                raise UnknownNameError("model axis", name, self._sizes, f"layout[{shown(pattern)}]")
        if len(set(names)) < len(names):
            raise ArgumentError(f"layout[{shown(pattern)}] must use each mesh axis once, got {shown(value)}")
        return without_trailing_none(parts)

    def spec(self, path: str, shape: tuple[int, ...]) -> P:
        """Return the partition of a variable, or of a slot of an optimizer for the variable.

        Args:
            path: the path of the variable.
            shape: the shape of the variable or slot. A slot that cannot be split, such as a scalar, stays whole.
        """
        pattern = self._pattern_of(path)
        return P() if pattern is None or self._misfit(pattern, shape) else self._specs[pattern]

    def check(self, shapes: Mapping[str, tuple[int, ...]]) -> None:
        """Raise if a variable cannot be split as asked, or if a pattern matches no variable.

        Args:
            shapes: the shapes of all variables, by path.

        Raises:
            ArgumentError: naming the pattern; a `ValueError`.
        """
        for path, shape in shapes.items():
            pattern = self._pattern_of(path)
            why = "" if pattern is None else self._misfit(pattern, shape)
            if pattern is not None and why:
                raise ArgumentError(
                    f"layout {shown(pattern)} cannot split {shown(path)} of shape {shape} by "
                    f"{tuple(self._specs[pattern])}: {why}"
                )
        for pattern in self._specs:
            if not any(re.fullmatch(pattern, path) for path in shapes):
                near = near_names(pattern, shapes)
                raise ArgumentError(
                    f"layout {shown(pattern)} matches no variable; {'similar paths' if near else 'the paths'} are "
                    f"{listed(near or shapes)}"
                )

    def _pattern_of(self, path: str) -> str | None:
        return next((pattern for pattern in self._specs if re.fullmatch(pattern, path)), None)

    def _misfit(self, pattern: str, shape: tuple[int, ...]) -> str:
        """Say why a shape cannot be split by the partition of a pattern; empty if it can."""
        parts = tuple(self._specs[pattern])
        if len(parts) > len(shape):
            return f"it has {len(shape)} axes"
        for axis, part in enumerate(parts):
            pieces = math.prod(self._sizes[name] for name in _names_of(part))
            if shape[axis] % pieces:
                return f"axis {axis} must be divisible by {pieces}"
        return ""

    def __repr__(self) -> str:
        return repr({pattern: tuple(spec) for pattern, spec in self._specs.items()})


def _check_pattern(pattern: Any) -> None:
    try:
        re.compile(text("a pattern of layout", pattern))
    except (re.error, OverflowError, RecursionError) as error:
        fix = f"to match the text literally, write {re.escape(pattern)!r}"
        raise ArgumentError(f"the pattern {shown(pattern)} is not a regular expression ({error}): {fix}") from None


def _names_of(part: Any) -> tuple[str, ...]:
    """Return the mesh axes that one axis of a variable is split over."""
    if part is None:
        return ()
    return tuple(part) if isinstance(part, (tuple, list)) else (part,)


def names_in(spec: P) -> set[str]:
    """Return the mesh axes of a partition.

    >>> sorted(names_in(P(None, ("rows", "columns"))))
    ['columns', 'rows']
    """
    return {name for part in tuple(spec) for name in _names_of(part)}


def without_trailing_none(parts: Sequence[Any]) -> P:
    """Return a partition without the axes at its end that are not split, so that equal partitions compare equal.

    >>> tuple(without_trailing_none((None, "model", None)))
    (None, 'model')
    """
    while parts and parts[-1] is None:
        parts = parts[:-1]
    return P(*parts)


def key_of(entries: Sequence[Any]) -> str:
    """Return the key of the variable that a leaf of a tree belongs to; empty if it belongs to none.

    Values and slots of variables are in dicts by key, in trees of any kind.

    Args:
        entries: the path of the leaf, as of `jax.tree_util.tree_map_with_path`.

    >>> leaves = jax.tree_util.tree_leaves_with_path(({"mu": {"dense/kernel": 1}}, 2))
    >>> [key_of(entries) for entries, _ in leaves]
    ['dense/kernel', '']
    """
    keys = [entry.key for entry in entries if isinstance(entry, jax.tree_util.DictKey)]
    return next((key for key in reversed(keys) if isinstance(key, str)), "")
