"""Caches of rule sets; equal rule sets share one, which lives as long as any of them.

JAX caches traced functions by the rules in force, and for longer. Its key is a `RulesKey`, which is the same object for
equal rule sets and does not reference them.
"""

from __future__ import annotations

import weakref
from collections.abc import Hashable, Mapping
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary

from supremum.bounded_cache import Bounded
from supremum.decisions import Verdict

# An entry takes about a kilobyte. The largest products of formats and operations in use have a few thousand entries.
_MOST = 16_384


class RulesKey:
    """A key for all equal rule sets, for caches that outlive them.

    Args:
        kind: the class of the rule sets.
        values: their attributes, by name.
    """

    __slots__ = ("__weakref__", "kind", "memory", "values")

    def __init__(self, kind: type, values: Mapping[str, Any]) -> None:
        self.kind: type = kind
        self.values: Mapping[str, Any] = values
        self.memory: weakref.ref[Memory] | None = None

    def __eq__(self, other: object) -> bool:
        """Whether the rule sets are equal; those with an attribute that does not compare, such as an array, are not."""
        if self is other or not isinstance(other, RulesKey):
            return self is other
        try:
            return self.kind is other.kind and self.values == other.values
        except ValueError:
            return False

    def __hash__(self) -> int:
        return hash((self.kind, self.values["name"]))


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


_KEYS: WeakKeyDictionary[RulesKey, weakref.ref[RulesKey]] = WeakKeyDictionary()
_lock = Lock()


def memory_of_values(kind: type, values: Mapping[str, Any]) -> Memory:
    """The caches that equal rule sets share: the same object for as long as any of them exists.

    Args:
        kind: the class of the rule sets.
        values: their attributes, by name.
    """
    new_key = RulesKey(kind, values)
    with _lock:  # two threads may make equal rule sets at the same time
        key = _KEYS.setdefault(new_key, weakref.ref(new_key))() or new_key
        memory = key.memory and key.memory()
        if memory is None:
            memory = Memory(key)
            key.memory = weakref.ref(memory)
        return memory
