"""How XLA converts to float16 on this machine."""

import jax
import jax.numpy as jnp


def converts_to_float16_at_once():
    """Whether XLA converts float64 to float16 in one step, as on CPUs with instructions for float16 (AVX512-FP16).

    Elsewhere it goes through float32, and so do rule sets and `Array` everywhere: the results differ in ties alone.
    """
    with jax.enable_x64(True):
        return float(jnp.float64(65519.9999).astype("float16")) == 65504
