"""The examples of casts are the first values that a cast changes."""

import pytest

from supremum import explain_cast
from supremum.formats import FORMATS


def examples(source, target):
    """The values that `explain_cast` shows for two dtypes, and what they become."""
    outcome = explain_cast(source, target, rules="jax-x64")
    return {each.value: each.becomes for each in outcome.examples}


def becomes(source, target, value):
    (result,) = explain_cast(source, target, value, rules="jax-x64").becomes
    return result


@pytest.mark.parametrize(
    ("source", "target", "first"),
    [
        ("int16", "bfloat16", 257),
        ("int32", "float16", 2049),
        ("int32", "float32", 2**24 + 1),
        ("int64", "float64", 2**53 + 1),
    ],
)
def test_the_first_integer_that_a_float_does_not_hold_is_an_example(source, target, first):
    assert first in examples(source, target)
    assert becomes(source, target, first) != first
    assert becomes(source, target, first - 1) == first - 1


def test_every_example_of_an_integer_dtype_is_changed_by_its_cast():
    integers = [row for row in FORMATS if row.category == "integer" and row.bits <= 64]
    targets = [row for row in FORMATS if row.category in ("integer", "float") and row.bits <= 64]
    shown = [(str(s), str(t), *item) for s in integers for t in targets for item in examples(s.dtype, t.dtype).items()]
    assert len(shown) > 200
    assert [cell for cell in shown if cell[2] in cell[3]] == []
