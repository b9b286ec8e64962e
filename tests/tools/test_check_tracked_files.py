"""`make lint` refuses binary and large files in the repository."""

import subprocess
from pathlib import Path

import pytest

import check_tracked_files

ROOT = Path(__file__).parents[2]


@pytest.fixture
def checkout(tmp_path):
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)
    return tmp_path


def track(folder, name, content):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    subprocess.run(["git", "add", "--force", name], cwd=folder, check=True)


@pytest.mark.parametrize(
    ("name", "content", "fault"),
    [
        ("package-1.0-py3-none-any.whl", b"PK\x03\x04\x00\x00", "package-1.0-py3-none-any.whl is binary (6 bytes)"),
        ("docs/picture.png", b"\x89PNG\r\n\x1a\n\x00", "docs/picture.png is binary (9 bytes)"),
        ("table.json", b"[" + b" " * 1_000_000 + b"]", "table.json has 1,000,002 bytes, more than 1,000,000"),
        ("tests/conformance/oracles/table.bin", b"\0", "tests/conformance/oracles/table.bin is binary (1 bytes)"),
    ],
    ids=["package", "picture", "table", "oracle"],
)
def test_binaries_and_large_files_are_refused(checkout, name, content, fault, capsys):
    track(checkout, name, content)
    assert check_tracked_files.main(checkout) == 1
    printed = capsys.readouterr().out
    assert printed.splitlines()[0] == fault
    assert "git rm --cached" in printed


def test_text_and_large_oracles_are_accepted(checkout):
    track(checkout, "README.md", b"text\n" * 1000)
    track(checkout, "tests/conformance/oracles/table.json", b"[" + b" " * 1_000_000 + b"]")
    (checkout / "not-tracked.whl").write_bytes(b"PK\x03\x04\x00")
    assert check_tracked_files.main(checkout) == 0


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="this is not a git checkout")
def test_the_repository_has_no_binary_or_large_files():
    assert check_tracked_files.faults(ROOT) == []
