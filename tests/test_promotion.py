import dataclasses
import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import supremum
from supremum import (
    OperandError,
    PromotionError,
    ScalarOverflowError,
    UnknownDtypeError,
    UnknownNameError,
    can_promote,
    explain,
    promote_types,
    result_type,
)
from supremum.decisions import ResultType
from supremum.operands import Operand
from supremum.rules import JAX_X32, TORCH


def test_a_decision_has_the_result_casts_paths_and_reason():
    decision = explain(np.zeros(3, np.int8), np.uint8(1), operation="add", rules="jax-x64")
    assert decision
    assert decision.result == ResultType(np.dtype("int16"))
    assert (decision.dtype, decision.weak) == (np.dtype("int16"), False)
    assert [(cast.source, cast.target, cast.changes, cast.lossy) for cast in decision.casts] == [
        (np.dtype("int8"), np.dtype("int16"), True, False),
        (np.dtype("uint8"), np.dtype("int16"), True, False),
    ]
    assert decision.paths == (("int8", "int16"), ("uint8", "int16"))
    assert str(decision).splitlines() == [
        "add(int8, uint8) -> int16   [rules jax-x64]",
        "  a    int8 -> int16",
        "  b    uint8[] -> int16",
        "  why  int16 is the least upper bound: int8 -> int16, uint8 -> int16",
    ]


def test_lossy_casts_are_marked():
    decision = explain("int32", "float16", rules="jax-x64")
    assert [cast.lossy for cast in decision.casts] == [True, False]
    assert "int32 -> float16, not every value survives" in str(decision)


def test_weak_results_have_a_dtype_and_a_weak_name():
    decision = explain(1, 2.5, rules="jax-x32")
    assert (decision.dtype, decision.weak, decision.result.name) == (np.dtype("float32"), True, "float*")
    assert "a    int* (1) -> float32" in str(decision)


def test_x32_decisions_explain_narrowing():
    assert "int64 is held as int32: these are the rules of JAX with x64 off" in str(
        explain("int64", "int8", rules="jax-x32")
    )


def test_a_refusal_is_false_and_raises_the_same_text():
    decision = explain("float8_e4m3fn", "bfloat16")
    assert not decision
    assert not can_promote("float8_e4m3fn", "bfloat16")
    with pytest.raises(PromotionError) as caught:
        result_type("float8_e4m3fn", "bfloat16")
    assert str(caught.value) == str(decision)
    assert isinstance(caught.value, TypeError)
    refused = caught.value.decision
    assert (refused.rules, refused.operation) == (
        "jax-x32" if not jax.config.jax_enable_x64 else "jax-x64",
        "result_type",
    )
    assert [str(operand) for operand in refused.operands] == ["float8_e4m3fn", "bfloat16"]
    assert str(refused.fix) == "a.astype('bfloat16')" == str(caught.value.fix)
    assert (caught.value.rules, caught.value.operation) == (refused.rules, refused.operation)
    assert (caught.value.operands, caught.value.reason) == (refused.operands, refused.reason)


def test_a_number_alone_keeps_its_dtype_or_overflows():
    assert explain(2, rules="jax-x32").reason == ("the operands already have this dtype",)
    with pytest.raises(ScalarOverflowError, match="does not fit 64 bits"):
        _ = explain(2**70, rules="numpy").dtype


def test_many_operands_are_counted():
    assert "\n  ...  960 more operands\n" in str(explain(*["int8"] * 1000, rules="numpy"))


def test_a_fix_may_narrow_the_range_if_the_rules_accept_no_other():
    decision = explain("bool", "float8_e5m2", operation="bitwise_and", rules="torch")
    assert not decision
    assert str(decision.fix) == "a.to(torch.uint8) and b.to(torch.uint8)"


def test_the_suggested_fix_works():
    a, b = jnp.ones(2, jnp.float8_e4m3fn), jnp.ones(2, jnp.bfloat16)
    fixed = {name: eval(text, {"a": a, "b": b, "np": np}) for name, text in explain(a, b).fix.expressions().items()}
    assert result_type(fixed.get("a", a), fixed.get("b", b)) == jnp.bfloat16


def test_errors_survive_pickling():
    with pytest.raises(PromotionError) as caught:
        result_type("float8_e4m3fn", "bfloat16")
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_decisions_have_escaped_html_for_notebooks():
    html = explain("int8", "uint8")._repr_html_()
    assert "<table>" in html
    assert "int8 -&gt; int16" in html


def test_result_type_accepts_more_than_two_operands():
    assert result_type("int8", "uint8", "float16", rules="jax-x64") == np.dtype("float16")
    assert result_type("bool", 1, "int4") == np.dtype("int4")


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: result_type([1]), OperandError, "argument 0 must be a numeric array, .*, got list"),
        (lambda: result_type("int8", None), OperandError, "argument 1 must be a numeric array, .*, got NoneType"),
        (lambda: promote_types("int8", "int9"), UnknownDtypeError, "did you mean 'int8'"),
        (lambda: explain("int8", rules="jx"), UnknownNameError, "unknown rule set 'jx': did you mean 'jax'"),
        (lambda: explain("int8", operation="ad"), UnknownNameError, "unknown operation 'ad': did you mean 'add'"),
        (lambda: explain("int8", operation="add"), ValueError, "add takes 2 operands, got 1"),
        (lambda: result_type(), ValueError, "give at least one"),
    ],
)  # fmt: skip
def test_invalid_arguments_raise_with_a_clear_message(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_rule_set_values_are_accepted_and_verdicts_are_cached():
    first, second = (explain("int8", "uint8", rules=JAX_X32) for _ in range(2))
    assert first.verdict is second.verdict
    assert dataclasses.replace(JAX_X32) == JAX_X32
    assert len({JAX_X32, supremum.get_rules("jax-x64")}) == 2


def test_torch_divides_integers_in_its_default_dtype():
    for default in ("float32", "float64"):
        decision = explain("bool", "int8", operation="divide", rules=TORCH.with_default(default))
        assert decision.dtype is np.dtype(default)


def test_the_product_in_poisson_nll_loss_has_dimensions_if_one_tensor_has():
    scalar, vector = Operand("float", np.dtype("float16"), ndim=0), Operand("float", np.dtype("float16"), ndim=1)
    steps = {}
    for name, operands in {"0-d": (scalar, scalar), "mixed": (scalar, vector), "1-d": (vector, vector)}.items():
        steps[name] = explain(*operands, operation="poisson_nll_loss", rules="torch").reason[0].rpartition("here ")[2]
    assert steps == {
        "0-d": "float16[] - float16[]", "mixed": "float16[] - float16", "1-d": "float16 - float16"
    }  # fmt: skip


def test_numpy_skips_a_bound_that_no_element_is_beyond_only_if_there_are_two():
    both = explain("uint8", 1, 1000, operation="clip", rules="numpy")
    assert both.dtype == "uint8"
    assert both.reason[-1].startswith("NumPy skips c")
    assert np.clip(np.uint8([5]), 1, 1000).dtype == "uint8"
    with pytest.raises(supremum.ScalarOverflowError):
        _ = explain("uint8", -1000, operation="clip", rules="numpy").dtype
