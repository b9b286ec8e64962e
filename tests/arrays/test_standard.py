"""Libraries without a file of their own, known by the standard alone; array-api-strict is one."""

import array_api_strict
import jax.numpy as jnp
import numpy as np
import pytest

import supremum
from supremum import Array, asarray, ops
from supremum.arrays import LibraryError, RuntimeDtypeError
from supremum.decisions import PromotionError
from supremum.operands import as_operand

DTYPES = [name for name in supremum.formats.format_names() if hasattr(array_api_strict, name)]


def _one(name):
    return asarray(np.ones(1, name), library=array_api_strict.__name__)


@pytest.mark.parametrize("rules", ["array-api", "numpy", "torch", "jax-x64", "tf-rfc-safe"])
@pytest.mark.parametrize("operation", ["add", "divide", "less", "pow"])
def test_every_pair_is_as_decided_in_both_orders(rules, operation):
    wrong, lacking = {}, set()
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
                        # It has nothing for bools, nor formats that the standard does not name.
                        lacking.add(str(decision.verdict.compute[0]))
                        continue
                    expected = (str(decision.dtype), decision.weak) if decision else None
                    if answer != expected:
                        wrong[a, b] = (answer, expected)
    assert not wrong
    # NumPy orders complex numbers, and compares int64 with uint64 exactly; the standard has neither.
    ordered = {"complex64", "complex128", "int64", "uint64"} if operation == "less" else set()
    assert lacking <= {"bool", "float16", "bfloat16"} | ordered


def test_an_array_made_of_it():
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


def test_it_mixes_with_numpy_and_nothing_else():
    array = _one("float32")
    stranger = Array(jnp.ones(1))
    with pytest.raises(LibraryError, match="array_api_strict and b from jax") as error:
        array + stranger
    fix = str(error.value).partition("use ")[2]
    assert (array + eval(fix, {"supremum": supremum, "b": stranger})).backend is array.backend
