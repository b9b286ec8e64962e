"""Where tests of training save a checkpoint."""

import pytest


@pytest.fixture
def path(tmp_path):
    return tmp_path / "arrays.safetensors"
