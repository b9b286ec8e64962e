"""JAX as each of its rule sets describes it."""

from contextlib import contextmanager

import jax


@contextmanager
def jax_as(rules):
    """Set the flags of JAX that a rule set stands for, for the time of a block."""
    before = jax.config.jax_explicit_x64_dtypes
    jax.config.update("jax_explicit_x64_dtypes", "allow" if "explicit" in rules else before)
    mode = "strict" if "strict" in rules else "standard"
    try:
        with jax.enable_x64(rules in ("jax-x64", "jax-strict-x64")), jax.numpy_dtype_promotion(mode):
            yield
    finally:
        jax.config.update("jax_explicit_x64_dtypes", before)
