"""A real browser for tests of pages."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from optional_packages import import_or_skip
from programs import find_program

WIDTHS = (390, 1024, 1400)
"""The widths, in px, of a phone, a tablet and a screen."""
SMALLEST_TEXT = 11
"""The smallest font size of a page, in px."""
# Everything wrong with the layout of the open page: it or a part of it scrolls sideways, except a matrix below a
# visible hint; a hint is false; or a text is too small.
_PROBLEMS = """(smallest) => {
    const problems = [], root = document.documentElement;
    const excess = (element) => element.scrollWidth - element.clientWidth;
    const shown = (element) => {
        const text = element.textContent.trim().slice(0, 80);
        return `${element.tagName.toLowerCase()}.${element.className?.baseVal ?? element.className} ${text}`;
    };
    const isTold = ({ previousElementSibling: before }) => before?.matches(".sideways") && before.checkVisibility();
    if (excess(root) > 0) problems.push(`the page is ${excess(root)} px too wide`);
    for (const element of document.querySelectorAll("body *")) {
        if (!element.checkVisibility()) continue;
        const style = getComputedStyle(element);
        const scrolls = /auto|scroll/.test(style.overflowX) && excess(element) > 0;
        const mayScroll = element.matches(".scroll, .kind-scroll") && isTold(element);
        if (scrolls && !mayScroll) problems.push(`scrolls by ${excess(element)} px: ${shown(element)}`);
        if (isTold(element) && !scrolls) problems.push(`the hint is false: ${shown(element)}`);
        const hasText = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
        const size = parseFloat(style.fontSize) * (element.getScreenCTM?.()?.a ?? 1);
        if (hasText && size < smallest - 0.01) problems.push(`${size} px: ${shown(element)}`);
    }
    return problems;
}"""


@contextmanager
def open_browser() -> Generator[Any]:
    """Open headless Chromium as Playwright's `Browser`."""
    chromium = find_program("chromium")
    sync_api = import_or_skip("playwright.sync_api")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()


def layout_problems(page: Any) -> list[str]:
    """Everything wrong with the layout of a page at its width; an empty list if it is right.

    Args:
        page: the open page of Playwright.
    """
    return page.evaluate(_PROBLEMS, SMALLEST_TEXT)


def check_page(browser: Any, path: Path) -> Any:
    """Open a page at each width and in both themes, with all details open, and check its layout, errors and button.

    Args:
        browser: the browser of `open_browser`.
        path: the page.

    Returns:
        The page at the last width, open in Playwright.
    """
    backgrounds = set()
    for width in WIDTHS:
        for scheme in ("light", "dark"):
            tab = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
            problems: list[str] = []
            tab.on("pageerror", lambda error, problems=problems: problems.append(str(error)))
            tab.goto(path.as_uri())
            assert layout_problems(tab) == []
            tab.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")
            assert layout_problems(tab) == []
            background = tab.evaluate("getComputedStyle(document.body).backgroundColor")
            assert tab.inner_text("#theme") == ("Dark theme" if scheme == "light" else "Light theme")
            tab.click("#theme")
            assert tab.evaluate("getComputedStyle(document.body).backgroundColor") != background
            backgrounds.add((scheme, background))
            assert problems == []
    assert len(backgrounds) == 2
    return tab
