"""Rule sets whose conversions stop at 32 bits."""

import itertools
import pickle
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import supremum
from optional_packages import import_or_skip
from slowly import exhaustive
from supremum import explain, operations, rules
from supremum.decisions import Verdict
from supremum.errors import UnknownNameError
from supremum.rules import RuleSet, cap_at_32_bits

CAPS = {"float64": "float32", "complex128": "complex64"}
NAMES = (
    *("bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64"),
    *("float16", "bfloat16", "float32", "float64", "complex64", "complex128"),
)
NUMBERS = (True, 1, 2.5, 1j)


def _dtypes(decision):
    """The dtypes of the result and of the operands that are computed; none for a refusal."""
    result = decision.verdict.result
    return [] if result is None else [str(dtype) for dtype in (result.dtype, *decision.verdict.compute)]


@pytest.mark.parametrize(
    ("base", "names"),
    [
        *itertools.product(("numpy", "torch", "tf-all", "tf-rfc-all"), [("add", "divide")]),
        *(exhaustive(base, sorted({*operations.OPERATIONS} - {"assign"})) for base in rules.rule_names()),
    ],
)
def test_results_are_those_of_the_other_rules_with_32_bits_for_64(base, names):
    capped, differing = cap_at_32_bits(base), []
    for name in names:
        arity = operations.OPERATIONS[name].arity or 2
        for operands in itertools.product((*NAMES, *NUMBERS), repeat=arity):
            caps = {} if arity == 1 and operands[0] in CAPS else CAPS
            before, after = (_dtypes(explain(*operands, operation=name, rules=each)) for each in (base, capped))
            if after != [caps.get(dtype, dtype) for dtype in before]:
                differing.append((name, *operands, before, after))
    assert differing == []


TF_NUMPY = [
    ("add", ("float64", "float64"), "float32"), ("add", ("float64", "float32"), "float32"),
    ("add", ("int32", "float32"), "float32"), ("add", ("int64", "int64"), "int64"), ("add", ("int64", 2.5), "float32"),
    ("add", ("complex128", "complex128"), "complex64"), ("add", ("float64", 1j), "complex64"),
    ("divide", ("int64", "int64"), "float32"), ("where", ("float64", "float64"), "float32"),
    ("sin", ("float64",), "float64"), ("negative", ("float64",), "float64"), ("sum", ("float64",), "float64"),
    ("mean", ("int32",), "float32"),
]  # fmt: skip
"""What `tf.experimental.numpy` of TensorFlow 2.21 gives after `np_dtypes.set_allow_float64(False)`, as measured."""


@pytest.mark.parametrize(("operation", "operands", "dtype"), TF_NUMPY)
def test_numpy_rules_with_a_cap_agree_with_tf_numpy(operation, operands, dtype):
    assert str(explain(*operands, operation=operation, rules=cap_at_32_bits("numpy")).dtype) == dtype


def test_explanations_name_the_cap():
    assert (
        str(explain("complex128", "float64", operation="add", rules=cap_at_32_bits("torch")))
        == """\
add(complex128, float64) -> complex64   [rules torch[32-bit]]
  a    complex128 -> complex64, not every value survives
  b    float64 -> complex64, not every value survives
  why  complex128 and float64 promote to complex128
       complex128 is capped at 64 bits: complex64 takes its place"""
    )


def test_fixes_do_not_cast_to_what_the_cap_replaces():
    decision = explain("float16", "uint64", operation="solve", rules=cap_at_32_bits("numpy"))
    assert (bool(decision), str(decision.fix)) == (False, "a.astype('float32') and b.astype('float32')")
    assert explain(*decision.fix.apply(decision.operands), operation="solve", rules=cap_at_32_bits("numpy"))


LIBRARIES = {
    "numpy": np.asarray,
    "torch": lambda array: import_or_skip("torch").asarray(array),
    "jax": jnp.asarray,
}


@pytest.mark.parametrize("make", LIBRARIES.values(), ids=LIBRARIES)
@pytest.mark.parametrize("base", ["numpy", "tf-all"])
def test_arrays_follow_the_cap(base, make):
    ints, halves = (supremum.asarray(make(np.array([1, 2, 3], name))) for name in ("int32", "float16"))
    with supremum.use_rules(cap_at_32_bits(base)):
        for result, expected in ((ints / ints, [1, 1, 1]), (ints + 0.5, [1.5, 2.5, 3.5]), (2.5 / ints, [2.5, 1.25])):
            assert str(result.dtype).removeprefix("torch.") == "float32"
            assert np.asarray(result)[:2].tolist() == expected[:2]
        assert str((halves * halves).dtype).removeprefix("torch.") == "float16"


def test_jitted_functions_follow_the_cap():
    @jax.jit
    def divide(a):
        array = supremum.asarray(a)
        return (array / array).unwrap(), (array + supremum.asarray(jnp.ones(2, "float32"))).unwrap()

    with supremum.use_rules(cap_at_32_bits("numpy")):
        assert [each.dtype for each in divide(jnp.asarray([1, 2], "int32"))] == ["float32", "float32"]
    with supremum.use_rules("numpy"), pytest.raises(TypeError, match="float64"):  # JAX starts without 64 bits
        divide(jnp.asarray([1, 2], "int32"))


def test_arrays_that_are_written_into_keep_their_dtype():
    kept = replace(rules.NUMPY, name="kept", in_place=rules.Storing.KEPT)
    for into, value, base, capped in (("float64", "float64", True, True), ("float32", "int32", False, True)):
        found = [
            bool(explain(into, value, operation="add", into=into, rules=each)) for each in (kept, cap_at_32_bits(kept))
        ]
        assert found == [base, capped]
    decision = explain("float64", "int32", operation="add", into="float64", rules=cap_at_32_bits(kept))
    assert [str(each) for each in decision.verdict.compute] == ["float64", "float64"]
    assert explain("float64", operation="assign", into="float64", rules=cap_at_32_bits("numpy"))


class Own(RuleSet):
    """Rules with a constructor of their own."""

    def __init__(self):
        super().__init__("own", summary="all float64", source="a test", measured=None)

    def _meet(self, operation, operands):
        return Verdict.accept(np.dtype("float64"), len(operands), "everything is float64")


def test_capped_rules_are_values():
    capped = cap_at_32_bits("numpy")
    assert capped == cap_at_32_bits(capped) == cap_at_32_bits(rules.NUMPY) == pickle.loads(pickle.dumps(capped))
    assert capped != rules.NUMPY
    assert (capped.name, repr(capped)) == ("numpy[32-bit]", "NumpyRules('numpy[32-bit]')")
    assert str(explain("int8", "int8", rules=cap_at_32_bits(Own())).dtype) == "float32"
    assert str(explain("int8", "int8", rules=Own()).dtype) == "float64"
    with pytest.raises(UnknownNameError, match="did you mean 'numpy'"):
        cap_at_32_bits("nunpy")
