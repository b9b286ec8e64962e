"""User-defined names are escaped in every HTML, SVG and Markdown output."""

import ast
import importlib.util
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import jax.numpy as jnp
import pytest
from markdown_it import MarkdownIt
from typer.testing import CliRunner

import supremum
from browser import open_browser
from supremum import RuleSet, explain, explain_cast, nn
from supremum.analysis import diagrams
from supremum.analysis.comparison import compare, compare_groupings
from supremum.analysis.tables import rule_table
from supremum.cli.app import app
from supremum.numerics import (
    attribute,
    attribution_page,
    first_nonfinite,
    nonfinite_page,
    products,
    profile,
    profile_page,
)
from supremum.render import (
    side_by_side_to_html,
    side_by_side_to_svg,
    table_to_html,
    table_to_markdown,
)
from supremum.rules import NUMPY
from supremum.tracing import casts

NAME = "<img src=x onerror=bad()>'\"`|*_&lt;[a](b)"
FILE = "<img src=x onerror=bad()>'`&.py"
SOURCE = f"""
import jax, jax.numpy as jnp

def f(x):
    with jax.named_scope({NAME!r}):
        return x.astype("float32") + {{{NAME!r}: 1.5}}[{NAME!r}]  # {NAME}

def product(x):
    with jax.named_scope({NAME!r}):
        return jnp.sum(x @ jnp.outer(x, {{{NAME!r}: x}}[{NAME!r}]) * x)  # {NAME}

f.__name__ = f.__qualname__ = {NAME!r}
if __name__ == "__main__":
    jax.jit(f)(jnp.ones(2, "bfloat16"))
"""
EDGES = {"int8": ["int16"], "int16": ["float32"], "uint8": ["int16"]}


@pytest.fixture(scope="module")
def documents(tmp_path_factory):
    """All documents, by the name of the function that makes them."""
    script = tmp_path_factory.mktemp("names") / FILE
    script.write_text(SOURCE)
    spec = importlib.util.spec_from_file_location("names", script)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    x = jnp.ones(2, "bfloat16")
    report = casts(module.f)(x)
    found = profile(module.f, histogram=True)(x)
    origins = first_nonfinite(module.product)(x * 3e38)
    attribution = attribute(module.product, "declared")(x * 1.01)
    rules = RuleSet.from_lattice(NAME, EDGES, summary=NAME)
    other = RuleSet.from_lattice(NAME + "2", EDGES | {"uint8": ["float32"]}, summary=NAME)
    types = "int8,int16,uint8,float32"
    drawing = rule_table(rules, types=types).drawing()
    comparison = compare(rules, other, types=types)
    pair = comparison.side_by_side(compare_groupings(rules, other, comparison.left.types))
    casting = replace(NUMPY, name=NAME)
    layer = nn.SequentialNetwork([nn.Dense(2)])
    setattr(layer, NAME, nn.Dense(2))
    layer(x)
    command = CliRunner().invoke(app, ["casts", str(script), "--format", "html"])
    assert command.exit_code == 0
    return {
        "CastReport.to_html": report.to_html(),
        "CastReport._repr_html_": report._repr_html_(),
        "Profile._repr_html_": found._repr_html_(),
        "Profile.to_svg": found.to_svg(),
        "profile_page": profile_page({NAME: found}),
        "NonfiniteOrigins._repr_html_": origins._repr_html_(),
        "nonfinite_page": nonfinite_page({NAME: origins}),
        "Attribution._repr_html_": attribution._repr_html_(),
        "Attribution.to_svg": attribution.to_svg(),
        "attribution_page": attribution_page({NAME: attribution}),
        "Products._repr_html_": products(module.product)(x)._repr_html_(),
        "Explanation._repr_html_": report.explain(0)._repr_html_(),
        "_written": command.stdout,
        "Decision._repr_html_": explain("int8", "uint8", rules=rules)._repr_html_(),
        "Decision._repr_html_ of a refusal": explain("int8", "float64", rules=rules)._repr_html_(),
        "CastOutcome._repr_html_": explain_cast("int8", "uint8", rules=casting)._repr_html_(),
        "Summary._repr_html_": layer.summary()._repr_html_(),
        "table.table_to_html": table_to_html(drawing),
        "table.table_to_markdown": table_to_markdown(drawing),
        "side_by_side.side_by_side_to_html": side_by_side_to_html(pair),
        "side_by_side.side_by_side_to_svg": side_by_side_to_svg(pair),
        "diagrams.lattice_svg": diagrams.lattice_svg(rules, types=types),
    }


def kind_of(name):
    return next(kind for kind in ("markdown", "svg", "html") if kind in name or kind == "html")


def document_functions():
    """Yield the functions of the library that make HTML, SVG or Markdown."""
    for path in sorted(Path(supremum.__file__).parent.rglob("*.py")):
        for node in ast.parse(path.read_text()).body:
            for each in [node] if isinstance(node, ast.FunctionDef) else getattr(node, "body", []):
                if isinstance(each, ast.FunctionDef) and each.name.strip("_").split("_")[-1] in (
                    "html",
                    "svg",
                    "markdown",
                ):
                    yield f"{node.name}.{each.name}" if each is not node else f"{path.stem}.{each.name}"


# Functions that make parts of the documents above, or receive finished documents.
PARTS = {
    "document.columns_to_html", "document.document_to_html", "hasse.hasse_to_svg", "columns.to_html", "table._markdown",
    "exponents.exponents_to_html", "exponents.legend_to_html", "measured_programs._only_svg", "RowTable.to_html",
}  # fmt: skip


def test_every_document_function_is_covered(documents):
    assert set(document_functions()) - PARTS <= documents.keys()


def html_of(documents, name):
    found = documents[name]
    return MarkdownIt("commonmark").enable("table").render(found) if kind_of(name) == "markdown" else found


NAMES = [
    "CastReport.to_html", "CastReport._repr_html_", "Profile._repr_html_", "Profile.to_svg", "profile_page",
    "Explanation._repr_html_", "_written",
    "Decision._repr_html_", "Decision._repr_html_ of a refusal", "CastOutcome._repr_html_",
    "Attribution._repr_html_", "Attribution.to_svg", "attribution_page", "Products._repr_html_",
    "NonfiniteOrigins._repr_html_", "nonfinite_page",
    "Summary._repr_html_",
    "table.table_to_html", "table.table_to_markdown", "side_by_side.side_by_side_to_html",
    "side_by_side.side_by_side_to_svg", "diagrams.lattice_svg",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_names_are_escaped(documents, name):
    found = html_of(documents, name)
    assert "onerror" in found  # the name is in the document
    assert "<img" not in found
    if kind_of(name) == "svg":
        ET.fromstring(found)


def test_names_do_not_break_markdown_columns(documents):
    rendered = html_of(documents, "table.table_to_markdown")
    head, *rows = [row.count("<th") + row.count("<td") for row in rendered.split("<tr>")[1:]]
    assert set(rows) == {head}


def test_names_are_quoted_in_dot():
    rules = RuleSet.from_lattice(NAME + "\\", EDGES)
    drawn = diagrams.lattice_dot(rules)
    assert NAME.replace('"', '\\"') in drawn
    for line in drawn.splitlines():
        assert line.replace('\\"', "").count('"') % 2 == 0


@pytest.mark.slow
def test_a_browser_runs_no_script_from_names(documents):
    with open_browser() as browser:
        for name in NAMES:
            page = browser.new_page()
            page.add_init_script("window.bad = () => { window.ran = true }")
            page.set_content(html_of(documents, name))
            assert page.evaluate("window.ran") is None, name
            assert page.locator("img").count() == 0, name
            assert "onerror" in page.content()
            page.close()
