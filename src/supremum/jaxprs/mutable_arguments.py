"""Support for arguments that a function changes in place, such as modules of Flax nnx.

JAX traces functions of arrays. An object that holds arrays is therefore split into its arrays before the call, rebuilt
from the traced arrays inside, and updated with the changed arrays afterwards. An `Adapter` does this for one library.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax

from supremum.argument_checks import instance, text


@dataclass(frozen=True, slots=True)
class Adapter:
    """How to split and update the objects of a library that hold arrays.

    Args:
        holds: whether a value is such an object.
        split: splits several objects, which may hold each other, into a structure without arrays and a pytree of the
            arrays.
        merge: builds the same number of copies from the structure and the pytree.
        update: writes the arrays of the pytree into the objects; takes the objects and the pytree.

    >>> from flax import nnx
    >>> adapter = nnx_adapter()
    >>> counter = nnx.Variable(0)
    >>> adapter.holds(counter), adapter.holds([counter])
    (True, False)
    """

    holds: Callable[[Any], bool]
    split: Callable[[Sequence[Any]], tuple[Any, Any]]
    merge: Callable[[Any, Any], Sequence[Any]]
    update: Callable[[Sequence[Any], Any], None]


_adapters: dict[str, Adapter | None] = {}


def register_adapter(library: str, adapter: Adapter | None) -> None:
    """Let functions change objects of a library in place under `autocast`, `casts` and `profile`.

    Args:
        library: its name; a previous adapter of that name is replaced. The built-in one is `"flax.nnx"`.
        adapter: how to split and update the objects; None to treat them like all other values.

    >>> import jax.numpy as jnp
    >>> from supremum.mixed_precision import autocast
    >>> class Counter:
    ...     count = jnp.zeros(())
    >>> def update(counters, counts):
    ...     for counter, count in zip(counters, counts):
    ...         counter.count = count
    >>> def merge(structure, counts):
    ...     copies = [Counter() for _ in counts]
    ...     update(copies, counts)
    ...     return copies
    >>> def split(counters):
    ...     return None, [counter.count for counter in counters]
    >>> register_adapter(
    ...     "counters",
    ...     Adapter(lambda value: isinstance(value, Counter), split, merge, update),
    ... )
    >>> def step(counter, x):
    ...     counter.count += 1
    ...     return x @ x
    >>> counter = Counter()
    >>> autocast(step)(counter, jnp.ones((2, 2))).shape, int(counter.count)
    ((2, 2), 1)
    >>> register_adapter("counters", None)
    """
    if adapter is not None:
        instance("adapter", adapter, Adapter, "an Adapter, or None for none")
    _adapters[text("library", library)] = adapter


def nnx_adapter() -> Adapter:
    """The adapter for modules, optimizers, random streams and variables of Flax nnx."""
    nnx: Any = importlib.import_module("flax.nnx")  # it is not a dependency

    return Adapter(
        holds=lambda value: isinstance(value, (nnx.Pytree, nnx.Variable)),
        split=lambda objects: nnx.split(tuple(objects)),
        merge=nnx.merge,
        update=lambda objects, state: nnx.update(tuple(objects), state),
    )


def _adapter_of(value: Any) -> Adapter | None:
    if "flax.nnx" in sys.modules and "flax.nnx" not in _adapters:
        register_adapter("flax.nnx", nnx_adapter())
    known = tuple(_adapters.values())  # a copy, because another thread may register one
    return next((adapter for adapter in known if adapter is not None and adapter.holds(value)), None)


def _is_object(value: Any) -> bool:
    return _adapter_of(value) is not None


@dataclass(frozen=True, slots=True)
class Lifted:
    """A call whose mutable objects are replaced by arrays.

    Args:
        function: takes the arrays of the objects first, then the other arguments; returns the changed arrays and the
            result.
        args: the positional arguments to call it with.
        kwargs: the keyword arguments.
        put_back: updates the objects with the changed arrays, and returns the result with the objects in it.
    """

    function: Callable[..., tuple[Any, Any]]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    put_back: Callable[[tuple[Any, Any]], Any]


def lift_objects(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Lifted | None:
    """Turn a call into a call of arrays; None if neither the arguments nor the function are mutable objects.

    Args:
        function: a function, a callable mutable object, or a method of one.
        args: the positional arguments.
        kwargs: the keyword arguments.
    """
    callee = function.__self__ if inspect.ismethod(function) else function
    objects = _objects((callee, args, kwargs))
    if not objects:
        return None
    (callee, args, kwargs) = _with_places((callee, args, kwargs), objects)
    groups = _groups(objects)
    apart = [adapter.split([objects[place] for place in places]) for adapter, places in groups]

    def call(states: Sequence[Any], callee: Any, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
        copies = list(objects)
        for (adapter, places), (structure, _), state in zip(groups, apart, states, strict=True):
            leaves, tree = jax.tree.flatten(state)  # rebuilt, because the objects may keep the containers
            for place, copy in zip(places, adapter.merge(structure, tree.unflatten(leaves)), strict=True):
                copies[place] = copy
        callee, args, kwargs = _put_in((callee, args, kwargs), copies)
        result = function.__func__(callee, *args, **kwargs) if inspect.ismethod(function) else callee(*args, **kwargs)
        after = [adapter.split([copies[place] for place in places])[1] for adapter, places in groups]
        return [_changes(old, new) for old, new in zip(states, after, strict=True)], _with_places(result, copies)

    def put_back(outcome: tuple[Any, Any]) -> Any:
        changed, result = outcome
        for (adapter, places), (_, state), change in zip(groups, apart, changed, strict=True):
            if jax.tree.leaves(change):
                adapter.update([objects[place] for place in places], _changed(state, *change))
        return _put_in(result, objects)

    return Lifted(call, ([state for _, state in apart], callee, *args), kwargs, put_back)


@dataclass(frozen=True, slots=True, eq=False)
class _Placeholder:
    """A placeholder for an object, equal only to itself."""

    index: int


def _objects(tree: Any) -> list[Any]:
    """The mutable objects in a tree, each once."""
    leaves = jax.tree.leaves(tree, is_leaf=_is_object)
    return list({id(leaf): leaf for leaf in leaves if _is_object(leaf)}.values())


def _with_places(tree: Any, objects: Sequence[Any]) -> Any:
    """A tree with placeholders instead of these objects; other mutable objects in it are ordinary pytrees."""
    index = {id(each): place for place, each in enumerate(objects)}

    def place(leaf: Any) -> Any:
        return _Placeholder(index[id(leaf)]) if id(leaf) in index else leaf

    return jax.tree.map(place, tree, is_leaf=lambda leaf: id(leaf) in index)


def _put_in(tree: Any, objects: Sequence[Any]) -> Any:
    """A tree with the objects instead of their placeholders."""

    def put(leaf: Any) -> Any:
        return objects[leaf.index] if isinstance(leaf, _Placeholder) else leaf

    return jax.tree.map(put, tree)


def _groups(objects: Sequence[Any]) -> list[tuple[Adapter, list[int]]]:
    """The indices of each adapter's objects. They are split together, because they may hold each other."""
    groups: dict[int, tuple[Adapter, list[int]]] = {}
    for place, each in enumerate(objects):
        adapter = _adapter_of(each)
        assert adapter is not None
        groups.setdefault(id(adapter), (adapter, []))[1].append(place)
    return list(groups.values())


def _changes(old: Any, new: Any) -> tuple[dict[int, Any], Any]:
    """The changed arrays of a tree, by index; or the whole tree, if its structure changed."""
    before, structure = jax.tree.flatten(old)
    after, others = jax.tree.flatten(new)
    if structure != others:
        return {}, new
    return {place: leaf for place, leaf in enumerate(after) if leaf is not before[place]}, None


def _changed(old: Any, changes: dict[int, Any], whole: Any) -> Any:
    """The tree with the changes applied."""
    if whole is not None:
        return whole
    leaves, structure = jax.tree.flatten(old)
    return jax.tree.unflatten(structure, [changes.get(place, leaf) for place, leaf in enumerate(leaves)])
