"""Keras' rules next to JAX's, from which they are derived; `test_measured_rules.py` compares them with Keras."""

import itertools

from conformance.measured_rules import ORACLE_OF
from supremum import explain, promote_types


def test_keras_differs_from_jax_x64_in_49_pairs_that_give_64_bits_in_jax():
    strong = [name for name in ORACLE_OF["keras"].codes.values() if not name.startswith("float8")]
    pairs = [*itertools.combinations_with_replacement(strong, 2)]
    differing = [pair for pair in pairs if promote_types(*pair, rules="keras") != promote_types(*pair, rules="jax-x64")]
    # In JAX, all of them give 64 bits: they have a 64-bit operand, or are uint32 with a signed integer. Without one of
    # the narrower signed integers, 44 pairs are left.
    assert len(differing) == 49
    for left_out in ("int8", "int16", "int32"):
        assert len([pair for pair in differing if left_out not in pair]) == 44
    assert {str(promote_types(*pair, rules="jax-x64")) for pair in differing} == {
        "int64", "uint64", "float64", "complex128",
    }  # fmt: skip


def test_questions_about_types_ignore_an_int_that_functions_refuse():
    question = explain("int8", 2**40, rules="keras")
    assert (str(question.dtype), question.number_changes) == ("int8", ())
    assert "wraps to 44" in str(explain("int8", 300, operation="add", rules="keras"))
    assert not explain("int8", 2**40, operation="add", rules="keras")
