"""The check for finite gradients."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from supremum.argument_checks import pytree
from supremum.mixed_precision.tree_casting import is_inexact


def all_finite(tree: Any) -> jax.Array:
    """Whether no floating leaf of a pytree, real or complex, has an inf or a NaN.

    Each leaf is checked separately: a global norm would overflow on finite gradients.

    Args:
        tree: any pytree of arrays; leaves that are not floating count as finite.

    Returns:
        A bool scalar.

    >>> import jax.numpy as jnp
    >>> bool(all_finite([jnp.full(4, 3e38), jnp.arange(3)])), bool(all_finite({"w": jnp.array([1.0, jnp.nan])}))
    (True, False)
    """
    checks = [jnp.all(jnp.isfinite(leaf)) for leaf in jax.tree.leaves(pytree("tree", tree)) if is_inexact(leaf)]
    return jnp.all(jnp.stack(checks)) if checks else jnp.asarray(True)
