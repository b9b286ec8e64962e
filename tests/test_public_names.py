"""Public packages export existing names, and importing them loads no unneeded modules."""

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import supremum

PACKAGES = [
    "supremum",
    *(f"supremum.{name}" for name in sorted(supremum._FLOORS)),
    "supremum.cli",
    "supremum.nn.functional",
]
HEAVY = ["jax", "torch", "matplotlib", "optax", "rich", "typer", "sklearn"]


@pytest.mark.parametrize("package", PACKAGES)
def test_every_exported_name_exists(package):
    module = importlib.import_module(package)
    names = module.__all__
    assert names
    assert sorted(set(names)) == sorted(names)
    for name in names:
        assert getattr(module, name) is not None


@pytest.mark.parametrize("package", PACKAGES)
def test_dir_shows_the_public_names(package):
    module = importlib.import_module(package)
    assert {name for name in dir(module) if not name.startswith("__")} == set(module.__all__) - {"__version__"}
    assert {"__name__", "__doc__", "__all__"} <= set(dir(module))


def test_every_package_is_an_attribute_of_supremum():
    folders = {path.parent.name for path in Path(supremum.__file__).parent.glob("*/__init__.py")}
    assert folders - supremum._FLOORS == {"cli"}  # it is for the command only
    assert len(folders) == 15


def test_packages_load_when_they_are_first_used():
    assert _loaded_after("import supremum; from supremum import analysis, explorer, formats, launching, render") == []
    assert "jax" in _loaded_after("import supremum; supremum.tracing.casts")
    assert "jax" in _loaded_after("from supremum import tracing; tracing.casts")


def _loaded_after(code):
    script = f"import sys; {code}; print(*sorted(set({HEAVY!r}) & set(sys.modules)))"
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return result.stdout.split()


def test_importing_supremum_loads_no_heavy_packages():
    assert _loaded_after("import supremum; supremum.result_type('int8', 'uint8')") == []


def test_importing_supremum_loads_no_rule_sets():
    script = "import sys, supremum; print(*sorted(m for m in sys.modules if m.startswith('supremum.rules.')))"
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    loaded = {name.removeprefix("supremum.rules.") for name in result.stdout.split()}
    assert loaded == {
        "jax_flags", "lattices", "missing_values", "names", "reductions", "rule_set", "runtimes", "scope",
        "shared_cache", "verdicts",
    }  # fmt: skip


def test_the_import_check_detects_jax():
    assert "jax" in _loaded_after("import supremum; supremum.mixed_precision")


@pytest.mark.slow
def test_importing_nn_does_not_load_sparse_arrays():
    script = "import sys, supremum.nn; print('jax.experimental.sparse' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert result.stdout.split() == ["False"]


def test_importing_nn_does_not_load_optax():
    assert "optax" not in _loaded_after("import supremum.nn")
    assert "optax" in _loaded_after("import supremum.nn, supremum.optimizers")


def test_an_unknown_attribute_raises_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'layers'"):
        supremum.layers  # noqa: B018
