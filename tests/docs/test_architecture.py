"""docs/architecture.md names files and functions that exist, and all of those it says it names."""

import ast
import itertools
import re
from functools import cache
from pathlib import Path
from xml.etree import ElementTree as ET

from generate.architecture import file_lists, layers, layers_drawing, without_jax

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src/supremum"
PAGE = (ROOT / "docs/architecture.md").read_text()


def test_the_tree_has_every_file_and_package_of_the_top_level_in_order():
    tree = PAGE.split("```text\nsrc/supremum/\n")[1].split("```")[0]
    listed = re.findall(r"^[├└]── (\S+) +\S", tree, flags=re.MULTILINE)
    assert len(listed) == tree.count("\n")
    there = [
        f"{place.name}/" if place.is_dir() else place.name
        for place in SOURCE.iterdir()
        if place.name != "__pycache__" and (place.is_file() or (place / "__init__.py").exists())
    ]
    assert listed == sorted(there, key=lambda name: name.removesuffix("/"))


def test_the_lists_of_files_are_complete_and_have_a_sentence_for_each():
    html = file_lists(ROOT)
    rows = re.findall(r"<tr><td><code>(\S+)</code></td><td>(.*)</td></tr>", html)
    packages = re.findall(r"<summary><code>(\S+)/</code> (.+)</summary>", html)
    files = [place for place in SOURCE.rglob("*.py") if place.parent != SOURCE]
    assert len(rows) + len(packages) == len(files)
    assert len(rows) > 200
    assert [name for name, sentence in rows + packages if not sentence.endswith((".", "</code>"))] == []


def test_the_drawing_has_each_module_of_the_contract_once_below_those_that_may_import_it():
    rows = layers(ROOT)
    drawing = ET.fromstring(layers_drawing(ROOT).removeprefix("```{raw} html\n").removesuffix("\n```"))
    heights = {text.text: int(text.attrib["y"]) for text in drawing.iter("text")}
    assert sorted(heights) == sorted(name for row in rows for name in row)
    assert len(heights) > 30
    for upper, lower in itertools.pairwise(rows):
        assert max(heights[name] for name in upper) < min(heights[name] for name in lower)


def test_the_drawing_fits_its_width_and_shades_modules_without_jax():
    drawing = ET.fromstring(layers_drawing(ROOT).removeprefix("```{raw} html\n").removesuffix("\n```"))
    width = int(drawing.attrib["viewBox"].split()[2])
    boxes = [each for each in drawing.iter("rect") if each.attrib.get("class") != "row"]
    assert all(float(box.attrib["x"]) + float(box.attrib["width"]) <= width for box in boxes)
    shaded = sum(box.attrib.get("class") == "shaded" for box in boxes)
    assert shaded == len(without_jax(ROOT) & {name for row in layers(ROOT) for name in row}) > 10


def steps():
    """The rows of the tables of calls: the section, the file and the function."""
    calls = PAGE.split("## What happens in a call")[1].split("\n## ")[0]
    for section in calls.split("\n### ")[1:]:
        for path, name in re.findall(r"^\| `([\w/]+\.py)` \| `([\w.]+)` \| .", section, flags=re.MULTILINE):
            yield section.partition("\n")[0], path, name


def test_every_call_is_followed():
    found = list(steps())
    assert len({section for section, *_ in found}) == PAGE.count("\n### `") > 8
    assert len(found) == PAGE.split("## What happens in a call")[1].split("\n## ")[0].count("\n| `")


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
    glossary = PAGE.split("## Glossary")[1].split("\n## ")[0]
    words = re.findall(r"^\| ([\w, ]+) \| ", glossary, flags=re.MULTILINE)[1:]
    assert len(words) > 30
    assert words == sorted(words)


def test_every_file_named_in_the_page_exists():
    paths = set(re.findall(r"`((?:[\w]+/)+[\w.]*|\w+\.(?:py|md|toml))`", PAGE))
    assert len(paths) > 40
    places = (ROOT, SOURCE, ROOT / "docs")
    assert [path for path in sorted(paths) if not any((place / path).exists() for place in places)] == []


def test_each_package_says_what_it_is_for_and_what_it_is_not_for():
    texts = {path: ast.get_docstring(ast.parse(path.read_text())) for path in SOURCE.glob("*/**/__init__.py")}
    assert len(texts) > 20
    assert [path for path, text in texts.items() if len(re.findall(r"[.](?=\s|$)", text)) < 2] == []
