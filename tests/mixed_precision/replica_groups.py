"""The collectives of a compiled program, with the groups of devices that take part."""

import math
import re
from typing import NamedTuple

import numpy as np


class Collective(NamedTuple):
    """One collective operation: its name, element type, sizes of its arrays, and groups of devices."""

    name: str
    dtype: str
    sizes: tuple[int, ...]
    groups: frozenset[tuple[int, ...]]


def collectives(text):
    """List the collectives of an optimised HLO text, without those of single numbers."""
    names = "all-reduce|all-gather|reduce-scatter|all-to-all|collective-permute"
    found = []
    for types, name, rest in re.findall(rf"= (.*?) ({names})(?:-start)?\((.*)", text):
        arrays = [(kind, math.prod(numbers(shape))) for kind, shape in re.findall(r"(\w+)\[([\d,]*)\]", types)]
        arrays = [(kind, size) for kind, size in arrays if size > 1]
        if arrays:
            (dtype,) = {kind for kind, _ in arrays}
            found.append(Collective(name, dtype, tuple(size for _, size in arrays), groups_in(rest)))
    return found


def groups_in(text):
    """Return the groups of devices of a collective. XLA writes them in three ways.

    >>> listed = groups_in("replica_groups={{0,2},{1,3}}")
    >>> listed == groups_in("replica_groups=[2,2]<=[2,2]T(1,0)")
    True
    >>> listed == groups_in(
    ...     "replica_groups=mesh['a'=2,'b'=2], device_ids=([2,2]T(1,0)) {'b'}"
    ... )
    True
    """
    if listed := re.search(r"(?:replica_groups|source_target_pairs)=\{(\{.*?\})\}", text):
        return frozenset(tuple(numbers(group)) for group in re.findall(r"\{([\d,]+)\}", listed[1]))
    if ranged := re.search(r"replica_groups=\[([\d,]+)\]<=(\[[\d,]+\](?:T\([\d,]+\))?)", text):
        return frozenset(map(tuple, devices(ranged[2]).reshape(numbers(ranged[1])).tolist()))
    axes, order, used = re.search(r"replica_groups=mesh\[(.*?)\](?:, device_ids=\((.*?\))\))? \{(.*?)\}", text).groups()
    sizes = {name: int(size) for name, size in re.findall(r"'(\w+)'=(\d+)", axes)}
    grid = devices(order or f"[{math.prod(sizes.values())}]").reshape([*sizes.values()])
    along = [place for place, name in enumerate(sizes) if f"'{name}'" in used]
    grid = np.moveaxis(grid, along, range(-len(along), 0))
    groups = grid.reshape(-1, math.prod([*sizes.values()][place] for place in along))
    return frozenset(map(tuple, groups.tolist()))


def devices(text):
    """Return the flat ids in a range such as `[2,4]T(1,0)`, which is reshaped and transposed."""
    shape, order = re.fullmatch(r"\[([\d,]+)\](?:T\(([\d,]+)\))?", text).groups()
    grid = np.arange(math.prod(numbers(shape))).reshape(numbers(shape))
    return (grid.transpose(numbers(order)) if order else grid).reshape(-1)


def numbers(text):
    return [int(number) for number in text.split(",") if number]
