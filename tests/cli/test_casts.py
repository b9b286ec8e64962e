"""`supremum casts`: reports on scripts and functions, and errors."""

import json
import subprocess
import sys
import textwrap

import jax
import pytest
from typer.testing import CliRunner

from supremum.cli.app import app

SCRIPT = """
    import sys
    from functools import partial

    import jax
    import jax.numpy as jnp


    @jax.jit
    def helper(x):
        return x.astype(jnp.float32)


    @partial(jax.jit, static_argnames="power")
    def step(w, x, power=1):
        return helper(x) * w + x ** power * w


    class Model:
        @jax.jit
        def apply(self, x):
            return x + jnp.ones(8)


    jax.tree_util.register_static(Model)
    for _ in range(3):
        step(jnp.ones(8), jnp.ones(8, jnp.bfloat16), power=int(sys.argv[1]))
    Model().apply(jnp.ones(8, jnp.bfloat16))
    print("done")
"""
MODULE = """
    import jax.numpy as jnp


    def mix(x, w, scale):
        return x * w * scale


    def wrong(x):
        return x + jnp.ones(3)


    class Layer:
        @staticmethod
        def call(x):
            return jnp.mean(x)
"""


@pytest.fixture
def run(tmp_path, monkeypatch):
    (tmp_path / "train.py").write_text(textwrap.dedent(SCRIPT))
    (tmp_path / "mixing.py").write_text(textwrap.dedent(MODULE))
    (tmp_path / "broken.py").write_text("import jax\nraise KeyError('mine')\n")
    (tmp_path / "ends.py").write_text("import sys\nsys.exit(3)\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield lambda *args: CliRunner().invoke(app, ["casts", *args])
    sys.modules.pop("mixing", None)


def test_a_script_reports_every_jitted_function_it_calls(run):
    jit = jax.jit
    result = run("train.py", "--", "2")
    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith("done\nstep(float32[8], bfloat16[8]): 2 casts, ")
    assert "x ** power * w" in result.stdout
    assert "train.py:11" in result.stdout  # the helper's own line
    assert "\napply(bfloat16[8]): 1 cast" in result.stdout
    assert result.stdout.count("step(") == 1
    assert jax.jit is jit


def test_json_names_functions_and_classes(run):
    functions = json.loads(run("train.py", "--format", "json", "--", "2").stdout.removeprefix("done\n"))["functions"]
    assert [each["function"] for each in functions] == ["step", "apply"]
    assert {cast["class"] for cast in functions[0]["casts"]} == {"explicit", "promotion"}
    assert functions[0]["arguments"] == ["float32[8]", "bfloat16[8]"]


def test_a_function_is_traced_with_described_arguments(run):
    result = run("mixing:mix", "--args", "bf16[8,128], float32[128], 0.5")
    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith("mix(bf16[8,128], float32[128], 0.5): 1 cast")
    assert "x * w" in result.stdout
    assert "library" in run("mixing:Layer.call", "--args", "bf16[8]").stdout


def test_fail_on_sets_the_exit_code(run):
    assert run("mixing:mix", "--args", "f32[8], f32[8], 0.5", "--fail-on", "promotion").exit_code == 0
    result = run("mixing:mix", "--args", "bf16[8], f32[8], 0.5", "--fail-on", "promotion")
    assert result.exit_code == 1
    assert "mixing.py:6: x * w" in result.stderr
    assert "fix: x.astype('float32')" in result.stderr
    allowed = run("mixing:mix", "--args", "bf16[8], f32[8], 0.5", "--fail-on", "promotion", "--allow", "*/mixing.py")
    assert allowed.exit_code == 0
    assert run("train.py", "--fail-on", "explicit", "--", "2").exit_code == 1


def test_errors_of_the_program_are_shown_as_python_does(run):
    result = run("broken.py")
    assert result.exit_code == 1
    assert "broken.py" in result.stderr.splitlines()[1]
    assert result.stderr.splitlines()[-1] == "KeyError: 'mine'"
    assert "supremum" not in result.stderr
    result = run("mixing:wrong", "--args", "f32[4]")
    assert result.exit_code == 1
    assert "incompatible shapes" in result.stderr
    assert 'mixing.py", line 10, in wrong' in result.stderr
    result = run("ends.py")
    assert (result.exit_code, result.stderr) == (1, "supremum: the program called sys.exit(3)\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere.py"], "There is no file nowhere.py"),
        (["mixing:mix"], "The function mixing:mix needs --args"),
        (["mixing:mixx", "--args", "f32[2]"], "did you mean 'mix'?"),
        (["mixin:mix", "--args", "f32[2]"], "There is no module mixin here"),
        (["mixing:mix", "--args", "f31[2]"], "unknown dtype 'float31'"),
        (["mixing:mix", "--args", "f32[2"], "must be arrays such as f32[8,128] or numbers"),
        (["train.py", "--fail-on", "promotoin"], "did you mean 'promotion'?"),
        (["train.py", "--format", "xml"], "unknown format"),
    ],
)
def test_a_usage_error_is_one_line_with_exit_code_2(run, arguments, message):
    result = run(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_html_is_written_to_a_file(run, tmp_path):
    assert run("mixing:mix", "--args", "bf16[8], f32[8], 1", "--format", "html", "-o", "casts.html").exit_code == 0
    assert "<td" in (tmp_path / "casts.html").read_text()


@pytest.mark.slow
def test_casts_runs_from_a_shell(run, tmp_path):
    command = [sys.executable, "-m", "supremum", "casts", "train.py", "--fail-on", "promotion", "--", "1"]
    result = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert result.returncode == 1
    assert "promotion: bfloat16 -> float32" in result.stderr
