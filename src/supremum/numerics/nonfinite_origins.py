"""The origins of NaNs and infinities in a function, as a sequence, text, plain data and HTML."""

from __future__ import annotations

import math
import shutil
import textwrap
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from typing import Any, NamedTuple, overload

import jax
import numpy as np

from supremum.errors import OperandError
from supremum.formats import Format
from supremum.jax_compat import open_jaxpr, parameter, type_text
from supremum.jaxprs import Site, has_tracers, plan_of
from supremum.numerics.dataflow import Dataflow
from supremum.numerics.nonfinite_causes import INFINITY, NAN, NonfiniteCause, OperandRange, cause_of
from supremum.numerics.nonfinite_records import CODE, FIRST_ITERATION, LOOPS, RUNS, loops_around
from supremum.numerics.nonfinite_rows import (
    ORIGIN_COLUMNS,
    BadSource,
    NonfiniteOrigin,
    made_of,
    name_of_source,
    origin_text,
    reached_text,
    source_text,
)
from supremum.numerics.tallies import counted_format
from supremum.numerics.thresholds import last_rank, value_of_rank
from supremum.numerics.widening import floating_avals
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


class OriginRecords(NamedTuple):
    """What the first run recorded. Each first axis is that of the devices of a `shard_map`.

    Args:
        operations: uint32[1, sites, 2 + loops]; see `OriginFinder`.
        sources: uint32[1, sources, 2]: the numbers of NaNs and infinities in each source.
        outputs: uint32[1, 2]: those in the results.
    """

    operations: Any
    sources: Any
    outputs: Any


class OriginOutcomes(NamedTuple):
    """What the second run recorded, for each operation and each source that was followed.

    Args:
        reached: uint32[1, followed]: zero if its bad values did not reach the results.
        ranges: integer[1, followed, operands + 1, RANGE]: what it made and the ranges of its operands; see
            `OriginFollower`.
    """

    reached: Any
    ranges: Any


@partial(
    jax.tree_util.register_dataclass,
    data_fields=["outputs", "records", "outcomes"],
    meta_fields=["sites", "source_slots", "followed"],
)
@dataclass(frozen=True, eq=False, repr=False)
class NonfiniteOrigins(Report, Sequence[NonfiniteOrigin]):
    """The operations that made NaNs and infinities in a run: a sequence of `NonfiniteOrigin`, in order of execution.

    It is a pytree, so that a function that returns it can be jitted; its rows are known once the function returned.

    Args:
        outputs: what the function returned.
        records: what the first run recorded.
        outcomes: what the second run recorded; None if it was not needed.
        sites: the operations.
        source_slots: what bad values can come from.
        followed: the indices of the sites and, behind them, of the sources that the second run followed; None for all.

    >>> import jax.numpy as jnp
    >>> from supremum.numerics import first_nonfinite
    >>> origins = first_nonfinite(lambda x: jnp.sum(x / jnp.sum(x)))(jnp.zeros(3))
    >>> origins
    NonfiniteOrigins(1 operation made a NaN or an infinity, 1 of them reached the result)
    >>> origins[0].cause, origins.first is origins[0], origins.outputs
    ('zero divided by zero', True, Array(nan, dtype=float32))
    """

    outputs: Any
    records: OriginRecords
    outcomes: OriginOutcomes | None
    sites: tuple[Site, ...]
    source_slots: tuple[SourceSlot, ...]
    followed: tuple[int, ...] | None

    @cached_property
    def origins(self) -> tuple[NonfiniteOrigin, ...]:
        """The operations, in order of execution.

        Raises:
            OperandError: while JAX traces the function that returns them.
        """
        table, fields = _by_device(self._read(self.records.operations)), RowFields()
        ordered: list[tuple[tuple[int, ...], NonfiniteOrigin]] = []
        for index in np.flatnonzero(table[:, :, RUNS].any(axis=0)):
            site, runs = self.sites[index], table[:, index]
            bad = np.flatnonzero(runs[:, RUNS])
            # Under vmap and on several devices, the example or device whose first bad run is the earliest.
            place = min(bad, key=lambda at: _order(site, runs[at]))
            kind = NAN if runs[place, CODE] & 2 else INFINITY
            nans, infinities, ranges = self._first_run(int(index), int(place))
            # The second run may not make the bad values again.
            is_known = nans + infinities > 0
            outcome = self._outcome(int(index)) if is_known else None
            cause = cause_of(self._flow, site, kind, ranges) if is_known and ranges else NonfiniteCause()
            origin = NonfiniteOrigin(
                **fields.of(site),
                kind=kind,
                iterations=tuple(map(int, runs[place, FIRST_ITERATION:][: len(loops_around(site))])),
                operands=ranges if is_known else (),
                nans=nans,
                infinities=infinities,
                runs=int(runs[bad, RUNS].astype(object).sum()),
                in_custom_rule=fields.origin(site).in_custom_rule,
                reached_output=None if outcome is None else bool(outcome[0][bad].any()),
                cause=cause.text,
                fix=cause.fix,
            )
            ordered.append((_order(site, runs[place]), origin))
        return tuple(origin for _, origin in sorted(ordered, key=lambda pair: pair[0]))

    @cached_property
    def _flow(self) -> Dataflow:
        return Dataflow(plan_of(self.sites[0].chain[0].function))

    def _first_run(self, index: int, device: int) -> tuple[int, int, tuple[OperandRange, ...]]:
        """The numbers of NaNs and infinities that the first bad run of an operation made, and its operands' ranges."""
        outcome = self._outcome(index)
        if outcome is None:
            return 0, 0, ()
        counts, *ranges = outcome[1][device]
        types = floating_avals(self.sites[index].equation.invars)
        return _unsigned(counts[0]), _unsigned(counts[1]), tuple(map(_range, ranges, types))

    @cached_property
    def sources(self) -> tuple[BadSource, ...]:
        """The arguments, constants and literals with NaNs or infinities; constants even if nothing used them yet.

        Raises:
            OperandError: while JAX traces the function that returns the origins.
        """
        counts, fields = _by_device(self._read(self.records.sources)), RowFields()
        sources: list[BadSource] = []
        for index, slot in enumerate(self.source_slots):
            # Several examples or devices have the same constants.
            each = counts[:, index].astype(object)
            nans, infinities = each.sum(axis=0) if slot.kind == "argument" else each.max(axis=0)
            if not (nans or infinities):
                continue
            outcome = self._outcome(len(self.sites) + index)
            sources.append(
                BadSource(
                    **fields.at(None if slot.site is None else fields.origin(slot.site).place),
                    kind=slot.kind,
                    name=slot.name,
                    type=type_text(slot.aval),
                    nans=int(nans),
                    infinities=int(infinities),
                    reached_output=outcome is not None and bool(outcome[0].any()),
                )
            )
        return tuple(sources)

    def _outcome(self, index: int) -> tuple[np.ndarray, np.ndarray] | None:
        """What the second run recorded of an operation or a source: on each device, for each example."""
        if self.outcomes is None:
            return None
        place = index if self.followed is None else self.followed.index(index)
        reached, ranges = self._read(self.outcomes)
        return reached.reshape(-1, reached.shape[-1])[:, place], ranges.reshape(-1, *ranges.shape[-3:])[:, place]

    @staticmethod
    def _read(records: Any) -> Any:
        if has_tracers(records):
            raise OperandError(
                "origins are known after the run; return the result of first_nonfinite from the function"
            )
        return jax.tree.map(np.asarray, records)

    @property
    def first(self) -> NonfiniteOrigin | None:
        """The first origin that reached the results, or, if none did, the first one; None if there is none."""
        return next(iter((*self.reached, *self.origins)), None)

    @property
    def reached(self) -> tuple[NonfiniteOrigin, ...]:
        """The origins that reached the results."""
        return tuple(origin for origin in self.origins if origin.reached_output)

    @overload
    def __getitem__(self, index: int) -> NonfiniteOrigin: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[NonfiniteOrigin]: ...
    def __getitem__(self, index: int | slice) -> NonfiniteOrigin | Sequence[NonfiniteOrigin]:
        return self.origins[index]

    def __len__(self) -> int:
        return len(self.origins)

    @property
    def bad_outputs(self) -> tuple[int, int]:
        """The numbers of NaNs and infinities in the results."""
        nans, infinities = self._read(self.records.outputs).reshape(-1, 2).astype(object).sum(axis=0)
        return int(nans), int(infinities)

    def to_dict(self) -> dict[str, Any]:
        """The origins as plain data for JSON, without the outputs."""
        nans, infinities = self.bad_outputs
        return {
            "origins": plain_data(self.origins),
            "sources": plain_data(self.sources),
            "output": {"nans": nans, "infinities": infinities},
        }

    @property
    def title(self) -> str:
        """What happened, in one line."""
        if self.origins:
            summary = f"{plural(len(self), 'operation')} made a NaN or an infinity"
            return f"{summary}, {len(self.reached) or 'none'} of them reached the result"
        if not self.sources:
            return "no NaN and no infinity was made"
        reached = "some of them reached the result" if any(self.bad_outputs) else "none reached the result"
        return f"no operation made a NaN or an infinity, but non-finite values came in; {reached}"

    def __repr__(self) -> str:
        if has_tracers(self.records):
            return "NonfiniteOrigins(not known while JAX traces)"
        return f"NonfiniteOrigins({self.title})"

    def __str__(self) -> str:
        width = shutil.get_terminal_size().columns
        blocks = [textwrap.fill(f"{self.title}.", width)]
        ordered = sorted(self.origins, key=lambda origin: not origin.reached_output)
        blocks += [origin_text(origin, width) for origin in ordered[:_SHOWN]]
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
        html = RowTable(self.origins, ORIGIN_COLUMNS).to_html(f"{self.title}.")
        if not self.sources:
            return html
        rows = [("came in", "values", "reached the result")]
        rows += [
            (name_of_source(each) + times, made_of(each.nans, each.infinities), reached_text(each.reached_output))
            for each, times in self._counted_sources()
        ]
        return html + columns_to_html("Non-finite values that came in.", rows)


def _by_device(records: np.ndarray) -> np.ndarray:
    """Records with one axis for devices and the examples of `jax.vmap` before their own two."""
    return records.reshape(math.prod(records.shape[:-2]), *records.shape[-2:])


def _order(site: Site, record: Any) -> tuple[int, ...]:
    """What sorts runs of operations by their order of execution."""
    iterations = iter(int(each) for each in record[FIRST_ITERATION:])
    key = [site.chain[0].index]
    for loop, inside in pairwise(site.chain):
        if loop.equation.primitive.name in LOOPS:
            iteration = next(iterations)
            if "cond_jaxpr" in loop.equation.params:  # the condition comes before the body
                is_body = open_jaxpr(parameter(loop.equation, "cond_jaxpr")) is not inside.function
                key += [iteration, is_body]
            else:
                key.append(-iteration if parameter(loop.equation, "reverse") else iteration)
        key.append(inside.index)
    return tuple(key)


def _range(row: Any, aval: Any) -> OperandRange:
    source = counted_format(aval.dtype)
    least, most, smallest, *counts = map(int, row)
    is_empty = least > most
    return OperandRange(
        type_text(aval),
        None if is_empty else _value(source, least),
        None if is_empty else _value(source, most),
        _value(source, smallest) if smallest <= last_rank(source) else None,
        *map(_unsigned, counts),
    )


def _unsigned(count: Any) -> int:
    """A count whose bits a signed integer of 32 bits holds."""
    return int(count) % 2**32


def _value(source: Format, key: int) -> float:
    value = float(value_of_rank(source, abs(key)))
    return -value if key < 0 else value
