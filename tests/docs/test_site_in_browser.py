"""The built site in a real browser: every page at three widths, and in both themes."""

from pathlib import Path

import pytest

from browser import WIDTHS, layout_problems, open_browser

pytestmark = pytest.mark.slow

SITE = Path(__file__).parents[2] / "out/docs"
_EXPLORER = "_static/explorer.html"
_CHOSEN = "#against=numpy&types=all&ask=uint8,256&cell=int8,float8_e4m3b11fnuz"
"""The state to open the explorer in, because it is almost empty without one."""
_BACKGROUND = "getComputedStyle(document.body).backgroundColor"


def _pages():
    made = {"genindex.html", "search.html", "py-modindex.html"}  # by Sphinx
    return sorted(path for path in SITE.rglob("*.html") if path.name not in made)


@pytest.mark.skipif(not SITE.exists(), reason="the site is not built: make docs")
def test_no_page_scrolls_sideways_and_no_text_is_tiny_at_any_width():
    problems, backgrounds = {}, set()
    assert len(_pages()) > 80
    with open_browser() as browser:
        page = browser.new_page()
        page.on("pageerror", lambda error: problems.setdefault(page.url, []).append(str(error)))
        for path in _pages():
            name = path.relative_to(SITE).as_posix()
            page.goto(path.as_uri() + (_CHOSEN if name == _EXPLORER else ""))
            if name == _EXPLORER:
                page.evaluate("window.explorer.then(() => true)")
            for width in WIDTHS:
                page.set_viewport_size({"width": width, "height": 900})
                for theme in ("light", "dark") if width == WIDTHS[0] else ("light",):  # themes differ in colours
                    page.emulate_media(color_scheme=theme)
                    backgrounds.add((theme, page.evaluate(_BACKGROUND)))
                    # Observers of sizes run after the frame that they observe.
                    page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
                    if found := layout_problems(page):
                        problems[f"{name}, {width} px, {theme}"] = found
    assert problems == {}
    assert {colour for theme, colour in backgrounds if theme == "light"} == {"rgb(255, 255, 255)"}
    assert not {colour for theme, colour in backgrounds if theme == "dark"} & {"rgb(255, 255, 255)"}


@pytest.mark.skipif(not SITE.exists(), reason="the site is not built: make docs")
def test_every_page_has_the_icon():
    for path in _pages():
        assert '<link rel="icon" href="data:image/svg+xml' in path.read_text() or "icon.svg" in path.read_text(), path
