"""The fixture of tests that run in the namespace of each library."""

import pytest

from arrays.libraries import NAMES, library


@pytest.fixture(params=NAMES)
def xp(request):
    """The namespace of NumPy, JAX and PyTorch."""
    with library(request.param) as found:
        yield found
