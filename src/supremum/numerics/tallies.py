"""What is counted of the values that an operation makes: found in one reduction, and added up over its runs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.core import ShapedArray

from supremum.formats import DType, Format, as_format
from supremum.jax_compat import INLINE
from supremum.numerics.thresholds import bits_and_ranks, first_nan_rank, last_rank, thresholds, unsigned_of
from supremum.typing import ArrayLike


@dataclass(frozen=True, slots=True)
class Level:
    """A question about a value: whether its magnitude has at least some rank.

    Args:
        rank: the rank.
        positive: whether finite negative values count too, whatever their rank, for formats without a sign.
    """

    rank: int
    positive: bool = False


@dataclass(frozen=True)
class Questions:
    """What to count of some values.

    Args:
        source: the format of the values: their own, or that of the parts of complex numbers.
        formats: the formats to convert them to.
        histogram: whether to count the values between neighbouring edges, from which both the levels and a histogram
            of exponents follow. It takes longer than to count levels alone.
    """

    source: Format
    formats: tuple[Format, ...]
    histogram: bool = False

    @cached_property
    def levels(self) -> tuple[Level, ...]:
        """The levels that values may reach, each once."""
        ranks = [1, last_rank(self.source) + 1, first_nan_rank(self.source)]
        signed: list[Level] = []
        for target in self.formats:
            at = thresholds(self.source, target)
            ranks += at.kept, at.normal, at.overflow
            if not target.signed:
                signed.append(Level(at.overflow, positive=True))
        return tuple(dict.fromkeys([*map(Level, ranks), *signed]))

    @cached_property
    def levels_to_count(self) -> tuple[Level, ...]:
        """The levels that are counted; the others follow from a histogram."""
        return tuple(level for level in self.levels if level.positive or not self.histogram)

    @cached_property
    def edges(self) -> tuple[int, ...]:
        """The ranks at which the values of a histogram are divided, in order: those of powers of two, and the levels.

        There are none without a histogram.
        """
        if not self.histogram:
            return ()
        return tuple(sorted({*_powers_of_two(self.source), *(each.rank for each in self.levels if not each.positive)}))


@lru_cache(maxsize=256)
def questions_of(dtype: DType, formats: tuple[Format, ...], histogram: bool = False) -> Questions:
    """What to count of the values of a dtype.

    Formats of less than 8 bits are counted in float32, which holds all of their values as normal numbers.

    Args:
        dtype: the floating dtype.
        formats: the formats to convert its values to.
        histogram: whether to count exponents, too.
    """
    return Questions(counted_format(dtype), formats, histogram)


def elements_of(aval: jax.Array | ShapedArray) -> int:
    """The number of values of a floating array; the parts of a complex number are two."""
    return aval.size * (2 if as_format(aval.dtype).category == "complex" else 1)


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


@lru_cache(maxsize=64)
def _powers_of_two(source: Format) -> frozenset[int]:
    """The ranks of zero and of the powers of two."""
    subnormal = (1 << bit for bit in range(source.mantissa))
    return frozenset({0, *subnormal, *range(1 << source.mantissa, last_rank(source) + 1, 1 << source.mantissa)})


def empty_tally(questions: Questions) -> Tally:
    """The tally of no runs."""
    dtype = unsigned_of(questions.source)
    counts = jnp.zeros((2, 1 + len(questions.levels_to_count) + len(questions.edges)), "uint32")
    return Tally(counts, jnp.array(np.iinfo(dtype).max, dtype), jnp.array(0, dtype))


def measure(value: jax.Array, questions: Questions, copies: ArrayLike = 1) -> Tally:
    """The tally of one run.

    Args:
        value: the floating result of an operation.
        questions: what to count; see `questions_of`.
        copies: how often each element counts, a uint32 scalar.
    """
    copies = jnp.asarray(copies, "uint32")
    if as_format(value.dtype).category == "complex":
        left, right = (_measure_real(part(value), questions, copies) for part in (lax.real, lax.imag))
        both = add_tallies(left, right)
        return both._replace(counts=both.counts.at[:, 0].set(left.counts[:, 0]))  # it is one run
    if value.dtype != questions.source.dtype:
        value = lax.convert_element_type(value, questions.source.dtype)
    return _measure_real(value, questions, copies)


@partial(jax.jit, static_argnums=1, inline=INLINE)  # so that results of one type are traced once
def _measure_real(value: Any, questions: Questions, copies: Any) -> Tally:
    source = questions.source
    bits, ranks = bits_and_ranks(value)
    dtype = bits.dtype
    none, zero, last = np.iinfo(dtype).max, dtype.type(0), dtype.type(last_rank(source))
    is_finite = ranks <= last
    is_number = is_finite & (ranks != zero)
    sign = dtype.type(1 << (source.exponent + source.mantissa)) if source.signed else zero
    is_negative = is_number & ((bits & sign) != zero)

    def reached(level: Level) -> Any:
        is_reached = ranks >= dtype.type(level.rank)
        return (is_reached | is_negative if level.positive else is_reached).astype("uint32")

    def reduce(old: tuple[Any, ...], new: tuple[Any, ...]) -> tuple[Any, ...]:
        sums = (a + b for a, b in zip(old[2:], new[2:], strict=True))
        return lax.min(old[0], new[0]), lax.max(old[1], new[1]), *sums

    least, most, *reaching = lax.reduce(
        (
            jnp.where(is_number, ranks, dtype.type(none)),
            jnp.where(is_finite, ranks, zero),
            *map(reached, questions.levels_to_count),
        ),
        (dtype.type(none), zero, *[np.uint32(0)] * len(questions.levels_to_count)),
        reduce,
        tuple(range(value.ndim)),
    )
    counts = [jnp.reshape(count, (1,)) for count in reaching]
    if questions.histogram:
        counts.append(_between(ranks, questions))
    low = jnp.concatenate([jnp.ones(1, "uint32"), *(count * copies for count in counts)])
    return Tally(jnp.stack([low, jnp.zeros_like(low)]), least, most)


def _between(ranks: Any, questions: Questions) -> Any:
    """The number of values from each edge to the next."""
    source, powers = questions.source, _powers_of_two(questions.source)
    mantissa = ranks.dtype.type(source.mantissa)
    # The place of a value among the powers of two is its exponent; subnormal numbers have it in their leading bit.
    field = ranks >> mantissa
    leading = ranks.dtype.type(ranks.dtype.itemsize * 8) - lax.clz(ranks)
    place = jnp.where(field == 0, leading, field + mantissa) if source.mantissa else field
    place = lax.min(place, ranks.dtype.type(len(powers) - 1)).astype("int32")
    # Every other edge is passed by the values that reach it.
    for edge in questions.edges:
        if edge not in powers:
            place += (ranks >= ranks.dtype.type(edge)).astype("int32")
    return jnp.zeros(len(questions.edges), "uint32").at[place.ravel()].add(np.uint32(1), mode="promise_in_bounds")


def has_nonfinite(tally: Tally, questions: Questions) -> bool:
    """Whether some of the counted values are infinite or NaN.

    Args:
        tally: the tally, as NumPy arrays; more axes are those of more tallies.
        questions: what was counted, without a histogram.
    """
    column = 1 + questions.levels_to_count.index(Level(last_rank(questions.source) + 1))
    return bool(tally.counts[..., column].any())


def add_tallies(left: Tally, right: Tally) -> Tally:
    """The tally of all runs of two tallies."""
    # Numbers of 64 bits in halves: by default JAX has no integers of 64 bits.
    (low, high), (more, higher) = left.counts, right.counts
    low = low + more
    counts = jnp.stack([low, high + higher + (low < more).astype("uint32")])
    return Tally(counts, lax.min(left.least, right.least), lax.max(left.most, right.most))
