"""Packages that tests compare with and users need not have: where one is not installed, its tests are skipped."""

import importlib
import os

import pytest

NAMES = {
    "array_api_strict": "array-api-strict", "einops": "einops", "flax": "Flax", "keras": "Keras", "orbax": "Orbax",
    "playwright": "Playwright", "scipy": "SciPy", "torch": "PyTorch",
}  # fmt: skip


def import_or_skip(module):
    """A module; where it is not installed, the test or the file that asks for it is skipped.

    Args:
        module: its name, such as `"flax.nnx"`, of one of the packages in `NAMES`.
    """
    __tracebackhide__ = True  # a skip is reported where it was asked for
    package = module.partition(".")[0]
    if package == "torch" and os.environ.get("CI"):  # there a missing PyTorch is a failure
        return importlib.import_module(module)
    return pytest.importorskip(module, reason=f"{NAMES[package]} is not installed; what needs it is tested where it is")
