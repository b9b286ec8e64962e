"""`supremum nans`: functions and scripts, as text, JSON and page; its exit codes."""

import json

COMMAND = ("nans",)
MODULE = """
import jax, jax.numpy as jnp

def entropy(p):
    return -jnp.sum(p * jnp.log(p))

def masked(p):
    return -jnp.sum(jnp.where(p > 0, jnp.log(p), 0.0))

def index(p):
    return jnp.argmax(p)

def probabilities():
    return (jnp.array([0.5, 0.5, 0.0]),)
"""
SCRIPT = """
import jax, jax.numpy as jnp

step = jax.jit(lambda x: x - 0.5 / jnp.sqrt(x), donate_argnums=0)
index = jax.jit(jnp.argmax)
x = jnp.array([1.0, 4.0])
for _ in range(3):
    x = step(x)
    index(x)
print("trained")
"""


PROGRAMS = {"nans_of_entropy.py": MODULE, "train.py": SCRIPT}
ARGS = "--args", "nans_of_entropy:probabilities"


def test_a_function_whose_result_is_not_finite_fails(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    result = run("nans_of_entropy:entropy", *ARGS)
    assert result.exit_code == 1
    assert "1 infinity from jnp.log(p)  (nans_of_entropy.py:5)" in result.stdout
    assert "the result is not finite: entropy" in result.stderr
    assert run("nans_of_entropy:entropy", "--allow", *ARGS).exit_code == 0


def test_a_masked_origin_does_not_fail(run):
    result = run("nans_of_entropy:masked", *ARGS, "--format", "json")
    assert result.exit_code == 0
    (function,) = json.loads(result.stdout)["functions"]
    assert [origin["reached_output"] for origin in function["origins"]] == [False]


def test_a_script_is_looked_into_at_the_first_call_whose_result_is_not_finite(run, tmp_path):
    result = run("train.py", "-o", "origins.html")
    assert result.exit_code == 1
    assert "is left out: first_nonfinite needs a function with a floating-point result" in result.stderr
    page = (tmp_path / "origins.html").read_text()
    assert "the square root of a negative number" in page  # in the third step
    assert "https://" not in page
