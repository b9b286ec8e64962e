"""`make bench` writes docs/figures.md; other pages refer to it and paste no figures."""

import re
from pathlib import Path

import pytest

from figures import Figure, Figures, duration, page_with, setup

ROOT = Path(__file__).parents[2]
GUIDES = ["README.md", *(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md") if path.name != "figures.md")]


def test_a_comparison_has_medians_ratio_and_spread(capsys):
    figures = Figures()
    figures.compare("x", [2e-6, 4e-6, 3e-6], [1e-6, 1e-6, 1e-6], "NumPy")
    assert figures.rows == [Figure("x", "3.00 us", "NumPy, 1.00 us", "3.00 x", "2.00 to 4.00")]
    assert capsys.readouterr().out == "\nx: 3.00 us, NumPy, 1.00 us; 3.00 x (2.00 to 4.00 in 80 % of rounds)\n"


@pytest.mark.parametrize(("seconds", "text"), [(2.5e-7, "0.25 us"), (0.0123, "12.3 ms"), (4, "4.0 s")])
def test_a_duration_is_shown_in_a_suitable_unit(seconds, text):
    assert duration(seconds) == text


def test_a_run_of_one_file_replaces_its_section_only():
    page = page_with("", {"A": [Figure("x", "1 ms")], "B": [Figure("y", "2 ms")]})
    assert page.count("\n| x | 1 ms |") == page.count("\n| y | 2 ms |") == 1
    assert page.count(setup()) == 2
    again = page_with(page, {"B": [Figure("z", "3 ms")]})
    assert "| x | 1 ms |" in again
    assert "| z | 3 ms |" in again
    assert "| y |" not in again
    assert page_with(again, {"B": [Figure("y", "2 ms")]}) == page


def test_the_page_is_what_the_benchmarks_write():
    page = (ROOT / "docs/figures.md").read_text()
    assert page_with(page, {}) == page
    assert "| `result_type` of two NumPy arrays |" in page


@pytest.mark.parametrize("path", GUIDES)
def test_no_guide_pastes_a_ratio(path):
    assert re.findall(r".*\b\d\.\d\d x\b.*", (ROOT / path).read_text()) == []
