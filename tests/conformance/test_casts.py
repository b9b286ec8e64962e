"""What casts make of values: `explain_cast` beside each framework, value by value."""

import json
import math
from pathlib import Path

import jax
import numpy as np
import pytest

from jax_modes import jax_as
from optional_packages import import_or_skip
from oracles.casts import jax_casts, torch_casts
from oracles.numpy_legacy import numpy_legacy_casts
from slowly import for_each, mostly_slow
from supremum import OperandError, explain_cast, rules
from supremum.errors import ArgumentError
from supremum.formats import FORMATS, as_format
from supremum.number_conversion import converted
from supremum.rules import get_rules

ORACLES = Path(__file__).parent / "oracles"
# ml_dtypes has the others too, but NumPy has no casts between them.
EXTENSIONS = [row.name for row in FORMATS if not row.is_builtin and row.category != "complex"]


def number(text, category):
    value = float.fromhex(text) if "x" in text or "n" in text else int(text)
    return float(value) if category in ("float", "complex") else int(value)


def cells(document):
    """List (source, target, value, outcomes) of a measured document."""
    for name, row in document["casts"].items():
        source = as_format(name, columns=True)
        values = [number(text, source.category) for text in document["values"][source.category].split()]
        for other, answers in row.items():
            if answers == "refused":
                continue
            target = as_format(other, columns=True)
            for value, cell in zip(values, answers.split(), strict=True):
                if cell != ".":
                    given = complex(value, 2.0) if source.category == "complex" else value
                    given = bool(value) if source.category == "bool" else given
                    outcomes = [text for text in cell.split("|") if text != "null"]
                    yield source, target, given, {number(text, target.category) for text in outcomes}


def key(value):
    """The real part of a value, such that -0.0 differs from 0.0 and NaN equals NaN."""
    return "nan" if value != value else repr(value.real)


def check(document, name, least):
    """Compare a document with a rule set. Return the formats that the rules know nothing about."""
    casts, counts, unknown = get_rules(name).array_casts, [0, 0], set()
    for source, target, value, measured in cells(document):
        becomes = casts.outcomes(value, source, target)
        assert casts.refuses(value, source, target) == (not measured), (source, target, value, measured)
        if not becomes and measured:
            unknown |= {source.name, target.name} - casts.formats
            continue
        told, found = {key(each) for each in becomes}, {key(each) for each in measured}
        if value != value and not target.is_inexact:
            pass
        elif value != value and target.component.nan.name == "NONE":
            told, found = ({each.lstrip("-") for each in texts} for texts in (told, found))  # the sign of zero varies
        if name.startswith("jax") and (source.component.name, target.component.name) == ("float64", "float16"):
            # On processors with AVX512-FP16, XLA rounds once; on others, through float32.
            told |= {key(converted(value.real, [target.component]))}
        assert found <= told, (source, target, value, measured, becomes)
        counts[found == told] += 1
        if sum(counts) % 50 == 0:
            outcome = explain_cast(source.dtype, target.dtype, value, rules=name)
            assert set(map(key, outcome.becomes)) == set(map(key, becomes))
            assert len(becomes) <= 1 or not outcome.is_defined
    assert sum(counts) > least
    assert counts[True] > 0.97 * sum(counts)
    return unknown


@pytest.mark.parametrize(
    ("oracle", "names", "least", "unknown"),
    [
        ("numpy-legacy-casts", ["numpy-legacy", "numpy"], 8000, set()),
        ("paddle-casts", ["paddle"], 7000, {"float8_e4m3fn", "float8_e5m2"}),
        ("mlx-casts", ["mlx"], 8000, set()),
        ("pyarrow-casts", ["pyarrow"], 5000, set()),
        ("pandas-casts", ["pandas"], 8000, set()),
        ("pandas-nullable-casts", ["pandas-nullable"], 4000, set()),
        ("polars-casts", ["polars"], 4000, set()),
        ("polars-1-casts", ["polars-1"], 3000, set()),
        ("tensorflow-casts", ["tf-all", "tf-off", "tf-safe", "tf-rfc-all"], 11000, {"int4", "uint4"}),
        (
            "tinygrad-casts", ["tinygrad"], 5000,
            {"float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz"},
        ),
    ],
)  # fmt: skip
def test_casts_agree_with_measured_frameworks(oracle, names, least, unknown):
    document = json.loads((ORACLES / f"{oracle}.json").read_text())
    assert check(document, names[0], least) == unknown
    assert all(get_rules(name).array_casts == get_rules(names[0]).array_casts for name in names)


def test_casts_agree_with_numpy():
    assert check(numpy_legacy_casts(), "numpy", 8000) == set()


@pytest.mark.slow
def test_casts_agree_with_numpy_and_ml_dtypes():
    assert check(numpy_legacy_casts(EXTENSIONS), "numpy", 28000) == set()


def test_casts_agree_with_torch():
    import_or_skip("torch")
    assert check(torch_casts(), "torch", 16000) == {"float8_e8m0fnu"}


NARROW = "float32 bfloat16 float16 float8_e4m3fn int8 uint8 int32"
WIDE = f"{NARROW} bool uint16 uint32 int16 complex64 float8_e5m2 float8_e4m3fnuz float8_e4m3b11fnuz int4 uint4"


@pytest.mark.parametrize("compiled", mostly_slow([False, True], False), ids=["eager", "jitted"])
def test_casts_agree_with_jax(compiled):
    assert check(jax_casts(NARROW, compiled=compiled), "jax-x32", 1900) == set()


@pytest.mark.slow
@pytest.mark.parametrize("compiled", [pytest.param(False, marks=pytest.mark.exhaustive), True], ids=["eager", "jitted"])
def test_casts_agree_with_jax_in_all_formats(compiled):
    with jax_as("jax-x64"):
        document = jax_casts(f"{WIDE} int64 uint64 float64 complex128", compiled=compiled)
    assert check(document, "jax-x64", 12000) == set()


def test_numpy_gives_an_array_both_results_of_an_undefined_cast():
    found = explain_cast("float32", "uint32", 5e9, rules="numpy")
    with np.errstate(invalid="ignore"):
        given = {int(each) for length in (1, 67) for each in np.full(length, 5e9, "float32").astype("uint32")}
    assert given <= set(found.becomes)
    assert not found.is_defined


def test_a_64_bit_target_is_held_in_32_bits_by_jax_without_x64():
    assert explain_cast("float64", "int64", 1e10, rules="jax-x32").becomes == (2**31 - 1,)
    assert explain_cast("float64", "int64", 1e10, rules="jax-x64").becomes == (10**10,)
    assert int(jax.numpy.float32(1e10).astype("int32")) == 2**31 - 1


def test_a_value_is_first_held_in_the_source():
    assert explain_cast("float16", "float32", 0.1, rules="numpy").value == float(np.float16(0.1))
    assert explain_cast("complex64", "float32", 0.1, rules="numpy").becomes == (float(np.float32(0.1)),)


@for_each("name", rules.rule_names())
def test_every_rule_set_explains_or_refuses_casts(name):
    try:
        found = explain_cast("float32", "int8", rules=name)
    except ArgumentError as error:
        assert "rules='numpy'" in str(error)  # noqa: PT017 (most rule sets do not raise)
        assert explain_cast("float32", "int8", rules="numpy")
    else:
        assert [each.value for each in found.examples if math.isfinite(each.value)] == [1.5, 128.0, -129.0]
        assert "float32 -> int8" in str(found)
        assert "float32" in found._repr_html_()
        assert json.dumps(found.to_dict())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((1.0, "int8"), "source must be a dtype or an array"),
        (("float32", float), "target must be a dtype or an array"),
        (("float16", "int8", 1e6), "value=1000000.0 is out of range for float16"),
        (("int8", "float32", 1.5), "value must be a number that an array of int8 holds"),
        (("float32", "int8", 1j), "value must be a number that an array of float32 holds"),
        (("float32", "int8", np.float32(1)), "value must be a Python number"),
        (("float32", "int8", "3"), "value must be a Python number"),
    ],
)
def test_bad_arguments_are_refused_in_words(arguments, words):
    with pytest.raises(OperandError, match=words):
        explain_cast(*arguments, rules="numpy")
