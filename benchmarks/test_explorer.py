"""The size of the explorer's page and the time it takes to answer what is typed.

make bench
"""

from statistics import median

from browser import open_browser
from supremum.explorer import explorer_page
from supremum.formats import format_names
from supremum.operands import WEAK_NAMES

LARGEST_PAGE = 1_000_000
# Measures the time from the event of a key press until the answers are laid out, for each text in turn, with a pause
# after each.
TYPE = """async (texts) => {
    await window.explorer;
    const input = document.getElementById("operands");
    const times = [];
    for (const text of texts) {
        await new Promise((resolve) => setTimeout(resolve));
        input.value = text;
        const start = performance.now();
        input.dispatchEvent(new Event("input"));
        document.body.offsetHeight;
        times.push(performance.now() - start);
    }
    return times;
}"""


def test_the_page_is_small_and_answers_every_pair(benchmark, figures, tmp_path):
    page = benchmark.pedantic(explorer_page, rounds=1)
    path = tmp_path / "explorer.html"
    path.write_text(page)
    operands = (*format_names(), *WEAK_NAMES, "True", "256", "-1", "1.5", "1e39", "2j", "float16[]", "int64[]")
    with open_browser() as browser:
        opened = browser.new_page()
        opened.goto(path.as_uri())
        times = sorted(opened.evaluate(TYPE, [f"{a} + {b}" for a in operands for b in operands]))
    size = len(page.encode())
    figures.note("the explorer's page", f"{size:,} bytes")
    figures.note(
        f"answering what is typed, {len(times):,} pairs",
        f"{median(times):.1f} ms",
        peer=f"99 of 100 in {times[len(times) * 99 // 100]:.1f} ms, all in {times[-1]:.1f} ms",
    )
    assert size < LARGEST_PAGE
