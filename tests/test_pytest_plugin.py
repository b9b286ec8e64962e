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
