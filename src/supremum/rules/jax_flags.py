"""The current values of JAX's flags; before JAX is loaded, the values that the environment variables will give them.

This module never imports JAX. Promotion depends on `jax_enable_x64`, `jax_explicit_x64_dtypes` and
`jax_numpy_dtype_promotion`, which are set by `jax.config.update`, a context manager or an environment variable of the
same name in capitals. Source: `jax/_src/config.py` of JAX 0.10 and 0.12 (`bool_env`, `enum_class_state`).
"""

from __future__ import annotations

import os
import sys
from typing import Any, Final

from supremum.errors import ArgumentError, shown

_TRUE: Final = ("y", "yes", "t", "true", "on", "1")
_FALSE: Final = ("n", "no", "f", "false", "off", "0")
_X64, _EXPLICIT, _PROMOTION = "jax_enable_x64", "jax_explicit_x64_dtypes", "jax_numpy_dtype_promotion"
_MODES: Final = {_EXPLICIT: ("warn", "error", "allow"), _PROMOTION: ("standard", "strict")}
"""The values of the flags that are not booleans; the first is the default."""
_configs: list[Any] = []
"""`jax.config`, once JAX is loaded."""


def is_x64() -> bool:
    """Whether `jax_enable_x64` is on: int64 and float64 are JAX's default dtypes.

    Raises:
        ArgumentError: before JAX is loaded, for an environment variable that JAX will not accept; a `ValueError`.
    """
    config = _configs[0] if _configs else _find_config()
    return config.jax_enable_x64 if config is not None else _is_true_in_environment(_X64)


def is_explicit_x64() -> bool:
    """Whether `jax_explicit_x64_dtypes` is `"allow"`: with x64 off, JAX keeps 64-bit dtypes that are requested by name.

    Raises:
        ArgumentError: as for `is_x64`.
    """
    config = _configs[0] if _configs else _find_config()
    if config is None:
        return _mode_in_environment(_EXPLICIT) == "allow"
    mode: Any = config.jax_explicit_x64_dtypes
    return mode is mode.__class__.ALLOW


def is_strict() -> bool:
    """Whether `jax_numpy_dtype_promotion` is `"strict"`: JAX refuses arrays of different dtypes.

    Raises:
        ArgumentError: as for `is_x64`.
    """
    config = _configs[0] if _configs else _find_config()
    if config is None:
        return _mode_in_environment(_PROMOTION) == "strict"
    return config.jax_numpy_dtype_promotion == "strict"


def holds_64_bits() -> bool:
    """Whether JAX, with its current flags, keeps 64-bit dtypes that are requested by name.

    Raises:
        ArgumentError: as for `is_x64`.
    """
    return is_x64() or is_explicit_x64()


def _find_config() -> Any:
    # While JAX is being imported, it is already in sys.modules but has no flags yet.
    config = getattr(sys.modules.get("jax"), "config", None)
    if not hasattr(config, _PROMOTION):
        return None
    _configs.append(config)
    return config


def _is_true_in_environment(flag: str) -> bool:
    text = os.environ.get(flag.upper())
    if text is None or text.lower() in _FALSE:
        return False
    if text.lower() in _TRUE:
        return True
    wanted = f"must be true or false, got {shown(text)}; use 1 or 0"
    raise ArgumentError(f"the environment variable {flag.upper()} {wanted}")


def _mode_in_environment(flag: str) -> str:
    modes = _MODES[flag]
    mode = os.environ.get(flag.upper(), modes[0])
    if mode not in modes:
        raise ArgumentError(f"the environment variable {flag.upper()} must be {' or '.join(modes)}, got {shown(mode)}")
    return mode
