"""Libraries without a separate backend, used through the array API standard; the example is array-api-strict."""

import itertools

import array_api_strict
import jax.numpy as jnp
import numpy as np
import pytest

import supremum
from slowly import for_each
from supremum import Array, asarray, ops
from supremum.arrays import LibraryError, RuntimeDtypeError
from supremum.decisions import PromotionError
from supremum.operands import as_operand

DTYPES = [name for name in supremum.formats.format_names() if hasattr(array_api_strict, name)]


def _one(name):
    return asarray(np.ones(1, name), library=array_api_strict.__name__)


@for_each(
    "operation, rules",
    itertools.product(["add", "divide", "less", "pow"], ["array-api", "numpy", "torch", "jax-x64", "tf-rfc-safe"]),
    one_in=4,
)
def test_operations_on_arrays_and_numpy_arrays_follow_the_rules(rules, operation):
    wrong, lacking, computed = {}, set(), 0
    with supremum.use_rules(rules):
        for a in DTYPES:
            for b in DTYPES:
                left, right = _one(a), _one(b)
                decision = supremum.get_rules().decide(operation, (left.key.operand, right.key.operand))
                for operands in ((left, right), (left, np.ones(1, b)), (np.ones(1, a), right)):
                    try:
                        found = getattr(ops, operation)(*operands)
                        answer = (str(found.dtype), found.weak_type)
                        assert found.backend.name == "array_api_strict"
                    except PromotionError:
                        answer = None
                    except RuntimeDtypeError:
                        # array-api-strict has no arithmetic of bools and lacks formats outside the standard.
                        lacking.add(str(decision.verdict.compute[0]))
                        continue
                    computed += answer is not None
                    expected = (str(decision.dtype), decision.weak) if decision else None
                    if answer != expected:
                        wrong[a, b] = (answer, expected)
    assert not wrong
    assert computed > 20
    # NumPy orders complex numbers, and compares int64 with uint64 exactly; the standard has neither.
    ordered = {"complex64", "complex128", "int64", "uint64"} if operation == "less" else set()
    assert lacking <= {"bool", "float16", "bfloat16"} | ordered


def test_array_of_array_api_strict_supports_operators_writes_and_conversion():
    array = Array(array_api_strict.asarray([1, 2, 3], dtype=array_api_strict.int8))
    assert repr(array) == "Array([1, 2, 3], dtype=int8)"
    assert repr(array * 2) == "Array([2, 4, 6], dtype=int8)"
    assert array.dtype == np.int8
    array += 1
    array[0] = 9
    assert np.asarray(array).tolist() == [9, 3, 4]
    assert np.asarray(ops.where(array > 3, array, 0)).tolist() == [9, 0, 4]
    assert float(ops.mse_loss(array, array)) == 0
    assert asarray(array, library="numpy").unwrap().tolist() == [9, 3, 4]
    assert as_operand(array).dtype == np.int8


def test_array_api_strict_does_not_mix_with_jax_and_the_fix_works():
    array = _one("float32")
    stranger = Array(jnp.ones(1))
    with pytest.raises(LibraryError, match="array_api_strict and b from jax") as error:
        array + stranger
    fix = str(error.value).partition("use ")[2]
    assert (array + eval(fix, {"supremum": supremum, "b": stranger})).backend is array.backend
