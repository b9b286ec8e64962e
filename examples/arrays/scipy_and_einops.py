"""SciPy and einops on arrays that follow the rules in force, through the array API standard."""

import os

os.environ["SCIPY_ARRAY_API"] = "1"  # SciPy reads this when it is imported

import numpy as np
import supremum
from einops import array_api as einops
from scipy import integrate, signal, special, stats
from scipy.cluster import vq

xp = supremum.namespace("numpy")


def show(what, array):
    print(f"{what:<18} {type(array).__name__} {array.dtype} {array.shape}")


def main():
    with supremum.use_rules("torch"):
        images = xp.reshape(xp.arange(24, dtype="float32"), (2, 3, 4))
        weights = np.ones(4, "int64")
        # NumPy would promote float32 and int64 to float64; PyTorch's rules keep float32.
        show("images * weights", images * weights)
        show("rearrange", einops.rearrange(images, "n h w -> (n h) w"))
        show("reduce", einops.reduce(images, "n h w -> h", "mean"))
        show("expit", special.expit(images))
        show("logsumexp", special.logsumexp(images, axis=-1))
        show("whiten", vq.whiten(einops.rearrange(images, "n h w -> (n h) w")))
        show("detrend", signal.detrend(images))
        show("zscore", stats.zscore(images, axis=None))
        show("trapezoid", integrate.trapezoid(images))


if __name__ == "__main__":
    main()
