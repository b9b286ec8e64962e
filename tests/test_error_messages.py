"""The examples of docs/errors.md raise the errors that the page shows, at least one for each family of errors.

    python tests/test_error_messages.py

runs the examples and writes their messages to the page.
"""

import contextlib
import os
import re
import shlex
import tempfile
import traceback
import warnings
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[1] / "docs/errors.md"
_BLOCK = re.compile(r"```(python|console)\n(.*?)```\n(?:\n```text\n(.*?)```\n)?", flags=re.DOTALL)


def examples():
    """Return the examples of the page after its imports: language, code and message, with the title as id."""
    found = []
    for section in PAGE.read_text().split("\n## ")[1:]:
        title = section.partition("\n")[0]
        blocks = _BLOCK.findall(section)
        found += [pytest.param(*block, id=f"{title} {number}") for number, block in enumerate(blocks, 1)]
    return found


def imports():
    """Return the import lines that all examples share."""
    return _BLOCK.search(PAGE.read_text())[2]


def message_of(language, code):
    """Run an example and return its error as a user sees it."""
    message = _output_of(code) if language == "console" else _error_of(code)
    return re.sub(r"(?m) +$", "", message)


def _error_of(code):
    file = Path("example.py").resolve()
    file.write_text(code)
    names = {"__name__": "example"}
    exec(imports(), names)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            exec(compile(code, str(file), "exec"), names)
    except Exception as error:
        # Remove JAX's note about hidden frames.
        error.__notes__ = [note for note in getattr(error, "__notes__", ()) if "internal frames" not in note]
        message = "".join(traceback.format_exception_only(error))
        return message.replace(f"{file.parent}{os.sep}", "")
    raise AssertionError(f"this raises nothing:\n{code}")


def _output_of(command):
    from typer.testing import CliRunner

    from supremum.cli.app import app

    result = CliRunner().invoke(app, shlex.split(command.removeprefix("$ supremum ")))
    assert result.exit_code == 2, result.output
    return result.output


@pytest.mark.parametrize(("language", "code", "message"), examples())
def test_each_example_raises_the_message_on_the_page(language, code, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert message_of(language, code) == message


def test_every_family_of_errors_has_examples():
    titles = {example.id.rpartition(" ")[0] for example in examples()}
    assert len(titles) == PAGE.read_text().count("\n## ") >= 16
    assert len(examples()) > 50


def test_an_example_without_an_error_fails(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(AssertionError, match="raises nothing"):
        message_of("python", "x = 1\n")


def write_page():
    """Run all examples and write their messages to the page."""
    head, *sections = PAGE.read_text().split("\n## ")

    def with_message(match):
        language, code, _ = match.groups()
        return f"```{language}\n{code}```\n\n```text\n{message_of(language, code)}```\n"

    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        sections = [_BLOCK.sub(with_message, section) for section in sections]
    PAGE.write_text("\n## ".join([head, *sections]))


if __name__ == "__main__":
    write_page()
