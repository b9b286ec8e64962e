"""Pictures of the orders of rule sets, each in light and in dark, because readers can switch the theme."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from generate.markup import raw_html
from supremum.analysis.diagrams import lattice_svg
from supremum.analysis.inferred_lattice import NoLattice, order_of
from supremum.lattice import Lattice
from supremum.rules.names import HOMES

_WHEN = "@media (prefers-color-scheme: dark)"
_SWITCHED = {"light": "@media not all", "dark": "@media all"}


def themed(picture: str) -> dict[str, str]:
    """Return a picture that follows the reader's theme as one in light and one in dark.

    Args:
        picture: the SVG.
    """
    return {theme: picture.replace(_WHEN, media) for theme, media in _SWITCHED.items()}


def lattice_files() -> dict[str, str]:
    """Return the pictures of the rule sets that are lattices, by path."""
    drawn = {
        name: lattice_svg(name, types="standard")
        for name in HOMES
        if not isinstance(order_of(name, "standard"), NoLattice)
    }
    return {
        f"static/lattices/{name}-{theme}.svg": text
        for name, picture in drawn.items()
        for theme, text in themed(picture).items()
    }


def lattice_figure(rules: str) -> str:
    """Return the order of a rule set as a figure, or a sentence that says why it has no order, in Markdown.

    Args:
        rules: name of the rule set.

    >>> print(lattice_figure("numpy").partition(":")[0])
    These rules are not a lattice
    """
    found = order_of(rules, "standard")
    if isinstance(found, NoLattice):
        return f"These rules are not a lattice: {found.reason}."
    images = "".join(
        f'<a class="only-{theme}" href="../../_static/lattices/{rules}-{theme}.svg">'
        f'<img src="../../_static/lattices/{rules}-{theme}.svg" alt="the order of {rules}"></a>'
        for theme in _SWITCHED
    )
    return "\n\n".join([raw_html(f"<figure class=lattice>{images}</figure>"), *_hint(rules, found.lattice)])


def _hint(rules: str, order: Lattice) -> Iterator[str]:
    """Yield a command that shows the join of two types, if there are two whose join is a third type."""
    for pair in combinations(order.nodes, 2):
        if order.join(*pair) not in (None, *pair):
            yield f"`supremum lattice --rules {rules} --path {' '.join(pair)}` shows the paths to their join."
            return
