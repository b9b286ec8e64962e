"""The lines that a report shows around an expression."""

import sys
from types import SimpleNamespace

import jax.numpy as jnp
import pytest

from supremum.reports import short_names, source_lines
from supremum.tracing import ForbiddenCastError, casts, forbid_casts


def test_blank_lines_at_both_ends_are_left_out(tmp_path):
    file = tmp_path / "program.py"
    file.write_text("\n".join(["", "a = 1", "b = a", "", "c = b", "", "", ""]))
    shown = {line: [number for number, *_ in source_lines(str(file), line, None)] for line in (2, 3, 5)}
    assert shown == {2: [2, 3], 3: [2, 3, 4, 5], 5: [3, 4, 5]}
    assert source_lines(str(tmp_path / "missing.py"), 1, None) == []


def test_cells_of_notebooks_are_shown_by_their_number(monkeypatch):
    """The methods are those of IPython 8 and later; other files have no number."""
    file = "/tmp/ipykernel_7/1346819101.py"
    names = {file: ("Cell", "In[3]")}
    shell = SimpleNamespace(compile=SimpleNamespace(format_code_name=names.get))
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    function = {}
    exec(compile("def scale(x, w):\n    return x * w\n", file, "exec"), function)
    report = casts(function["scale"])(jnp.ones(2, "bfloat16"), jnp.ones(2))
    (cast,) = report
    assert (cast.where, cast.file, cast.line) == ("In[3]:2", file, 2)
    assert "\nIn[3]:2\n" in str(report)
    assert "1346819101" not in str(report)
    assert short_names([file, "a/model.py"]) == {file: "In[3]", "a/model.py": "model.py"}
    with pytest.raises(ForbiddenCastError, match=r"\n  In\[3\]:2"):
        forbid_casts()(function["scale"])(jnp.ones(2, "bfloat16"), jnp.ones(2))
    for other in (None, SimpleNamespace(compile=SimpleNamespace())):
        monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda shell=other: shell))
        assert cast.where == f"{file}:2"
