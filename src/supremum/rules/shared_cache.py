"""Caches of rule sets; equal rule sets share one, which lives as long as any of them.

JAX caches traced functions by the rules in force, and for longer. Its key is a `RulesKey`, which is the same object for
equal rule sets and does not reference them.
"""

from __future__ import annotations

import weakref
from collections.abc import Hashable, Mapping, Sequence, Set
from dataclasses import fields, is_dataclass
from threading import Lock
from typing import Any, cast
from weakref import WeakValueDictionary

from supremum.bounded_cache import Bounded
from supremum.decisions import Verdict

# An entry takes about a kilobyte. The largest products of formats and operations in use have a few thousand entries.
_MOST = 16_384


class RulesKey:
    """A key for all equal rule sets, for caches that outlive them."""

    __slots__ = ("__weakref__", "memory")

    def __init__(self) -> None:
        self.memory: weakref.ref[Memory] | None = None


class Memory:
    """The caches of a rule set.

    Args:
        key: JAX's cache key for traced functions.
    """

    __slots__ = ("__weakref__", "key", "number_keys", "numbers", "pairs", "prepared", "verdicts")

    def __init__(self, key: Hashable) -> None:
        self.key: Hashable = key
        self.verdicts: Bounded[Hashable, Verdict] = Bounded(_MOST)
        """Verdicts, by the operation and the keys of its operands."""
        self.pairs: Bounded[Hashable, Any] = Bounded(_MOST)
        """Result dtypes of two arrays; see `supremum.promotion`."""
        self.prepared: Bounded[Hashable, Any] = Bounded(_MOST)
        """Calls of functions of arrays that are ready to run, by the function, the keys and the other arguments."""
        self.number_keys: Bounded[Hashable, Any] = Bounded(_MOST)
        """The keys of Python numbers, by what these rules see of a number."""
        self.numbers: Bounded[Hashable, Any] = Bounded(_MOST)
        """The same keys, by the type and the value of a number."""


_KEYS: WeakValueDictionary[Hashable, RulesKey] = WeakValueDictionary()
_lock = Lock()


def memory_of_values(kind: type, values: Mapping[str, Any]) -> Memory:
    """The caches that equal rule sets share: the same object for as long as any of them exists.

    Args:
        kind: the class of the rule sets.
        values: their attributes, by name. Rule sets with an unhashable value, such as a NumPy array, share nothing.
    """
    try:
        value = kind, hashable(values)
        hash(value)
    except TypeError:
        return Memory(RulesKey())
    with _lock:  # two threads may make equal rule sets at the same time
        key = _KEYS.setdefault(value, RulesKey())
        memory = key.memory and key.memory()
        if memory is None:
            memory = Memory(key)
            key.memory = weakref.ref(memory)
        return memory


def hashable(value: Any) -> Hashable:
    """Convert a value to a hashable one that is equal for equal values.

    Args:
        value: strings, numbers, enumerations, and mappings, sets, sequences and frozen dataclasses of these.

    >>> hashable({"a": ["b"], "c": []}) == hashable({"c": [], "a": ["b"]})
    True
    """
    if isinstance(value, Mapping):
        return frozenset((key, hashable(each)) for key, each in cast("Mapping[Any, Any]", value).items())
    if isinstance(value, Set):
        return frozenset(map(hashable, cast("Set[Any]", value)))
    if isinstance(value, (list, tuple)):
        return tuple(map(hashable, cast("Sequence[Any]", value)))
    if is_dataclass(value) and not isinstance(value, type):
        return (type(value), *(hashable(getattr(value, each.name)) for each in fields(value)))
    return value
