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
from supremum.rules.names import HOMES, JAX_ALIASES


def _differing(rules, zeros):
    """Compare every sum under some rules with what a framework computes, and count the numbers that change.

    Args:
        rules: the name of the rule set.
        zeros: makes an array of the framework, to which a number is added.
    """
    changed = 0
    for dtype, number in SUMS:
        decision = supremum.explain(dtype, number, operation="add", rules=rules)
        try:
            with np.errstate(over="ignore", under="ignore"):
                found = zeros(dtype) + number
        except (OverflowError, TypeError, RuntimeError):
            assert not decision, (dtype, number)
            continue
        assert outcome(decision).partition(",")[0] == str(found.dtype).removeprefix("torch."), (dtype, number)
        becomes = next((change.becomes for change in decision.number_changes), number)
        np.testing.assert_equal(float(found[0]), float(becomes), err_msg=f"{dtype} + {number}")
        if becomes != number:
            changed += 1
            assert outcome(decision).endswith(f" to {becomes}")
    return changed


def test_numpy_computes_with_the_numbers_that_the_site_shows():
    assert _differing("numpy", lambda dtype: np.zeros(1, as_format(dtype).dtype)) == 5


@pytest.mark.parametrize("rules", JAX_ALIASES["jax"])
def test_jax_computes_with_the_numbers_that_the_site_shows(rules):
    with jax_as(rules):
        assert _differing(rules, lambda dtype: jnp.zeros(1, as_format(dtype).dtype)) >= 8


def test_torch_computes_with_the_numbers_that_the_site_shows():
    torch = import_or_skip("torch")
    assert _differing("torch", lambda dtype: torch.zeros(1, dtype=getattr(torch, dtype))) == len(SUMS)


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
