"""Fixes of refused calls work and give the right values, on every library, on wrapped and raw arrays."""

import contextlib
import itertools
import tracemalloc

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import supremum
from arrays import fixes
from arrays.calls import RULE_SETS, function_of
from optional_packages import import_or_skip
from slowly import exhaustive, for_each, mostly_slow
from supremum import PromotionError, asarray, explain, get_rules, use_rules
from supremum.arrays import ELEMENTWISE_OPERATIONS, InPlaceError, RuntimeDtypeError, ops
from supremum.arrays.wrapped import wrap
from supremum.fix import FixCast
from supremum.formats import as_format
from supremum.operands import as_operand
from supremum.rules import runtimes
from supremum.rules.runtimes import is_typed

pytestmark = [
    pytest.mark.filterwarnings("ignore:divide by zero:RuntimeWarning"),
    pytest.mark.filterwarnings("ignore:Casting complex values:Warning"),
    pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental:UserWarning"),
]
LIBRARIES = ("numpy", "jax-x32", "jax-x64", "torch")
COMMON = ("bool", "uint8", "int32", "uint64", "float16", "bfloat16", "float32", "complex64", "int4", "float8_e4m3fn")


@contextlib.contextmanager
def _library(name):
    if name == "torch":
        import_or_skip("torch")
    with jax.enable_x64(name != "jax-x32"), np.errstate(all="ignore"):
        yield name.partition("-")[0]


def _check_fixes(library, rules, calls_of, wrapped=True):
    refusals = fixes.Refusals(get_rules(rules), library)
    with _library(library) as name, use_rules(rules):
        for operation, calls in calls_of(name):
            for call in calls:
                refusals.ask(operation, call, wrapped)
    refusals.check()
    return refusals


@pytest.mark.parametrize("times", [1, exhaustive(8)])
@pytest.mark.parametrize("library", LIBRARIES)
@for_each("rules, wrapped", itertools.product(RULE_SETS, (True, False)), one_in=0, one_slow_in=12)
def test_fixes_of_a_sample_of_refusals_work(rules, wrapped, library, times):
    """JAX takes long to compile, so its sample is smaller. All 100,000 calls would take ten minutes."""
    count, seed = times * (10 if library.startswith("jax") else 40), f"{rules} {library} {wrapped} {times}"
    number = _check_fixes(library, rules, lambda name: fixes.sample_calls(name, seed, count), wrapped).number
    assert number["refused"] + number["lacking"] > 50


COUNTED = ("bool", "uint8", "int32", "float16", "float32", "complex64")
WITHOUT_COMPLEX = ("tinygrad", "pyarrow", "polars", "polars-1", "pandas-nullable")
# How many refusals have no fix because of the number 1e300, for which the rules, or JAX with x64 off, have no format.
BEYOND_32_BITS = {"jax-x32": 5, "jax-strict-x32": 29, "keras": 6}
BEYOND_32_BITS_OF_JAX = BEYOND_32_BITS | {
    "jax-strict-x64": 18, "jax-strict-explicit-x64": 18, "torch": 5, "tf-rfc-all": 22, "tf-rfc-safe": 34,
    "tf-rfc-none": 34, "tf-off": 20, "tf-all": 8, "tf-safe": 16, "array-api": 26,
    "pyarrow": 12, "polars": 2, "polars-1": 8, "pandas-nullable": 6,
}  # fmt: skip


def _would_drop_a_part(rules, name, operands):
    """Whether no fix can serve a refused call: the RFC's modes never drop an imaginary part to order complex numbers.

    Other rules have no complex arrays, and so no function that gives their real parts.
    """
    found = [each for each in operands if each.category == "complex"]
    if rules.startswith("tf-rfc"):
        return name == "less" and found != []
    return rules in WITHOUT_COMPLEX and name != "logical_and" and any(each.dtype is not None for each in found)


FEW = ("subtract", "pow", "negative", "logical_and", "less")


@pytest.mark.parametrize("library", mostly_slow(LIBRARIES, "numpy"))
@for_each("rules", ["jax-x32", *(name for name in RULE_SETS if name != "jax-x32")], one_in=25, one_slow_in=6)
def test_fixes_of_common_formats_work(rules, library):
    def calls_of(name, names=FEW):
        return [(each, fixes.calls_of(name, each, COUNTED)) for each in names]

    others = []
    for name, operands, fix in _check_fixes(library, rules, calls_of).refused:
        if _would_drop_a_part(rules, name, operands):
            assert fix is None, (name, operands)
        elif fix is None:
            others.append((name, operands))
    assert [call for call in others if all(each.value != 1e300 for each in call[1])] == []
    beyond = BEYOND_32_BITS_OF_JAX if library == "jax-x32" else BEYOND_32_BITS
    assert len(others) == beyond.get(rules, 0)
    _check_fixes(library, rules, lambda name: calls_of(name, FEW[:2]), wrapped=False)


def _array(library, dtype, *elements):
    return supremum.namespace(library).asarray(list(elements), dtype=dtype)


def _evaluated(text, **bound):
    return eval(text, {"np": np, "supremum": supremum} | bound)


@pytest.mark.parametrize("library", mostly_slow(("numpy", "jax", "torch"), "numpy", "jax"))
def test_real_and_imag_follow_the_rules(library):
    with _library("jax-x64" if library == "jax" else library):
        array = _array(library, "complex64", 1 + 2j, 3 - 4j)
        assert (array.real.dtype, array.real.tolist()) == (np.dtype("float32"), [1, 3])
        assert (array.imag.dtype, array.imag.tolist()) == (np.dtype("float32"), [2, -4])
        with use_rules("array-api"), pytest.raises(PromotionError, match="imag"):
            _ = array.real.imag


@pytest.mark.parametrize(("a", "b", "operation", "fixed", "value"), [
    (True, None, "negative", "int8", -1),
    (False, True, "subtract", "int8", -1),
    (4, -1, "pow", "float32", 0.25),
])  # fmt: skip
def test_fixed_call_gives_the_exact_result(a, b, operation, fixed, value):
    kinds = ["bool" if isinstance(a, bool) else "int32", *([] if b is None else ["bool"] if b is True else [b])]
    with jax.enable_x64(False):
        decision = explain(*kinds, operation=operation, rules="jax-x32")
        texts = decision.fix.expressions().values()
        assert texts
        assert all(f"'{fixed}'" in text for text in texts)
        array = _array("jax", kinds[0], a)
        others = () if b is None else (_array("jax", "bool", b),) if b is True else (b,)
        with use_rules("jax-x32"), pytest.raises(PromotionError) as caught:
            getattr(ops, operation)(array, *others)
        bound = dict(zip("ab", (array, *others), strict=False))
        given = bound | {x: _evaluated(text, **bound) for x, text in caught.value.fix.expressions().items()}
        with use_rules("jax-x32"):
            result = getattr(ops, operation)(*given.values())
    assert (result.dtype, result.tolist()) == (np.dtype(fixed), [value])


def test_fix_names_no_64_bit_dtype_if_x64_is_off():
    with jax.enable_x64(False), use_rules("tf-rfc-safe"):
        a, b = _array("jax", "int32", 1), _array("jax", "float32", 1)
        with pytest.raises(PromotionError) as caught:
            _ = a + b
        for operands in ((a, b), (a.unwrap(), b.unwrap())):
            assert str(explain(*operands, operation="add").fix) == "a.astype('float32')"
        assert explain(a, "float32", operation="add").fix is not None
    with jax.enable_x64(True):  # the error keeps the fix of the call
        assert str(caught.value.fix) == "a.astype('float32')"
        assert str(explain("int32", "float32", operation="add", rules="tf-rfc-safe").fix).count("float64") == 2


def test_casts_that_xla_lacks_are_detected_without_aborting_the_process():
    """With the flags of the tests, XLA of JAX 0.10 aborts when it converts to these formats, without an error."""
    expected = {}
    for target in ("float6_e2m3fn", "float6_e3m2fn"):
        try:
            jnp.asarray(np.ones(1, as_format(target).dtype))
        except jax.errors.JaxRuntimeError:
            expected[target] = False
        else:
            expected[target] = True  # XLA of JAX 0.12 has these formats

    def tried(x):
        operand = as_operand(x)
        found = {each: is_typed(operand, FixCast.of(0, operand, as_format(each).dtype)) for each in expected}
        assert found == expected
        return x

    for call in (jax.jit(tried), tried):
        runtimes._tried.cache_clear()
        call(jnp.ones(4))


def test_missing_kernel_error_has_a_working_cast():
    torch = import_or_skip("torch")
    a = wrap(torch.ones(2, dtype=torch.uint16))
    with use_rules("numpy"), pytest.raises(RuntimeDtypeError, match="torch has no bitwise_left_shift") as caught:
        _ = a << a
    assert str(caught.value).endswith("cast first, with a.astype('int32') and b.astype('int32')")
    with use_rules("numpy"), pytest.raises(RuntimeDtypeError) as caught:
        ops.bitwise_left_shift(a.unwrap(), a.unwrap())
    text = caught.value.fix.expressions()["a"]
    assert eval(text, {"a": a.unwrap(), "torch": torch}).dtype == torch.int32


@pytest.mark.parametrize("library", mostly_slow(("numpy", "jax", "torch"), "numpy", "jax"))
def test_fixes_of_three_operands_work(library):
    with _library("jax-x64" if library == "jax" else library), use_rules("tf-rfc-none"):
        bound = dict(zip("abc", (_array(library, kind, 1, 2) for kind in ("int32", "float32", "float16")), strict=True))
        xp = supremum.namespace(library)
        for question in (lambda *each: xp.concat(list(each)), xp.clip, lambda *each: explain(*each).dtype):
            with pytest.raises(PromotionError) as caught:
                question(*bound.values())
            written = caught.value.fix.expressions()
            question(*(_evaluated(written[x], **bound) if x in written else bound[x] for x in bound))


def test_in_place_division_of_an_integer_variable_has_no_cast_in_its_error():
    v = supremum.arrays.ArrayVariable(4, dtype="int32", library="numpy")
    with pytest.raises(InPlaceError) as caught:
        v /= 2
    assert "cast" not in str(caught.value)


def test_pickled_refusal_keeps_its_fix():
    import pickle

    a, b = _array("numpy", "bool", True), _array("numpy", "bool", False)
    with use_rules("jax-x64"), pytest.raises(PromotionError) as caught:
        _ = a - b
    assert str(pickle.loads(pickle.dumps(caught.value)).fix) == str(caught.value.fix)


def test_fixes_are_tried_on_arrays_of_one_element():
    a, b = _array("numpy", "uint64", 2**53 + 1), _array("numpy", "int64", -1)
    a, b = (asarray(np.repeat(each.unwrap(), 10**6), library="numpy") for each in (a, b))
    with use_rules("jax-strict"), pytest.raises(PromotionError) as caught:
        _ = a + b
    tracemalloc.start()
    try:
        assert caught.value.fix
        assert tracemalloc.get_traced_memory()[1] < 4e6  # half of the bytes of one operand
    finally:
        tracemalloc.stop()


def test_fix_of_a_refusal_under_jit_works_under_jit():
    @jax.jit
    def less(a, b):
        with use_rules("array-api"), pytest.raises(PromotionError) as caught:
            ops.less(a, b)
        fixed = {x: _evaluated(text, a=a, b=b) for x, text in caught.value.fix.expressions().items()}
        with use_rules("array-api"):
            return ops.less(*({"a": a, "b": b} | fixed).values())

    with jax.enable_x64(False):
        assert less(_array("jax", "complex64", 1 + 2j), _array("jax", "int32", 3)).tolist() == [True]


@pytest.mark.parametrize("kind", ["float6_e2m3fn", "float6_e3m2fn"])
def test_formats_without_xla_arithmetic_are_refused_before_compilation(kind):
    """From JAX 0.12 on, XLA aborts the process when it compiles some operations on these formats."""
    if jax.__version_info__ < (0, 11):
        with pytest.raises(RuntimeDtypeError, match=f"JAX does not have {kind} on this device"):
            _array("jax", kind, 1.0, 2.0)
        return
    a = _array("jax", kind, 1.0, 2.0)
    for name, applied in ELEMENTWISE_OPERATIONS.items():
        if name == "where":
            continue  # where selects values without a computation
        with use_rules("jax-x32"), pytest.raises((RuntimeDtypeError, PromotionError)) as caught:
            function_of(name)(*[a] * applied.operation.arity)
        str(caught.value)  # the message searches for a fix and tries it
    with pytest.raises(RuntimeDtypeError, match="does not compute in it"):
        a.astype("bool")
