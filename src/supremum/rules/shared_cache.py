"""Caches of rule sets: equal rule sets share one, which lives as long as any of them.

JAX caches traced functions for longer, by the rules in force. It gets a `RulesKey`, which is the same object for equal
rule sets and does not reference them.
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

# An entry takes about a kilobyte. The largest products of formats and operations that arrays meet have some thousands.
_MOST = 16_384


class RulesKey:
    """A key for all equal rule sets, for caches that outlive them."""

    __slots__ = ("__weakref__", "memory")

    def __init__(self) -> None:
        self.memory: weakref.ref[Memory] | None = None


class Memory:
    """The caches of a rule set.

    Args:
        key: what JAX keeps traced functions by.
    """

    __slots__ = ("__weakref__", "by_number", "key", "numbers", "pairs", "prepared", "verdicts")

    def __init__(self, key: Hashable) -> None:
        self.key = key
        self.verdicts: Bounded[Hashable, Verdict] = Bounded(_MOST)
        """By the operation and what matters of its operands."""
        self.pairs: Bounded[Hashable, Any] = Bounded(_MOST)
        """Result dtypes of two arrays; see `supremum.rules.pair_cache`."""
        self.prepared: Bounded[Hashable, Any] = Bounded(_MOST)
        """Operations on arrays that are ready to be carried out, by the operation and the keys of its operands."""
        self.numbers: Bounded[Hashable, Any] = Bounded(_MOST)
        """The keys of Python numbers, and of all numbers between which these rules see no difference the one key."""
        self.by_number: Bounded[Hashable, Any] = Bounded(_MOST)
        """As `prepared`, by an array's key and a number itself, which is found sooner than its key."""


_KEYS: WeakValueDictionary[Hashable, RulesKey] = WeakValueDictionary()
_lock = Lock()


def memory_of_values(kind: type, values: Mapping[str, Any]) -> Memory:
    """What equal rule sets share: the same object for as long as anybody holds it.

    Args:
        kind: their class.
        values: all that they hold, by name. What cannot be looked up, such as a NumPy array, is shared with nobody.
    """
    try:
        value = kind, hashable(values)
        hash(value)
    except TypeError:
        return Memory(RulesKey())
    with _lock:  # two threads may make equal rule sets at the same time
        key = _KEYS.get(value)
        if key is None:
            key = _KEYS[value] = RulesKey()
        memory = key.memory and key.memory()
        if memory is None:
            memory = Memory(key)
            key.memory = weakref.ref(memory)
        return memory


def hashable(value: Any) -> Hashable:
    """What is equal for equal values, and can be looked up.

    Args:
        value: text, numbers, enumerations, and mappings, sets, sequences and frozen dataclasses of these.

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
