"""The owner of a source file: the user, a library, or code between the two."""

from __future__ import annotations

import os
import site
import sysconfig
from functools import lru_cache
from pathlib import Path

import jax

USER = ""
"""The owner of every file without another known owner."""
BETWEEN = "jax"
"""The owner of frames between a caller and the function it calls: files of JAX, Python and parts of this package."""

OURS = "supremum"
"""The owner of this package's other files."""

_INSTALLED = ("site-packages", "dist-packages")
_TYPED_IN = ("<stdin>", "<string>", "<ipython-input", "<doctest")
_OURS = str(Path(__file__).parents[1])
# Like JAX's files, the files that trace and rewrite programs, and that call the functions of `nn.custom_vjp` and
# `nn.custom_jvp`, appear between a layer and the functions it calls.
_TRACING = tuple(f"{_OURS}{os.sep}{folder}{os.sep}" for folder in ("jaxprs", "tracing"))
_CUSTOM_DERIVATIVES = str(Path(_OURS, "nn", "custom_derivatives.py"))
_JAX = str(Path(jax.__file__).parent)
_PYTHON = tuple({sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")})
_SITES = tuple({*site.getsitepackages(), sysconfig.get_path("purelib"), sysconfig.get_path("platlib")})


@lru_cache(maxsize=4096)
def owner_of(file: str) -> str:
    """The owner of a file: `USER`, `BETWEEN`, or the name of an installed package.

    A file in the folders of Python's package manager belongs to a library. An editable installation lies elsewhere and
    belongs to the user.

    Args:
        file: the name of a file, as in code objects.

    >>> owner_of("/home/me/train.py"), owner_of("/usr/lib/python3.11/site-packages/flax/linen/linear.py")
    ('', 'flax')
    """
    if _under(file, _JAX) or file.startswith(_TRACING) or file == _CUSTOM_DERIVATIVES:
        return BETWEEN
    if _under(file, _OURS):
        return OURS
    for root in _SITES:
        if _under(file, root):
            return _package(file[len(root) + 1 :])
    for part in _INSTALLED:
        _, found, inside = file.rpartition(f"/{part}/")
        if found:
            return _package(inside)
    if any(_under(file, root) for root in _PYTHON):
        return BETWEEN
    # Wrappers that libraries generate at run time, and Python's frozen modules.
    return BETWEEN if file.startswith("<") and not file.startswith(_TYPED_IN) else USER


def _package(inside: str) -> str:
    name = Path(inside).parts[0].removesuffix(".py")
    return BETWEEN if name in ("jax", "jaxlib") else name


def _under(file: str, root: str) -> bool:
    return file.startswith(root) and file[len(root) : len(root) + 1] in ("/", "\\")
