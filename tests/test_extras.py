"""Without the packages of an extra, what needs them says in one line which extra to install."""

import pickle
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from supremum.errors import MissingPackageError
from supremum.extras import EXTRAS, missing_packages, require

REPOSITORY = Path(__file__).parents[1]
# What is run, what it says is missing where, and how to install it.
CASES = {
    "import supremum.nn": ("supremum.nn", "jax", "'supremum[jax]'"),
    "from supremum import nn": ("supremum.nn", "jax", "'supremum[jax]'"),
    "import supremum; supremum.nn": ("supremum.nn", "jax", "'supremum[jax]'"),
    "import supremum.nn.functional": ("supremum.nn", "jax", "'supremum[jax]'"),
    "import supremum.training": ("supremum.training", "jax, optax, safetensors", "'supremum[jax]'"),
    "import supremum.tracing": ("supremum.tracing", "jax", "'supremum[jax]'"),
    "import supremum.mixed_precision": ("supremum.mixed_precision", "jax", "'supremum[jax]'"),
    "import supremum.optimizers": ("supremum.optimizers", "optax", "'supremum[jax]'"),
    "import supremum.jaxprs": ("supremum.jaxprs", "jax", "'supremum[jax]'"),
    "import supremum.demo": ("supremum.demo", "jax, matplotlib, sklearn", "'supremum[jax,plot,examples]'"),
    "import supremum; supremum.namespace('jax')": ("The array library 'jax'", "jax", "'supremum[jax]'"),
    "import supremum; supremum.namespace('torch')": ("The array library 'torch'", "torch", "torch"),
    "from supremum.explorer import explorer_page; explorer_page()": ("The explorer page", "jinja2", "'supremum[cli]'"),
    "from supremum.training import History; h = History(); h.epoch = [0]; h.plot()": (
        "A plot", "matplotlib", "'supremum[plot]'",
    ),
    "from supremum.training import save_arrays; save_arrays('a', {}, format='orbax')": (
        "A checkpoint in a folder", "orbax.checkpoint", "'supremum[orbax]'",
    ),
}  # fmt: skip
# Command lines, and the line on standard error.
COMMANDS = {
    "table": (["typer"], "The supremum command needs typer; install with: pip install 'supremum[cli]'"),
    "rules": (["rich"], "The supremum command needs rich; install with: pip install 'supremum[jax]'"),
    "casts a.py": (["jax"], "supremum: supremum.tracing needs jax; install with: pip install 'supremum[jax]'"),
    "demo": (["sklearn"], "supremum: supremum.demo needs sklearn; install with: pip install 'supremum[examples]'"),
    "explore": (["jinja2"], "supremum: The explorer page needs jinja2; install with: pip install 'supremum[cli]'"),
}


def run(code, missing, folder):
    blocked = f"import sys; sys.modules.update(dict.fromkeys({missing!r})); "
    command = [sys.executable, "-c", blocked + code]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)


@pytest.mark.slow
@pytest.mark.parametrize("code", CASES)
def test_a_module_without_its_packages_names_the_extra(tmp_path, code):
    what, missing, packages = CASES[code]
    done = run(code, [*missing.split(", "), missing.partition(".")[0]], tmp_path)
    assert done.returncode == 1
    expected = f"{what} needs {missing}; install with: pip install {packages}"
    assert done.stderr.splitlines()[-1] == f"supremum.errors.MissingPackageError: {expected}"
    if code.startswith("import"):
        assert run(code, [], tmp_path).returncode == 0


@pytest.mark.slow
@pytest.mark.parametrize("line", COMMANDS)
def test_a_command_without_its_packages_names_the_extra(tmp_path, line):
    missing, message = COMMANDS[line]
    code = f"sys.argv[1:] = {line.split()!r}; import supremum_command; supremum_command.main()"
    done = run(code, missing, tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"{message}\n")
    assert list(tmp_path.iterdir()) == []


def test_the_core_needs_no_extra(tmp_path):
    code = (
        "import supremum, supremum.analysis, supremum.arrays, supremum.explorer, supremum.ops; "
        "print(supremum.result_type('i8', 'u8', rules='jax-x64'), supremum.asarray([1]) + 1)"
    )
    done = run(code, [*{name.partition(".")[0] for name in EXTRAS}, "torch"], tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("int16 ")


def test_extras_are_those_of_the_project():
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    distributions = {"orbax.checkpoint": "orbax-checkpoint", "sklearn": "scikit-learn"}
    for package, extra in EXTRAS.items():
        listed = [re.split("[><=]", each)[0] for each in project["optional-dependencies"][extra]]
        assert distributions.get(package, package) in listed, package


def test_the_error_names_every_package_and_extra():
    error = missing_packages("x", ["jax", "sklearn", "torch", "optax"])
    assert str(error) == (
        "x needs jax, sklearn, torch, optax; install with: pip install 'supremum[jax,examples]' torch"
    )
    assert isinstance(error, ModuleNotFoundError)
    assert error.name == "jax"
    copied = pickle.loads(pickle.dumps(error))
    assert (str(copied), copied.name) == (str(error), "jax")


def test_require_accepts_what_is_installed(monkeypatch):
    require("x", "json", "importlib.util")
    for package in ("importlib.nothing", "nothing", "nothing.at_all"):
        top = package.partition(".")[0]
        with pytest.raises(MissingPackageError, match=rf"^x needs {top}; install with: pip install {top}$"):
            require("x", "json", package)
