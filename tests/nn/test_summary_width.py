"""A printed summary is as wide as the terminal at most."""

import sys

import pytest

from supremum import nn
from supremum.render import aligned


class Terminal:
    def isatty(self):
        return True


@pytest.mark.parametrize("columns", [200, 100, 80])
def test_summary_fits_the_terminal(monkeypatch, columns):
    layers = [nn.Dense(8, name=f"a_rather_long_name_of_a_layer_{number}") for number in range(3)]
    model = nn.SequentialNetwork([nn.SequentialNetwork(layers, name="another_long_name")])
    model.build((None, 4))
    summary = model.summary()
    whole = str(summary)
    monkeypatch.setattr(sys, "stdout", Terminal())
    monkeypatch.setenv("COLUMNS", str(columns))
    fitted = str(summary)
    monkeypatch.undo()
    assert max(map(len, fitted.split("\n"))) <= columns
    assert (fitted == whole) == (columns == 200)
    assert all(f"_{number} " in fitted for number in range(3))  # the middle of a path is left out, not its end


def test_numbers_are_never_shortened():
    lines = [("name", "parameters"), ("encoder/layers/0/dense", "1,234,567,890")]
    for width in range(1, 40):
        text = aligned(lines, right=frozenset({1}), width=width)
        assert "1,234,567,890" in text
        assert max(map(len, text.split("\n"))) <= max(width, 8 + 2 + 13)
