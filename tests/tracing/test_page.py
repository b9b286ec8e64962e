"""The page of casts: what it says, its filters in a real browser, both themes and three widths."""

import jax.numpy as jnp
import pytest

from browser import check_page, open_browser
from supremum.errors import OperandError
from supremum.tracing import CastReport, casts, casts_page

X, W, SCALE = jnp.ones((4, 4), jnp.bfloat16), jnp.ones((4, 4), jnp.bfloat16), jnp.ones(4)


def program(x, w, scale):
    h = x * scale
    return h @ w, jnp.mean(x), x.astype(jnp.float16), h < scale


def inner(x, y):
    return x * y


def outer(x, y):
    return inner(x, y) + 1


def outermost(x, y):
    return outer(x, y)


@pytest.fixture(scope="module")
def page():
    return casts_page({"<program>": casts(program)(X, W, SCALE)})


def test_a_page_has_title_totals_source_path_and_fix(page):
    for said in (
        "<title>Casts of &lt;program&gt;</title>",
        "<h2>&lt;program&gt;</h2>",
        "5 casts, ",
        "2 promotion, ",
        "h = <mark>x * scale</mark>",
        f"<i>{program.__code__.co_firstlineno + 1}</i>",
        "to stay in bfloat16",
        "1 cast that follows",
        "Steps of libraries",
        "Asked for",
        "Totals by line",
        "library of jax",
    ):
        assert said in page
    assert "http" not in page.replace("http-equiv", "")


def test_a_cast_lists_the_calls_around_it_innermost_first():
    page = casts_page({"f": casts(outermost)(jnp.ones(4, "bfloat16"), jnp.ones(4))})
    line = outer.__code__.co_firstlineno + 1
    assert (
        f"<li>test_page.py:{line} outer: <code>inner(x, y)</code></li>"
        f"<li>test_page.py:{line + 4} outermost: <code>outer(x, y)</code></li></ol>"
    ) in page


def test_conversions_are_folded_into_a_line_of_their_own():
    page = casts_page({"f": casts(lambda x, done: x * (1 - done))(jnp.ones(4), jnp.ones(4, "int32"))})
    assert "<summary>1 cast of bools and integers, 32 bytes, on test_page.py:" in page
    assert "<h3>Steps of libraries" not in page


def test_a_page_of_nothing_says_so():
    assert "No call of a jitted function was measured." in casts_page({})
    page = casts_page({"f": CastReport(())})
    assert "0 casts" in page
    assert "What widened first" not in page


@pytest.mark.slow
def test_a_page_filters_fits_and_changes_its_theme(page, tmp_path):
    path = tmp_path / "casts.html"
    path.write_text(page)
    with open_browser() as browser:
        tab = check_page(browser, path)

        def shown():
            found = tab.query_selector_all(".row")
            return [each.get_attribute("data-facet0") for each in found if each.is_visible()]

        assert shown() == ["promotion", "promotion", "library", "library", "explicit"]
        for facet, value, left in (
            (0, "explicit", ["explicit"]),
            (2, "jax", ["library", "library"]),
            (0, "promotion", ["promotion", "promotion"]),
        ):
            tab.select_option(f"[data-filter='{facet}']", value)
            assert shown() == left
            tab.select_option(f"[data-filter='{facet}']", "")
        # A cause stays with a cast that follows from it.
        tab.fill("[data-filter=text]", "h @ w")
        assert shown() == ["promotion", "promotion"]
        tab.fill("[data-filter=text]", "nothing has this")
        assert shown() == []
        assert tab.inner_text("#shown") == "0 of 5 rows match"
        assert not tab.is_visible("text=Steps of libraries")


@pytest.mark.parametrize("reports", [None, CastReport(()), {"f": None}, {1: CastReport(())}])
def test_a_page_of_anything_but_reports_by_name_is_refused(reports):
    with pytest.raises(OperandError, match="reports"):
        casts_page(reports)
