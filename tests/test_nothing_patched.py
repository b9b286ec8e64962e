"""Importing and using Supremum does not patch its dependencies or the interpreter."""

import subprocess
import sys

import pytest

# Identities of the attributes of modules and classes, without the submodules and caches that a library adds itself.
_WATCH = """
import builtins, importlib, pkgutil, signal, sys, threading, warnings
import numpy as np
import jax, jax.numpy as jnp, jax.core, jax.extend.core, jax.lax, jax.tree_util
try:
    import torch
except ImportError:
    torch = None

def held():
    found = {}
    modules = [np, jax, jnp, jax.core, jax.lax, jax.tree_util, jax.extend.core, builtins, *([torch] if torch else [])]
    for module in modules:
        name = module.__name__
        for key, value in list(vars(module).items()):
            if isinstance(value, type(sys)):
                continue
            found[f"{name}.{key}"] = id(value)
            if isinstance(value, type) and value.__module__.split(".")[0] in ("jax", "jaxlib", "numpy", "torch"):
                for attribute, inner in vars(value).items():
                    if attribute not in ("__dict__", "__weakref__", "__doc__", "__abstractmethods__", "_abc_impl"):
                        found[f"{name}.{key}.{attribute}"] = id(inner)
    for key in ("excepthook", "unraisablehook", "displayhook", "stdout", "stderr", "stdin", "breakpointhook"):
        found[f"sys.{key}"] = id(getattr(sys, key))
    found["threading.excepthook"] = id(threading.excepthook)
    found["sys.meta_path"] = tuple(type(each).__name__ if not isinstance(each, type) else each.__name__
                                   for each in sys.meta_path)
    found["sys.path_hooks"] = len(sys.path_hooks)
    found["sys.trace"], found["sys.profile"] = sys.gettrace(), sys.getprofile()
    found["recursion limit"] = sys.getrecursionlimit()
    found["SIGINT"], found["SIGTERM"] = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    found["numpy errors"] = tuple(sorted(np.geterr().items()))
    found["jax flags"] = tuple(sorted((key, str(value)) for key, value in jax.config.values.items()))
    return found

def changed(before, after):
    return sorted(key for key in before.keys() | after.keys() if before.get(key) != after.get(key))

import matplotlib, optax, rich, typer, sklearn.datasets, flax.nnx, orbax.checkpoint, safetensors
"""

_USES = {
    "importing everything": """
import supremum
for module in pkgutil.walk_packages(supremum.__path__, "supremum."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
""",
    "arrays": """
import supremum
a = supremum.asarray([1.0, 2.0])
for rules in ("numpy", "torch", "jax"):
    with supremum.use_rules(rules):
        (a + 1, a @ a, np.sin(a), supremum.asarray(jnp.ones(2)) * 2)
with supremum.count_conversions():
    a + supremum.asarray(np.ones(2, "float32"))
""",
    "autocast and casts": """
import supremum
from supremum import mixed_precision, tracing
f = lambda x: (x @ x).sum() * 2
x = jnp.ones((2, 2))
mixed_precision.autocast(f, "mixed_bfloat16")(x)
jax.jit(jax.grad(mixed_precision.autocast(f, "mixed_float16")))(x)
tracing.casts(f)(x)
with tracing.forbid_casts():
    jnp.add(x, x)
""",
    "fit": """
import supremum
from supremum import nn, training
model = training.Sequential([nn.Dense(4), nn.ReLU(), nn.Dense(1)], dtype="mixed_float16")
model.compile("adam", "mse", seed=0)
x = np.ones((8, 3), "float32")
model.fit(x, x[:, :1], epochs=2, verbose=0, validation_data=(x, x[:, :1]))
model.predict(x)
""",
    "the command": """
import supremum.cli.app as app
from typer.testing import CliRunner
CliRunner().invoke(app.app, ["explain", "int8", "float32"])
""",
}


@pytest.mark.slow
def test_use_does_not_change_other_libraries():
    """One process does all, because importing the other libraries takes longer than every use."""
    uses = "\n".join(
        f"before = held()\n{code}\nprint('after', {use!r}, changed(before, held()))" for use, code in _USES.items()
    )
    result = subprocess.run([sys.executable, "-c", f"{_WATCH}\n{uses}"], capture_output=True, text=True, check=False)
    found = [line for line in result.stdout.splitlines() if line.startswith("after ")]
    assert found == [f"after {use} []" for use in _USES], result.stdout + result.stderr


_BEFORE_JAX = """
import sys
before = list(sys.meta_path), sys.excepthook
import supremum
a = supremum.asarray([1.0, 2.0])
assert "jax" not in sys.modules
assert (list(sys.meta_path), sys.excepthook) == before
"""


def test_importing_supremum_installs_no_import_hook_for_jax():
    result = subprocess.run([sys.executable, "-c", _BEFORE_JAX], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
