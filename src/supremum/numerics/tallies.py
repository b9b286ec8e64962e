"""What is counted of the values that an operation makes: found in one reduction, and added up over its runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from supremum.formats import DType, Format, as_format
from supremum.jax_compat import INLINE
from supremum.numerics.thresholds import first_nan_rank, last_rank, rank, thresholds


@dataclass(frozen=True, slots=True)
class Level:
    """A question about a value: whether its magnitude has at least some rank.

    Args:
        rank: the rank.
        positive: whether finite negative values count too, whatever their rank, for formats without a sign.
    """

    rank: int
    positive: bool = False


@dataclass(frozen=True, slots=True)
class Questions:
    """What to count of some values.

    Args:
        levels: the levels that values may reach.
        histogram: whether to count the values between neighbouring `edges`, from which both the levels and a histogram
            of exponents follow. It takes longer than to count levels alone.
    """

    levels: tuple[Level, ...]
    histogram: bool = False


class Tally(NamedTuple):
    """What is known about the values that an operation made.

    Counts are exact while each array has less than 2**32 elements and their sums are below 2**64.

    Args:
        counts: uint32[2, 1 + levels]: the lower and the upper halves of the number of runs, and of the number of values
            that reach each level. With a histogram uint32[2, 1 + signed levels + edges]: only the levels that depend on
            the sign are counted, and the number of values from each edge to the next.
        least: the lowest rank of a finite value other than zero; the largest integer if there is none.
        most: the highest rank of a finite value; 0 if there is none.
    """

    counts: Any
    least: Any
    most: Any


def counted_format(dtype: DType) -> Format:
    """The format in whose ranks values of a dtype are counted: their own, or that of the parts of a complex number.

    Formats of less than 8 bits are counted in float32, which holds all of their values as normal numbers.
    """
    row = as_format(dtype).component
    return row if row.bits >= 8 else as_format("float32")


@lru_cache(maxsize=256)
def questions_of(source: Format, formats: Sequence[Format], histogram: bool = False) -> Questions:
    """The questions whose answers tell what formats do, each once.

    Args:
        source: the format of the values.
        formats: the formats to convert them to.
        histogram: whether to count exponents, too.
    """
    found = dict.fromkeys((Level(1), Level(last_rank(source) + 1), Level(first_nan_rank(source))))
    for target in formats:
        at = thresholds(source, target)
        found |= dict.fromkeys((Level(at.kept), Level(at.normal), Level(at.overflow)))
        if not target.signed:
            found[Level(at.overflow, positive=True)] = None
    return Questions(tuple(found), histogram)


@lru_cache(maxsize=256)
def edges_of(source: Format, levels: tuple[Level, ...]) -> tuple[int, ...]:
    """The ranks at which the values of a histogram are divided, in order: those of powers of two, and the levels.

    Args:
        source: the format of the values.
        levels: the levels; those that depend on the sign divide nothing.
    """
    return tuple(sorted({0, *_powers_of_two(source), *(level.rank for level in levels if not level.positive)}))


def _powers_of_two(source: Format) -> Iterator[int]:
    """The ranks of the powers of two."""
    yield from (1 << bit for bit in range(source.mantissa))
    yield from range(1 << source.mantissa, last_rank(source) + 1, 1 << source.mantissa)


def _unsigned(source: Format) -> DType:
    return np.dtype("uint64" if source.bits > 32 else "uint32")


def _length(source: Format, questions: Questions) -> int:
    """The number of counts of a tally, without that of runs."""
    if not questions.histogram:
        return len(questions.levels)
    signed = sum(level.positive for level in questions.levels)
    return signed + len(edges_of(source, questions.levels))


def empty(source: Format, questions: Questions) -> Tally:
    """The tally of no runs."""
    dtype = _unsigned(source)
    counts = jnp.zeros((2, 1 + _length(source, questions)), "uint32")
    return Tally(counts, jnp.array(np.iinfo(dtype).max, dtype), jnp.array(0, dtype))


def measure(value: Any, source: Format, questions: Questions, copies: int = 1) -> Tally:
    """The tally of one run.

    Args:
        value: the floating result of an operation.
        source: its format; see `counted_format`.
        questions: what to count; see `questions_of`.
        copies: how often each element counts.
    """
    if as_format(value.dtype).category == "complex":
        return _joined(*(_of_real(part(value), source, questions, copies) for part in (lax.real, lax.imag)))
    if as_format(value.dtype) is not source:
        value = lax.convert_element_type(value, source.dtype)
    return _of_real(value, source, questions, copies)


@partial(jax.jit, static_argnums=(1, 2, 3), inline=INLINE)  # so that results of one type are traced once
def _of_real(value: Any, source: Format, questions: Questions, copies: int) -> Tally:
    dtype = _unsigned(source)
    bits = lax.bitcast_convert_type(value, f"uint{source.bits}").astype(dtype)
    ranks = rank(bits, source, jnp.where)
    none, zero, last = np.iinfo(dtype).max, dtype.type(0), dtype.type(last_rank(source))
    is_finite = ranks <= last
    is_number = is_finite & (ranks != zero)
    sign = dtype.type(1 << (source.exponent + source.mantissa)) if source.signed else zero
    is_negative = is_number & ((bits & sign) != zero)

    def reached(level: Level) -> Any:
        found = ranks >= dtype.type(level.rank)
        return (found | is_negative if level.positive else found).astype("uint32")

    def joined(old: tuple[Any, ...], new: tuple[Any, ...]) -> tuple[Any, ...]:
        sums = (a + b for a, b in zip(old[2:], new[2:], strict=True))
        return lax.min(old[0], new[0]), lax.max(old[1], new[1]), *sums

    asked = [level for level in questions.levels if level.positive or not questions.histogram]
    least, most, *reaching = lax.reduce(
        (jnp.where(is_number, ranks, dtype.type(none)), jnp.where(is_finite, ranks, zero), *map(reached, asked)),
        (dtype.type(none), zero, *(np.uint32(0) for _ in asked)),
        joined,
        tuple(range(value.ndim)),
    )
    found = [*(jnp.reshape(count, (1,)) for count in reaching)]
    if questions.histogram:
        found.append(_between(ranks, source, questions))
    counts = jnp.concatenate([jnp.ones(1, "uint32"), *(count * np.uint32(copies) for count in found)])
    return Tally(jnp.stack([counts, jnp.zeros_like(counts)]), least, most)


def _between(ranks: Any, source: Format, questions: Questions) -> Any:
    """The number of values from each edge to the next."""
    edges = edges_of(source, questions.levels)
    powers = {0, *_powers_of_two(source)}
    mantissa = ranks.dtype.type(source.mantissa)
    # The place of a value among the powers of two is its exponent; subnormal numbers have it in their leading bit.
    field = ranks >> mantissa
    leading = ranks.dtype.type(ranks.dtype.itemsize * 8) - lax.clz(ranks)
    place = jnp.where(field == 0, leading, field + mantissa) if source.mantissa else field
    place = lax.min(place, ranks.dtype.type(len(powers) - 1)).astype("int32")
    # Every other edge is passed by the values that reach it.
    for edge in edges:
        if edge not in powers:
            place += (ranks >= ranks.dtype.type(edge)).astype("int32")
    return jnp.zeros(len(edges), "uint32").at[place.ravel()].add(np.uint32(1), mode="promise_in_bounds")


def _joined(left: Tally, right: Tally) -> Tally:
    """The tally of two parts of one run."""
    both = added(left, right)
    return both._replace(counts=both.counts.at[:, 0].set(left.counts[:, 0]))


def added(left: Tally, right: Tally) -> Tally:
    """The tally of all runs of two tallies."""
    # Numbers of 64 bits in halves: by default JAX has no integers of 64 bits.
    (low, high), (more, higher) = left.counts, right.counts
    low = low + more
    counts = jnp.stack([low, high + higher + (low < more).astype("uint32")])
    return Tally(counts, lax.min(left.least, right.least), lax.max(left.most, right.most))
