"""The packages that extras install, and the error when some are missing."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec

from supremum.errors import MissingPackageError

EXTRAS: dict[str, str] = {
    "jax": "jax", "optax": "jax", "rich": "jax", "safetensors": "jax", "typer": "cli", "jinja2": "cli",
    "matplotlib": "plot", "orbax.checkpoint": "orbax", "sklearn": "examples", "tensorboardX": "tensorboard",
}  # fmt: skip
"""The extra that installs a package, by the name that is imported.

>>> EXTRAS["matplotlib"]
'plot'
"""


def missing_packages(what: str, packages: Sequence[str]) -> MissingPackageError:
    """The error for packages that are not installed.

    Args:
        what: what needs them, such as `"supremum.nn"`.
        packages: their names in imports.

    >>> str(missing_packages("supremum.demo", ["jax", "optax", "sklearn"]))
    "supremum.demo needs jax, optax, sklearn; install with: pip install 'supremum[jax,examples]'"
    """
    packages = [name if name in EXTRAS else name.partition(".")[0] for name in packages]
    extras = dict.fromkeys(EXTRAS[package] for package in packages if package in EXTRAS)
    others = [package for package in packages if package not in EXTRAS]
    targets = [f"'supremum[{','.join(extras)}]'"] * bool(extras) + others
    message = f"{what} needs {', '.join(packages)}; install with: pip install {' '.join(targets)}"
    return MissingPackageError(message, name=packages[0])


def require(what: str, *packages: str) -> None:
    """Raise if packages are not installed; this does not import them.

    Args:
        what: what needs them, such as `"supremum.nn"`.
        packages: their names in imports.

    Raises:
        MissingPackageError: if some are missing; it names them and the extras to install.

    >>> require("supremum.formats", "numpy")
    >>> require("A plot", "no_such_package")
    Traceback (most recent call last):
        ...
    supremum.errors.MissingPackageError: A plot needs no_such_package; install with: pip install no_such_package
    """
    missing = [package for package in packages if not _is_installed(package)]
    if missing:
        raise missing_packages(what, missing)


def _is_installed(package: str) -> bool:
    # Of a module in a package, `find_spec` imports the package.
    return all(find_spec(name) is not None for name in (package.partition(".")[0], package))
