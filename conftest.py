"""Settings for all tests, including the doctests in `src/` and the documents."""

import signal
from importlib.util import find_spec

import pytest

import memory

# This module imports PyTorch, which is optional; continuous integration installs it.
collect_ignore = [] if find_spec("torch") else ["src/supremum/arrays/backends/torch.py"]
# Sphinx's settings, and generated pages, whose examples are tested in the files that they come from.
collect_ignore += ["docs/conf.py", "docs/generated"]
# The examples of these pages run beside the programs for other libraries, in tests/docs/test_guides.py.
collect_ignore_glob = ["docs/from-*.md"]
# This module imports docutils, which comes with Sphinx; make test-versions installs only what the fast tests need.
collect_ignore += [] if find_spec("docutils") else ["docs/generate/stacked_tables.py"]

# A shell makes programs in the background ignore Ctrl-C, and so would every program that the tests start. Undo that.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def limit_memory():
    """Limit the memory of the test process; see `tests/memory.py`."""
    yield
    memory.give_back()
