"""Annotations of GitHub's workflows: one for each line that casts, escaped as GitHub's toolkit does."""

from pathlib import Path

import jax.numpy as jnp

from supremum.tracing import casts, github_annotations

X, Y = jnp.ones(4, jnp.bfloat16), jnp.ones(4)


def test_causes_are_warnings_and_forbidden_casts_errors(tmp_path):
    def program(x, y):
        h = x * y
        return h + x, y.astype(jnp.float16)

    report = casts(program)(X, Y)
    lines = github_annotations(report.casts, (), tmp_path).splitlines()
    first = program.__code__.co_firstlineno
    assert len(lines) == 1
    assert lines[0].startswith(
        f"::warning file={__file__},line={first + 1},title=promotion%3A bfloat16 to float32::x * y%0A"
    )
    assert "1 cast follows%0Afix: " in lines[0]
    # A cast that follows makes its cause an error; a cast that was asked for gets an annotation if it is forbidden.
    follows = [cast for cast in report if cast.cause is not None]
    asked = [cast for cast in report if cast.kind == "explicit"]
    lines = github_annotations(report.casts, [*follows, *asked], Path(__file__).parent).splitlines()
    assert [line.partition(",")[0] for line in lines] == ["::error file=test_annotations.py"] * 2
    assert "title=explicit%3A float32 to float16::y.astype(jnp.float16)%0A" in lines[1]


def test_text_is_escaped(tmp_path):
    path = tmp_path / "100%, a:b.py"
    path.write_text("def f(x, y):\n    return x[:2] % y[:2]\n")
    names = {}
    exec(compile(path.read_text(), str(path), "exec"), names)
    (line,) = github_annotations(casts(names["f"])(X, Y).casts, (), tmp_path).splitlines()
    assert line.startswith(
        "::warning file=100%25%2C a%3Ab.py,line=2,title=promotion%3A bfloat16 to float32::x[:2] %25 y[:2]%0A"
    )


def test_no_casts_have_no_annotations(tmp_path):
    assert github_annotations((), (), tmp_path) == ""
