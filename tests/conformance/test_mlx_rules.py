"""What is special about MLX' rules: the order of three operands, and Python numbers that wrap around silently."""

import numpy as np

from conformance.measured import number
from conformance.measured_rules import ORACLE_OF
from supremum import explain
from supremum.number_conversion import converted
from supremum.rules.mlx import MLX

MEASURED = ORACLE_OF["mlx"]


def test_concat_depends_on_the_order_of_two_types_that_meet_in_float32_only_and_a_float_of_16_bits():
    by_order = {
        frozenset(codes)
        for operation, codes, _ in MEASURED.triples_of_operands()
        if operation == "concat" and MEASURED.ours(operation, *codes) != MEASURED.ours(operation, *codes[1:], codes[0])
    }
    assert by_order == {frozenset(("u8", signed, half)) for signed in ("i1", "i2", "i4", "i8") for half in ("bf", "f2")}


def test_python_ints_that_wrap_around_are_explained_and_quotients_have_the_values_of_mlx():
    wrapped = divided = 0
    for left, operation, given, cell, value in MEASURED.numbers_of_calls():
        decision = explain(1 if left == "int*" else MEASURED.full(left), given, operation=operation, rules=MLX)
        if operation == "where" and decision:
            is_explained = any("wraps it around silently" in sentence for sentence in decision.reason)
            assert is_explained == ("wraps" in [change.how for change in decision.number_changes])
            wrapped += is_explained
        if operation == "divide" and cell == "f4":
            with np.errstate(divide="ignore"):
                quotient = np.float32(1) / np.float32(converted(given, decision.verdict.number_steps[1]))
            assert quotient == np.float32(number(value)), (left, given)
            divided += 1
    assert (wrapped, divided) == (6, 144)
