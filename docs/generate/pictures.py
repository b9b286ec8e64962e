"""The drawings of the package, where a page has room for them."""

from __future__ import annotations

from importlib.util import find_spec

from generate.markup import raw_html


def lattice_picture(rules: str) -> str:
    """The lattice of a rule set as a figure; empty where this version draws none.

    Args:
        rules: name of the rule set.
    """
    if find_spec("supremum.drawings") is None:
        return ""
    from supremum.drawings import lattice_svg  # pyright: ignore

    return raw_html(f'<figure class="lattice">{lattice_svg(rules, types="standard")}</figure>')
