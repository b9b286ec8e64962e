"""CHANGELOG.md has the form of Keep a Changelog."""

import re
from pathlib import Path

PAGE = (Path(__file__).parents[2] / "CHANGELOG.md").read_text()
KINDS = ["Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"]


def test_the_sections_of_each_version_are_those_of_keep_a_changelog_in_order():
    versions = PAGE.split("\n## ")[1:]
    assert versions[0].startswith("[Unreleased]\n")
    for version in versions:
        assert re.fullmatch(r"\[(Unreleased\]|\d+\.\d+\.\d+\] - \d{4}-\d{2}-\d{2})", version.partition("\n")[0])
        kinds = re.findall(r"^### (.+)$", version, flags=re.MULTILINE)
        assert kinds
        assert kinds == [kind for kind in KINDS if kind in kinds]
