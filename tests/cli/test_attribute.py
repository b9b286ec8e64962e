"""`supremum attribute`: functions and scripts, as text, JSON, page and picture, and errors."""

import json

COMMAND = ("attribute", "--policy", "declared")
PROGRAMS = {
    "absorbing.py": """
    import jax, jax.numpy as jnp

    @jax.jit
    def total(x):
        return jnp.sum(x + 1e-3)

    def make_args():
        return jnp.ones(4, "bfloat16")

    if __name__ == "__main__":
        total(make_args())
"""
}


def test_a_function_is_attributed_as_text_and_page(run, tmp_path):
    call = "absorbing:total", "--args", "absorbing:make_args"
    found = run(*call)
    assert found.exit_code == 0
    assert "absorbing.py:6 `x + 1e-3`: an addition that absorbs" in " ".join(found.output.split())
    assert run(*call, "-o", "page.html").exit_code == 0
    assert "absorbed addition" in (tmp_path / "page.html").read_text()


def test_the_jitted_functions_of_a_script_are_attributed_as_json(run, tmp_path):
    found = run("absorbing.py", "-o", "found.json")
    assert found.exit_code == 0
    (only,) = json.loads((tmp_path / "found.json").read_text())["functions"]
    assert only["rows"][0]["effect"] == "absorbed addition"


def test_a_part_that_the_result_does_not_have_is_an_error(run, tmp_path):
    found = run("absorbing:total", "--args", "absorbing:make_args", "--result", "3")
    assert found.exit_code != 0
