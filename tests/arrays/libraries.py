"""The libraries that tests of namespaces run on: NumPy, JAX with x64 on, and PyTorch where it is installed."""

import contextlib

import jax

import supremum
from optional_packages import import_or_skip

NAMES = ("numpy", "jax", "torch")


@contextlib.contextmanager
def library(name):
    """The namespace of a library, with all dtypes it has."""
    if name == "torch":
        import_or_skip("torch")
    with jax.enable_x64(True):
        yield supremum.namespace(name)
