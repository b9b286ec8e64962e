"""An origin, a source of bad values, and how they read."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from pathlib import Path

from supremum.numerics.nonfinite_causes import OperandRange, count_text
from supremum.reports import Column, OperationRow, SourceLine


@dataclass(frozen=True, slots=True, kw_only=True)
class NonfiniteOrigin(OperationRow):
    """An operation that made a NaN of operands without NaN, or an infinity of finite operands.

    For the fields of every operation see `reports.OperationRow`.

    Args:
        kind: `"nan"` or `"infinity"`; if its first bad run made both, `"nan"`.
        iterations: the iteration of each loop around it in its first bad run, outermost first, counted from 0. The
            iterations of a `scan` are numbered by the place in its inputs, also where it runs in reverse.
        operands: the ranges of its floating operands in that run.
        nans: the number of NaNs that this run made.
        infinities: the number of infinities that this run made.
        runs: the number of runs that made a NaN or an infinity.
        in_custom_rule: whether it belongs to a derivative rule of `jax.custom_jvp` or `jax.custom_vjp`. JAX keeps only
            the line where the function is called.
        reached_output: whether the values that it made reach the results, if all other bad values are replaced by
            finite ones; None if the second run, which tells, did not make them again.
        cause: why, in a few words; empty if that is not certain.
        fix: what to do about it; empty if that depends on the program.

    >>> import jax.numpy as jnp
    >>> from supremum.numerics import first_nonfinite
    >>> (origin,) = first_nonfinite(lambda x: jnp.where(x > 0, jnp.log(x), 0.0))(
    ...     jnp.array([0.0, 1.0])
    ... )
    >>> origin.kind, origin.expression, origin.cause, origin.reached_output
    ('infinity', 'jnp.log(x)', 'the logarithm of zero', False)
    """

    kind: str
    iterations: tuple[int, ...]
    operands: tuple[OperandRange, ...]
    nans: int
    infinities: int
    runs: int
    in_custom_rule: bool
    reached_output: bool | None
    cause: str
    fix: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BadSource(SourceLine):
    """An argument, constant or literal with NaNs or infinities.

    Args:
        kind: `"argument"`, or `"constant"` for one in the program, such as the `-inf` of a mask.
        name: the argument, such as `"params['w']"`; empty for a constant.
        type: its type, such as `"float32[8,128]"`.
        nans: the number of NaNs.
        infinities: the number of infinities.
        file: the file of the first expression that uses a constant; empty for an argument.
        line: the line in that file.
        expression: the source text, on one line.
        reached_output: whether its bad values reach the results, if all other bad values are replaced by finite ones.

    >>> import jax.numpy as jnp
    >>> from supremum.numerics import first_nonfinite
    >>> origins = first_nonfinite(lambda x: jnp.where(x > 0, x, -jnp.inf).max())(
    ...     jnp.array([-1.0, 1.0])
    ... )
    >>> [
    ...     (source.kind, source.infinities, source.reached_output)
    ...     for source in origins.sources
    ... ]
    [('constant', 1, False)]
    """

    kind: str
    name: str
    type: str
    nans: int
    infinities: int
    reached_output: bool


def made_of(nans: int, infinities: int) -> str:
    """Numbers of NaNs and infinities in words."""
    return " and ".join(count_text(each, word) for each, word in ((nans, "NaN"), (infinities, "infinity")) if each)


def reached_text(reached: bool | None) -> str:
    """Whether something reached the results, in a word."""
    return {True: "yes", False: "no", None: "unknown"}[reached]


def details_of(origin: NonfiniteOrigin) -> list[str]:
    """What is known about an origin, in phrases."""
    texts = {True: "reached the result", False: "did not reach the result", None: "it is not known if it reached it"}
    details = [texts[origin.reached_output]]
    if origin.iterations:
        details.append("first in " + ", inner ".join(f"iteration {each}" for each in origin.iterations))
    if origin.runs > 1:
        details.append(f"{origin.runs} runs")
    if origin.backward:
        details.append("in the backward pass")
    if origin.in_custom_rule:
        details.append("in the derivative rule of the function called here")
    if origin.scope:
        details.append(f"scope {origin.scope}")
    return details


def origin_text(origin: NonfiniteOrigin, width: int) -> str:
    """An origin as lines of text."""
    head = f"{made_of(origin.nans, origin.infinities)} from {origin.expression or origin.primitive}"
    if origin.file:
        head += f"  ({Path(origin.where).name})"
    lines = [origin.cause, "; ".join(details_of(origin))]
    lines += [f"operand {operand}" for operand in origin.operands]
    lines += [f"Fix: {origin.fix}."] if origin.fix else []
    wrapped = [
        textwrap.fill(line, width, initial_indent="  ", subsequent_indent="    ", break_long_words=False)
        for line in lines
        if line
    ]
    return "\n".join([head, *wrapped])


def name_of_source(source: BadSource) -> str:
    """What bad values come from, in words."""
    if source.kind == "argument":
        return f"argument {source.name}"
    place = f" ({Path(source.where).name})" if source.file else ""
    return f"constant in {source.expression or '-'}{place}"


def source_text(source: BadSource) -> str:
    """A source in one line."""
    reached = "reached" if source.reached_output else "did not reach"
    values = f"{source.type}, {made_of(source.nans, source.infinities)}"
    return f"{name_of_source(source)}: {values}; {reached} the result"


ORIGIN_COLUMNS = (
    Column("made", lambda origin: "; ".join([made_of(origin.nans, origin.infinities), *details_of(origin)[1:]])),
    Column("reached the result", lambda origin: reached_text(origin.reached_output)),
    Column("cause", lambda origin: origin.cause),
    Column("fix", lambda origin: origin.fix),
)
"""What a table says about an origin."""
