"""Hardware support for 16-bit formats, as data, and a warning where a 16-bit policy gains no speed.

Sources: Keras RFC 293, mixed precision, "Dtype policies overview" and "User Benefit"; NVIDIA's CUDA C++ Programming
Guide, "Compute Capabilities" (tensor cores take float16 from 7.0, bfloat16 from 8.0 on); the flags that Linux reports
for Intel's and AMD's AVX512_BF16 and AMX-BF16 and for Arm's BF16 extension.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import jax

from supremum.formats import DType
from supremum.mixed_precision.policy.global_policy import PolicyWarning
from supremum.user_frame import warn_user


class HardwareWarning(PolicyWarning):
    """A policy computes in a dtype that is no faster on this hardware.

    >>> import warnings
    >>> from supremum.mixed_precision import use_policy
    >>> with warnings.catch_warnings(), use_policy("mixed_bfloat16") as policy:
    ...     # on a laptop, before a run on a GPU
    ...     warnings.simplefilter("ignore", HardwareWarning)
    ...     print(policy.compute_dtype)
    bfloat16
    """


_CPU_FLAGS = frozenset({"avx512_bf16", "amx_bf16", "bf16"})
_LEAST_CAPABILITY = {"float16": 7.0, "bfloat16": 8.0}
_NEEDS = {
    "float16": "a CUDA compute capability of 7.0 or more",
    "bfloat16": "a CUDA compute capability of 8.0 or more, or a TPU, or a CPU with native bfloat16 (AVX512_BF16, "
    "AMX-BF16 or Arm's BF16)",
}
"""What makes each 16-bit dtype faster than float32, in words; `gains` checks it."""


@cache
def _cpu_flags() -> frozenset[str] | None:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    named = (line.partition(":") for line in lines)
    return frozenset(
        word for name, _, words in named if name.strip() in ("flags", "Features") for word in words.split()
    )


_warned: set[DType] = set()


def gains(dtype: Any, device: Any) -> bool | None:
    """Whether a device computes faster in a 16-bit dtype than in float32; None if that cannot be found out.

    Args:
        dtype: float16 or bfloat16.
        device: a JAX device.
    """
    if device.platform == "gpu":
        try:
            return float(device.compute_capability) >= _LEAST_CAPABILITY[str(dtype)]
        except (AttributeError, ValueError):  # GPUs of other makers have a name there, or nothing
            return None
    if device.platform == "cpu" and str(dtype) == "bfloat16":
        flags = _cpu_flags()
        return None if flags is None else bool(flags & _CPU_FLAGS)
    return device.platform == "tpu" and str(dtype) == "bfloat16"


def warn_if_it_gains_nothing(dtype: DType) -> None:
    """Warn, once for each dtype in a process, if a policy's mixed computation is no faster on the default device.

    Args:
        dtype: the compute dtype; only float16 and bfloat16 can warn.
    """
    if dtype in _warned:
        return
    _warned.add(dtype)
    device = jax.devices()[0]
    if str(dtype) in _NEEDS and gains(dtype, device) is False:
        kind = getattr(device, "device_kind", device.platform)
        warn_user(
            f"computing in {dtype} gains no speed on this {device.platform} device ({kind}): it needs "
            f"{_NEEDS[str(dtype)]}. Results and memory use are the same as on other hardware; to silence this warning, "
            "call warnings.simplefilter('ignore', supremum.mixed_precision.HardwareWarning)",
            HardwareWarning,
        )
