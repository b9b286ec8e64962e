"""Elements of JAX's arrays, by functions that are compiled once for all numbers in an index."""

from __future__ import annotations

import operator
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

import jax
from jax.core import Tracer

from supremum.arrays.backends.base import Raw
from supremum.arrays.backends.jax_key import for_all_rules
from supremum.jax_compat import INLINE

_MANY = 2**31  # JAX takes larger numbers with x64 on only
_LARGE = 2**18  # XLA on CPUs copies a large static slice more slowly than the dynamic slice that JAX makes of it


def elements_at(raw: Raw, index: object) -> Raw:
    """Elements of an array.

    Args:
        raw: the array.
        index: anything that JAX takes in brackets.
    """
    array: Any = raw
    parts = None if isinstance(raw, Tracer) or array.size > _LARGE else _split_index(index)
    return _getitem(raw, index) if parts is None else _index_function(parts[0])(raw, parts[1])


def with_elements(raw: Raw, index: object, name: str, value: Raw, options: Mapping[str, Any]) -> Raw:
    """An array with updated elements.

    Args:
        raw: the array.
        index: as for `elements_at`.
        name: the method of `raw.at[index]`, such as `"set"`.
        value: its argument.
        options: its other arguments.
    """
    parts = None if isinstance(raw, Tracer) or options else _split_index(index)
    if parts is None:
        return _update_at(raw, index, name, value, **options)
    return _index_function(parts[0], name)(raw, parts[1], value)


_getitem: Callable[..., Raw] = for_all_rules(operator.getitem)


@for_all_rules
def _update_at(raw: Any, index: Any, name: str, value: Any, **options: Any) -> Raw:
    return getattr(raw.at[index], name)(value, **options)


_Places: TypeAlias = "tuple[Hashable, ...]"
_VALUE = "a value"


def _split_index(index: Any) -> tuple[_Places, list[Any]] | None:
    """The parts of an index that a compiled function depends on, and its other parts, which are values.

    Returns:
        None for an index of arrays, which JAX itself compiles.
    """
    places: list[Hashable] = [isinstance(index, tuple)]
    values: list[Any] = []
    for part in index if isinstance(index, tuple) else (index,):
        kind = part.__class__
        if kind is int and abs(part) < _MANY:
            places.append(_VALUE)
            values.append(part)
        elif kind is slice and {type(part.start), type(part.stop), type(part.step)} <= {int, type(None)}:
            places.append((part.start, part.stop, part.step))
        elif part is None or part is ...:
            places.append(part)
        else:
            return None
    return (*places,), values


def _join_index(places: _Places, values: Sequence[Any]) -> Any:
    """The index that `_split_index` took apart."""
    iterator, (is_tuple, *parts) = iter(values), places
    index = (next(iterator) if part == _VALUE else slice(*part) if isinstance(part, tuple) else part for part in parts)
    return (*index,) if is_tuple else next(index)


@lru_cache(maxsize=4096)
def _index_function(places: _Places, name: str = "") -> Callable[..., Raw]:
    def compute(raw: jax.Array, values: Sequence[Any], *value: Raw) -> jax.Array:
        index = _join_index(places, values)
        return getattr(raw.at[index], name)(*value) if name else raw[index]

    return for_all_rules(jax.jit(compute, inline=INLINE))
