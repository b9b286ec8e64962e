"""Pages and pictures in a browser: on a phone and a screen, with the keyboard, in both themes."""

import pytest

from browser import layout_problems, open_browser
from supremum.analysis.comparison import compare, compare_groupings
from supremum.render import side_by_side_to_html, side_by_side_to_svg, table_to_html

pytestmark = pytest.mark.slow

PHONE, SCREEN = {"width": 390, "height": 844}, {"width": 1400, "height": 900}


def _compared(left, right):
    compared = compare(left, right)
    return compared.side_by_side(compare_groupings(left, right, compared.left.types))


@pytest.fixture(scope="module")
def browser():
    with open_browser() as browser:
        yield browser


@pytest.fixture
def opened(browser):
    """A function that opens HTML in a window of a size and theme."""
    contexts = []

    def opened(html, size=SCREEN, theme="light"):
        contexts.append(browser.new_context(viewport=size, color_scheme=theme))
        page = contexts[-1].new_page()
        page.set_default_timeout(5000)
        page.set_content(html)
        return page

    yield opened
    for context in contexts:
        context.close()


@pytest.fixture(scope="module")
def page_of_two():
    return side_by_side_to_html(_compared("jax-x64", "numpy"))


def test_only_scrollable_areas_are_wider_than_a_phone(opened, page_of_two):
    everything = table_to_html(compare("tf-safe", "tf-rfc-safe", types="all").drawing())
    for html in (page_of_two, everything):
        for size in (PHONE, SCREEN):
            page = opened(html, size)
            page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
            assert layout_problems(page) == []
            outside = """[...document.querySelectorAll("main *")].filter(each =>
                !each.closest(".scroll table, .unseen, .hint") && each.getBoundingClientRect().right > innerWidth
            ).map(each => each.outerHTML)"""
            assert page.evaluate(outside) == []


def test_tables_are_below_each_other_only_on_a_phone(opened, page_of_two):
    for size, beside in ((PHONE, False), (SCREEN, True)):
        left, right = (each.bounding_box() for each in opened(page_of_two, size).locator(".scroll").all())
        assert (left["y"] == right["y"]) is beside
        assert (left["x"] == right["x"]) is not beside
        if beside:
            assert left["x"] + left["width"] <= right["x"]


@pytest.mark.parametrize("size", [PHONE, SCREEN])
def test_the_keyboard_shows_explanations_within_the_window(opened, page_of_two, size):
    page = opened(page_of_two, size)
    seen = []
    for _ in range(6):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.tagName") == "TD":
            hint = page.locator(".hint:visible")
            seen.append(hint.inner_text())
            box = hint.bounding_box()
            assert box["x"] >= 0
            assert box["y"] >= 0
            assert box["x"] + box["width"] <= size["width"]
            assert box["y"] + box["height"] <= size["height"]
    assert seen[0].count("result_type(uint16, bfloat16) -> ") == 2  # by the rules of both
    assert "[rules jax-x64]" in seen[0]
    assert "[rules numpy]" in seen[0]
    assert seen[0].endswith("refused by numpy")
    assert len(set(seen)) == len(seen) == 5
    page.keyboard.press("Escape")
    assert page.locator(".hint:visible").count() == 0
    # Tab has reached uint32 with float32; arrow keys continue from there and stop at the edge.
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    assert page.locator(".hint:visible").inner_text().startswith("result_type(uint64, float64)")
    for _ in range(20):
        page.keyboard.press("ArrowLeft")
    assert page.locator(".hint:visible").inner_text().startswith("result_type(uint64, bool)")


def test_an_explanation_stays_with_its_cell_when_the_table_scrolls(opened, page_of_two):
    page = opened(page_of_two, PHONE)
    cell = page.locator("td").nth(20)
    cell.focus()
    before = page.locator(".hint:visible").bounding_box()
    page.evaluate("""() => new Promise(done => {
        addEventListener("scroll", () => requestAnimationFrame(done), true);
        scrollBy(0, 60);
    })""")
    assert page.locator(".hint:visible").inner_text().startswith("result_type(uint8, uint16)")
    assert page.locator(".hint:visible").bounding_box()["y"] == pytest.approx(before["y"] - 60, abs=1)


def test_the_mouse_shows_one_explanation_at_a_time(opened, page_of_two):
    page = opened(page_of_two)
    cells = page.locator("td")
    for number, head in (
        (20, "result_type(uint8, uint16) -> uint16   [rules jax-x64]"),
        (324 + 1, "result_type(bool, uint8) -> uint8   [rules numpy]"),
    ):
        cells.nth(number).hover()
        assert [hint.inner_text().splitlines()[0] for hint in page.locator(".hint:visible").all()] == [head]
    page.mouse.move(5, 5)
    assert page.locator(".hint:visible").count() == 0


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_texts_fit_in_their_cells_and_pictures(opened, theme):
    pictures = [
        side_by_side_to_svg(_compared("numpy", "jax-x64")),
        side_by_side_to_svg(compare("torch", "jax-x64", types="int8,float8_e4m3fn").side_by_side()),
    ]
    outside = """() => {
        const inside = (inner, outer) => inner.left >= outer.left - .5 && inner.right <= outer.right + .5
            && inner.top >= outer.top - .5 && inner.bottom <= outer.bottom + .5;
        const frame = document.querySelector("svg").getBoundingClientRect();
        return [...document.querySelectorAll("svg text")].filter(text => {
            const cell = text.parentElement.querySelector(":scope > rect.box");
            return !inside(text.getBoundingClientRect(), cell ? cell.getBoundingClientRect() : frame);
        }).map(text => text.outerHTML);
    }"""
    overlapping = """() => [...document.querySelectorAll("svg .sign")].filter(sign =>
        sign.getBoundingClientRect().left < sign.parentElement.querySelector(".mono").getBoundingClientRect().right
    ).map(sign => sign.parentElement.textContent)"""
    for svg in pictures:
        page = opened(svg, theme=theme)
        assert page.evaluate("document.querySelectorAll('svg text').length") > 10
        assert page.evaluate(outside) == []
        assert page.evaluate(overlapping) == []
        colour = page.evaluate("getComputedStyle(document.querySelector('svg .page')).fill")
        assert colour == {"light": "rgb(255, 255, 255)", "dark": "rgb(22, 24, 29)"}[theme]
