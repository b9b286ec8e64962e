"""Import optional packages that tests compare with, or skip the tests that need them."""

import importlib
import os

import pytest

NAMES = {
    "array_api_strict": "array-api-strict", "einops": "einops", "flax": "Flax", "haiku": "Haiku", "jmp": "jmp",
    "keras": "Keras", "orbax": "Orbax", "playwright": "Playwright", "scipy": "SciPy", "sklearn": "scikit-learn",
    "tensorboardX": "tensorboardX", "torch": "PyTorch",
}  # fmt: skip


def import_or_skip(module):
    """Import a module, or skip the test or file that needs it if it is not installed.

    Args:
        module: the name of the module, such as `"flax.nnx"`, in one of the packages in `NAMES`.
    """
    __tracebackhide__ = True  # a skip is reported at the line of the caller
    package = module.partition(".")[0]
    if package == "torch" and os.environ.get("CI"):  # in CI a missing PyTorch is a failure
        return importlib.import_module(module)
    return pytest.importorskip(module, reason=f"needs {NAMES[package]}, which is not installed")
