"""What counts as a line of code."""

from pathlib import Path

import pytest

from count_code import DEFAULT, count_code, main

ROOT = Path(__file__).parents[2]
SOURCES = {
    "empty file": ("", 0),
    "comments and blank lines": ("# a\n\n   # b\n\n", 0),
    "comment at the end of a line": ("x = 1  # a\n", 1),
    "docstring of a module": ('"""A\n\nb."""\n', 0),
    "docstring of a module and code": ("'a'\nx = 1\n", 1),
    "docstring in parts": ('("a"\n "b")\nx = 1\n', 3),  # the parentheses are code
    "docstrings of a class and a method": (
        'class A:\n    """A."""\n\n    def f(self):\n        r"""\n        B."""\n',
        2,
    ),
    "docstring of an async function": ('async def f():\n    """A."""\n    await g()\n', 2),
    "docstring beside code": ('class A: "a"\n', 1),
    "string below a constant": ('X = 1\n"""What X is."""\n', 2),
    "string in a function": ('def f():\n    x = 1\n    "not a docstring"\n', 3),
    "string over several lines": ('x = """a\n\n# b\n"""\n', 4),
    "f-string over several lines": ('x = f"""a\n{1}\nb"""\n', 3),
    "call over several lines": ("f(\n    1,  # a\n    # b\n\n    2,\n)\n", 4),
    "backslash": ("x = 1 + \\\n    2\n", 2),
    "decorators": ("@a\n@b(\n    1\n)\ndef f(): ...\n", 5),
    "two statements in a line": ("x = 1; y = 2\n", 1),
    "no line break at the end": ("if x:\n    y", 2),
    "byte order mark and other letters": ("\ufeffx = 'é'  # é\n", 1),
}


@pytest.mark.parametrize(("source", "lines"), SOURCES.values(), ids=SOURCES)
def test_lines_of_code_are_counted(source, lines):
    assert count_code(source.encode()) == lines


def test_each_place_has_a_line_and_the_total_is_the_last(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "a/one.py").write_text("x = 1\n" * 1500)
    (tmp_path / "a/b/two.py").write_text("x = 1\n")
    (tmp_path / "a/text.md").write_text("x = 1\n")
    (tmp_path / "three.py").write_text("x = 1\n")
    assert main(["a", "three.py"]) == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert lines == [
        "a 2 files 1,501 lines of code",
        "three.py 1 files 1 lines of code",
        "total 3 files 1,502 lines of code",
    ]


def test_the_default_places_exist():
    assert all((ROOT / place).is_dir() for place in DEFAULT)


@pytest.mark.parametrize(("content", "fault"), [("def f(:\n", "bad.py:1: invalid syntax"), (None, "bad.py")])
def test_a_file_that_cannot_be_counted_is_reported(tmp_path, capsys, content, fault):
    if content is not None:
        (tmp_path / "bad.py").write_text(content)
    assert main([str(tmp_path / "bad.py")]) == 2
    printed = capsys.readouterr()
    assert fault in printed.err
    assert not printed.out
