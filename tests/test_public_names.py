"""Public packages export existing names, and importing them loads no unneeded modules."""

import importlib
import subprocess
import sys
from pathlib import Path
from pkgutil import resolve_name

import pytest

import supremum
from supremum.public_names import OUR_NAME
from supremum.rules.names import HOMES

PACKAGES = [
    "supremum",
    *(f"supremum.{name}" for name in sorted(supremum._PACKAGES)),
    "supremum.cli",
    "supremum.nn.functional",
]
HEAVY = ["jax", "torch", "matplotlib", "optax", "rich", "typer", "sklearn"]


@pytest.mark.parametrize("package", PACKAGES)
def test_every_exported_name_exists_and_dir_shows_it(package):
    module = importlib.import_module(package)
    names = module.__all__
    assert names
    assert sorted(set(names)) == sorted(names)
    assert [name for name in names if getattr(module, name, None) is None] == []
    assert {name for name in dir(module) if not name.startswith("__")} == set(module.__all__) - {"__version__"}
    assert {"__name__", "__doc__", "__all__"} <= set(dir(module))


def test_every_package_is_an_attribute_of_supremum():
    folders = {path.parent.name for path in Path(supremum.__file__).parent.glob("*/__init__.py")}
    assert folders - supremum._PACKAGES == {"cli"}  # it is for the command only
    assert len(folders) == 15


# Statements that one process runs in this order, by what they do.
STEPS = {
    "import supremum": "import supremum",
    "ask for a dtype": "supremum.result_type('int8', 'uint8')",
    "import packages without JAX": "from supremum import analysis, explorer, formats, render, reports",
    "use a package": "supremum.tracing.casts",
    "use an imported package": "from supremum import jaxprs; jaxprs.Adapter",
    "import nn": "import supremum.nn",
    "import optimizers": "import supremum.optimizers",
}


@pytest.fixture(scope="module")
def loaded():
    """The modules that are loaded after each step."""
    lines = [f"{code}; print(*sys.modules)" for code in STEPS.values()]
    script = "\n".join(["import sys", *lines])
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return dict(zip(STEPS, map(str.split, result.stdout.splitlines()), strict=True))


def test_packages_load_when_they_are_first_used(loaded):
    for step in ("import supremum", "ask for a dtype", "import packages without JAX"):
        assert {*HEAVY} & {*loaded[step]} == set(), step
    assert "jax" in loaded["use a package"]
    assert "supremum.jaxprs" in loaded["use an imported package"]


def test_importing_supremum_loads_nothing_and_a_question_only_the_rules_that_it_asks(loaded):
    ours = {name for name in loaded["import supremum"] if name.partition(".")[0] in ("supremum", "numpy", "ml_dtypes")}
    assert ours == {"supremum", "supremum.public_names", "supremum.version"}
    modules = {f"supremum.rules.{module}" for module, _ in HOMES.values()}
    assert modules & {*loaded["ask for a dtype"]} == {"supremum.rules.jax"}


def test_importing_nn_loads_neither_sparse_arrays_nor_optax(loaded):
    assert {"optax", "jax.experimental.sparse"} & {*loaded["import nn"]} == set()
    assert "optax" in loaded["import optimizers"]


@pytest.mark.parametrize("package", ["supremum", "supremum.mixed_precision"])
def test_an_unknown_attribute_raises_attribute_error(package):
    with pytest.raises(AttributeError, match=f"module '{package}' has no attribute 'layers'"):
        importlib.import_module(package).layers  # noqa: B018


@pytest.mark.parametrize("package", ["", ".mixed_precision", ".nn", ".optimizers", ".training"])
def test_names_of_other_libraries_and_packages_are_answered_with_ours(package):
    module = importlib.import_module(f"supremum{package}")
    others = {name: ours for name, ours in OUR_NAME.items() if not hasattr(module, name)}
    assert {"Conv2D", "BatchNormalization", "MaxPooling2D", "set_dtype_policy"} <= {*others}
    for name, ours in others.items():
        with pytest.raises(AttributeError, match=f"no attribute '{name}'; use supremum.{ours}$"):
            getattr(module, name)
        assert resolve_name(f"supremum.{ours}") is not None
