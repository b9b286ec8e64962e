"""The libraries that tests of namespaces run on: NumPy, JAX with x64 on, and PyTorch where it is installed."""

import contextlib

import jax
import pytest

import supremum

NAMES = ("numpy", "jax", "torch")


@contextlib.contextmanager
def library(name):
    """The namespace of a library, with all dtypes it has."""
    if name == "torch":
        pytest.importorskip("torch", reason="PyTorch is not installed; its namespace is tested where it is")
    with jax.enable_x64(True):
        yield supremum.namespace(name)
