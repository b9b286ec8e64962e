"""The JAX rule sets compared with the page "JAX type promotion" and with the installed JAX, cell by cell."""

import itertools
import json
import pathlib

import jax
import jax.extend
import jax.numpy as jnp
import numpy as np
import pytest

from jax_modes import jax_as
from supremum import explain
from supremum.formats import FORMATS, as_format
from supremum.operands import as_operand
from supremum.rules import JAX_ALIASES, get_rules

PAGE = json.loads((pathlib.Path(__file__).parent / "oracles/jax-type-promotion-rst.json").read_text())["table"]
PYTHON = {"int*": int, "float*": float, "complex*": complex}
# The dtypes that JAX has; our table of formats has two more complex ones.
JAX_FORMATS = [row for row in FORMATS if row.name not in ("complex32", "bcomplex32")]
TYPES = [row.dtype for row in JAX_FORMATS] + [int, float, complex]
WEAK_FORMATS = [
    as_format(name).dtype for name in ("int8", "uint16", "int32", "float16", "bfloat16", "float32", "complex64")
]
pytestmark = pytest.mark.filterwarnings("ignore:Explicitly requested dtype:UserWarning")  # JAX's, with x64 off
every_rule_set = pytest.mark.parametrize("rules", JAX_ALIASES["jax"])


def test_jax_x64_rules_agree_with_all_324_cells_of_the_page():
    cells = {
        (a, b): explain(PYTHON.get(a, a), PYTHON.get(b, b), rules="jax-x64").result.name
        for a, row in PAGE.items()
        for b in row
    }
    assert len(cells) == 324
    assert {pair: name for pair, name in cells.items() if name != PAGE[pair[0]][pair[1]]} == {}


def _theirs(operation, *types):
    try:
        return np.dtype(getattr(jnp, operation)(*types)).name
    except ValueError:  # JAX's TypePromotionError is one
        return None


def _ours(rules, operation, *types):
    decision = get_rules(rules).decide(operation, [as_operand(each) for each in types])
    return decision.dtype.name if decision else None


@every_rule_set
@pytest.mark.parametrize("operation", ["promote_types", "result_type"])
def test_promoted_dtypes_of_pairs_agree_with_installed_jax(operation, rules):
    with jax_as(rules):
        assert get_rules("jax").name == rules
        answers = {
            pair: (_ours(rules, operation, *pair), _theirs(operation, *pair))
            for pair in itertools.product(TYPES, repeat=2)
        }
    assert {pair: (ours, theirs) for pair, (ours, theirs) in answers.items() if ours != theirs} == {}
    assert sum(ours is not None for ours, _ in answers.values()) > len(TYPES)


@every_rule_set
def test_result_type_of_weak_arrays_agrees_with_installed_jax(rules):
    convert, answers = jax.extend.core.primitives.convert_element_type_p, {}

    def ask(given):
        weak = [convert.bind(given, new_dtype=dtype, weak_type=True, sharding=None) for dtype in WEAK_FORMATS]
        calls = [(each,) for each in weak] + [*itertools.product(weak, weak), *itertools.product(weak, TYPES)]
        for call in calls:
            key = tuple(str(getattr(each, "aval", each)) for each in call)
            answers[key] = (_ours(rules, "result_type", *call), _theirs("result_type", *call))

    with jax_as(rules):
        jax.eval_shape(ask, jax.ShapeDtypeStruct((2,), np.dtype("float32")))
    assert {call: (ours, theirs) for call, (ours, theirs) in answers.items() if ours != theirs} == {}
    assert len(answers) == len(WEAK_FORMATS) * (1 + len(WEAK_FORMATS) + len(TYPES))


@every_rule_set
def test_result_type_of_many_operands_agrees_with_installed_jax(rules):
    # Folding pairs and promoting all operands at once can differ; JAX does the second, and so do our rules.
    random = np.random.default_rng(0)
    with jax_as(rules):
        for _ in range(1000):
            types = [TYPES[i] for i in random.integers(len(TYPES), size=random.integers(1, 6))]
            assert _ours(rules, "result_type", *types) == _theirs("result_type", *types), types
