"""One explorer page for all tests, written by the command and opened in a browser."""

import fcntl

import pytest
from typer.testing import CliRunner

from browser import open_browser
from supremum.cli.app import app

OPERATIONS = ("add", "divide", "less", "maximum")


@pytest.fixture(scope="session")
def path(tmp_path_factory, worker_id):
    """The path of the page; the first test worker that needs it writes it for all of them."""
    own = tmp_path_factory.getbasetemp()
    shared = own if worker_id == "master" else own.parent
    written = shared / "explorer.html"
    with (shared / "explorer.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not written.exists():
            _write(written)
    return written


def _write(written):
    named = [part for name in OPERATIONS for part in ("--operation", name)]
    done = CliRunner().invoke(app, ["explore", "-o", str(written), *named], catch_exceptions=False)
    assert done.exit_code == 0
    assert f"{written.stat().st_size:,} bytes" in done.output.replace("\n", "")


@pytest.fixture(scope="module")  # its event loop would disturb the tests of other files
def browser():
    with open_browser() as opened:
        yield opened


@pytest.fixture
def open_page(browser, path):
    """A function that opens the page in a new window. It fails the test if the page makes requests or has errors."""
    opened, wrong = [], []

    def open_at(link="", *, width=1400, scheme="light"):
        page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
        opened.append(page)
        page.on("request", lambda request: wrong.append(request.url) if not request.url.startswith("file:") else None)
        page.on("console", lambda message: wrong.append(message.text))
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.goto(f"{path.as_uri()}{link}")
        page.evaluate("window.explorer.then(() => true)")
        return page

    yield open_at
    for page in opened:
        page.close()
    assert wrong == []
