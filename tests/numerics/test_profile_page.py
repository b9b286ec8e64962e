"""The page and the picture of profiles, and the page in a real browser, in both themes and three widths."""

import re
import xml.etree.ElementTree as ET

import jax
import jax.numpy as jnp
import pytest

from browser import check_page, open_browser
from supremum.errors import OperandError
from supremum.numerics import profile, profile_page

X = jnp.linspace(-30.0, 12.0, 64).reshape(4, 16)


def program(x):
    with jax.named_scope("head"):
        powers = jnp.exp(x)
    small = powers * 1e-12
    return jnp.where(x < 0, powers / powers.sum(), small), jnp.log(-x)


FOUND = profile(program, histogram=True)(X)


@pytest.fixture(scope="module")
def page():
    return profile_page({"<program>": FOUND, "again": profile(jnp.sin, histogram=True)(X)})


def test_a_page_has_totals_rows_source_and_ranges(page):
    for said in (
        "<title>Profile</title>",
        "<h2>&lt;program&gt;</h2>",
        "float16: 2 overflow",
        "f16 overflows",
        "<mark>jnp.exp(x)</mark>",
        f"<i>{program.__code__.co_firstlineno + 2}</i>",
        "exp, head, 1 run, 64 values",
        "flushed to zero",
        "normal numbers of a format",
        "nan",
    ):
        assert said in page
    assert "http" not in page.replace("http-equiv", "")
    assert page.count("<details") == len(FOUND) + 1


def test_results_of_zeros_come_last_in_the_order_of_largest_values():
    page = profile_page({"f": profile(lambda x: (x * 0, x * 1e-3))(jnp.ones(4))})
    keys = [float(each.split()[-1]) for each in re.findall(r'data-keys="(.*?)"', page)]
    assert len(keys) == 2
    assert min(keys) == 0
    assert max(keys) == pytest.approx(1e-3)


def test_a_page_without_profiles_or_histograms_says_so():
    assert "No call of a jitted function was measured." in profile_page({})
    page = profile_page({"f": profile(jnp.exp)(X)})
    assert "<title>Profile of f</title>" in page
    assert "<svg" not in page


@pytest.mark.parametrize("profiles", [None, FOUND, {"f": None}, {1: FOUND}])
def test_a_page_of_anything_but_profiles_by_name_is_refused(profiles):
    with pytest.raises(OperandError, match="profiles"):
        profile_page(profiles)


def test_the_picture_is_an_svg_of_the_rows_that_suffer_most():
    drawn = ET.fromstring(FOUND.to_svg(2))
    texts = [element.text for element in drawn.iter("{http://www.w3.org/2000/svg}text")]
    assert f"{len(FOUND) - 2} more operations are not shown." in texts
    places = [text for text in texts if re.fullmatch(r"test_profile_page.py:\d+", text or "")]
    assert len(places) == 2
    assert texts.count("f16") == texts.count("f8_e5m2") == 2
    assert "2⁰" in texts
    everything = FOUND.to_svg()
    assert "overflow to inf" in everything
    assert "not shown" not in everything


def test_a_picture_needs_histograms_and_a_number_of_rows():
    without = profile(jnp.exp)(X)
    with pytest.raises(OperandError, match="histogram=True"):
        without.to_svg()
    assert "<svg" not in without._repr_html_()
    with pytest.raises((OperandError, ValueError), match="rows"):
        FOUND.to_svg(0)


def test_a_notebook_shows_picture_and_table():
    shown = FOUND._repr_html_()
    assert shown.index("<svg") < shown.index("<table")
    nothing = profile(lambda x: x * 0.0, histogram=True)(X)._repr_html_()  # no value has an exponent
    assert "<svg" not in nothing


@pytest.mark.slow
def test_a_page_sorts_fits_and_changes_its_theme(page, tmp_path):
    path = tmp_path / "profile.html"
    path.write_text(page)
    with open_browser() as browser:
        tab = check_page(browser, path)

        def shown():
            return [
                each.query_selector("summary code").inner_text()
                for each in tab.query_selector_all(".row")
                if each.is_visible()
            ]

        first = shown()
        assert len(first) == len(FOUND) + 1
        tab.select_option("#order", "number of values")
        assert shown()[-2:] != first[-2:]
        assert shown()[-2] == "powers.sum()"  # the section's own rows, and then the other section
        tab.select_option("#order", "what hurts most")
        assert shown() == first
