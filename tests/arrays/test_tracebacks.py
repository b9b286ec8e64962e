"""The traceback of a refusal shows the user's line, at most two lines of this library, and no other error."""

import json
import operator
import os
import re
import subprocess
import sys
import traceback
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import supremum
from optional_packages import import_or_skip
from supremum import SupremumError, asarray, explain, namespace, ops, result_type, use_rules
from supremum.arrays import ArrayVariable

_PACKAGE = str(Path(supremum.__file__).parent)


def _operands(library):
    if library == "torch":
        torch = import_or_skip("torch")
        return torch.ones(2, dtype=torch.int8), torch.ones(2)
    ones = {"numpy": np, "jax": jnp}[library].ones
    return ones(2, "int8"), ones(2, "float32")


# Each takes an int8 and a float32 array of the library.
CALLS = {
    "array + array": lambda a, b: asarray(a) + asarray(b),
    "raw + array": lambda a, b: a + asarray(b),
    "array + number": lambda a, b: 0.5 + asarray(a),
    "number < array": lambda a, b: 0.5 < asarray(a),  # noqa: SIM300
    "raw < array": lambda a, b: a < asarray(b),
    "divmod": lambda a, b: divmod(asarray(a), asarray(b)),
    "matmul": lambda a, b: asarray(a) @ asarray(b),
    "operator in place": lambda a, b: operator.iadd(asarray(a), asarray(b)),
    "raw in place": lambda a, b: operator.iadd(a, asarray(b)),
    "in": lambda a, b: 0.5 in asarray(a),
    "method": lambda a, b: asarray(a).clip(0.5, asarray(b)),
    "ops": lambda a, b: ops.add(a, asarray(b)),
    "namespace": lambda a, b: namespace(asarray(a).backend.name).isclose(a, asarray(b)),
    "variable": lambda a, b: ArrayVariable(a).assign_add(b),
    "variable in place": lambda a, b: operator.iadd(ArrayVariable(a), b),
    "element of a variable": lambda a, b: operator.setitem(ArrayVariable(a), 0, 0.5),
    "ufunc": lambda a, b: np.add(asarray(a), asarray(b)),
    "ufunc of matrices": lambda a, b: np.matmul(asarray(a), asarray(b)),
    "function of NumPy": lambda a, b: np.concatenate([asarray(a), asarray(b)]),
    "no operand": lambda a, b: ops.add(asarray(a), [0.5]),
    "result_type": lambda a, b: result_type(a, b),
    "result_type of no operand": lambda a, b: result_type(a, [0.5]),
    "explain": lambda a, b: explain(a, b).dtype,
    "asarray": lambda a, b: asarray(object()),
}
OF_LIBRARY = {
    "numpy": {
        "element": lambda a, b: operator.setitem(asarray(a), 0, 0.5),
        "ufunc with out": lambda a, b: np.add(asarray(a), asarray(b), out=a),
        "ufunc.at": lambda a, b: np.add.at(asarray(a), 0, 0.5),
    },
    "jax": {
        "at": lambda a, b: asarray(a).at[0].add(b[0]),
        "jit": lambda a, b: jax.jit(operator.add)(asarray(a), asarray(b)),
    },
    "torch": {
        "function of PyTorch": lambda a, b: import_or_skip("torch").add(a, asarray(b)),
        "method in place": lambda a, b: a.add_(asarray(b)),
    },
}


@pytest.mark.parametrize("library", OF_LIBRARY)
@pytest.mark.parametrize("rules", ["array-api", "tf-rfc-none", "numpy"])
def test_a_refusal_shows_the_line_of_the_user_and_at_most_two_of_ours(rules, library):
    wrong, count = [], 0
    with use_rules(rules):
        for name, call in (CALLS | OF_LIBRARY[library]).items():
            a, b = _operands(library)
            try:
                call(a, b)
            except SupremumError as error:
                text = "".join(traceback.format_exception(error))
                count += 1
                if text.count(_PACKAGE) > 2 or text.count("Traceback") > 1:
                    wrong.append((name, text))
    assert not wrong, wrong[0]
    assert count > len(CALLS) * (1 if rules == "array-api" else 0.2)


def test_errors_in_functions_of_the_user_keep_their_frames():
    def refused(element):
        return element + np.float32(1)

    x = asarray(jnp.ones(2, "int8"))
    with use_rules("array-api"), pytest.raises(SupremumError) as caught:
        x.at[0].apply(refused)
    assert "return element + np.float32(1)" in "".join(traceback.format_exception(caught.value))
    other = np.ones(2, "int8")
    with use_rules("array-api"), pytest.raises(SupremumError) as caught:
        namespace("numpy").apply_along_axis(lambda row: asarray(row) + np.float32(1), 0, other)
    assert "asarray(row) + np.float32(1)" in "".join(traceback.format_exception(caught.value))


# Runs the cells that it reads, and writes what each prints.
_NOTEBOOK = """
import contextlib, io, json, sys
from IPython.core.interactiveshell import InteractiveShell
shell, printed = InteractiveShell.instance(), []
for cell in json.load(sys.stdin):
    with contextlib.redirect_stdout(io.StringIO()) as text, contextlib.redirect_stderr(text):
        shell.run_cell(cell, store_history=True)
    printed.append(text.getvalue())
json.dump(printed, sys.stdout)
"""
_FIRST_CELL = """
import numpy as np
from supremum import asarray, count_conversions, get_rules, ops, result_type, set_default_rules, use_rules
a, b = np.ones(2, "int8"), np.ones(2, "float32")
set_default_rules("array-api")
"""
# Cells, and the lines of the cell and the files of this library that their tracebacks show.
CELLS = {
    "x = asarray(a)\nx + asarray(b)": ["2"],
    "a + asarray(b)": ["1"],
    "0.5 < asarray(a)": ["1", "calls.py"],
    "divmod(asarray(a), b)": ["1", "array.py"],
    "ops.add(a, b)": ["1"],
    "np.add(asarray(a), b)": ["1"],
    "np.concatenate([asarray(a), asarray(b)])": ["1", "array.py", "numpy_functions.py"],
    "x = asarray(a)\nx += 0.5": ["2"],
    "x = asarray(a)\nx[0] = 0.5": ["2", "array.py"],
    "result_type(a, b)": ["1", "promotion.py", "decisions.py"],
    "def f(x):\n    return x + b\n\nf(asarray(a))": ["4", "2"],
}


@pytest.mark.slow
def test_a_notebook_shows_the_line_of_the_cell_and_at_most_two_of_ours(tmp_path):
    import_or_skip("IPython")
    counting = (
        "with use_rules('numpy'), count_conversions() as counts:\n    asarray(a) + b\n[each.line for each, _ in counts]"
    )
    run = subprocess.run(
        [sys.executable, "-c", _NOTEBOOK], input=json.dumps([_FIRST_CELL, *CELLS, counting]), text=True,
        capture_output=True, check=True, env=os.environ | {"IPYTHONDIR": str(tmp_path)},
    )  # fmt: skip
    first, *printed, counted = (re.sub(r"\x1b\[[\d;]*m", "", text) for text in json.loads(run.stdout))
    assert first == ""
    for number, (expected, text) in enumerate(zip(CELLS.items(), printed, strict=True), 2):
        cell, frames = expected
        shown = re.findall(rf"^(?:Cell In\[{number}\], line (\d+)|File .*/(\w+\.py):\d+)", text, flags=re.MULTILINE)
        assert (cell, ["".join(each) for each in shown]) == (cell, frames), text
        assert text.count("-> refused   [rules array-api]") == 1, text
        assert "exception" not in text, text  # Python links chained errors by sentences with this word
    assert counted == f"Out[{len(CELLS) + 2}]: ['In[{len(CELLS) + 2}]:2']\n"
