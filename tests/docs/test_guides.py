"""The examples of the guides for other libraries run, and agree with the programs for these libraries."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from documents import fences
from optional_packages import import_or_skip

ROOT = Path(__file__).parents[2]
# Each page runs in a process of its own, because its programs set policies and settings of libraries.
_RUN = """
import doctest, sys, warnings
import numpy as np
page, source, compare = sys.argv[1:]
theirs = {}
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    exec(source, theirs)
test = doctest.DocTestParser().get_doctest(page, {}, "page", None, None)
runner = doctest.DocTestRunner()
runner.run(test, clear_globs=False)
assert runner.tries > 10 and not runner.failures
exec(compare)
warnings.simplefilter("ignore")
assert not source or difference(theirs, test.globs) < 0.01, difference(theirs, test.globs)
"""
_KERAS = """
def difference(theirs, ours):
    ours["nn"].load_variables(ours["model"], theirs["weights"], "keras")
    expected = theirs["model"].predict(theirs["x"], verbose=0)
    return np.abs(ours["model"].predict(theirs["x"], verbose=0) - expected).max()
"""
_TORCH = """
def difference(theirs, ours):
    ours["nn"].load_variables(ours["model"], theirs["weights"], "torch", names={"dense": "0", "dense_1": "2"})
    expected = theirs["model"](theirs["inputs"]).softmax(1).detach().numpy()
    return np.abs(ours["model"].predict(theirs["x"], verbose=0) - expected).max()
"""
_JMP = """
def difference(theirs, ours):
    return abs(float(theirs["value"]) - float(ours["value"]))
"""
_HAIKU = """
def difference(theirs, ours):
    ours["load_haiku_weights"](ours["network"], theirs["weights"], {"linear": "dense", "linear_1": "dense_1"})
    network = theirs["network"]
    expected = network.apply(network.init(theirs["jax"].random.key(0), theirs["x"]), theirs["x"])
    return np.abs(np.asarray(ours["network"](theirs["x"])) - expected).max()
"""


def test_every_guide_runs_here():
    """If this fails, its page runs nowhere, because pytest does not collect these pages."""
    assert sorted(path.name for path in (ROOT / "docs").glob("from-*.md")) == sorted(page for page, *_ in GUIDES)


GUIDES = [
    ("from-keras.md", "keras", _KERAS),
    ("from-torch-amp.md", "torch", _TORCH),
    ("from-jmp.md", "jmp", _JMP),
    ("from-haiku.md", "haiku", _HAIKU),
]


@pytest.mark.slow
@pytest.mark.parametrize(("page", "module", "compare"), GUIDES, ids=[page for page, *_ in GUIDES])
def test_both_programs_of_a_guide_run_and_agree(page, module, compare):
    text = (ROOT / "docs" / page).read_text()
    theirs = "\n".join(code for language, code in fences(text) if language == "python" and not code.startswith(">>>"))
    assert f"import {module}" in theirs
    assert theirs.count("\nassert ") >= 2
    if find_spec(module) is None:
        theirs = ""
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src"), "KERAS_BACKEND": "jax"}
    run = subprocess.run(
        [sys.executable, "-W", "error::UserWarning", "-c", _RUN, text, theirs, compare],
        capture_output=True,
        text=True,
        env=environment,
    )
    assert run.returncode == 0, run.stdout[-2000:] + run.stderr[-2000:]
    import_or_skip(module)  # without it, only the examples for Supremum ran
