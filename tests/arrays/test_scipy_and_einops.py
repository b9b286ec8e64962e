"""Functions of SciPy, scikit-learn and einops on an `Array`, in processes of their own.

SciPy reads SCIPY_ARRAY_API at its import.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from optional_packages import import_or_skip
from slowly import exhaustive, slow

import_or_skip("scipy")
import_or_skip("einops")

CALLS = Path(__file__).with_name("other_packages.py")
# SciPy writes into arrays of JAX that it recognizes with `at`, and into all others in place.
WRITING = (
    "special.logsumexp", "special.log_softmax", "special.rel_entr", "stats.zscore", "stats.pearsonr", "stats.skewtest",
    "stats.normaltest", "stats.bartlett", "stats.mannwhitneyu", "stats.quantile", "stats.iqr", "stats.f_oneway",
    "stats.median_abs_deviation", "stats.boxcox_llf", "signal.savgol_filter", "vq.whiten", "differentiate.derivative",
)  # fmt: skip
EXAMPLE = Path(__file__).parents[2] / "examples/arrays/scipy_and_einops.py"


def _run(*arguments, flags=("-W", "error")):
    environment = os.environ | {"SCIPY_ARRAY_API": "1", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    found = subprocess.run(
        [sys.executable, *flags, *arguments], capture_output=True, text=True, env=environment, check=False
    )
    assert found.returncode == 0, found.stderr
    return found.stdout


@pytest.mark.slow
def test_example_runs_and_keeps_float32():
    lines = _run(str(EXAMPLE)).splitlines()
    assert len(lines) == 9
    for line in lines:
        assert " Array float32 (" in line


@pytest.mark.slow
def test_minimize_finds_the_minimum_when_jax_is_loaded():
    # minimize uses finite differences, and in float32 their step would vanish.
    code = """
import jax, numpy as np
from scipy.optimize import minimize
import supremum
def squares(x):
    residual = supremum.Array(x) - np.array([3.0, -1.0])
    return (residual * residual).sum().item()
for start in (np.zeros(2), supremum.Array(np.zeros(2))):
    np.testing.assert_allclose(minimize(squares, start).x, [3, -1], atol=1e-4)
"""
    _run("-c", code)


@pytest.mark.parametrize("library", [slow("numpy"), exhaustive("jax")])
def test_functions_that_work_with_bare_arrays_work_with_an_array(library):
    import_or_skip("sklearn")
    found = json.loads(_run(str(CALLS), library, flags=()))
    errors = {call: said for call, said in found.items() if said not in ("same", "bare fails")}
    writing = {call for call, said in errors.items() if said.startswith("arrays of JAX are immutable")}
    assert sorted(call.partition("(")[0] for call in writing) == (sorted(WRITING) if library == "jax" else [])
    # It multiplies complex64 in place by complex128, which the rules do not store.
    assert {call.partition("(")[0] for call in errors.keys() - writing} == ({"fft.fht"} if library == "jax" else set())
    results = list(found.values())
    assert results.count("same") > results.count("bare fails") > 0
