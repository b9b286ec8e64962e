"""Arrays of NumPy and PyTorch depend neither on JAX's flags nor on whether JAX is imported."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from optional_packages import import_or_skip
from slowly import exhaustive, slow

PROGRAM = Path(__file__).parent / "without_jax.py"
FLAGS = ["jax_enable_x64", "true", "jax_explicit_x64_dtypes", "allow", "jax_numpy_dtype_promotion", "strict"]


def _run(*arguments):
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    found = subprocess.run(
        [sys.executable, *map(str, arguments)], capture_output=True, text=True, env=environment, check=False
    )
    assert found.returncode == 0, found.stderr
    return found.stdout


def _called(*arguments):
    return json.loads(_run(PROGRAM, *arguments))


# 5 does not divide the number of operands, so that each of them is on both sides.
@pytest.mark.parametrize("one_in", [slow(5), exhaustive(1)])
@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_results_are_the_same_before_and_after_the_import_of_jax(library, one_in):
    if library == "torch":
        import_or_skip("torch")
    before, after = _called(library, one_in), _called(library, one_in, "jax")
    assert [(name, one, other) for (name, one), (_, other) in zip(before, after, strict=True) if one != other] == []
    assert len(before) > 10_000 / one_in
    results = dict(before)
    assert results["add(float64, float64)"] == [library, "float64", False, "[2e+300, 0.2]"]
    assert results["iadd(float64, weak 1e+300)"] == [library, "float64", False, "[2e+300, 1e+300]"]
    assert results["mul(int64, 3)"] == [library, "int64", False, f"[{3 * 2**40}, 9]"]
    assert results["float64[0] = 1e+300"] == [library, "float64", False, "[1e+300, 0.1]"]
    assert results["asarray([1e+300])"] == [library, "float64", False, "[1e+300]"]
    assert sum(isinstance(result, list) for result in results.values()) > 5_000 / one_in


@pytest.mark.parametrize("one_in", [slow(5), exhaustive(1)])
def test_results_on_numpy_do_not_depend_on_jax_flags(one_in):
    assert _called("numpy", one_in, "jax") == _called("numpy", one_in, "jax", *FLAGS)


def test_float64_array_stays_float64_when_jax_is_imported():
    code = """
import sys
import numpy as np
import supremum
a = supremum.Array(np.array([1e300]))
def all_of_it():
    x = supremum.Array(np.array([1e300, 1.0]))
    x += np.array([1e300, 2.0])
    x[1] = 1e300
    assert supremum.explain(a, 1.5, operation="add").rules == supremum.explain(a.unwrap(), a).rules == "jax-x64"
    return repr([a + a, a + np.float32(1), 2 * a, x, supremum.asarray([1e300, 1]), supremum.asarray(2.5) * a])
before = all_of_it()
assert "jax" not in sys.modules
import jax
assert all_of_it() == before, (all_of_it(), before)
print(before)
"""
    out = _run("-c", code)
    assert out.count("float64") == 6
    assert "inf" not in out
