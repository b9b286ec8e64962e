"""One program on NumPy, JAX and PyTorch: three result dtypes without a rule set, one with it.

python examples/arrays/one_program.py
"""

from importlib.util import find_spec

import jax.numpy as jnp
import numpy as np
import supremum


def normalised(pixels, gain, offset):
    """Apply a gain and an offset to 8-bit pixels."""
    return (pixels * gain + offset) / 255


def arguments(make):
    """Make arrays of uint8, float16 and int32."""
    return make(np.arange(4, dtype="uint8")), make(np.full(4, 1.5, "float16")), make(np.full(4, 2, "int32"))


makers = {"numpy": np.asarray, "jax": jnp.asarray}
if find_spec("torch"):
    import torch

    makers["torch"] = torch.asarray

for library, make in makers.items():
    print(f"{library:5}  by itself: {str(normalised(*arguments(make)).dtype).removeprefix('torch.')}", end="")
    for rules in ("jax-x32", "numpy", "torch"):
        with supremum.use_rules(rules):
            try:
                result = normalised(*map(supremum.Array, arguments(make)))
                print(f"   under {rules}: {result.dtype}", end="")
            except supremum.arrays.RuntimeDtypeError:
                # With x64 off, JAX has no float64. Supremum raises instead of narrowing to float32.
                print(f"   under {rules}: refused", end="")
    print()
