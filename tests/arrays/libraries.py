"""The libraries for tests of namespaces: NumPy, JAX with x64 on, and PyTorch if it is installed."""

import contextlib

import jax

import supremum
from optional_packages import import_or_skip

NAMES = ("numpy", "jax", "torch")


@contextlib.contextmanager
def library(name):
    """Yield the namespace of a library, with x64 on so that JAX has all its dtypes."""
    if name == "torch":
        import_or_skip("torch")
    with jax.enable_x64(True):
        yield supremum.namespace(name)
