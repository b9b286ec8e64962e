"""The generated pages are reproducible, complete and correct."""

import ast
import itertools
import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import supremum
from conformance.array_departures import ARRAY_DEPARTURES
from conformance.departures import DEPARTURES
from generate import migration_pages as migrated
from generate import rule_pages
from generate.api import api_pages
from generate.changes import answer_of, changes, types_of, with_number, written_pairs
from generate.coverage import missing_names
from generate.departing import departures_page
from generate.docstrings import data_docstring, literal
from generate.example import output_of, program
from generate.markup import kinds_css
from generate.matrix import matrix_page
from generate.migrations import MIGRATIONS
from generate.operation_groups import operation_groups
from generate.outcomes import SUMS, sums_table
from generate.pictures import lattice_files
from generate.public import MODULES, homes, names_of
from generate.question import question_table
from generate.readme import relinked
from generate.site import write_site
from generate.surprise import answered, outcome
from generate.surprises import SURPRISES
from supremum import rules
from supremum.analysis.comparison import compare
from supremum.analysis.inferred_lattice import NoLattice, order_of
from supremum.analysis.tables import STANDARD_TYPES, rule_table, short_name, style_of, with_short_names
from supremum.formats import as_format
from supremum.operands import WEAK_NAMES
from supremum.operations import TABLED
from supremum.render.svg import PALETTE
from supremum.rules.names import HOMES, JAX_ALIASES
from test_public_names import PACKAGES

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


# Each test computes only the pages that it looks at; `make docs` computes all.
rule_page, migration_pages = cache(rule_pages.rule_page), cache(migrated.migration_pages)
reference, pictures = cache(api_pages), cache(lattice_files)
_WRITE = """
import sys
from generate.api import api_pages
from generate.departing import departures_page
from generate.migration_pages import migration_page
from generate.migrations import MIGRATIONS
from generate.rule_pages import rule_page
pages = [api_pages(), migration_page(MIGRATIONS[0]), departures_page(), rule_page("numpy-legacy"), rule_page("torch")]
sys.stdout.write(repr(pages))
"""


@pytest.mark.slow
def test_another_process_writes_equal_pages():
    paths = os.pathsep.join(map(str, (ROOT / "src", ROOT / "tests", DOCS)))
    found = subprocess.run(
        [sys.executable, "-c", _WRITE], capture_output=True, text=True, check=True,
        env=os.environ | {"PYTHONHASHSEED": "7", "PYTHONPATH": paths},
    )  # fmt: skip
    move = migrated.migration_page(MIGRATIONS[0])
    here = [reference(), move, departures_page(), rule_page("numpy-legacy"), rule_page("torch")]
    assert ast.literal_eval(found.stdout) == here


@pytest.mark.slow
@pytest.mark.parametrize("name", HOMES)
def test_every_rule_set_has_a_page_with_its_source_table_surprises_and_departures(name):
    page = rule_page(name)
    value = rules.get_rules(name)
    assert value.source in page
    assert value.summary[1:] in page
    assert page.count("<td class=") == len(STANDARD_TYPES) ** 2 + len(SUMS)
    assert sums_table([name]) in page
    for surprise in SURPRISES[name]:
        assert f"**{outcome(surprise.decide(name))}**\n\n{surprise.sentence}" in page
    names = (name, "jax") if name in JAX_ALIASES["jax"] else (name,)
    expected = [row.reason for row in (*DEPARTURES, *ARRAY_DEPARTURES) if row.rules in names]
    assert [reason for reason in expected if reason not in page] == []
    assert ("None: every cell" in page) == (expected == [])
    assert f"\n{name}\n" in rule_pages.rules_index()  # in the table of contents


@pytest.mark.slow
@pytest.mark.parametrize(("name", "row"), [("torch", "| `i8` | `i64` | `i64` | - |"), ("tf-off", "| `i8` | `i8` |")])
def test_each_page_has_a_table_of_reductions(name, row):
    section = rule_page(name).split("## Reductions")[1].split("## Departures")[0]
    assert row in section
    assert section.count("| `") >= 14


@pytest.mark.slow
def test_the_page_of_departures_has_every_departure():
    rows = [line for line in departures_page().splitlines() if line.startswith("| `")]
    assert len([row for row in rows if row.count("|") == 8]) == len(DEPARTURES) + len(ARRAY_DEPARTURES)


@pytest.mark.slow
def test_the_first_page_has_the_answers_of_every_rule_set():
    page = question_table()
    for name in HOMES:
        row = page.split(f">{name}</a>")[1].split("</tr>")[0]
        cells = re.findall(r'<td class="kind-(\w+)"[^>]*>([^<]*)<', row)
        asked = [("int32", "float16"), ("int8", 1000), ("int8", 1.5), ("int8", "uint8")]
        for (style, shown), operands in zip(cells, asked, strict=True):
            decision = supremum.explain(*operands, operation="add", rules=name)
            assert (style, shown) == (style_of(decision), with_short_names(outcome(decision)))
    # JAX and NumPy 2 differ in what they do with 1000: a legend explains both colours.
    assert '<span class="kind-changed">a number changes its value</span>' in page
    assert "i8, 1000 wraps to -24" in page


@pytest.mark.slow
def test_every_kind_has_a_colour_in_light_and_in_dark():
    sheet = kinds_css()
    for style, (light, dark) in PALETTE.items():
        assert f"--kind-{style}: {light};" in sheet.splitlines()[0]
        assert sheet.count(f"--kind-{style}: {dark};") == 2
        assert f".kind-{style} {{ background: var(--kind-{style}); }}" in sheet


def test_a_link_to_a_missing_page_is_not_rewritten():
    """So that `make docs` fails, which checks the links of all pages."""
    assert relinked("[x](nowhere.md)", "docs", "casts.md") == "[x](nowhere.md)"
    assert relinked("[x](../src/x.py)", "docs", "casts.md") == "[x](../src/x.py)"


@pytest.mark.slow
def test_every_public_name_has_a_page():
    packages = [package for package in PACKAGES if package != "supremum.cli"]  # it is for the command only
    assert set(packages) <= set(MODULES)
    described = {
        f"{path.removeprefix('api/').removesuffix('.rst')}.{line.rpartition(':: ')[2].rpartition('.')[2]}"
        for path, text in reference().items()
        for line in text.splitlines()
        if re.match(r"\.\. (auto\w+|data):: ", line)
    }
    assert missing_names(described) == []
    for package in packages:
        names = [each.name for each in names_of(package)]
        assert names, package
        assert [name for name in names if name not in reference()[f"api/{package}.rst"]] == []


def test_a_public_name_without_a_page_is_reported():
    every = set(homes().values())
    assert missing_names(every - {"supremum.rules.TORCH", "supremum.nn.Dense"}) == [
        "supremum.nn.Dense", "supremum.rules.TORCH",
    ]  # fmt: skip


@pytest.mark.slow
def test_every_constant_has_a_docstring():
    page = "\n".join(reference().values())
    assert page.count("\n.. data:: ") > 30
    assert re.findall(r"\.\. data:: (\w+)\n\n *\n", page) == []
    joined = next(each for each in names_of("supremum.lattice") if each.name == "Join")
    assert data_docstring("Join", joined.value).startswith("A binary operation")
    assert data_docstring("Join", object()) == ""


def test_only_backticks_have_a_meaning_in_docstrings():
    assert literal("a | b, *c*, `d*` and e_") == r"a \| b, \*c\*, ``d*`` and e\_"
    assert literal(">>> f(*x)\n'`'") == ">>> f(*x)\n'`'"
    assert literal("| a | b |\n|---|---|\n| `x` | 1 |").splitlines()[3:] == [
        "   * - a", "     - b", "   * - ``x``", "     - 1",
    ]  # fmt: skip


@pytest.mark.parametrize("move", MIGRATIONS, ids=lambda move: move.page)
def test_migrations_count_what_the_comparison_counts(move):
    pairs = 0
    for operation in ("result_type", "add", "divide", "pow"):
        counted = {}
        for each in changes(move.before, move.after, operation):
            counted[each.how] = counted.get(each.how, 0) + len(each.pairs)
        comparison = compare(move.before, move.after, operation, types_of(move.before))
        expected = [how for pair, how in comparison.differing.items() if not set(pair) <= set(WEAK_NAMES)]
        assert counted == {how: expected.count(how) for how in expected}
        for each in changes(move.before, move.after, operation):
            for pair in each.pairs:
                answers = (table.decisions[pair] for table in (comparison.left, comparison.right))
                assert (each.before, each.after) == tuple(map(answered, answers))
                pairs += 1
    assert pairs > 100


@pytest.mark.slow
@pytest.mark.parametrize("move", MIGRATIONS, ids=lambda move: move.page)
def test_migrations_show_what_the_program_prints(move):
    page = migration_pages()[f"migration/{move.page}.md"]
    source = program(move.before, move.arrays, move.expressions)
    assert f'with supremum.use_rules("{move.before}"):' in source
    assert source in page
    found = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=True)
    assert found.stdout.strip() in page
    assert found.stderr == ""
    assert output_of(program(move.after, move.arrays, move.expressions)) in page


_JAX = {
    "add": jnp.add, "divide": jnp.divide, "floor_divide": jnp.floor_divide, "remainder": jnp.remainder, "pow": jnp.pow,
}  # fmt: skip
_TO_JAX = [move.before for move in MIGRATIONS if move.after == "jax-x64"]


@pytest.mark.slow
@pytest.mark.parametrize("before", _TO_JAX)
def test_the_suggested_casts_keep_the_old_dtype_in_jax(before):
    numbers = {"int*": 1, "float*": 1.0, "complex*": 1j}
    tried = 0
    with jax.enable_x64(True):
        for operation, function in _JAX.items():
            for change in changes(before, "jax-x64", operation):
                # JAX computes powers of bools in int32, whatever is cast.
                has_no_cast = change.before in ("refused", "complex32") or (operation, change.before) == ("pow", "bool")
                assert (change.to_type == "") == has_no_cast, change
                if not change.to_type:
                    continue
                a, b = (numbers.get(x) or jnp.ones(1, as_format(x).dtype) for x in change.pairs[0])
                assert str(function(a, b).dtype) == change.after
                names = {"a": a, "b": b, "np": np}
                for typed in change.to_type.split(" and "):
                    letter = typed.removeprefix("np.asarray(")[0]
                    names[letter] = eval(typed, dict(names))
                assert str(function(names["a"], names["b"]).dtype) == change.before
                tried += 1
    assert tried


def test_written_pairs_have_every_pair_and_both_orders_once():
    found = changes("numpy", "jax-x64", "divide")
    assert len(found) > 5
    for change in found:
        written = {
            (a, b)
            for part in written_pairs(change.pairs).replace("`", "").split("; ")
            for a in part.split(" with ")[0].split()
            for b in part.split(" with ")[1].split()
        }
        assert written | {(b, a) for a, b in written} == {(short_name(a), short_name(b)) for a, b in change.pairs}
    assert with_number(("int8", "int*"))
    assert not with_number(("int*", "int*"))


def test_write_site_keeps_unchanged_files_and_removes_others(tmp_path):
    write_site({"a/b.md": "1", "c.md": "2"}, tmp_path)
    (tmp_path / "a/old.md").write_text("x")
    before = (tmp_path / "c.md").stat().st_mtime_ns
    write_site({"a/b.md": "3", "c.md": "2"}, tmp_path)
    assert {path.name: path.read_text() for path in tmp_path.rglob("*.md")} == {"b.md": "3", "c.md": "2"}
    assert (tmp_path / "c.md").stat().st_mtime_ns == before


@pytest.mark.slow
@pytest.mark.parametrize("name", HOMES)
def test_a_lattice_has_two_drawings_and_another_rule_set_a_counterexample(name):
    page, drawn = rule_page(name), [path for path in pictures() if f"lattices/{name}-" in path]
    found = order_of(name, "standard")
    if isinstance(found, NoLattice):
        assert drawn == []
        assert str(found.counterexample) in page
        return
    light, dark = (pictures()[f"static/lattices/{name}-{theme}.svg"] for theme in ("light", "dark"))
    assert len(drawn) == 2
    assert all(f"../../{path.replace('static', '_static', 1)}" in page for path in drawn)
    assert light != dark
    assert light.count("@media not all") == dark.count("@media all") == 1
    lit = re.findall(r"--path (\S+) (\S+)`", page)
    joins = (found.lattice.join(*pair) not in (None, *pair) for pair in itertools.combinations(found.lattice.nodes, 2))
    assert len(lit) == any(joins)
    assert all(found.lattice.join(*pair) not in (None, *pair) for pair in lit)


@pytest.mark.slow
def test_the_matrix_has_the_distance_of_every_two_rule_sets():
    cells = re.findall(r'title="([\w-]+) and ([\w-]+)">(\d+)<', matrix_page())
    assert len(cells) == len(HOMES) * (len(HOMES) - 1)
    for a, b, count in cells[::7]:
        assert int(count) == len(compare(a, b).differing)


@pytest.mark.slow
@pytest.mark.parametrize("move", MIGRATIONS, ids=lambda move: move.page)
def test_each_migration_links_to_both_tables(move):
    assert (
        sums_table([move.before, move.after, *(name for name, _ in move.settings)])
        in migration_pages()[f"migration/{move.page}.md"]
    )
    path = f"tables/{move.before}-{move.after}.html"
    assert f'href="../../_static/{path}"' in migration_pages()[f"migration/{move.page}.md"]
    assert migration_pages()[f"static/{path}"].startswith("<!doctype html>")


@pytest.mark.slow
@pytest.mark.parametrize("move", MIGRATIONS, ids=lambda move: move.page)
def test_the_tables_of_counts_match_the_changes(move):
    section = migration_pages()[f"migration/{move.page}.md"].split("## How much changes")[1].split("\n## ")[0]
    rows_seen = 0
    for title, of_numbers in (("Arrays:", False), ("With a Python number:", True)):
        counted = {}
        if f"\n{title}\n" in section:
            table = section.split(f"\n{title}\n")[1].strip().split("\n\n")[0]
            head, _, *rows = ([cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines())
            for operation, *cells in rows:
                named = zip(head[1:], cells, strict=True)
                counted[operation.strip("`")] = {column: int(cell) for column, cell in named if cell}
        rows_seen += len(counted)
        for operation in migrated.OPERATIONS:
            expected = {}
            for change in changes(move.before, move.after, operation):
                for pair in change.pairs:
                    if with_number(pair) == of_numbers:
                        expected[change.how] = expected.get(change.how, 0) + 1
            assert counted.get(operation, {}) == expected, operation
    assert rows_seen >= 10


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", ["numpy", "tf-safe"])
def test_operations_in_a_group_have_equal_answers(name):
    groups = operation_groups(name)
    listed = [operation for group in groups for operation in group.operations]
    assert sorted(listed) == sorted(TABLED)
    common = rule_table(name).decisions
    for group in groups:
        tables = [rule_table(name, operation).decisions for operation in group.operations]
        assert all(answer_of(table[pair]) == answer_of(tables[0][pair]) for table in tables for pair in common)
        both = [(answer_of(tables[0][pair]), answer_of(decision)) for pair, decision in common.items()]
        assert group.refused == sum(ours == "refused" and met != "refused" for ours, met in both)
        assert group.accepted == sum(ours != "refused" and met == "refused" for ours, met in both)
        assert group.otherwise == sum("refused" not in pair and pair[0] != pair[1] for pair in both)
        if group.example:
            a, b, ours, met = group.example
            assert (answer_of(tables[0][a, b]), answer_of(common[a, b])) == (ours, met)
