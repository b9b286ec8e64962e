"""The size of the explorer's page, and the time from a key press to the answers.

make bench
"""

from statistics import median

from browser import open_browser
from supremum.explorer import explorer_page
from supremum.formats import format_names
from supremum.operands import WEAK_NAMES

LARGEST_PAGE = 1_000_000
# For each text: measure the time from the input event until the browser has laid out the answers, then pause.
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
        f"the explorer's answers to {len(times):,} pairs, from the key press to the layout",
        f"{median(times):.1f} ms",
        peer=f"99 % within {times[len(times) * 99 // 100]:.1f} ms, all within {times[-1]:.1f} ms",
    )
    assert size < LARGEST_PAGE
