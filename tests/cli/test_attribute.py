"""`supremum attribute`: functions and scripts, as text, JSON, page and picture, and errors."""

import json
import sys
import textwrap

import pytest
from typer.testing import CliRunner

from supremum.cli.app import app

MODULE = """
    import jax, jax.numpy as jnp

    @jax.jit
    def total(x):
        return jnp.sum(x + 1e-3)

    def make_args():
        return jnp.ones(4, "bfloat16")

    if __name__ == "__main__":
        total(make_args())
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "absorbing.py").write_text(textwrap.dedent(MODULE))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    sys.modules.pop("absorbing", None)


def run(*args):
    return CliRunner().invoke(app, ["attribute", *args, "--policy", "declared"])


def test_a_function_is_attributed_as_text_and_page_and_picture(folder):
    call = "absorbing:total", "--args", "absorbing:make_args"
    found = run(*call)
    assert found.exit_code == 0
    assert "absorbing.py:6 `x + 1e-3`: an addition that absorbs" in " ".join(found.output.split())
    assert run(*call, "-o", "page.html").exit_code == run(*call, "-o", "bars.svg").exit_code == 0
    assert "absorbed addition" in (folder / "page.html").read_text()
    assert (folder / "bars.svg").read_text().startswith("<svg")


def test_the_jitted_functions_of_a_script_are_attributed_as_json(folder):
    found = run("absorbing.py", "-o", "found.json")
    assert found.exit_code == 0
    (only,) = json.loads((folder / "found.json").read_text())["functions"]
    assert only["rows"][0]["effect"] == "absorbed addition"


def test_a_part_that_the_result_does_not_have_is_an_error(folder):
    found = run("absorbing:total", "--args", "absorbing:make_args", "--result", "3")
    assert found.exit_code != 0
