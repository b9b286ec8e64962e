"""Collect the figures that benchmarks report, and write them to docs/figures.md after the last benchmark."""

from pathlib import Path

import pytest

from figures import Figures, page_with

PAGE = Path(__file__).parents[1] / "docs/figures.md"
_FIGURES: dict[str, Figures] = {}


@pytest.fixture
def figures(request):
    """The figures of a benchmark's file, to which the benchmark adds its own."""
    title = request.path.stem.removeprefix("test_").replace("_", " ").capitalize()
    return _FIGURES.setdefault(title, Figures())


def pytest_sessionfinish(session):
    measured = {title: found.rows for title, found in _FIGURES.items() if found.rows}
    if measured and not session.config.getoption("benchmark_disable"):
        before = PAGE.read_text() if PAGE.exists() else ""
        PAGE.write_text(page_with(before, measured))
