"""Every function of every namespace, on every format and on empty arrays, raises only errors of Supremum."""

import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import supremum
from arrays.every_format import call, functions, parameters, values
from junk_arguments import JUNK
from optional_packages import import_or_skip
from slowly import for_each, slow
from supremum.arrays import ComputationError
from supremum.errors import SupremumError
from supremum.formats import as_format

PROGRAM = Path(__file__).with_name("every_format.py")


@pytest.mark.parametrize(
    ("library", "names"),
    [
        ("numpy", ["concat", "argmax", "take"]),
        slow("numpy", []),
        slow("torch", []),
        slow("jax", sorted(functions(supremum.namespace("jax")))[::32]),  # JAX compiles every call
        pytest.param("jax", [], marks=pytest.mark.exhaustive),
    ],
    ids=["numpy-few", "numpy", "torch", "jax-few", "jax"],
)
def test_functions_on_every_format_raise_only_supremum_errors(library, names):
    if library == "torch":
        import_or_skip("torch")
    command = [sys.executable, str(PROGRAM), library, *names]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    lines = done.stdout.splitlines()
    begun = [line for line in lines if line.startswith("begun")]
    # XLA may abort the process; the last line then names the function.
    assert lines[-1] == "done", (begun[-1:], done.stderr[-2000:])
    assert [line for line in lines if line.startswith("wrong")] == []
    assert len(begun) > 150 or len(begun) == len(names) > 0


NAMES = sorted(functions(supremum.namespace("numpy")))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("library", ["numpy", "jax", "torch"])
@for_each("name", NAMES, one_in=120, one_slow_in=24)
def test_junk_arguments_raise_only_supremum_errors(name, library, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if library == "torch":
        import_or_skip("torch")
    xp = supremum.namespace(library)
    function = functions(xp).get(name)
    if function is None:
        pytest.skip(f"{library} has no {name}")
    found = []
    for parameter in parameters(name, function):
        for title, junk in JUNK.items():
            given = values(xp, as_format("float32"), (2, 2))
            try:
                call(name, function, given | {parameter.name: junk()}, chosen=parameter.name)
            except (SupremumError, NotImplementedError):
                pass
            except Exception as error:
                found.append((parameter.name, title, type(error).__name__, str(error)[:100]))
    assert found == []


@pytest.mark.parametrize("library", ["numpy", "jax"])
def test_indices_shapes_and_axes_out_of_bounds_raise_short_errors(library):
    xp = supremum.namespace(library)
    x = xp.ones((2, 3))
    for wrong in (
        lambda: x[10**30],
        lambda: x["a"],
        lambda: xp.sum(x, axis="x"),
        lambda: xp.ones((10**9, 10**9)),
        lambda: xp.reshape(x, (10**30,)),
        lambda: xp.zeros(-1),
        lambda: x + xp.ones(4),
        lambda: xp.matmul(x, x),
        lambda: xp.concat([x, xp.ones((2, 2))]),
        lambda: xp.take(x, xp.asarray([0]), axis=10**30),
    ):
        with pytest.raises(SupremumError) as caught:
            wrong()
        assert len(str(caught.value)) < 1000
        assert isinstance(pickle.loads(pickle.dumps(caught.value)), SupremumError)


def test_computation_errors_are_also_instances_of_the_library_error():
    xp = supremum.namespace("numpy")
    with pytest.raises(ComputationError, match=r"inv\(float64\[2, 2\]\) failed in numpy: Singular matrix") as caught:
        xp.linalg.inv(xp.zeros((2, 2)))
    assert isinstance(caught.value, np.linalg.LinAlgError)
    assert isinstance(caught.value.__cause__, np.linalg.LinAlgError)
    with pytest.raises(ValueError, match=r"add\(float64\[2\], float64\[3\]\) failed in numpy: operands could not"):
        xp.ones(2) + xp.ones(3)
    with pytest.raises(FloatingPointError), np.errstate(divide="raise"):
        xp.ones(2) / xp.zeros(2)
