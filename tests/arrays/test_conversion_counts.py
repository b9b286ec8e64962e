"""Counts of implicit conversions: what is counted, where, and that results stay the same."""

import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import supremum
from supremum import asarray, count_conversions, ops
from supremum.arrays import ConversionTotal
from supremum.decisions import PromotionError
from turns import ORDERS, take_turns


def _a(dtype, count=10, library="numpy"):
    return asarray(np.ones(count, dtype), library=library)


@pytest.mark.parametrize("library", ["numpy", "jax"])
def test_only_implicit_conversions_of_arrays_are_counted(library):
    narrow, wide, whole = (_a(dtype, library=library) for dtype in ("float16", "float32", "int8"))
    with supremum.use_rules("jax-x32"), count_conversions() as counts:
        narrow + narrow  # nothing is converted
        narrow + 1.5  # a Python number is not an array
        narrow.astype("float32") + wide  # an explicit cast
        assert counts.total == ConversionTotal(0, 0)
        assert str(counts) == "no implicit conversions"
        narrow + wide
        wide * narrow
        whole / whole  # both operands
    assert counts.total == ConversionTotal(4, 160)
    assert counts.widening == ConversionTotal(4, 160)
    assert counts.lossy == ConversionTotal(0, 0)
    assert counts.by_dtype() == {
        ("float16", "float32"): ConversionTotal(2, 80),
        ("int8", "float32"): ConversionTotal(2, 80),
    }
    assert [total.count for total in counts.by_line().values()] == [2, 1, 1]
    assert all("test_conversion_counts.py:" in line for line in counts.by_line())
    assert len(counts) == 3


def test_narrowing_conversion_is_lossy_and_not_widening():
    with supremum.use_rules("torch"), count_conversions() as counts:
        _a("int64") + _a("float16")
    ((conversion, total),) = counts
    assert (conversion.lossy, conversion.widening, total) == (True, False, ConversionTotal(1, 20))
    assert (conversion.operation, conversion.rules) == ("add", "torch")


def test_functions_and_assignments_are_counted():
    with supremum.use_rules("numpy"), count_conversions() as counts:
        ops.where(np.array([True] * 10), _a("float32"), _a("float64"))
        ops.clip(_a("float32"), np.float64(0), 1)
        ops.mse_loss(_a("float32"), _a("float64"))
        value = _a("float64")
        value += _a("float32")
        np.ones(10) * _a("float32")
        supremum.ArrayVariable(np.ones(10)).assign_add(_a("float32"))
    assert counts.by_dtype() == {("float32", "float64"): ConversionTotal(6, 480)}


def test_summary_is_sorted_by_bytes():
    with supremum.use_rules("numpy"), count_conversions() as counts:
        _a("float32", 2) + _a("float64", 2)
        _a("int64", 3000) + _a("float32", 3000)
    lines = str(counts).splitlines()
    assert lines[0].split() == ["bytes", "times", "from", "to", "operation", "line"]
    assert [line.split()[:4] for line in lines[1:-1]] == [
        ["24,000", "1", "int64", "float64"],
        ["24,000", "1", "float32", "float64"],
        ["16", "1", "float32", "float64"],
    ]
    assert lines[-1] == ("3 conversions (48,016 bytes), 2 widening (24,016 bytes), 1 lossy (24,000 bytes)")


def test_jitted_function_is_traced_again_and_counted_once():
    narrow, wide = jnp.ones(4, jnp.bfloat16), jnp.ones(4, jnp.float32)

    @jax.jit
    def add(a, b):
        return (asarray(a) + asarray(b)).unwrap()

    add(narrow, wide)
    for _ in range(2):
        with count_conversions() as counts:
            add(narrow, wide)
            add(narrow, wide)
        assert counts.by_dtype() == {("bfloat16", "float32"): ConversionTotal(1, 16)}


def test_nested_scopes_count_separately():
    a, b = _a("int8"), _a("uint8")
    with count_conversions() as outer:
        with supremum.use_rules("numpy"):
            a + b
        with count_conversions() as inner, supremum.use_rules("torch"):
            a + b
        with supremum.use_rules("tf-rfc-none"), pytest.raises(PromotionError):
            a + b
    assert (outer.total.count, inner.total.count) == (4, 2)
    assert [conversion.rules for conversion, _ in inner] == ["torch"] * 2
    a + b
    assert outer.total.count == 4
    assert supremum.get_rules().name.startswith("jax")


def test_conversions_of_other_threads_are_not_counted():
    a, b = _a("int8"), _a("uint8")

    def work():
        for _ in range(1000):
            a + b

    thread = threading.Thread(target=work)
    with count_conversions() as counts:
        thread.start()
        for _ in range(100):
            a + b
        thread.join()
    assert counts.total.count == 200


def test_interleaved_tasks_count_only_their_own_conversions():
    a, b = supremum.asarray(np.ones(2, "int8")), supremum.asarray(np.ones(2, "float32"))
    for order in ORDERS:

        def task(number):
            async def run(step):
                with count_conversions() as counts:
                    for _ in range(3):
                        for _ in range(number):
                            _ = a + b
                        await step()
                _ = a + b
                assert [total.count for _, total in counts] == [3 * number]

            return run

        take_turns(order, [task(1), task(2)])
