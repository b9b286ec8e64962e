"""Where computing in 16 bits gains nothing: which hardware has units for which formats, as data.

Sources: spec/keras-rfc-293-mixed-precision.md, "Dtype policies overview" and "User Benefit"; NVIDIA's CUDA C++
Programming Guide, "Compute Capabilities" (tensor cores take float16 from 7.0, bfloat16 from 8.0 on); the flags that
Linux reports for Intel's and AMD's AVX512_BF16 and AMX-BF16 and for Arm's BF16 extension.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import jax

from supremum.formats import DType, as_format
from supremum.mixed_precision.policy.global_policy import PolicyWarning
from supremum.user_frame import warn_user


class HardwareWarning(PolicyWarning):
    """A policy computes in a dtype that this hardware is not faster in."""


@dataclass(frozen=True, slots=True)
class Support:
    """What hardware gains from a dtype.

    Args:
        dtype: name of the dtype.
        platform: JAX's name of the platform.
        needs: what the hardware has to have, in words.
        found: whether a device has it; None where that cannot be found out.
    """

    dtype: str
    platform: str
    needs: str
    found: Callable[[Any], bool | None]


def _capability(least: float) -> Callable[[Any], bool | None]:
    def found(device: Any) -> bool | None:
        try:
            return float(device.compute_capability) >= least
        except (AttributeError, ValueError):  # other makers' GPUs have names there
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


def _has_flag(_: Any) -> bool | None:
    flags = _cpu_flags()
    return None if flags is None else bool(flags & _CPU_FLAGS)


def _always(_: Any) -> bool | None:
    return True


SUPPORT: tuple[Support, ...] = (
    Support("float16", "gpu", "a CUDA compute capability of 7.0 or more", _capability(7.0)),
    Support("bfloat16", "gpu", "a CUDA compute capability of 8.0 or more", _capability(8.0)),
    Support("bfloat16", "tpu", "a TPU", _always),
    Support("bfloat16", "cpu", "a CPU with native bfloat16 (AVX512_BF16, AMX-BF16 or Arm's BF16)", _has_flag),
)
"""Who is faster in what."""

_warned: set[DType] = set()


def gains(dtype: Any, device: Any) -> bool | None:
    """Whether a device computes faster in a 16-bit dtype than in float32; None where nobody knows.

    Args:
        dtype: the dtype.
        device: a device of JAX.
    """
    rows = [row for row in SUPPORT if row.dtype == str(as_format(dtype)) and row.platform == device.platform]
    return rows[0].found(device) if rows else False


def warn_if_it_gains_nothing(dtype: DType) -> None:
    """Warn, once for each dtype in a process, if a policy's mixed computation is no faster on the default device.

    Args:
        dtype: the compute dtype; wider ones than 16 bits are none of this table's business.
    """
    if dtype in _warned:
        return
    _warned.add(dtype)
    rows = [row for row in SUPPORT if row.dtype == str(as_format(dtype))]
    device = jax.devices()[0]
    if rows and gains(dtype, device) is False:
        kind = getattr(device, "device_kind", device.platform)
        needs = ", or ".join(row.needs for row in rows)
        warn_user(
            f"computing in {dtype} gains no speed on this {device.platform} device ({kind}): it takes {needs}. Results "
            "and memory are those of any other; warnings.simplefilter('ignore', "
            "supremum.mixed_precision.HardwareWarning) silences this",
            HardwareWarning,
        )
