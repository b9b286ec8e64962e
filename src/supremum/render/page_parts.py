"""The parts that our HTML pages share: the icon, the colours and controls, the theme button, and hints to scroll."""

from __future__ import annotations

import base64
from functools import cache
from importlib.resources import files

_SIDEWAYS = "The table is wider than its frame: scroll it sideways to see all of it."


@cache
def page_part(name: str) -> str:
    """The text of a shared part.

    Args:
        name: `"shared.css"` (colours, controls and header), `"theme.js"` (a button with the id `theme`),
            `"sideways.js"` (shows each `sideways_hint` only if it is true), `"page.css"` and `"page.js"` (tables), or
            `"icon.svg"`.

    >>> page_part("icon.svg")[:4]
    '<svg'
    """
    return files("supremum.render").joinpath(name).read_text(encoding="utf-8")


@cache
def icon_link() -> str:
    """The HTML element that gives a self-contained page its icon.

    >>> icon_link()[:46]
    '<link rel="icon" href="data:image/svg+xml;base'
    """
    packed = base64.b64encode(page_part("icon.svg").encode()).decode()
    return f'<link rel="icon" href="data:image/svg+xml;base64,{packed}">'


def sideways_hint() -> str:
    """The paragraph that must come before a scrolling frame; `sideways.js` hides it if everything fits.

    >>> sideways_hint()[:20]
    '<p class="sideways">'
    """
    return f'<p class="sideways">{_SIDEWAYS}</p>'
