"""What all tests have in common, the doctests of the sources included."""

import signal
from importlib.util import find_spec

import pytest

import memory

# PyTorch is no dependency; continuous integration installs it.
collect_ignore = [] if find_spec("torch") else ["src/supremum/arrays/backends/torch.py"]
# Sphinx's settings, and pages that are made of what is tested where it lies.
collect_ignore += ["docs/conf.py", "docs/generated"]

# A shell that starts the tests in the background has them ignore Ctrl-C, and with them the programs that they start.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def memory_is_given_back():
    """Keep the test process small; see `tests/memory.py`."""
    yield
    memory.give_back()
