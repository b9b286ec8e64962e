"""The page in a browser: content, navigation and accessibility."""

import re

import pytest

from browser import WIDTHS, layout_problems
from supremum import explain
from supremum.analysis.comparison import compare
from supremum.analysis.tables import (
    ALL_TYPES,
    STANDARD_TYPES,
    STYLES,
    changed_numbers,
    rule_table,
    short_name,
    style_of,
)
from supremum.operands import parse_operand
from supremum.rules.names import HOMES

pytestmark = pytest.mark.slow

RULES = set(HOMES)
FIRST_LINE = "summary => summary.firstChild.data"
CELL = 'td[data-pair="{},{}"]'
# The contrast ratio of WCAG 2.2 between each piece of text and its background.
CONTRASTS = """() => {
    const parts = (colour) => colour.match(/[\\d.]+/g).map(Number);
    const linear = (x) => (x / 255 <= 0.04045 ? x / 255 / 12.92 : ((x / 255 + 0.055) / 1.055) ** 2.4);
    const luminance = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
    const behind = (element) => {
        const colour = parts(getComputedStyle(element).backgroundColor);
        return (colour[3] ?? 1) > 0 || !element.parentElement ? colour : behind(element.parentElement);
    };
    return [...document.querySelectorAll("body *")]
        .filter((element) => [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim()))
        .filter((element) => element.checkVisibility() && !["SCRIPT", "NOSCRIPT", "OPTION"].includes(element.tagName))
        .map((element) => {
            const colours = [parts(getComputedStyle(element).color), behind(element)];
            const [a, b] = colours.map(luminance).sort((x, y) => y - x);
            return [(a + 0.05) / (b + 0.05), `${element.tagName} ${element.className} ${element.textContent}`];
        });
}"""


def typed(page, text):
    page.fill("#operands", text)
    return {
        box.query_selector("h3").inner_text(): {
            name for summary in box.query_selector_all("summary") for name in summary.evaluate(FIRST_LINE).split(", ")
        }
        for box in page.query_selector_all(".answer")
    }


@pytest.mark.parametrize(
    ("text", "operation"),
    [("uint8, 256", None), ("uint8 + 256", "add"), ("int8 / 2.5", "divide"), ("float16 + 1e6", "add")],
)
def test_every_rule_set_answers_typed_operands(open_page, text, operation):
    answers = typed(open_page(), text)
    assert set.union(*answers.values()) == RULES
    assert sum(map(len, answers.values())) == len(RULES)
    operands = [parse_operand(word) for word in re.findall(r"[\w.]+", text)]
    for shown, names in answers.items():
        for name in names:
            decision = explain(*operands, operation=operation, rules=name)
            expected = str(decision.result) if decision else "refused"
            assert shown == ", ".join((expected, *changed_numbers(decision)))


@pytest.mark.parametrize(
    "text", ["int8 + 1000", "uint8 + 256", "float16 + 1e6", "float32 + 16777217", "1e39j, float32"]
)
def test_a_changed_number_has_a_color_of_its_own_and_a_refusal_is_not_an_error(open_page, text):
    page, styles = open_page(), set()
    typed(page, text)
    operands = [parse_operand(word) for word in re.split(r"[ +,]+", text)]
    for box in page.query_selector_all(".answer"):
        names = {name for each in box.query_selector_all("summary") for name in each.evaluate(FIRST_LINE).split(", ")}
        style = box.query_selector("h3").get_attribute("class")
        operation = page.input_value("#operation")
        assert {style} == {style_of(explain(*operands, operation=operation, rules=name)) for name in names}
        styles.add(style)
        lines = [each.text_content() for each in box.query_selector_all("dd .changed")]
        assert bool(lines) == (style == "changed")
        changes = [each.partition(" to ")[2] for each in box.query_selector("h3").inner_text().split(", ")[1:]]
        assert {line.partition(" to ")[2] for line in lines} == set(changes)
    assert "changed" in styles
    colours = {
        name: page.evaluate(f"getComputedStyle(document.documentElement).getPropertyValue('--{name}')")
        for name in STYLES
    }
    assert len(set(colours.values())) == len(STYLES)
    legend = page.inner_text("#legend")
    assert all(meaning in legend for meaning in STYLES.values())


def test_operands_may_have_common_separators(open_page):
    page = open_page()
    expected = typed(page, "uint8 256")
    for text in ("uint8, 256", " uint8 ,256 ", "B 256"):
        assert typed(page, text) == expected
    assert typed(page, "uint8 255") != expected


def test_an_operator_selects_its_operation_in_the_list_and_the_list_removes_the_operator(open_page):
    page = open_page()
    unnamed = typed(page, "uint8 256")
    added = typed(page, "uint8 + 256")
    assert added != unnamed
    assert page.input_value("#operation") == "add"
    assert "add under jax-x32" in page.inner_text("caption")
    assert typed(page, "uint8+256") == added
    page.select_option("#operation", "divide")
    assert page.input_value("#operands") == "uint8, 256"
    assert page.input_value("#operation") == "divide"
    typed(page, "uint8 / 256 + 1")
    assert "+ is no operand" in page.inner_text("#problem")


def test_an_answer_has_its_reason_and_its_fix(open_page):
    page = open_page("#ask=float8_e4m3fn+float16")
    box = page.locator(".answer", has=page.locator("h3", has_text="refused"))
    first = box.locator("details", has=page.locator("summary", has_text=re.compile("^jax-x64")))
    assert not first.locator("dl").is_visible()
    first.locator("summary").click()
    told = first.locator("dl").inner_text()
    assert "the lattice has no upper bound of float8_e4m3fn and float16" in told
    assert "a.astype('float16')" in told


def test_refusals_without_a_fix_refer_to_the_command_line(open_page):
    page = open_page("#operation=add&against=torch&cell=int8,float8_e5m2&types=all&ask=int8+float8_e5m2")
    command = "supremum explain int8 float8_e5m2 --operation add --rules torch"
    assert command in page.inner_text("#detail")
    assert command in page.text_content("#answers")
    assert "--rules jax-x32" not in page.inner_text("#detail")
    for text, again in {"uint8, 300": "uint8 300", "float8_e5m2[] float16[]": "'float8_e5m2[]' 'float16[]'"}.items():
        answers = open_page(f"#ask={text}").text_content("#answers")
        operands = list(map(parse_operand, re.findall(r"[\w\[\]]+", text)))
        refusing = [name for name in HOMES if not explain(*operands, rules=name)]
        assert any(f"supremum explain {again} --rules {name}" in answers for name in refusing), text


def test_the_page_lists_what_it_leaves_off(open_page):
    told = open_page().text_content("main")
    assert "offers: promote_types, subtract, multiply," in told
    assert "Pairs of numbers, and in operations arrays without dimensions." in told


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("flaot16 int8", "unknown operand flaot16: did you mean float16"),
        ("int", "did you mean int*"),
        ("uint8 - 1", "this page was made without subtract"),
        ("uint8 - 1", "supremum explore --operation subtract"),
        ("- uint8", "- is no operand"),
        ("uint8 @ int8", "@ is no operand"),
        ("uint8 + int8 / 2", "/ is no operand"),
        ("xyzzy", "give a dtype such as uint8"),
        ("int8 uint8 1.5", "supremum explain int8 uint8 1.5 --rules all"),
        ("1 2.5", "no pairs of numbers: ask with supremum explain 1 2.5 --rules all"),
        (
            "float16[] + 1",
            "no arrays without dimensions with add: ask with supremum explain 'float16[]' 1 --operation add",
        ),
        ("int8[] 'x", "unknown operand 'x"),
        ("<img src=x onerror=alert(1)>", "unknown operand <img"),
    ],
)
def test_unknown_operands_show_a_problem(open_page, text, said):
    page = open_page()
    assert typed(page, text) == {}
    assert said in page.inner_text("#problem")
    assert typed(page, "int8 + uint8") != {}
    assert page.inner_text("#problem") == ""


def test_numbers_with_other_operations_refer_to_the_command_line(open_page):
    page = open_page("#operation=maximum")
    assert typed(page, "uint8 256") == {}
    assert "supremum explain uint8 256 --operation maximum --rules all" in page.inner_text("#problem")
    assert typed(page, "int*[]") == {}
    assert typed(page, "uint8[] int*") == {}
    assert "supremum explain 'uint8[]' 'int*' --operation maximum" in page.inner_text("#problem")
    assert "two operands" in (typed(page, "uint8") or page.inner_text("#problem"))
    assert set.union(*typed(page, "uint8 int*").values()) == RULES


@pytest.mark.parametrize(("operation", "types"), [("result_type", "standard"), ("divide", "all")])
def test_the_table_matches_the_rule_set(open_page, operation, types):
    page = open_page(f"#rules=numpy&operation={operation}&types={types}")
    shown = page.eval_on_selector_all(
        "tbody tr", "rows => rows.map(row => [...row.cells].slice(1).map(c => c.innerText))"
    )
    names = STANDARD_TYPES if types == "standard" else ALL_TYPES
    decided = rule_table("numpy", operation, types).decisions
    codes = [[decided[a, b].result for b in names] for a in names]
    assert shown == [["-" if result is None else short_name(result.name) for result in row] for row in codes]


@pytest.mark.parametrize(
    ("left", "right", "operation"), [("jax-x64", "numpy", "result_type"), ("torch", "paddle", "divide")]
)
def test_differences_are_counted_and_marked(open_page, left, right, operation):
    page = open_page(f"#rules={left}&against={right}&operation={operation}&types=all")
    compared = compare(left, right, operation, "all")
    counted = {
        span.get_attribute("data-how"): int(span.query_selector("b").inner_text().split()[1])
        for span in page.query_selector_all("#counts [data-how]")
    }
    assert counted == compared.counts
    assert f"{len(compared.differing)} of {len(ALL_TYPES) ** 2} cells differ" in page.inner_text("#counts")
    marked = page.eval_on_selector_all("td.differs", "cells => cells.map(cell => cell.dataset.pair)")
    assert marked == [",".join(pair) for pair in compared.differing]
    # Colour is not the only sign.
    symbols = set(page.eval_on_selector_all("td.differs small", "all => all.map(each => each.innerText[0])"))
    assert len(symbols) == len(compared.counts)


def test_pointing_at_or_focusing_a_cell_explains_it(open_page):
    page = open_page("#against=numpy")
    for show in (page.hover, page.focus):
        show(CELL.format("uint8", "uint8"))
        show(CELL.format("int8", "uint8"))
        told = page.inner_text("#detail")
        assert "result_type(int8, uint8)" in told
        assert explain("int8", "uint8", rules="jax-x64").reason[0] in told
        assert explain("int8", "uint8", rules="numpy").reason[0] in told
        assert page.eval_on_selector_all("#detail ol", "all => all.map(each => each.innerText.split('\\n'))") == [
            ["int8", "int16"],
            ["uint8", "int16"],
        ]


def test_arrow_keys_move_in_the_table(open_page):
    page = open_page()
    focused = "document.activeElement.dataset.pair"
    page.focus(CELL.format("bool", "bool"))
    moves = {
        "ArrowRight": "bool,uint8", "ArrowDown": "uint8,uint8", "End": "uint8,complex*",
        "ArrowRight ": "uint8,complex*", "Home": "uint8,bool", "ArrowLeft": "uint8,bool", "PageDown": "bfloat16,bool",
        "ArrowUp": "int64,bool",
        "Control+End": "complex*,complex*", "Control+Home": "bool,bool", "PageUp": "bool,bool",
    }  # fmt: skip
    for key, pair in moves.items():
        page.keyboard.press(key.strip())
        assert page.evaluate(focused) == pair, key
    # The table has one tab stop.
    assert page.locator("td[tabindex='0']").count() == 1
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Tab")
    assert page.evaluate(focused) == "uint8,bool"


def test_tab_follows_the_page_order_with_visible_focus(open_page):
    page, seen = open_page("#ask=int8+uint8"), []
    for _ in range(40):
        page.keyboard.press("Tab")
        seen.append(page.evaluate("document.activeElement.id || document.activeElement.tagName"))
        if seen[-1] == "BODY":
            break
        assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none"
    in_order = ("theme", "operands", "operation", "BUTTON", "SUMMARY", "rules", "against", "types", "TD")
    assert sorted(in_order, key=seen.index) == list(in_order)


def test_a_link_restores_the_state_of_the_page(open_page):
    page = open_page()
    page.fill("#operands", "int8 + float16")
    for control, value in {"operation": "add", "rules": "torch", "against": "numpy", "types": "all"}.items():
        page.select_option(f"#{control}", value)
    page.click(CELL.format("int8", "bool"))
    other = open_page(page.evaluate("location.hash"))
    for control in ("operands", "operation", "rules", "against", "types"):
        assert other.input_value(f"#{control}") == page.input_value(f"#{control}")
    for part in ("#answers", "#table", "#detail", "#counts"):
        assert other.inner_text(part) == page.inner_text(part)
    # Invalid parts of a link are ignored.
    assert open_page("#rules=nobody&operation=x&cell=a,b").input_value("#rules") == "jax-x32"


def test_every_element_has_an_accessible_name(open_page):
    page = open_page("#ask=int8+uint8&against=numpy&cell=int8,float16")
    controls = page.locator("input, select, button, summary, table, aside, section")
    for i in range(controls.count()):
        snapshot = controls.nth(i).aria_snapshot().splitlines()[0]
        assert re.search(r'"[^"]+"|: \S', snapshot), snapshot
    assert page.get_by_role("grid", name="result_type under jax-x32, compared with numpy").count() == 1
    assert page.get_by_role("columnheader", name="bfloat16", exact=True).count() == 1
    assert page.get_by_role("rowheader", name="bfloat16", exact=True).count() == 1
    cell = "uint32, float32: float32, with a lossy cast; wider in numpy: float64"
    assert page.get_by_role("gridcell", name=cell, exact=True).count() == 1
    assert page.get_by_label("Operands").count() == 1
    spoken = page.locator("[aria-live=polite][role=status]").inner_text()
    assert spoken.startswith("int16: jax-x64, ")
    assert page.locator("html").get_attribute("lang") == "en"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("link", ["#against=numpy&types=all&ask=uint8+256&cell=int8,uint8", "#ask=flaot16"])
def test_text_has_enough_contrast(open_page, scheme, link):
    page = open_page(link, scheme=scheme)
    assert (page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)") == (
        scheme == "light"
    )
    contrasts = page.evaluate(CONTRASTS)
    assert len(contrasts) > 50
    assert [each for each in contrasts if each[0] < 4.5] == []
    page.click("#theme")
    assert page.inner_text("#theme") == ("Light theme" if scheme == "light" else "Dark theme")
    assert [each for each in page.evaluate(CONTRASTS) if each[0] < 4.5] == []


@pytest.mark.parametrize(("left", "right"), [("torch", ""), ("jax-x64", "numpy")])
def test_codes_of_lossy_casts_are_underlined(open_page, left, right):
    page = open_page(f"#rules={left}&against={right}&operation=add")
    compared = compare(left, right or left, "add")
    shown = page.eval_on_selector_all(
        "td[data-pair]",
        "all => all.map(td => [...td.querySelectorAll('span')].map(span => span.className === 'lossy'))",
    )
    expected = []
    for pair, decision in compared.left.decisions.items():
        told = [decision, compared.right.decisions[pair]] if pair in compared.differing else [decision]
        expected.append([any(cast.lossy for cast in each.casts) for each in told])
    assert shown == expected
    assert sum(map(any, shown)) > 20
    assert "do not survive" in page.inner_text("#legend")


@pytest.mark.parametrize("width", [320, *WIDTHS])
def test_only_the_table_is_wider_than_the_window(open_page, width):
    page = open_page(
        "#against=numpy&types=all&ask=int*,float8_e4m3b11fnuz&cell=float8_e4m3fnuz,float8_e4m3b11fnuz", width=width
    )
    for details in page.query_selector_all("details"):
        details.evaluate("element => element.open = true")
    assert layout_problems(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate("document.querySelector('.scroll').scrollWidth") > page.evaluate(
        "document.querySelector('.scroll').clientWidth"
    )
    page.evaluate("document.querySelector('.scroll').scrollTo(600, 400)")
    heads = page.evaluate("""['thead th:nth-child(20)', 'tbody tr:nth-child(20) th'].map((head) =>
        document.querySelector(head).getBoundingClientRect()).map(({x, y}) => [x, y])""")
    box = page.evaluate("(({x, y}) => [x, y])(document.querySelector('.scroll').getBoundingClientRect())")
    assert heads[0][1] == pytest.approx(box[1], abs=2)
    assert heads[1][0] == pytest.approx(box[0], abs=2)
    page.evaluate("document.querySelector('.scroll').scrollTo(600, 0)")
    title = page.evaluate("document.querySelector('caption span').getBoundingClientRect().x")
    assert box[0] <= title <= box[0] + 20


def test_the_page_is_one_small_file(path):
    text = path.read_text()
    assert len(text.encode()) < 16_000 * len(HOMES)
    assert not re.search(r"""src=|href="(?!data:)|https?:|@import|url\(""", text)
    assert text.count("</script>") == 2
