"""The births of NaNs and infinities in a function, as a sequence, text, plain data and HTML."""

from __future__ import annotations

import shutil
import textwrap
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple, overload

import jax
import numpy as np
from jax.core import Tracer

from supremum.errors import OperandError
from supremum.formats import Format, as_format
from supremum.jax_compat import open_jaxpr, parameter, type_text
from supremum.jaxprs import Site
from supremum.numerics.birth_causes import INFINITY, NAN, Cause, OperandRange, cause_of
from supremum.numerics.birth_records import CODE, FIRST_ITERATION, LOOPS, RUNS, BirthSlot
from supremum.numerics.birth_rows import (
    BIRTH_COLUMNS,
    BadSource,
    Birth,
    block,
    fate_text,
    made_of,
    name_of_source,
    source_text,
)
from supremum.numerics.tallies import counted_format
from supremum.numerics.thresholds import last_rank, value_of_rank
from supremum.render import columns_to_html
from supremum.reports import Report, RowTable, plain_data, plural
from supremum.tracing import RowFields

_SHOWN = 20


@dataclass(frozen=True, slots=True, eq=False)
class SourceSlot:
    """Something that bad values can come from.

    Args:
        kind: see `BadSource`.
        name: see `BadSource`.
        aval: its type.
        site: the first operation that uses a constant.
    """

    kind: str
    name: str
    aval: Any
    site: Site | None


class Found(NamedTuple):
    """What the first run found. Each first axis is that of the devices of a `shard_map`.

    Args:
        records: uint32[1, slots, 2 + loops]; see `Finding`.
        sources: uint32[1, sources, 2]: the numbers of NaNs and infinities in each source.
        outputs: uint32[1, 2]: those in the results.
    """

    records: Any
    sources: Any
    outputs: Any


class Fates(NamedTuple):
    """What the second run found, for each operation and each source that was followed.

    Args:
        reached: uint32[1, followed]: other than 0 if its bad values reach the results.
        ranges: integer[1, followed, operands + 1, RANGE]: what it made and the ranges of its operands; see
            `Following`.
    """

    reached: Any
    ranges: Any


@partial(
    jax.tree_util.register_dataclass,
    data_fields=["outputs", "found", "fates"],
    meta_fields=["slots", "source_slots", "followed"],
)
@dataclass(frozen=True, eq=False, repr=False)
class Births(Report, Sequence[Birth]):
    """The births of NaNs and infinities in a run of a function: a sequence of `Birth`, in order of execution.

    It is a pytree, so that a function that returns it can be jitted; its births are known once the function returned.

    Args:
        outputs: what the function returned.
        found: what the first run found.
        fates: what the second run found; None if it was not needed.
        slots: the operations.
        source_slots: what bad values can come from.
        followed: the indices of the slots and, behind them, of the sources that the second run followed; None for all.

    >>> import jax.numpy as jnp
    >>> from supremum.numerics import first_nonfinite
    >>> found = first_nonfinite(lambda x: jnp.sum(x / jnp.sum(x)))(jnp.zeros(3))
    >>> found
    Births(1 operation made a NaN or an infinity, 1 of them reached the result)
    >>> found[0].cause, found.first is found[0], found.outputs
    ('zero divided by zero', True, Array(nan, dtype=float32))
    """

    outputs: Any
    found: Found
    fates: Fates | None
    slots: tuple[BirthSlot, ...]
    source_slots: tuple[SourceSlot, ...]
    followed: tuple[int, ...] | None

    @cached_property
    def births(self) -> tuple[Birth, ...]:
        """The births, in order of execution.

        Raises:
            OperandError: while JAX traces the function that returns them.
        """
        found, fates = self._known()
        fields = RowFields()
        made: list[tuple[tuple[int, ...], Birth]] = []
        records = found.records.reshape(-1, *found.records.shape[-2:])
        for index in np.flatnonzero(records[:, :, RUNS].any(axis=0)):
            slot, rows = self.slots[index], records[:, index]
            born = np.flatnonzero(rows[:, RUNS])
            # Under vmap and on several devices, the example or device whose first bad run is the earliest.
            place = min(born, key=lambda at: _order(slot, rows[at]))
            kind = NAN if rows[place, CODE] & 2 else INFINITY
            reached, ranges, nans, infinities = None, (), 0, 0
            seen = self._fate(fates, int(index))
            if seen is not None:
                (nans, infinities), measured = (int(each) % 2**32 for each in seen[1][place, 0, :2]), seen[1][place, 1:]
                if nans or infinities:
                    reached = bool(seen[0][born].any())
                    ranges = tuple(_range(row, aval) for row, aval in zip(measured, slot.operands, strict=False))
            cause = cause_of(slot.site, kind, ranges) if ranges else Cause()
            birth = Birth(
                **fields.of(slot.site),
                kind=kind,
                iterations=tuple(int(each) for each in rows[place, FIRST_ITERATION:][: len(slot.loops)]),
                operands=ranges,
                nans=nans,
                infinities=infinities,
                runs=int(rows[born, RUNS].astype(object).sum()),
                in_custom_rule=fields.origin(slot.site).in_custom_rule,
                reached_output=reached,
                cause=cause.text,
                fix=cause.fix,
            )
            made.append((_order(slot, rows[place]), birth))
        return tuple(birth for _, birth in sorted(made, key=lambda pair: pair[0]))

    @cached_property
    def sources(self) -> tuple[BadSource, ...]:
        """The arguments, constants and literals with NaNs or infinities; constants even if nothing used them yet.

        Raises:
            OperandError: while JAX traces the function that returns the births.
        """
        found, fates = self._known()
        counts = found.sources.reshape(-1, len(self.source_slots), 2)
        fields = RowFields()
        result: list[BadSource] = []
        for index, slot in enumerate(self.source_slots):
            # Several examples or devices have the same constants.
            each = counts[:, index].astype(object)
            nans, infinities = each.sum(axis=0) if slot.kind == "argument" else each.max(axis=0)
            if not (nans or infinities):
                continue
            seen = self._fate(fates, len(self.slots) + index)
            result.append(
                BadSource(
                    **fields.at(None if slot.site is None else fields.origin(slot.site).place),
                    kind=slot.kind,
                    name=slot.name,
                    type=type_text(slot.aval),
                    nans=int(nans),
                    infinities=int(infinities),
                    reached_output=seen is not None and bool(seen[0].any()),
                )
            )
        return tuple(result)

    def _fate(self, fates: Fates | None, index: int) -> tuple[Any, Any] | None:
        """What the second run found about an operation or a source: on each device, for each example."""
        if fates is None:
            return None
        place = index if self.followed is None else self.followed.index(index)
        reached, ranges = fates
        return reached.reshape(-1, reached.shape[-1])[:, place], ranges.reshape(-1, *ranges.shape[-3:])[:, place]

    def _known(self) -> tuple[Found, Fates | None]:
        if any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves((self.found, self.fates))):
            raise OperandError("births are known after the run; return the result of first_nonfinite from the function")
        known: Any = jax.tree.map(np.asarray, (self.found, self.fates))
        return known

    @property
    def first(self) -> Birth | None:
        """The first birth that reached the results, or, if none did, the first one; None if there is none."""
        return next((birth for birth in self.births if birth.reached_output), next(iter(self.births), None))

    @property
    def reached(self) -> tuple[Birth, ...]:
        """The births that reached the results."""
        return tuple(birth for birth in self.births if birth.reached_output)

    @overload
    def __getitem__(self, index: int) -> Birth: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Birth]: ...
    def __getitem__(self, index: int | slice) -> Birth | Sequence[Birth]:
        return self.births[index]

    def __len__(self) -> int:
        return len(self.births)

    @property
    def bad_outputs(self) -> tuple[int, int]:
        """The numbers of NaNs and infinities in the results."""
        found, _ = self._known()
        nans, infinities = found.outputs.reshape(-1, 2).astype(object).sum(axis=0)
        return int(nans), int(infinities)

    def to_dict(self) -> dict[str, Any]:
        """The births as plain data for JSON, without the outputs."""
        nans, infinities = self.bad_outputs
        return {
            "births": plain_data(self.births),
            "sources": plain_data(self.sources),
            "output": {"nans": nans, "infinities": infinities},
        }

    @property
    def title(self) -> str:
        """What happened, in one line."""
        if self.births:
            made = f"{plural(len(self), 'operation')} made a NaN or an infinity"
            return f"{made}, {len(self.reached) or 'none'} of them reached the result"
        if not self.sources:
            return "no NaN and no infinity was made"
        reached = "some of them reached the result" if any(self.bad_outputs) else "none reached the result"
        return f"no operation made a NaN or an infinity, but non-finite values came in; {reached}"

    def __repr__(self) -> str:
        if any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(self.found)):
            return "Births(not known while JAX traces)"
        return f"Births({self.title})"

    def __str__(self) -> str:
        width = shutil.get_terminal_size().columns
        blocks = [textwrap.fill(f"{self.title}.", width)]
        ordered = sorted(self.births, key=lambda birth: not birth.reached_output)
        blocks += [block(birth, width) for birth in ordered[:_SHOWN]]
        if ordered[_SHOWN:]:
            blocks.append(f"... and {len(ordered) - _SHOWN} more")
        if self.sources:
            lines = [source_text(source) + times for source, times in self._counted_sources()]
            wrapped = [textwrap.fill(line, width, initial_indent="  ", subsequent_indent="    ") for line in lines]
            blocks.append("\n".join(["Non-finite values that came in:", *wrapped]))
        return "\n\n".join(blocks)

    def _counted_sources(self) -> list[tuple[BadSource, str]]:
        """The sources, those that reached the result first, and how many are the same, such as `" (2 times)"`."""
        ordered = sorted(self.sources, key=lambda source: not source.reached_output)
        return [(each, f" ({times} times)" if times > 1 else "") for each, times in Counter(ordered).items()]

    def _repr_html_(self) -> str:
        html = RowTable(self.births, BIRTH_COLUMNS).to_html(f"{self.title}.")
        if not self.sources:
            return html
        rows = [("came in", "values", "reached the result")]
        rows += [
            (name_of_source(each) + times, made_of(each.nans, each.infinities), fate_text(each.reached_output))
            for each, times in self._counted_sources()
        ]
        return html + columns_to_html("Non-finite values that came in.", rows)


def _order(slot: BirthSlot, record: Any) -> tuple[int, ...]:
    """What sorts runs of operations by their order of execution."""
    iterations = iter(int(each) for each in record[FIRST_ITERATION:])
    sites: list[Site] = [slot.site]
    while sites[-1].caller is not None:
        sites.append(sites[-1].caller)
    key: list[int] = []
    for site, inside in zip(reversed(sites), [*reversed(sites[:-1]), None], strict=True):
        key.append(site.index)
        if inside is None or site.equation.primitive.name not in LOOPS:
            continue
        iteration = next(iterations)
        if "cond_jaxpr" in site.equation.params:  # the condition comes before the body
            is_body = open_jaxpr(parameter(site.equation, "cond_jaxpr")) is not inside.function
            key += [iteration, is_body]
        else:
            key.append(-iteration if parameter(site.equation, "reverse") else iteration)
    return tuple(key)


def _range(row: Any, aval: Any) -> OperandRange:
    source = counted_format(aval.dtype)
    least, most, smallest, *counts = (int(each) for each in row)
    zeros, nans, infinities = (each % 2**32 for each in counts)
    is_empty = least > most
    return OperandRange(
        type_text(aval),
        None if is_empty else _value(source, least),
        None if is_empty else _value(source, most),
        _value(source, smallest) if smallest <= last_rank(source) else None,
        zeros,
        nans,
        infinities,
    )


def _value(source: Format, key: int) -> float:
    value = float(value_of_rank(as_format(source), abs(key)))
    return -value if key < 0 else value
