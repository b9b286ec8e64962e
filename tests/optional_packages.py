"""Import optional packages that tests compare with, or skip the tests that need them or a format of number."""

import importlib.util
import os

import ml_dtypes
import pytest

from supremum.formats import is_available

NAMES = {
    "IPython": "IPython", "array_api_strict": "array-api-strict", "diffrax": "diffrax", "einops": "einops",
    "flax": "Flax", "haiku": "Haiku", "jmp": "jmp", "keras": "Keras", "lineax": "lineax", "mlx": "MLX",
    "orbax": "Orbax", "paddle": "PaddlePaddle", "pandas": "pandas", "playwright": "Playwright", "polars": "Polars",
    "pyarrow": "PyArrow", "scipy": "SciPy", "sklearn": "scikit-learn", "tensorboardX": "tensorboardX",
    "tensorflow": "TensorFlow", "tinygrad": "tinygrad",
    "torch": "PyTorch",
}  # fmt: skip
REQUIRED_IN_CI = ("IPython", "mlx", "pandas", "polars", "pyarrow", "tinygrad", "torch")
"""Packages without which tests fail in continuous integration, which installs them to compare with."""


def import_or_skip(module):
    """Import a module, or skip the test or file that needs it if it is not installed.

    Args:
        module: the name of the module, such as `"flax.nnx"`, in one of the packages in `NAMES`.
    """
    __tracebackhide__ = True  # a skip is reported at the line of the caller
    package = module.partition(".")[0]
    if package == "tinygrad":
        os.environ["DEV"] = "PYTHON"  # tinygrad's other devices need a compiler; it reads this when it is imported
    if package in REQUIRED_IN_CI and os.environ.get("CI"):
        return importlib.import_module(module)
    return pytest.importorskip(module, reason=f"needs {NAMES[package]}, which is not installed")


def skip_without(package):
    """Skip the test or file that needs a package which is not installed, without importing it."""
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"needs {NAMES[package]}, which is not installed")


def needs_format(name):
    """Return a mark that skips a test if the installed ml_dtypes does not have a format, as older ones lack some."""
    reason = f"needs {name}, which ml_dtypes {ml_dtypes.__version__} does not have"
    return pytest.mark.skipif(not is_available(name), reason=reason)
