"""The orders of rule sets as pictures, each in light and in dark, as the theme's own switch wants them."""

from __future__ import annotations

from generate.markup import raw_html
from supremum.drawings import lattice_svg
from supremum.orders import NoLattice, in_words, order_of
from supremum.rules.registry import HOMES

_WHEN = "@media (prefers-color-scheme: dark)"
_SWITCHED = {"light": "@media not all", "dark": "@media all"}


def lattice_files() -> dict[str, str]:
    """The pictures of the rule sets that are lattices, by path."""
    drawn = {
        name: lattice_svg(name, types="standard")
        for name in HOMES
        if not isinstance(order_of(name, "standard"), NoLattice)
    }
    return {
        f"static/lattices/{name}-{theme}.svg": picture.replace(_WHEN, media)
        for name, picture in drawn.items()
        for theme, media in _SWITCHED.items()
    }


def lattice_figure(rules: str) -> str:
    """The order of a rule set as a figure, or the sentence that says why it has none, in Markdown.

    Args:
        rules: name of the rule set.

    >>> print(lattice_figure("numpy").partition(":")[0])
    These rules are no lattice
    """
    found = order_of(rules, "standard")
    if isinstance(found, NoLattice):
        places = "the only place" if found.count == 1 else f"one of {found.count} places"
        return f"These rules are no lattice: {in_words(found.counterexample)}. It is {places} where a law fails."
    images = "".join(
        f'<img class="only-{theme}" src="../../_static/lattices/{rules}-{theme}.svg" alt="the order of {rules}">'
        for theme in _SWITCHED
    )
    hint = f"`supremum lattice --rules {rules} --path int8 float16` lights the way to where two types meet."
    return f'{raw_html(f"<figure class=lattice tabindex=0>{images}</figure>")}\n\n{hint}'
