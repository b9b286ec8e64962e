"""The answer of each surprise is that of the rule set and of the framework."""

import functools
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from conformance.measured import ORACLES, cells, document
from generate.surprise import answered
from generate.surprises import SURPRISES
from jax_modes import jax_as
from optional_packages import import_or_skip
from slowly import mostly_slow
from supremum.data_frames import NULLABLE_NAMES
from supremum.formats import as_format
from supremum.operations import as_operation
from supremum.rules.names import HOMES, JAX_ALIASES

_CASES = [(rules, surprise) for rules, each in SURPRISES.items() for surprise in each]
_IDS = [f"{rules}: {each.operation}{each.operands}" for rules, each in _CASES]
_NUMBERS = {bool: "bool()", int: "int*", float: "float*", complex: "complex*"}
# Functions that a framework's document does not mention, and that the rule set decides by the common rule.
_NOT_IN_THE_RFC = {"sqrt"}


def test_rule_sets_have_four_to_eight_surprises():
    assert set(SURPRISES) <= set(HOMES)
    assert len(SURPRISES) > 20
    assert all(4 <= len(each) <= 8 for each in SURPRISES.values())
    assert len(set(_CASES)) == len(_CASES)


@pytest.mark.parametrize("rules", SURPRISES)
def test_the_rule_set_gives_the_answers(rules):
    assert {each: answered(each.decide(rules)) for each in SURPRISES[rules]} == answers_of(rules)


def answers_of(rules):
    return {each: each.answer for each in SURPRISES[rules]}


def _of(*names):
    chosen = [place for place, (rules, _) in enumerate(_CASES) if rules in names]
    return pytest.mark.parametrize(("rules", "surprise"), [_CASES[i] for i in chosen], ids=[_IDS[i] for i in chosen])


def _asked(xp, surprise, make, refusals=(TypeError, OverflowError), names=()):
    """The dtype of a call with arrays that a library makes, or `"refused"`."""
    operands = [make(each) if isinstance(each, str) else each for each in surprise.operands]
    function = getattr(xp, dict(names).get(surprise.operation, surprise.operation))
    try:
        return str(function(*operands).dtype).rpartition(".")[2]
    except refusals:
        return "refused"


@_of("numpy")
def test_numpy_gives_the_answer(rules, surprise):
    assert _asked(np, surprise, lambda name: np.ones(1, as_format(name).dtype)) == surprise.answer


@_of(*JAX_ALIASES["jax"])
def test_jax_gives_the_answer(rules, surprise):
    # With x64 off, 64 bits can only come from NumPy arrays, unless they are explicit.
    ones = np.ones if rules in ("jax-x32", "jax-strict-x32") else jnp.ones
    # JAX refuses Python numbers when it sees their values.
    refusals = (TypeError, jax.errors.JAXTypeError, ValueError)
    with jax_as(rules):
        assert _asked(jnp, surprise, lambda name: ones(1, as_format(name).dtype), refusals) == surprise.answer


@_of("torch")
def test_torch_gives_the_answer(rules, surprise):
    torch = import_or_skip("torch")
    names = {"equal": "eq", "not_equal": "ne", "less": "lt"}
    answer = _asked(
        torch, surprise, lambda name: torch.ones(1, dtype=getattr(torch, name)), (TypeError, RuntimeError), names
    )
    assert answer == surprise.answer


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # about the values of the results
@_of("array-api")
def test_array_api_strict_gives_the_answer(rules, surprise):
    xp = import_or_skip("array_api_strict")
    with xp.ArrayAPIStrictFlags(api_version="2024.12"):
        answer = _asked(xp, surprise, lambda name: xp.ones((1,), dtype=getattr(xp, name)))
    assert answer == surprise.answer


@functools.cache
def _measured(framework, mode=None):
    """Return an oracle's answers by operation and operands; those of operators and eager calls take precedence."""
    found = document(framework)
    source = found["modes"][mode] if mode else found
    codes = found["codes"]
    answers = {}
    for (operation, form, left, right), cell in cells(source["tables"], source["columns"]):
        key = (as_operation(operation).name, *(codes.get(each, each) for each in (left, right) if each))
        if form in ("operator", "eager") or key not in answers:
            dtype = codes.get(cell.removesuffix("*"))
            answers[key] = "refused" if cell in found["refusals"] else (dtype or cell).removesuffix("*")
    return answers


_MEASURED = (
    "keras", "paddle", "mlx", "tinygrad", "polars", "polars-1", "pyarrow", "pandas", "pandas-nullable",
    "tf-off", "tf-all", "tf-safe", "numpy-legacy",
)  # fmt: skip


@pytest.mark.parametrize("rules", mostly_slow(_MEASURED, "keras", "mlx", "paddle", "tinygrad"))  # small oracles
def test_the_oracle_has_the_answers(rules):
    assert {each: _measured_answer(rules, each) for each in SURPRISES[rules]} == answers_of(rules)


def _measured_answer(rules, surprise):
    family, _, mode = rules.partition("-")
    framework, mode = {"tf": ("tensorflow", mode), **dict.fromkeys(("numpy", "polars", "pandas"), (rules, None))}.get(
        family, (family, None)
    )
    if NULLABLE_NAMES.keys() & {*surprise.operands}:
        framework = f"{framework}-mixed"
    by_value = framework == "numpy-legacy"
    operands = [
        each if isinstance(each, str) else str(each) if by_value else _NUMBERS[type(each)] for each in surprise.operands
    ]
    return _measured(framework, mode)[surprise.operation, *operands]


@_of("tf-rfc-all", "tf-rfc-safe", "tf-rfc-none")
def test_the_reading_of_the_rfc_has_the_answer(rules, surprise):
    if surprise.operation in _NOT_IN_THE_RFC:
        assert "sqrt" not in json.dumps(_rfc())
        return
    table = ("truediv_" if surprise.operation == "divide" else "") + rules.rpartition("-")[2].upper()
    names = [x if isinstance(x, str) else f"{_NUMBERS[type(x)][0]}*" for x in surprise.operands]
    cell = _rfc()[table][",".join(names)]
    fits = [
        _holds(cell["range_check"], x) for x in surprise.operands if "range_check" in cell and not isinstance(x, str)
    ]
    assert (cell.get("result", "refused") if all(fits) else "refused") == surprise.answer


@functools.cache
def _rfc():
    return json.loads((ORACLES / "tensorflow-rfc-431.json").read_text())


def _holds(dtype, number):
    row = as_format(dtype)
    return row.min <= number <= row.max


def test_what_else_the_sentences_claim():
    assert np.float16(2048) + np.float16(1) == 2048  # "above 2,048 it does not hold every integer"
    assert np.float32(65519).astype("float16") < np.inf
    with np.errstate(over="ignore"):
        assert np.float32(65520).astype("float16") == np.inf
    assert np.array(1000).astype("int8") == -24
    assert float(2**53) + 1 == 2**53
    with jax_as("jax-x32"):
        assert bool((jnp.uint32(4294967295) < jnp.int32(0)).item())
        assert (jnp.uint32(4294967295) + jnp.int32(0)).item() == -1
    with jax_as("jax-x64"):
        assert jnp.power(jnp.ones(1, "int8"), jnp.full(1, -1, "int8")).dtype == "int8"
        weak = jnp.ones(1, "uint64") + jnp.ones(1, "int64")
        assert (weak + jnp.ones(1, "bfloat16")).dtype == "bfloat16"
    assert as_format("float32").max > 3.4e38
    assert as_format("float16").max == 65504
