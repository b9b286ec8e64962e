"""A real browser for tests of pages; the tests are skipped if none is installed."""

from collections.abc import Generator
from contextlib import contextmanager
from shutil import which
from typing import Any

import pytest

from optional_packages import import_or_skip

CHROMIUM = which("chromium")


@contextmanager
def open_browser() -> Generator[Any]:
    """Open headless Chromium as Playwright's `Browser`, or skip the test if it is not installed."""
    if CHROMIUM is None:
        pytest.skip("Chromium is not installed: make browser")
    sync_api = import_or_skip("playwright.sync_api")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()
