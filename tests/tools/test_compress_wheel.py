"""A compressed wheel has the same files as before."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

pytest.importorskip("zopfli", reason="only developers, who build wheels, need it")
TOOLS = Path(__file__).parents[2] / "tools"


def facts_of(path):
    with zipfile.ZipFile(path) as wheel:
        assert wheel.testzip() is None
        return [
            (each.filename, each.date_time, each.external_attr, each.create_system, wheel.read(each))
            for each in wheel.infolist()
        ]


def test_a_compressed_wheel_is_smaller_and_has_the_same_files(tmp_path):
    path = tmp_path / "package-1-py3-none-any.whl"
    text = (TOOLS / "compress_wheel.py").read_bytes()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        for name, content in {
            "package/code.py": text,
            "package/py.typed": b"",
            "package/noise": bytes(range(9)),
        }.items():
            entry = zipfile.ZipInfo(name, (2020, 2, 2, 13, 14, 58))
            entry.external_attr = 0o644 << 16
            wheel.writestr(entry, content, zipfile.ZIP_DEFLATED)
    before, size = facts_of(path), path.stat().st_size
    subprocess.run([sys.executable, TOOLS / "compress_wheel.py", path], check=True, capture_output=True)
    assert facts_of(path) == before
    assert path.stat().st_size < size
    with zipfile.ZipFile(path) as wheel:
        kinds = {each.filename: each.compress_type for each in wheel.infolist()}
    assert kinds["package/code.py"] == zipfile.ZIP_DEFLATED
    assert kinds["package/py.typed"] == kinds["package/noise"] == zipfile.ZIP_STORED
