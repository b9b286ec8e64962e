"""`supremum profile`: functions and scripts, as table, JSON, page and picture, and errors."""

import json

import jax
import pytest

COMMAND = ("profile",)
SCRIPT = """
    import sys
    from functools import partial

    import jax
    import jax.numpy as jnp


    @partial(jax.jit, static_argnames="power")
    def step(x, power=1):
        return jnp.exp(x * power).sum()


    @jax.jit
    def index(x):
        return jnp.argmax(x)


    for _ in range(3):
        step(jnp.arange(4.0), power=int(sys.argv[1]))
    index(jnp.ones(3))
    step(jnp.ones(2))
    print("done")
"""
MODULE = """
    import jax, jax.numpy as jnp


    def loss(w, x):
        with jax.named_scope("head"):
            y = x @ w["w"]
        return jnp.exp(y * 100).sum()


    def count(x, n, key):
        return x + n.sum() + jax.random.normal(key, x.shape)


    def make_args():
        return {"w": jnp.full((3, 2), 1 / 3)}, jnp.ones((2, 3)) / 3


    def wrong(x):
        return x + jnp.ones(3)
"""


PROGRAMS = {"train.py": SCRIPT, "losses.py": MODULE}


@pytest.fixture(autouse=True)
def _wide_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")


def test_a_script_profiles_the_first_call_of_each_program(run):
    jit = jax.jit
    result = run("train.py", "--formats", "float16", "--", "9")
    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith("done\nstep(float32[4]): 3 operations, float16\n")
    assert "jnp.exp(x * power)" in result.stdout
    assert "50% inf" in result.stdout
    assert "\n\nstep(float32[2]): 3 operations, float16\n" in result.stdout
    assert "index(float32[3]) is left out: profile needs a function with a floating-point result" in result.stderr
    assert jax.jit is jit


def test_a_function_gets_random_values_for_described_arrays(run):
    result = run("losses:count", "--args", "f32[1000], i32[3], key[]", "--formats", "f16,bf16", "--format", "json")
    assert result.exit_code == 0, result.stderr
    (function,) = json.loads(result.stdout)["functions"]
    assert function["function"] == "count(f32[1000], i32[3], key[])"
    assert function["formats"] == ["float16", "bfloat16"]
    last = next(row for row in function["rows"] if row["primitive"] == "add" and row["values"] == 1000)
    assert sum(last["exponents"].values()) == 1000
    assert 2 < last["largest"] < 10


def test_arguments_of_a_function_and_a_scope(run):
    result = run("losses:loss", "--args", "losses:make_args", "--formats", "float16", "--scope", "head")
    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith("loss(losses:make_args): 1 operation, float16\n")
    assert "exp" not in result.stdout.partition("\n\n")[2].replace("expression", "")


def test_products_are_those_of_a_device(run):
    found = {}
    for options in ([], ["--device", "tpu"]):
        result = run("losses:loss", "--args", "losses:make_args", "--scope", "head", "--format", "json", *options)
        assert result.exit_code == 0, result.stderr
        (row,) = json.loads(result.stdout)["functions"][0]["rows"]
        found[bool(options)] = row["largest"]
    assert found[False] == pytest.approx(1 / 3)
    assert found[True] != found[False]
    assert found[True] == pytest.approx(1 / 3, rel=1e-2)


@pytest.mark.parametrize("suffix", ["txt", "json", "html", "svg"])
def test_the_suffix_of_the_output_sets_the_format(run, tmp_path, suffix):
    result = run("losses:loss", "--args", "losses:make_args", "-o", f"loss.{suffix}")
    assert (result.exit_code, result.stdout) == (0, ""), result.stderr
    text = (tmp_path / f"loss.{suffix}").read_text()
    start = {"txt": "loss(losses:make_args)", "json": "{", "html": "<!doctype html>", "svg": "<svg"}[suffix]
    assert text.lstrip().startswith(start)
    assert "exp" in text


def test_output_for_programs_has_nothing_that_the_script_prints(run):
    result = run("train.py", "--format", "json", "--", "1")
    assert [each["function"] for each in json.loads(result.stdout)["functions"]] == [
        "step(float32[4])", "step(float32[2])"
    ]  # fmt: skip


@pytest.mark.parametrize("width", ["40", "80"])
def test_text_fits_narrow_terminals(run, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", width)
    result = run("losses:loss", "--args", "losses:make_args")
    assert max(map(len, result.stdout.splitlines()[1:])) <= int(width)


def test_a_picture_shows_one_function(run):
    result = run("train.py", "--format", "svg", "--", "1")
    assert result.exit_code == 2
    assert result.stderr.splitlines()[-1].startswith("supremum: An SVG shows one function, and this program has 2")


def test_an_error_of_the_program_ends_with_the_user_s_frame(run):
    result = run("losses:wrong", "--args", "f32[2]")
    assert result.exit_code == 1
    assert result.stderr.startswith("Traceback")
    assert "return x + jnp.ones(3)" in result.stderr
    assert "supremum/cli" not in result.stderr
