"""How XLA converts to float16 on this machine."""

import jax
import jax.numpy as jnp


def converts_to_float16_at_once():
    """Return whether XLA converts float64 to float16 in one step, as on CPUs with float16 instructions (AVX512-FP16).

    On other machines XLA converts through float32, as rule sets and `Array` always do. The results differ only in ties.
    """
    with jax.enable_x64(True):
        return float(jnp.float64(65519.9999).astype("float16")) == 65504
