"""What all tests have in common, the doctests of the sources included."""

from importlib.util import find_spec

import pytest

import memory

# PyTorch is no dependency; continuous integration installs it.
collect_ignore = [] if find_spec("torch") else ["src/supremum/arrays/backends/torch.py"]
# Sphinx's settings, and pages that are made of what is tested where it lies.
collect_ignore += ["docs/conf.py", "docs/generated"]


@pytest.fixture(autouse=True)
def memory_is_given_back():
    """Keep the test process small; see `tests/memory.py`."""
    yield
    memory.give_back()
