"""The pages on the architecture name files and functions that exist; the walks list files in the order of a call."""

import ast
import re
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from multiprocessing import get_context
from pathlib import Path

import pytest

import count_walks
from generate.architecture import house, layers, without_jax

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src/supremum"
ARCHITECTURE, CALLS, WORDS = ((ROOT / f"docs/{name}.md").read_text() for name in ("architecture", "walks", "words"))


@cache
def the_house():
    return house(ROOT)


def test_every_module_is_in_one_row_of_the_house_with_a_sentence():
    html = the_house()
    modules = re.findall(r"(?:<summary|<p)(?: class=.shaded.)?><code>([\w/.]+)</code> (.+?)(?:</summary>|</p>)", html)
    files = re.findall(r"<tr><td><code>(\S+)</code></td><td>(.*)</td></tr>", html)
    there = {f"{place.parent.name}/" for place in SOURCE.glob("*/__init__.py")}
    there |= {place.name for place in SOURCE.glob("*.py")} - {"__init__.py"}
    assert sorted(name for name, _ in modules) == sorted(there)
    assert len(files) + len(there) == len([*SOURCE.rglob("*.py")]) - 1
    assert len(files) > 200
    assert [name for name, sentence in modules + files if not sentence.endswith((".", "</code>"))] == []


def test_shaded_modules_of_the_house_are_those_without_jax():
    shaded = {
        name.removesuffix(".py").removesuffix("/")
        for name in re.findall(r'class="shaded"><code>(\S+?)</code>', the_house())
    }
    assert shaded == without_jax(ROOT) & {name for row in layers(ROOT) for name in row}
    assert len(shaded) > 10


WALKS = {"result_type(a, b)": "result_type", "casts(f)(x)": "casts", "model.fit(x, y)": "fit_step"}


def listed(walk):
    """The files and functions that the page lists for a walk."""
    section = ARCHITECTURE.split(f"### `{walk}`")[1].split("\n##")[0]
    return re.findall(r"^\d+\. `([\w/]+\.py)`(?:, `([\w.]+)`)?: ", section, flags=re.MULTILINE)


def test_the_page_has_three_walks_of_at_most_twelve_files():
    assert re.findall(r"^### `(.*)`$", ARCHITECTURE, flags=re.MULTILINE) == [*WALKS]
    assert all(5 < len(listed(walk)) <= 12 for walk in WALKS)


@pytest.mark.parametrize("walk", WALKS)
def test_a_call_enters_the_files_of_its_walk_in_this_order(walk):
    with ProcessPoolExecutor(1, get_context("spawn")) as processes:
        first, _ = processes.submit(count_walks.measure, WALKS[walk]).result()
    files = [path for path, _ in listed(walk)]
    assert [path for path in first if path in files] == files


def test_the_functions_of_the_walks_exist():
    assert [each for walk in WALKS for each in listed(walk) if each[1] and not defines(*each)] == []


def steps():
    """The rows of the tables of calls: the section, the file and the function."""
    for section in CALLS.split("\n## ")[1:]:
        for path, name in re.findall(r"^\| `([\w/]+\.py)` \| `([\w.]+)` \| .", section, flags=re.MULTILINE):
            yield section.partition("\n")[0], path, name


def test_every_call_is_followed():
    found = list(steps())
    assert len({section for section, *_ in found}) == CALLS.count("\n## `") > 8
    assert len(found) == CALLS.count("\n| `")


def test_each_step_of_a_call_is_a_function_of_its_file():
    assert [(path, name) for _, path, name in steps() if not defines(path, name)] == []


@cache
def body_of(path):
    return ast.parse((SOURCE / path).read_text()).body


def defines(path, name):
    """Whether a file has a function, or a class with a method."""
    body = body_of(path)
    for part in name.split("."):
        found = [node for node in body if part in names_defined(node)]
        if not found:
            return False
        body = getattr(found[0], "body", [])
    return True


def names_defined(node):
    """The names that a statement defines."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return {node.name}
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    return {target.id for target in targets if isinstance(target, ast.Name)}


def test_the_glossary_is_in_alphabetical_order():
    words = re.findall(r"^\| ([\w, ]+) \| ", WORDS, flags=re.MULTILINE)[1:]
    assert len(words) > 30
    assert words == sorted(words)


def test_every_file_named_in_the_page_exists():
    paths = set(re.findall(r"`((?:[\w]+/)+[\w.]*|\w+\.(?:py|md|toml))`", ARCHITECTURE + CALLS))
    assert len(paths) > 40
    places = (ROOT, SOURCE, ROOT / "docs")
    assert [path for path in sorted(paths) if not any((place / path).exists() for place in places)] == []


def test_each_package_says_what_it_is_for_and_what_it_is_not_for():
    texts = {path: ast.get_docstring(ast.parse(path.read_text())) for path in SOURCE.glob("*/**/__init__.py")}
    assert len(texts) > 20
    assert [path for path, text in texts.items() if len(re.findall(r"[.](?=\s|$)", text)) < 2] == []
