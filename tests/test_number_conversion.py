"""The conversion of Python numbers matches NumPy, JAX and PyTorch."""

import itertools
import json
import math
import subprocess
from pathlib import Path

import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings

import supremum
from conformance.departures import departures_of_version
from float16_conversion import converts_to_float16_at_once
from optional_packages import import_or_skip
from programs import find_program
from slowly import mostly_slow
from supremum import explain, use_rules
from supremum.arrays import asarray
from supremum.explorer.page import conversions
from supremum.formats import FORMATS, as_format
from supremum.number_conversion import change, converted

FLOATS = [row for row in FORMATS if row.category == "float" and row.zero]
INTEGERS = [row for row in FORMATS if row.category == "integer" and row.is_builtin]
# XLA converts to these differently at each optimization level, or cannot compute in them.
XLA_VARIES = ("float4_e2m1fn", "float6_e2m3fn", "float6_e3m2fn")
TORCH_FLOATS = ("bfloat16", "float16", "float32", "float64")


def numbers_near(row):
    """Return numbers at the edges of a format: the largest, ties in the last digit, the smallest, and huge numbers."""
    ints = [2**k + d for k in (7, 8, 11, 15, 16, 24, 30, 31, 32, 53, 62, 63, 64) for d in (-1, 0, 1)]
    ints += [2**30 + 2**22 + 1, 2**60 + 2**36 + 1, 2**54 + 2**30 + 1, 10**30]
    found = [*ints, *(-each for each in ints), 0.0, 0.1, 1e-8, 1e6, 65519.9999, 1e39, -1e39, 1e300, math.inf, -math.inf]
    if not row.is_inexact:
        return [*found, *(int(end) + d for end in (row.min, row.max) for d in (-2, -1, 0, 1, 2))]
    half = 2.0 ** (row.max_exponent - row.mantissa - 1)
    edges = [row.max, row.smallest_normal, row.smallest_subnormal]
    scaled = [edge * scale for edge in edges[1:] for scale in (0.25, 0.5, 0.75, 1.0, 1.5)]
    scaled += [row.max, row.max + half / 2, row.max + half, 1 + row.eps / 2, 1 + row.eps * 1.5]
    near = [math.nextafter(each, away) for each in scaled for away in (0.0, math.inf)]
    return [each for each in (*found, *scaled, *near, *(-each for each in scaled)) if each == each]


def converted_value(decision, position=1):
    """Return the value that a decision converts a number to."""
    changed = {each.position: each.becomes for each in decision.number_changes}
    expected = converted(decision.operands[position].value, decision.verdict.number_steps[position])
    np.testing.assert_equal(changed.get(position, expected), expected)
    return float(expected)


def same(a, b):
    return a == b or (math.isnan(a) and math.isnan(b))


def mismatches(rules, operation, row, compute):
    """Return the numbers that a framework converts differently from the decision."""
    wrong, compared = {}, 0
    for value in numbers_near(row):
        decision = explain(row.name, value, operation=operation, rules=rules)
        if not decision:
            continue
        compared += 1
        try:
            found = float(compute(value))
        except (OverflowError, RuntimeError):  # PyTorch and JAX check the value; the rules only look at types
            found = None
        if found is None or not same(found, converted_value(decision)):
            wrong[value] = (found, converted_value(decision))
    assert compared > 10
    return wrong


@pytest.mark.parametrize("row", [*FLOATS, *INTEGERS], ids=str)
def test_decisions_convert_numbers_as_numpy_does(row):
    zero = np.zeros(1, row.dtype)
    with np.errstate(all="ignore"):
        assert mismatches("numpy", "add", row, lambda value: np.add(zero, value)[0].astype(np.float64)) == {}
        mismatches_of_where = mismatches(
            "numpy", "where", row, lambda value: np.where([True], value, zero)[0].astype(np.float64)
        )
    # Where NumPy differs, it rounds only once.
    assert [value for value, (found, _) in mismatches_of_where.items() if found != converted(value, [row])] == []
    listed = departures_of_version("numpy", tuple(map(int, np.__version__.split(".")[:2])), "number")
    assert len(mismatches_of_where) == sum(
        each.cells for each in listed if (each.operations, each.left) == ("where", row.name)
    )


@pytest.mark.parametrize("x64", [False, True])
@pytest.mark.parametrize(
    "row",
    mostly_slow(
        (row for row in (*FLOATS, *INTEGERS) if row.name not in XLA_VARIES and not row.name.endswith("fnuz")),
        as_format("float16"),
    ),
    ids=str,
)
def test_decisions_convert_numbers_as_jax_does(row, x64):
    with jax.enable_x64(x64):
        if row.bits > 32 and not x64:
            return
        zero = jnp.zeros(1, row.dtype)
        rounds_once = row.name == "float16" and x64 and converts_to_float16_at_once()

        def compute(value):
            found = np.asarray(jnp.where(jnp.ones(1, bool), value, zero))[0].astype(np.float64)
            if rounds_once and same(found, converted(value, [row])):
                return converted_value(explain(row.name, value, operation="where", rules="jax-x64"))
            is_subnormal = row.is_inexact and x64 and 0 < abs(value) < 2 * as_format("float32").smallest_normal
            # XLA on CPU flushes float32 subnormals to zero; this depends on the device.
            return (
                converted_value(explain(row.name, value, operation="where", rules="jax-x64")) if is_subnormal else found
            )

        assert mismatches("jax-x64" if x64 else "jax-x32", "where", row, compute) == {}


@pytest.mark.parametrize("name", [*TORCH_FLOATS, "uint8", "int8", "int16", "int32", "int64"])
def test_decisions_convert_numbers_as_torch_does(name):
    torch = import_or_skip("torch")
    row, zero = as_format(name), torch.zeros(1, dtype=getattr(torch, name))
    wrong = mismatches("torch", "add", row, lambda value: (zero + value).double()[0])
    assert {value for value in wrong if wrong[value][0] is None} <= {2**64 + d for d in (-1, 0, 1)}
    assert {value: found for value, found in wrong.items() if found[0] is not None} == {}


@pytest.mark.parametrize("library", mostly_slow(("numpy", "jax", "torch"), "numpy"))
@pytest.mark.parametrize("rules", ["numpy", "jax-x32", "jax-x64", "torch"])
def test_arrays_convert_numbers_as_the_decision_says(library, rules):
    if library == "torch":
        import_or_skip("torch")
    wrong = {}
    with jax.enable_x64(True), use_rules(rules), np.errstate(all="ignore"):
        for name in ("float16", "bfloat16", "float8_e4m3fn", "float32", "int8", "uint8"):
            row = as_format(name)
            if library == "torch" and name.startswith("float8"):
                continue
            zero = asarray(np.zeros(1, row.dtype), library=library)
            for value in numbers_near(row)[:: 3 if library == "jax" else 1]:
                decision = explain(name, value, operation="add", rules=rules)
                tiny = isinstance(value, float) and 0 < abs(value) < 2 * as_format("float32").smallest_normal
                if not decision or (library == "jax" and tiny):
                    continue
                try:
                    found = float(np.asarray(zero + value)[0])
                except OverflowError:
                    continue  # the error tells the user
                if not same(found, converted_value(decision)):
                    wrong[name, value] = (found, converted_value(decision))
    assert wrong == {}


def test_jax_converts_ints_beyond_int32_from_int64():
    for value, dtype, steps in (
        (5, "float32", ["float64", "float32"]),
        (2**40 + 1, "float32", ["int64", "float32"]),
        (2**40 + 1, "bfloat16", ["int64", "float32", "bfloat16"]),
        (2**40 + 1, "int8", ["int8"]),
    ):
        verdict = explain(dtype, value, operation="add", rules="jax-x64").verdict
        assert [str(step) for step in verdict.number_steps[1]] == steps


def test_number_changes_overflow_underflow_round_and_wrap():
    def changes_of(name, value, rules="jax-x32"):
        changes = explain(name, value, operation="add", rules=rules).number_changes
        return [(each.position, each.becomes, each.how) for each in changes]

    assert changes_of("float16", 1e6) == [(1, math.inf, "overflows")]
    assert changes_of("float16", 1e-8) == [(1, 0.0, "underflows")]
    assert changes_of("float16", 1e-7) == [(1, 2.0**-23, "rounds")]
    assert changes_of("int8", 1000, "torch") == [(1, -24, "wraps")]
    assert changes_of("float32", 2**24 + 1) == [(1, 2.0**24, "rounds")]
    assert changes_of("float4_e2m1fn", 100.0) == [(1, 6.0, "overflows")]
    assert changes_of("float8_e4m3fn", 1000.0)[0][2] == "overflows"
    # Ordinary rounding of a float is not a change; neither is a number that is not converted.
    assert changes_of("float32", 0.1) == changes_of("float16", 65519.0) == changes_of("float32", 2**24) == []
    assert explain("uint8", 256, operation="less", rules="numpy").number_changes == ()
    assert explain("int8", 300, operation="pow", rules="jax-x32").number_changes == ()
    assert explain("uint8", 256, operation="add", rules="numpy").number_changes == ()


def test_a_float_that_an_integer_format_truncates_rounds_and_one_out_of_range_wraps():
    int8 = as_format("int8")
    for value, how in ((2.5, "rounds"), (-0.5, "rounds"), (300.5, "wraps"), (10**400, "wraps"), (2.0, None)):
        assert change(value, converted(value, [int8]), int8) == how


def test_explanations_show_converted_numbers():
    assert "float* (1000000.0) -> float16, overflows to inf" in str(explain("float16", 1e6, operation="add"))
    assert "int* (1000) -> int8, wraps to -24" in str(explain("int8", 1000, operation="add", rules="torch"))
    assert "complex64, overflows to inf" in str(explain("complex64", 1e39, operation="add", rules="numpy"))


NUMBERS = st.one_of(st.integers(), st.integers(-(2**70), 2**70), st.floats(), st.floats(-70_000, 70_000))


@settings(max_examples=100, deadline=None, derandomize=True)
@given(NUMBERS, st.sampled_from(FLOATS))
def test_a_converted_number_is_exact_in_the_format(value, row):
    found = converted(value, [row])
    if not math.isfinite(found) or not math.isfinite(float(value) if abs(value) < 2**1000 else math.inf):
        return
    (again,) = np.asarray([found]).astype(row.dtype).astype(np.float64)
    assert again == found  # the format represents it exactly
    assert converted(found, [row]) == found
    assert change(found, found, row) is None


def test_the_explorer_converts_numbers_as_python_does(tmp_path):
    """Run the explorer's script in Node on numbers near the edges of every format."""
    node = find_program("node")
    folder = Path(supremum.__path__[0])
    cases, expected = [], []
    for row, middle in itertools.product((*FLOATS, *INTEGERS, as_format("bool")), ("", "float32", "int64")):
        for value in (*numbers_near(row), math.nan):
            steps = [as_format(name) for name in (middle, row.name) if name]
            if isinstance(value, float) and any(each.category == "integer" for each in steps):
                continue
            if any(a.is_inexact and b.category == "integer" for a, b in itertools.pairwise(steps)):
                continue
            new_value = converted(value, steps)
            kind_of_change = change(value, new_value, steps[-1])
            cases.append(
                (str(value) if isinstance(value, int) else value.hex(), type(value).__name__, [s.name for s in steps])
            )
            expected.append("" if kind_of_change is None else f"{kind_of_change} to {new_value}")
    texts = [f"{value}n" if kind == "int" else _javascript(float.fromhex(value)) for value, kind, _ in cases]
    calls = ",".join(f"[{text},{json.dumps(steps)}]" for text, (_, _, steps) in zip(texts, cases, strict=True))
    scripts = "".join((folder / "explorer" / f"{name}.js").read_text() for name in ("operands", "conversion"))
    program = tmp_path / "program.js"
    program.write_text(
        f"{scripts}\nconst known = {json.dumps(conversions())};\n"
        f"console.log(JSON.stringify([{calls}].map(([value, steps]) => changeText(value, steps, known))))"
    )
    result = subprocess.run([node, program], capture_output=True, text=True, check=True)
    found = json.loads(result.stdout)
    assert [each for each in zip(cases, found, expected, strict=True) if each[1] != each[2]] == []


def _javascript(value):
    return "NaN" if math.isnan(value) else f"{'-' if value < 0 else ''}Infinity" if math.isinf(value) else repr(value)


@pytest.mark.parametrize("row", [row for row in FORMATS if row.category == "float"], ids=str)
def test_zeros_and_nan_become_what_numpy_and_ml_dtypes_make_of_them(row):
    for value in (0.0, -0.0, math.nan, row.smallest_subnormal / 4, -row.smallest_subnormal / 4 if row.signed else 0.0):
        with np.errstate(all="ignore"):
            expected = float(np.float64(value).astype(row.dtype))
        found = converted(value, [row])
        assert same(found, expected), (value, found, expected)
        assert math.isnan(found) or math.copysign(1, found) == math.copysign(1, expected), (value, found, expected)
