"""What the README claims is true, and its picture shows what the program prints today."""

import difflib
import json
import re
import tomllib
from pathlib import Path

import jax.numpy as jnp
import pytest

import supremum
from documents import fences
from generate.readme import readme_pages, switched
from generate.readme_picture import readme_picture
from generate.surprises import SURPRISES

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
PICTURES = ROOT / "docs/pictures"


def test_the_readme_is_short_and_each_of_its_three_doors_has_five_lines_of_code_at_most():
    assert len(README.splitlines()) < 120
    doors = [code for language, code in fences(README) if language == "python"]
    lengths = [sum(line.startswith((">>> ", "... ")) for line in door.splitlines()) for door in doors]
    assert len(lengths) == 3
    assert max(lengths) <= 5


def test_the_requirements_and_extras_are_those_of_the_project():
    sentence = re.sub(r"\s+", " ", README).split("Without extras, Supremum needs only ")[1].split(", and imports")[0]
    named = re.split(", | and ", sentence)
    assert [name.lower() for name in named] == [re.split("[<>=]", each)[0] for each in PROJECT["dependencies"]]
    listed = re.sub(r"\s+", " ", README).split("The extras are ")[1].split(". ")[0]
    assert re.findall(r"`(\w+)`", listed) == list(PROJECT["optional-dependencies"])
    assert f"Python {PROJECT['requires-python'].removeprefix('>=')} or later" in README
    assert README.count("pip install supremum") == 1


def test_the_page_of_rule_sets_lists_those_with_surprises():
    page = (ROOT / "docs/rule-sets.md").read_text("utf-8")
    listed = set(re.findall(r"`([\w-]+)`", page.split("|---|---|---|")[1].split("| yours")[0]))
    assert set(SURPRISES) <= listed


def test_the_silent_mistake_of_the_first_paragraph_happens():
    assert "`uint32(2**32 - 1) + int8(1)` becomes 0" in README.replace("\n", " ")
    assert jnp.uint32(2**32 - 1) + jnp.int8(1) == 0


@pytest.mark.parametrize("library", ["plain_jax", "flax_nnx", "flax_linen", "equinox"])
def test_each_float16_example_adds_five_or_six_lines(library):
    assert "each adds five or six lines to its float32 original" in README.replace("\n", " ")
    texts = [
        (ROOT / f"examples/{library}/{name}.py").read_text("utf-8").splitlines() for name in ("float32", "float16")
    ]
    added = [line for line in difflib.ndiff(*texts) if line.startswith("+ ") and line != "+ "]
    assert len(added) in (5, 6)
    assert '+ loss = autocast(loss, "mixed_float16")' in added


def test_the_picture_shows_what_the_program_prints_today():
    """If this fails, run tools/readme_picture.py, with --draw if the demonstration is the same."""
    drawn = readme_picture(json.loads((PICTURES / "readme.json").read_text("utf-8")))
    assert list(drawn) == ["light", "dark"]
    for theme, text in drawn.items():
        assert (PICTURES / f"readme-{theme}.svg").read_text("utf-8") == text
    assert str(supremum.explain("int32", "float16", operation="add", rules="numpy")).splitlines()[0] in (
        drawn["light"].replace("&gt;", ">")
    )
    assert drawn["light"].count("bfloat16 -&gt; float32, a promotion") == 2 + 2  # on the picture and in its description


def test_the_page_of_the_site_has_the_picture_in_both_themes():
    page = readme_pages(ROOT)["start.md"]
    for theme in ("light", "dark"):
        assert f"```{{image}} ../pictures/readme-{theme}.svg" in page
        assert f":class: only-{theme}" in page
    assert "<picture>" not in page
    assert switched("no picture", "generated/start.md") == "no picture"
