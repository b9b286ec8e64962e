"""The count of files and calls that a call passes through."""

from pathlib import Path

import count_walks
import supremum


def test_only_functions_of_the_library_count_and_each_file_is_listed_once():
    calls = count_walks.count(
        lambda: (supremum.result_type("int8", "int16"), print("dropped"), sorted([2, 1], key=abs))
    )
    assert "promotion.py" in calls
    assert all(Path(count_walks.OURS, file).is_file() for file in calls)


def test_a_first_call_enters_more_files_than_the_same_call_again(capsys):
    count_walks.main(["result_type", "--files"])
    heading, row, *files = capsys.readouterr().out.splitlines()
    assert heading.split() == ["walk", "files", "calls", "again", "calls"]
    name, first, calls, again, calls_again = row.split()
    assert (name, int(first)) == ("result_type", len(files))
    assert int(calls) == sum(int(line.split()[0]) for line in files) > int(calls_again)
    assert int(first) > int(again) > 0
