"""The README's picture: what `explain`, `casts` and a training run show. `tools/readme_picture.py` writes it."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import supremum
from generate.pictures import themed
from supremum import tracing
from supremum.render.svg import Drawing, beside, number, picture, stacked

RULES = ("numpy", "jax-x32", "tf-rfc-safe")
"""The rule sets that the picture asks."""
# Lengths in px. A line of code has 54 characters.
_CARD, _GAP, _PADDING, _LINE, _CHARACTERS = 420.0, 20.0, 12.0, 16.0, 54
_CHART = (2 * _CARD + _GAP - 2 * _PADDING, 230.0)
_COLOURS = ("var(--text)", "#3b8fd0", "#12a37a", "#e0701a", "#c86fa0")
_STYLE = """.supremum .code { white-space: pre; }
.supremum text.bold { font-weight: bold; }
.supremum text.lit { fill: var(--lit); }
.supremum .card { fill: none; stroke: var(--line); }
.supremum .axis { stroke: var(--line); }"""


# The picture shows these lines.
def _attention(x: jax.Array, w: jax.Array) -> jax.Array:
    q, k, v = (x @ each for each in w)
    scores = q @ k.T / np.sqrt(q.shape[-1])
    return jax.nn.softmax(scores) @ v


def readme_picture(training: Mapping[str, Any]) -> dict[str, str]:
    """Return the picture in light and in dark, as SVG.

    Args:
        training: what `tools/readme_picture.py` measures: `steps`, and for each of the `runs` its `losses` at these
            steps and its `test_accuracy`.
    """
    answers = _card("Which dtype will this give, and why?", "supremum.explain", _code(_decisions()))
    causes = _card("Which line made it float32?", "tracing.casts", _code(_casts()))
    cards = beside([_framed(each, max(answers.height, causes.height)) for each in (answers, causes)], _GAP)
    chart = _card("What does float16 lose, and what keeps it?", "supremum demo", _chart(training))
    title = "Supremum explains dtypes, finds casts, and trains in mixed precision"
    described = " ".join([*(line for line, _ in _decisions()), *(line for line, _ in _casts()), *_labels(training)])
    return themed(
        picture(title, stacked([cards, _framed(chart, chart.height)], _GAP), description=described, style=_STYLE)
    )


def _decisions() -> Iterator[tuple[str, str]]:
    """Yield the lines that `explain` prints, each with its class; long lines are wrapped."""
    for place, rules in enumerate(RULES):
        first, *rest = str(supremum.explain("int32", "float16", operation="add", rules=rules)).splitlines()
        yield from [("", "")] * bool(place)
        yield first, "bold"
        for line in rest:
            yield from ((part, "") for part in textwrap.wrap(line, _CHARACTERS, subsequent_indent=" " * 7))


def _casts() -> Iterator[tuple[str, str]]:
    """Yield the lines of `_attention` with its casts marked below them, and the fix of the first one."""
    code, start = inspect.getsourcelines(_attention)
    x, w = jnp.ones((4, 64), "bfloat16"), jnp.ones((3, 64, 64), "bfloat16")
    found = {cast.line: cast for cast in tracing.casts(_attention)(x, w).promotion}
    is_first = True
    yield "def attention(x, w):  # bfloat16", ""
    for place, line in enumerate(code[1:], start + 1):
        text = line.rstrip()
        yield text, ""
        if cast := found.get(place):
            yield " " * text.index(cast.expression) + "^" * len(cast.expression), "lit"
            yield f"    {cast.source} -> {cast.target}, a {cast.kind}", "lit"
            if is_first:
                fix = textwrap.wrap(f"fix: {cast.fix}", _CHARACTERS - 4)
                yield from ((f"    {part}", "") for part in fix)
            is_first = False
            yield "", ""


def _code(lines: Iterable[tuple[str, str]]) -> Drawing:
    texts = [
        f'<text class="mono code {style}" y="{number(_LINE * place + 12)}" xml:space="preserve">{escape(line)}</text>'
        for place, (line, style) in enumerate(lines)
    ]
    return Drawing(_CARD - 2 * _PADDING, _LINE * len(texts), "\n".join(texts))


def _card(title: str, source: str, content: Drawing) -> Drawing:
    heading = (
        f'<text class="bold" y="14">{escape(title)}</text>\n'
        f'<text class="mono end" x="{number(content.width)}" y="14">{escape(source)}</text>'
    )
    return stacked([Drawing(content.width, 20, heading), content], 10, margin=_PADDING)


def _framed(card: Drawing, height: float) -> Drawing:
    frame = f'<rect class="card" width="{number(card.width)}" height="{number(height)}" rx="8"/>'
    return Drawing(card.width, height, f"{frame}\n{card.body}")


def _labels(training: Mapping[str, Any]) -> list[str]:
    return [f"{name}: {100 * run['test_accuracy']:.0f} % right" for name, run in training["runs"].items()]


def _chart(training: Mapping[str, Any]) -> Drawing:
    """The losses over the steps, with the name of each run at its end."""
    (width, height), left, right, below = _CHART, 34.0, 232.0, 22.0
    runs, steps = training["runs"], training["steps"]
    losses = [loss for run in runs.values() for loss in run["losses"]]
    low, high = np.floor(10 * min(losses)) / 10, np.ceil(10 * max(losses)) / 10

    def x(step: float) -> float:
        return left + (width - left - right) * step / steps[-1]

    def y(loss: float) -> float:
        return float((height - below) * (high - loss) / (high - low))

    ticks = [float(tick) for tick in np.arange(low, high + 0.01, 0.2)]
    drawn = [f'<path class="axis" fill="none" d="M{number(left)} 0V{number(y(low))}H{number(width - right)}"/>']
    drawn += [f'<text class="end" x="{left - 6:g}" y="{number(y(tick) + 4)}">{tick:.1f}</text>' for tick in ticks]
    drawn += [
        f'<text x="{number(x(step))}" y="{number(height)}" text-anchor="middle">{step:,}</text>'
        for step in range(0, steps[-1] - 100, 400)
    ]
    drawn.append(f'<text class="end" x="{number(width - right)}" y="{number(height)}">step</text>')
    drawn.append(f'<text x="{left + 8:g}" y="12">loss</text>')
    thickness = dict(zip(runs, (9, 5.5, 2, 2.2, 2.2), strict=True))
    for (name, run), colour in zip(runs.items(), _COLOURS, strict=True):
        points = " ".join(
            f"{number(x(step))},{number(y(loss))}" for step, loss in zip(steps, run["losses"], strict=True)
        )
        drawn.append(
            f'<polyline fill="none" stroke="{colour}" stroke-width="{thickness[name]}" stroke-linejoin="round" '
            f'points="{points}"/>'
        )
    ends = [y(run["losses"][-1]) for run in runs.values()]
    for place, label, colour in zip(_apart(ends, 19), _labels(training), _COLOURS, strict=True):
        drawn.append(
            f'<rect x="{number(width - right + 10)}" y="{number(place - 2)}" width="14" height="4" fill="{colour}"/>'
            f'<text x="{number(width - right + 30)}" y="{number(place + 4)}">{escape(label)}</text>'
        )
    return Drawing(width, height + 4, "\n".join(drawn))


def _apart(places: Sequence[float], distance: float) -> list[float]:
    """Move places up so that none is nearer to the next one than a distance.

    >>> _apart([0, 100, 99, 98], 10)
    [0, 100, 90, 80]
    """
    moved = list(places)
    for lower, upper in zip(order := sorted(range(len(places)), key=lambda i: -places[i]), order[1:], strict=False):
        moved[upper] = min(places[upper], moved[lower] - distance)
    return moved
