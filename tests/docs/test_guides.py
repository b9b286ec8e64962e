"""The programs for other libraries in the guides run, and agree with those for Supremum."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from optional_packages import import_or_skip

ROOT = Path(__file__).parents[2]
# Both programs of a page run in a process of their own, because they set policies and settings of other libraries.
_RUN = """
import doctest, sys, warnings
import numpy as np
warnings.simplefilter("ignore")
theirs, ours = {}, {}
exec(sys.argv[1], theirs)
for example in doctest.DocTestParser().get_examples(sys.argv[2]):
    if example.exc_msg is None:
        exec(example.source, ours)
exec(sys.argv[3])
assert difference(theirs, ours) < 0.01, difference(theirs, ours)
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


def programs(page):
    """The program for the other library, and the page, whose examples are the program for Supremum."""
    text = (ROOT / "docs" / page).read_text()
    blocks = re.findall(r"^```python\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)
    return "\n".join(block for block in blocks if not block.startswith(">>>")), text


@pytest.mark.slow
@pytest.mark.parametrize(
    ("page", "module", "compare"),
    [
        ("from-keras.md", "keras", _KERAS),
        ("from-torch-amp.md", "torch", _TORCH),
        ("from-jmp.md", "jmp", _JMP),
        ("from-haiku.md", "haiku", _HAIKU),
    ],
)
def test_both_programs_of_a_guide_run_and_agree(page, module, compare, monkeypatch):
    monkeypatch.setenv("KERAS_BACKEND", "jax")
    import_or_skip(module)
    theirs, ours = programs(page)
    assert f"import {module}" in theirs
    assert theirs.count("\nassert ") >= 2
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    found = subprocess.run(
        [sys.executable, "-c", _RUN, theirs, ours, compare], capture_output=True, text=True, env=environment
    )
    assert found.returncode == 0, found.stderr[-2000:]
