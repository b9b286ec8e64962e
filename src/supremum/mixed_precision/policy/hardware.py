"""Hardware support for 16-bit formats, as data, and a warning where a 16-bit policy gains no speed.

Sources: Keras RFC 293, mixed precision, "Dtype policies overview" and "User Benefit"; NVIDIA's CUDA C++ Programming
Guide, "Compute Capabilities" (tensor cores take float16 from 7.0, bfloat16 from 8.0 on); the flags that Linux reports
for Intel's and AMD's AVX512_BF16 and AMX-BF16 and for Arm's BF16 extension.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import jax

from supremum.formats import DType, as_format
from supremum.mixed_precision.policy.policy import PolicyWarning
from supremum.typing import DTypeLike
from supremum.user_frame import warn_user


class HardwareWarning(PolicyWarning):
    """A policy computes in a dtype that is no faster on this hardware.

    >>> import warnings
    >>> from supremum.mixed_precision import use_policy
    >>> # on a laptop, before a run on a GPU
    >>> with (
    ...     warnings.catch_warnings(action="ignore", category=HardwareWarning),
    ...     use_policy("mixed_bfloat16") as policy,
    ... ):
    ...     print(policy.compute_dtype)
    bfloat16
    """


Check: TypeAlias = Callable[[Any], bool | None]
"""A function of a JAX device: whether the device has fast units for a dtype; None if that cannot be found out."""


def _capability(least: float) -> Check:
    def found(device: Any) -> bool | None:
        try:
            return float(device.compute_capability) >= least
        except (AttributeError, ValueError):  # GPUs of other makers have a name there, or nothing
            return None

    return found


_CPU_FLAGS = frozenset({"avx512_bf16", "amx_bf16", "bf16"})


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


def _has_flag(_: object) -> bool | None:
    flags = _cpu_flags()
    return None if flags is None else bool(flags & _CPU_FLAGS)


SUPPORT: Mapping[str, Mapping[str, tuple[str, Check]]] = {
    "float16": {"gpu": ("a CUDA compute capability of 7.0 or more", _capability(7.0))},
    "bfloat16": {
        "gpu": ("a CUDA compute capability of 8.0 or more", _capability(8.0)),
        "tpu": ("a TPU", lambda _: True),
        "cpu": ("a CPU with native bfloat16 (AVX512_BF16, AMX-BF16 or Arm's BF16)", _has_flag),
    },
}
"""By dtype and JAX platform: what makes the dtype faster than float32, in words, and the check of a device for it."""

_warned: set[DType] = set()


def gains(dtype: DTypeLike, device: Any) -> bool | None:
    """Whether a device computes faster in a 16-bit dtype than in float32; None if that cannot be found out.

    Args:
        dtype: the dtype.
        device: a JAX device.
    """
    support = SUPPORT.get(str(as_format(dtype)), {}).get(device.platform)
    return False if support is None else support[1](device)


def warn_if_it_gains_nothing(dtype: DType) -> None:
    """Warn, once for each dtype in a process, if a policy's mixed computation is no faster on the default device.

    Args:
        dtype: the compute dtype; dtypes that `SUPPORT` does not list never warn.
    """
    if dtype in _warned:
        return
    _warned.add(dtype)
    platforms = SUPPORT.get(str(as_format(dtype)), {})
    device = jax.devices()[0]
    if platforms and gains(dtype, device) is False:
        kind = getattr(device, "device_kind", device.platform)
        needs = ", or ".join(needed for needed, _ in platforms.values())
        warn_user(
            f"computing in {dtype} gains no speed on this {device.platform} device ({kind}): it needs {needs}. Results "
            "and memory use are the same as on other hardware; to silence this warning, call "
            "warnings.simplefilter('ignore', supremum.mixed_precision.HardwareWarning)",
            HardwareWarning,
        )
