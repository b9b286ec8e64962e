"""The page of reports: the texts that it takes, as HTML."""

import pytest

from supremum.reports import PageGroup, PageRow, PageSection, Report, report_page

pytest.importorskip("jinja2")


class Found(Report):
    title = "found"

    def to_dict(self):
        return {}


def _page(title: str, fix: str = "x + 1"):
    section = PageSection(title, [PageGroup("", [PageRow("m.py:1", "x", "s", fixes=[[fix]])])])
    texts = {"title": "P", "subtitle": "S.", "call": "find(f)(x)", "placeholder": "log"}
    return report_page("found", {"f": Found()}, Found, lambda _: section, **texts)


def test_backticks_in_sentences_mean_code_and_everything_is_escaped():
    assert "<p>at <code>a &lt; b</code> &amp; c</p>" in _page("at `a < b` & c")


def test_an_odd_backtick_is_part_of_the_program_and_stays():
    assert "<p>a ` b</p>" in _page("a ` b")


def test_a_fix_in_words_has_only_its_code_as_code():
    assert "</b> write <code>x + 1</code></li>" in _page("t", "write `x + 1`")
    assert "</b> <code>x + 1</code></li>" in _page("t")


def test_an_arrow_stays_on_one_line():
    assert '<p>bfloat16 <span class="arrow">-&gt;</span> float32</p>' in _page("bfloat16 -> float32")
