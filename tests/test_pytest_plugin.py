"""Pytest loads the plugin at each start, so loading it imports neither Supremum nor JAX."""

import subprocess
import sys

CODE = """
import sys
import supremum_pytest
heavy = {"supremum", "jax", "numpy", "ml_dtypes"} & set(sys.modules)
assert not heavy, heavy
"""


def test_loading_the_plugin_imports_only_pytest():
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_its_fixture_is_the_one_of_older_conftest_files():
    import supremum_pytest
    from supremum.tracing import pytest_plugin

    assert pytest_plugin.forbid_casts_fixture is supremum_pytest.forbid_casts_fixture
