"""The JAX rule sets compared with the page "JAX type promotion" and with the installed JAX, cell by cell."""

import itertools
import json
import pathlib

import jax
import jax.extend
import jax.numpy as jnp
import numpy as np
import pytest

from supremum import explain, promote_types, result_type
from supremum.formats import FORMATS
from supremum.lattice import counterexamples
from supremum.operands import WEAK_NAMES, as_operand
from supremum.rules import JAX_X32, JAX_X64, get_rules

PAGE = json.loads((pathlib.Path(__file__).parent / "oracles/jax-type-promotion-rst.json").read_text())["table"]
PYTHON = {"int*": int, "float*": float, "complex*": complex}
# The dtypes that JAX has; our table of formats has two more complex ones.
JAX_FORMATS = [row for row in FORMATS if row.name not in ("complex32", "bcomplex32")]
TYPES = [row.dtype for row in JAX_FORMATS] + [int, float, complex]
RULES = {True: JAX_X64, False: JAX_X32}
pytestmark = pytest.mark.filterwarnings("ignore:Explicitly requested dtype:UserWarning")  # JAX's, with x64 off
either_width = pytest.mark.parametrize("x64", [True, False], ids=["x64", "x32"])


def test_jax_x64_rules_agree_with_all_324_cells_of_the_page():
    cells = {
        (a, b): explain(PYTHON.get(a, a), PYTHON.get(b, b), rules="jax-x64").result.name
        for a, row in PAGE.items()
        for b in row
    }
    assert len(cells) == 324
    assert {pair: name for pair, name in cells.items() if name != PAGE[pair[0]][pair[1]]} == {}


def _theirs(function, *types):
    try:
        return np.dtype(function(*types)).name
    except ValueError:  # JAX's TypePromotionError is one
        return None


def _ours(function, *types, rules):
    try:
        return function(*types, rules=rules).name
    except TypeError:
        return None


@either_width
@pytest.mark.parametrize(("ours", "theirs"), [(promote_types, jnp.promote_types), (result_type, jnp.result_type)])
def test_promoted_dtypes_agree_with_installed_jax(ours, theirs, x64):
    with jax.enable_x64(x64):
        different = {
            (a, b): (mine, jaxs)
            for a, b in itertools.product(TYPES, repeat=2)
            if (mine := _ours(ours, a, b, rules=RULES[x64])) != (jaxs := _theirs(theirs, a, b))
        }
    assert different == {}


@either_width
def test_result_type_of_many_operands_agrees_with_installed_jax(x64):
    # Folding pairs and promoting all operands at once can differ; JAX does the second, and so do our rules.
    random = np.random.default_rng(0)
    with jax.enable_x64(x64):
        for _ in range(3000):
            types = [TYPES[i] for i in random.integers(len(TYPES), size=random.integers(1, 6))]
            assert _ours(result_type, *types, rules=RULES[x64]) == _theirs(jnp.result_type, *types), types


@pytest.mark.slow
@either_width
@pytest.mark.parametrize("jitted", [False, True], ids=["eager", "jitted"])
def test_dtypes_and_weak_flags_of_sums_agree_with_installed_jax(x64, jitted):
    """Computes `a + b` for arrays, weak arrays and Python scalars."""

    def pairs(arrays):
        operands = [*arrays, 1, 1.0, 1j]
        # Eagerly, JAX compiles a separate program for each pair, so only one order is tested; `jit` tests both.
        return list(
            itertools.product(operands, repeat=2) if jitted else itertools.combinations_with_replacement(operands, 2)
        )

    def sums(arrays):
        return [jnp.add(a, b) for a, b in pairs(arrays)]

    with jax.enable_x64(x64):
        names = [name for name in PAGE if name not in WEAK_NAMES]
        held = {name: jnp.zeros((), name) for name in names if x64 or name not in JAX_X32.held_as}
        weak = {f"weak {kind.__name__}": jnp.asarray(kind(1)) for kind in (int, float, complex)}
        arrays = list((held | weak).values())
        totals = (jax.jit(sums) if jitted else sums)(arrays)
        for (a, b), total in zip(pairs(arrays), totals, strict=True):
            decision = explain(a, b, operation="add", rules=RULES[x64])
            assert (decision.dtype, decision.weak) == (total.dtype, total.weak_type), (a, b)


@pytest.mark.slow
def test_sums_of_weak_arrays_of_unusual_dtypes_agree_with_installed_jax():
    convert = jax.extend.core.primitives.convert_element_type_p

    def weak(dtype):
        return convert.bind(jnp.zeros(2), new_dtype=np.dtype(dtype), weak_type=True, sharding=None)

    arrays = [weak(d) for d in ("int8", "uint8", "uint32", "int16", "float16", "bfloat16", "float32", "complex64")]
    for a, b in itertools.product([*arrays, jnp.zeros(2, "int8"), 1, 2.0], repeat=2):
        total = jnp.add(a, b)
        decision = explain(a, b, operation="add", rules="jax-x32")
        assert (decision.dtype, decision.weak) == (total.dtype, total.weak_type), (a, b)


@pytest.mark.parametrize("rules", [JAX_X64, JAX_X32], ids=lambda rules: rules.name)
def test_join_satisfies_the_lattice_laws_over_every_triple(rules):
    names = [row.name for row in JAX_FORMATS] + list(WEAK_NAMES)

    def join(a, b):
        result = rules.decide("promote_types", _operands(a, b)).result
        return None if result is None else result.name

    assert len(names) ** 3 > 35_000
    assert list(counterexamples(join, names)) == []


def _operands(*names):
    return [as_operand(name) for name in names]


def test_narrowed_x32_join_satisfies_the_lattice_laws():
    names = [row.name for row in JAX_FORMATS if row.name not in JAX_X32.held_as] + list(WEAK_NAMES)

    def join(a, b):
        result = JAX_X32.decide(None, _operands(a, b)).result
        return None if result is None else result.name

    assert list(counterexamples(join, names)) == []


def test_rules_named_jax_follow_the_x64_flag():
    with jax.enable_x64(True):
        assert get_rules("jax") is get_rules() is JAX_X64
        assert result_type("int64", "int8") == np.dtype("int64")
    with jax.enable_x64(False):
        assert get_rules("jax") is get_rules() is JAX_X32
        assert result_type("int64", "int8") == np.dtype("int32")


@pytest.mark.parametrize("rules", [JAX_X64, JAX_X32], ids=lambda rules: rules.name)
def test_rules_accept_the_operands_after_the_fix_of_every_refusal(rules):
    refused = 0
    for a, b in itertools.product([row.name for row in FORMATS] + list(WEAK_NAMES), repeat=2):
        decision = explain(a, b, rules=rules)
        if not decision:
            refused += 1
            assert rules.decide(None, decision.fix.apply(decision.operands)), (a, b)
    assert refused > 100
