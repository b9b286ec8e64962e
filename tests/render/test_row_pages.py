"""The page of rows: the texts that it takes, as HTML."""

import pytest

from supremum.render import PageRow, PageSection, rows_page

pytest.importorskip("jinja2")


def _page(title: str, fix: str = "x + 1"):
    return rows_page("P", "S.", [PageSection("f", title, rows=[PageRow("m.py:1", "x", "s", fixes=[[fix]])])])


def test_backticks_in_sentences_mean_code_and_everything_is_escaped():
    assert "<p>at <code>a &lt; b</code> &amp; c</p>" in _page("at `a < b` & c")


def test_an_odd_backtick_is_part_of_the_program_and_stays():
    assert "<p>a ` b</p>" in _page("a ` b")


def test_a_fix_in_words_has_only_its_code_as_code():
    assert "</b> write <code>x + 1</code></li>" in _page("t", "write `x + 1`")
    assert "</b> <code>x + 1</code></li>" in _page("t")
