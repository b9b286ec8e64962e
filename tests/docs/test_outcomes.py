"""What the site shows of Python numbers that do not fit is what the frameworks compute."""

import re
from html import unescape

import jax.numpy as jnp
import numpy as np
import pytest

import supremum
from generate.outcomes import SUMS, sums_table
from generate.surprise import outcome
from jax_modes import jax_as
from optional_packages import import_or_skip
from supremum.analysis.tables import STYLES, with_short_names
from supremum.formats import as_format
from supremum.rules.names import FOLLOWING, HOMES


def _same_as_shown(rules, compute):
    """Check every sum under some rules: that the framework refuses it, or its dtype and its sum with zero."""
    changed = 0
    for dtype, number in SUMS:
        decision = supremum.explain(dtype, number, operation="add", rules=rules)
        try:
            found = compute(dtype, number)
        except (OverflowError, TypeError, RuntimeError):
            found = None
        if found is None:
            assert not decision, (dtype, number)
            continue
        assert outcome(decision).partition(",")[0] == found[0], (dtype, number)
        becomes = next((change.becomes for change in decision.number_changes), number)
        changed += becomes != number
        np.testing.assert_equal(float(found[1]), float(becomes), err_msg=f"{dtype} + {number}")
        if becomes != number:
            assert outcome(decision).endswith(f" to {becomes}")
    return changed


def test_numpy_computes_with_the_numbers_that_the_site_shows():
    def compute(dtype, number):
        with np.errstate(over="ignore", under="ignore"):
            found = np.zeros(1, as_format(dtype).dtype) + number
        return str(found.dtype), found[0]

    assert _same_as_shown("numpy", compute) == 5


@pytest.mark.parametrize("rules", FOLLOWING["jax"])
def test_jax_computes_with_the_numbers_that_the_site_shows(rules):
    def compute(dtype, number):
        with np.errstate(over="ignore", under="ignore"):
            found = jnp.zeros(1, as_format(dtype).dtype) + number
        return str(found.dtype), found[0]

    with jax_as(rules):
        assert _same_as_shown(rules, compute) >= 8


def test_torch_computes_with_the_numbers_that_the_site_shows():
    torch = import_or_skip("torch")

    def compute(dtype, number):
        found = torch.zeros(1, dtype=getattr(torch, dtype)) + number
        return str(found.dtype).removeprefix("torch."), found[0]

    assert _same_as_shown("torch", compute) == len(SUMS)


@pytest.mark.parametrize("rules", HOMES)
def test_the_table_has_each_outcome_in_its_color(rules):
    cells = re.findall(r'<td class="kind-(\w+)"[^>]*>([^<]*)</td>', page := sums_table([rules]))
    decisions = [supremum.explain(*each, operation="add", rules=rules) for each in SUMS]
    assert [unescape(text) for _, text in cells] == [with_short_names(outcome(each)) for each in decisions]
    styles = {style for style, _ in cells}
    for (style, text), decision in zip(cells, decisions, strict=True):
        assert (style == "refused") == (decision.result is None) == (text == "refused")
        assert (style == "changed") == bool(decision.number_changes) == (", " in text)
    legend = page.partition("</p>")[0]
    assert [style for style in STYLES if f"kind-{style}" in legend] == [style for style in STYLES if style in styles]
