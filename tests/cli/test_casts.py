"""`supremum casts`: reports on scripts and functions, and errors."""

import json
import subprocess
import sys

import jax
import pytest

COMMAND = ("casts",)
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
    import jax, jax.numpy as jnp


    def mix(x, w, scale):
        return x * w * scale


    def wrong(x):
        return x + jnp.ones(3)


    def forward(params, x, key):
        return x @ params['w'] + params['b']


    def make_args():
        return {'w': jnp.ones((8, 4), 'bfloat16'), 'b': jnp.ones(4)}, jnp.ones(8), jax.random.key(0)


    exec("import numpy\\ndef typed(x):\\n    return x / numpy.sqrt(64)")


    def masked(x, done):
        return x * (1 - done)


    class Layer:
        @staticmethod
        def call(x):
            return jnp.mean(x)
"""


PROGRAMS = {
    "train.py": SCRIPT,
    "mixing.py": MODULE,
    "broken.py": "import jax\nraise KeyError('mine')\n",
    "ends.py": "import sys\nsys.exit(3)\n",
}


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


def test_fail_on_needs_no_source(run):
    result = run("mixing:typed", "--args", "bf16[8]", "--fail-on", "promotion")
    assert result.exit_code == 1
    assert "<string>:3" in result.stderr
    assert "promotion: bfloat16 -> float32" in result.stderr


def test_fail_on_promotion_accepts_bools_and_integers(run):
    call = ("mixing:masked", "--args", "f32[8], bool[8]", "--fail-on")
    assert run(*call, "promotion").exit_code == 0
    assert run(*call, "conversion").exit_code == 1


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


def test_arguments_are_pytrees_keys_or_made_by_a_function(run):
    result = run("mixing:forward", "--args", "{'w': bf16[8, 4], 'b': f32[4]}, f32[8], key[]")
    assert result.exit_code == 0, result.stderr
    assert "x @ params['w']" in result.stdout
    assert result.stdout.startswith("forward({'w': bf16[8, 4], 'b': f32[4]}, f32[8], key[]): ")
    made = run("mixing:forward", "--args", "mixing:make_args")
    assert made.exit_code == 0, made.stderr
    assert made.stdout.replace("mixing:make_args", "").endswith(result.stdout.partition("): ")[2])
    failing = run("mixing:forward", "--args", "mixing:forward")
    assert failing.exit_code == 1
    assert "TypeError: forward() missing 3 required positional arguments" in failing.stderr
    assert run("mixing:forward", "--args", "mixing:nothing").exit_code == 1


def test_filters_choose_casts_by_class_path_and_library(run):
    def kinds(*options):
        result = run("train.py", "--format", "json", *options, "--", "2")
        assert result.exit_code == 0, result.stderr
        functions = json.loads(result.stdout.removeprefix("done\n"))["functions"]
        return sorted({cast["class"] for each in functions for cast in each["casts"]})

    assert kinds() == ["explicit", "promotion"]
    assert kinds("--class", "explicit") == ["explicit"]
    assert kinds("--class", "explicit", "--class", "promotion") == ["explicit", "promotion"]
    assert kinds("--path", "*/train.py") == ["explicit", "promotion"]
    assert kinds("--path", "*/other.py") == []
    result = run("mixing:Layer.call", "--args", "bf16[8]", "--library", "jax")
    assert result.stdout.startswith("Layer.call(bf16[8]): 2 casts")
    result = run("mixing:Layer.call", "--args", "bf16[8]", "--library", "jaxx")
    assert result.exit_code == 2
    assert "did you mean 'jax'?" in result.stderr
    # A filter also applies to --fail-on.
    assert run("train.py", "--fail-on", "promotion", "--path", "*/other.py", "--", "2").exit_code == 0


def test_a_baseline_lets_only_new_casts_fail(run, tmp_path):
    call = ("mixing:mix", "--args", "bf16[8], f32[8], 0.5")
    missing = run(*call, "--baseline", "casts.json")
    assert missing.exit_code == 1
    assert missing.stderr.startswith("supremum: There is no baseline casts.json; write it with: ")
    assert not (tmp_path / "casts.json").exists()
    written = run(*call, "--write-baseline", "casts.json")
    assert (written.exit_code, written.stderr) == (0, "supremum: casts.json written, casts: 1\n")
    assert json.loads((tmp_path / "casts.json").read_text())["casts"][0]["file"] == "mixing.py"
    assert run(*call, "--baseline", "casts.json").exit_code == 0
    # Lines move, and a cast is added.
    moved = "\n\n# moved\n" + (tmp_path / "mixing.py").read_text()
    (tmp_path / "mixing.py").write_text(moved)
    sys.modules.pop("mixing")
    assert run(*call, "--baseline", "casts.json").exit_code == 0
    (tmp_path / "mixing.py").write_text(moved.replace("x * w * scale", "x * w * scale + (x - w)"))
    sys.modules.pop("mixing")
    new = run(*call, "--baseline", "casts.json")
    assert new.exit_code == 1
    assert "1 forbidden cast:" in new.stderr
    assert "mixing.py:9: x - w" in new.stderr
    assert run(*call, "--baseline", "casts.json", "--fail-on", "explicit").exit_code == 0
    (tmp_path / "mixing.py").write_text(moved.replace("x * w * scale", "x"))
    sys.modules.pop("mixing")
    gone = run(*call, "--baseline", "casts.json")
    assert gone.exit_code == 0
    assert "supremum: casts of casts.json that are gone: 1; write" in gone.stderr
    (tmp_path / "casts.json").write_text("{")
    corrupt = run(*call, "--baseline", "casts.json")
    assert corrupt.exit_code == 1
    assert "casts.json must be a baseline in JSON" in corrupt.stderr
    assert len(corrupt.stderr.splitlines()) == 1


def test_no_baseline_is_written_for_a_program_that_failed(run, tmp_path):
    for program in ("broken.py", "ends.py"):
        assert run(program, "--write-baseline", "casts.json").exit_code == 1
    (tmp_path / "empty.py").write_text("print(1)\n")
    result = run("empty.py", "--write-baseline", "casts.json")
    assert result.exit_code == 1
    assert "no call of a jitted function was measured in empty.py" in result.stderr
    assert not (tmp_path / "casts.json").exists()


def test_github_annotations_are_printed(run):
    call = ("mixing:mix", "--args", "bf16[8], f32[8], 0.5", "--format", "github")
    annotation = (
        "::error file=mixing.py,line=6,title=promotion%3A bfloat16 to float32::x * w%0Abfloat16 -> float32%0A"
        "fix: x.astype('float32') to compute in float32, or w.astype('bfloat16') to stay in bfloat16\n"
    )
    assert run(*call).stdout == annotation.replace("::error", "::warning")
    failed = run(*call, "--fail-on", "promotion")
    assert (failed.exit_code, failed.stdout) == (1, annotation)
    # Lines of the baseline get no annotation; others do.
    run(*call[:3], "--write-baseline", "casts.json")
    assert run(*call, "--baseline", "casts.json").stdout == ""
    new = run("mixing:mix", "--args", "bf16[8], f32[8], f16[8]", *call[3:], "--baseline", "casts.json")
    assert (new.exit_code, new.stdout.count("\n")) == (1, 1)
    assert new.stdout.startswith("::error file=mixing.py,line=6,")
    assert "; 1 cast follows" in new.stdout
    # What the program prints is not in the way.
    assert (
        run("train.py", "--format", "github", "--", "2")
        .stdout.replace("done\n", "")
        .startswith("::warning file=train.py,")
    )


@pytest.mark.slow
def test_casts_runs_from_a_shell(run, tmp_path):
    command = [sys.executable, "-m", "supremum", "casts", "train.py", "--fail-on", "promotion", "--", "1"]
    result = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert result.returncode == 1
    assert "promotion: bfloat16 -> float32" in result.stderr


def test_cost_has_the_bytes_and_the_error_beside_each_cause(run):
    call = "mixing:mix", "--args", "bf16[8,128], f32[128], 0.5", "--cost"
    result = run(*call)
    assert result.exit_code == 0, result.stderr
    text = " ".join(result.stdout.split())
    assert (
        "bytes more in values that are wider than in bfloat16 undone, the relative error of the result is 0.0" in text
    )
    (function,) = json.loads(run(*call, "--format", "json").stdout)["functions"]
    (cause,) = function["causes"]
    assert 1e-4 < cause["narrow_error"]["after"] < 1e-2
    page = run(*call, "--format", "html").stdout
    assert "<dt>cost</dt>" in page
    assert "<dd>undone, the relative error" in page
    annotations = run(*call, "--format", "github").stdout
    assert "undone, the relative error" in annotations


def test_cost_measures_the_jitted_functions_of_a_script(run):
    result = run("train.py", "--cost", "--format", "json", "--", "2")
    assert result.exit_code == 0, result.stderr
    step, apply = json.loads(result.stdout.removeprefix("done\n"))["functions"]
    assert [each["function"] for each in (step, apply)] == ["step", "apply"]
    assert all("narrow_error" in cause for cause in (*step["causes"], *apply["causes"]))


def test_cost_without_a_floating_result_is_an_error_for_functions_and_a_note_for_scripts(run, tmp_path):
    (tmp_path / "counts.py").write_text(
        "import jax, jax.numpy as jnp\n"
        "@jax.jit\ndef count(x, w):\n    return jnp.argmax(x * w)\n"
        "if __name__ == '__main__':\n    count(jnp.ones(4, 'bfloat16'), jnp.ones(4))\n"
    )
    result = run("counts:count", "--args", "bf16[4], f32[4]", "--cost")
    sys.modules.pop("counts", None)
    assert result.exit_code == 2
    assert "promotion_costs needs a function with a floating-point result" in result.stderr
    result = run("counts.py", "--cost")
    assert result.exit_code == 0
    assert "the errors of count(bfloat16[4], float32[4]) are left out" in result.stderr
    assert "bytes more in values" in result.stdout
