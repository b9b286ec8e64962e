"""CHANGELOG.md has the form of Keep a Changelog, and lists every renamed name."""

import re
from pathlib import Path

from supremum import renamed_names

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


def test_the_deprecated_names_are_those_that_were_renamed():
    section = PAGE.split("### Deprecated\n")[1].split("\n### ")[0]
    listed = dict(re.findall(r"^\| `(.+)` \| `(.+)` \|$", section, flags=re.MULTILINE))
    arguments = {
        f"{function}({old}=)": f"{function}({new}=)"
        for function, renamed in renamed_names.ARGUMENTS.items()
        for old, new in renamed.items()
    }
    assert listed == renamed_names.MODULES | renamed_names.NAMES | arguments
