"""The report on casts: totals, filters, text, HTML, JSON and explanations."""

import io
import json

import jax.numpy as jnp
import pytest
from jax import lax
from rich.console import Console

from supremum.errors import ArgumentError
from supremum.tracing import CastReport, CastTotal, casts

X, Y, COUNTS = jnp.ones(8, jnp.bfloat16), jnp.ones(8), jnp.ones(4, jnp.int32)


def program(x, y, i):
    a = jnp.tile(x, 8) * y[0]
    b = lax.scan(lambda c, _: (c, x + y), 0, length=3)[1]
    c = lax.while_loop(lambda c: True, lambda c: c - i.astype(jnp.float16).sum(), jnp.float16(3))
    return a, b, c, jnp.mean(x), [y.astype(jnp.bfloat16) for _ in range(2)]


REPORT = casts(program)(X, Y, COUNTS)


def test_casts_that_move_the_most_bytes_come_first():
    assert [cast.total_bytes for cast in REPORT] == sorted((c.total_bytes for c in REPORT), reverse=True)
    assert (REPORT[0].shape, REPORT[0].total_bytes) == ((64,), 64 * 6)
    assert (REPORT[1].expression, REPORT[1].total_bytes) == ("x + y", 3 * 8 * 6)


def test_totals_sum_casts_by_class_and_line():
    assert REPORT.total == CastTotal(len(REPORT), sum(cast.total_bytes for cast in REPORT))
    assert REPORT.by_class["promotion"] == CastTotal(2, 384 + 144)
    assert set(REPORT.by_class) == {"promotion", "explicit", "library"}
    assert sum(total.casts for total in REPORT.by_line.values()) == len(REPORT)
    first = program.__code__.co_firstlineno
    assert REPORT.by_line[f"{__file__}:{first + 1}"] == CastTotal(1, 384)
    assert next(iter(REPORT.by_line)) == f"{__file__}:{first + 1}"


def test_filters_select_casts():
    assert {cast.kind for cast in REPORT.promotion} == {"promotion"}
    assert {str(cast.target) for cast in REPORT.widening} == {"float32"}
    assert {(str(c.source), str(c.target)) for c in REPORT.lossy} == {
        ("float32", "bfloat16"), ("float32", "float16"), ("int32", "float16")
    }  # fmt: skip
    assert len(REPORT.weak) == 0
    assert [cast.weak for cast in casts(lambda x, n: x * n)(X, 3).weak] == [True]
    assert len(REPORT.promotion.widening) == 2


def test_text_has_the_causes_and_then_tables_of_the_others_and_of_totals():
    text = str(REPORT)
    first = program.__code__.co_firstlineno
    assert text.startswith(f"{len(REPORT)} casts, ")
    assert f"\n\n2 casts come from these 2 lines:\n\ntest_report.py:{first + 1}  jnp.tile(x, 8) * y[0]\n" in text
    assert "  cast 0: promotion, bfloat16 -> float32\n  fix: jnp.tile(x, 8).astype('float32') to compute" in text
    lines = text.splitlines()
    titles = [lines.index(title) for title in ("steps of libraries", "asked for", "by class", "by line")]
    assert titles == sorted(titles)
    assert max(map(len, lines[: titles[0]])) <= 80
    # Casts that look the same share a row, and loops of unknown length have a question mark.
    assert sum("y.astype(jnp.bfloat16)" in line and "2 x 1" in line for line in lines) == 1
    assert sum(line.endswith("i.astype(jnp.float16)") and " ? " in line for line in lines) == 1
    assert str(casts(jnp.sin)(Y)) == "0 casts"


def test_long_reports_are_cut():
    report = casts(lambda y: [y[:n].astype(jnp.bfloat16) for n in range(1, 60)])(jnp.tile(Y, 9))
    assert str(report).count("+19 ") == 1
    assert report.to_html().count("<tr>") == 60 + 2 + 2  # totals of one class, of one line


def test_rich_prints_the_tables_in_colour():
    shown = []
    for colours in (None, "standard"):
        console = Console(file=io.StringIO(), width=200, color_system=colours, force_terminal=colours is not None)
        console.print(REPORT)
        shown.append(console.file.getvalue())
    words = [text.split() for text in (shown[0].replace("─", ""), str(REPORT))]
    assert words[0] == words[1]
    assert "\x1b[32m" in shown[1]  # fixes are green
    console = Console(file=io.StringIO(), width=60)
    console.print(REPORT, CastReport(()))
    assert max(map(len, console.file.getvalue().splitlines())) <= 60


def test_html_is_escaped():
    report = casts(lambda x, y: x < y)(X, Y)
    assert "x &lt; y" in report.to_html()
    assert "by class" in report.to_html()
    assert "by line" in report.to_html()
    assert report._repr_html_() == report.to_html()


def test_json_has_everything():
    data = json.loads(REPORT.to_json())
    assert data == json.loads(json.dumps(REPORT.to_dict()))
    assert len(data["casts"]) == data["total"]["casts"] == len(REPORT)
    first = data["casts"][1]
    assert (first["from"], first["to"], first["class"], first["times"]) == ("bfloat16", "float32", "promotion", 3)
    assert [step["expression"] for step in first["path"]][-1] == "x + y"
    assert data["casts"][0]["bytes"] == 384


def test_explain_shows_one_cast():
    text = str(REPORT.explain(1))
    for part in (
        "bfloat16[8] -> float32",
        "[promotion]",
        "x + y",
        "called from",
        "(program)",
        "add(bfloat16, float32)",
    ):
        assert part in text
    assert "x + y" in REPORT.explain(1)._repr_html_()
    with pytest.raises(ArgumentError, match=f"There is no cast 99: this report has {len(REPORT)} casts"):
        REPORT.explain(99)


def test_an_empty_report_has_no_tables():
    empty = CastReport(())
    assert (len(empty), empty.total, empty.by_class, empty.by_line) == (0, CastTotal(0, 0), {}, {})
    assert (empty.causes, len(empty.others)) == ((), 0)
    assert "0 casts" in empty.to_html()


def test_files_with_the_same_name_are_shown_with_their_paths(tmp_path):
    reports = []
    for folder in ("one", "two"):
        path = tmp_path / folder / "model.py"
        path.parent.mkdir()
        path.write_text("def f(x, y):\n    return x + y\n")
        names = {}
        exec(compile(path.read_text(), str(path), "exec"), names)
        reports.append(names["f"])
    text = str(casts(lambda x, y: [f(x, y) for f in reports])(X, Y))
    assert "one/model.py:2" in text
    assert "two/model.py:2" in text
