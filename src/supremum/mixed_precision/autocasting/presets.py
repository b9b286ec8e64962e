"""Rules for `ops=` of autocast under which operations run in the dtypes of `torch.autocast`, on CUDA or on CPUs.

Autocast's own table follows the lists for CUDA, and departs from them where a narrow result would be wrong. A preset
undoes these departures. Operations without a list run in the dtype of their operands in PyTorch, which is `"widest"`.

Some departures remain. A JAX primitive can do the work of several functions of PyTorch: `dot_general` also computes
`dot`, which PyTorch promotes, and a loss is composed of primitives here and one function with its own rule there.
Scatters keep the dtype of their target. Factorizations run in float32, because they have no 16-bit kernels.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from supremum.mixed_precision.autocasting.operations import WIDEST

_ON_NO_LIST = "exp2 lgamma digamma igamma igammac polygamma zeta bessel_i0e bessel_i1e cumlogsumexp reduce_window_sum"
_ONLY_ON_THE_LIST_FOR_CUDA = (
    "exp expm1 pow integer_pow square rsqrt log log2 log1p tan acos asin cosh sinh erf_inv reduce_sum cumsum cumprod "
    "reduce_max reduce_min mul div"
)


def _widest(names: str) -> Mapping[str, str]:
    return MappingProxyType(dict.fromkeys(names.split(), WIDEST))


AUTOCAST_PRESETS: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "torch-cpu": _widest(f"{_ON_NO_LIST} {_ONLY_ON_THE_LIST_FOR_CUDA}"),
        "torch-cuda": _widest(_ON_NO_LIST),
    }
)
"""The rules of each preset that `ops=` takes by name; for other rules on top, `ops={**preset, "exp": "float32"}`.

>>> AUTOCAST_PRESETS["torch-cpu"]["exp"], "exp" in AUTOCAST_PRESETS["torch-cuda"]
('widest', False)
"""
