"""The lines that a report shows around an expression."""

from supremum.reports import source_lines


def test_blank_lines_at_both_ends_are_left_out(tmp_path):
    file = tmp_path / "program.py"
    file.write_text("\n".join(["", "a = 1", "b = a", "", "c = b", "", "", ""]))
    shown = {line: [number for number, *_ in source_lines(str(file), line, None)] for line in (2, 3, 5)}
    assert shown == {2: [2, 3], 3: [2, 3, 4, 5], 5: [3, 4, 5]}
    assert source_lines(str(tmp_path / "missing.py"), 1, None) == []
