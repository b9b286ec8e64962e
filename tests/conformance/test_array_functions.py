"""Functions of whole arrays under every rule set: reductions, products and functions that join several arrays."""

import collections
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from conformance import array_judge as judge
from conformance.array_departures import ARRAY_DEPARTURES, FOREIGN
from conformance.departures import expected_cells
from conformance.measured import document
from optional_packages import import_or_skip
from slowly import for_each, slow
from supremum import explain, get_rules
from supremum.formats import as_format
from supremum.operations import OPERATIONS, REDUCTIONS, Family, as_operation
from supremum.rules import RuleSet, rule_names

RULE_SETS = [name for name in rule_names() if name != "jax"]
WHOLE = [row.name for row in OPERATIONS.values() if row.family is Family.WHOLE]
VERSIONS = {"keras": "3.15.1", "mlx": "0.32.4", "numpy-legacy": "1.26.4", "paddle": "3.3.1", "tensorflow": "2.21.0"}
VERSIONS |= {"tinygrad": "0.14.0", "pandas": "3.1.1", "pandas-nullable": "3.1.1"}
FEW = ["bool", "uint8", "uint32", "int8", "int16", "int32", "float16", "float32", "complex64"]


def _compared(rules, answers):
    """Compare answers with our rules; every difference must be one departure.

    Returns:
        How many answers were compared, how many kernels are missing, and the cells of each departure.
    """
    compared, missing, covered, unexplained = 0, 0, collections.Counter(), {}
    for (operation, left, right), theirs in answers.items():
        if theirs == judge.NO_KERNEL:
            missing += 1
            continue
        compared += 1
        if (found := judge.ours(rules, operation, left, right)) != theirs:
            rows = [
                row
                for row in ARRAY_DEPARTURES
                if row.rules == rules and row.covers(operation, "array", left, right, found, theirs)
            ]
            covered.update(rows)
            if len(rows) != 1:
                unexplained[operation, left, right, found, theirs] = len(rows)
    assert unexplained == {}
    return compared, missing, covered


def _check_answers(rules, answers, accumulates, compared):
    counts = _compared(rules, answers)
    assert counts[2] == expected_cells({row: row.cells for row in ARRAY_DEPARTURES if row.rules == rules}, counts[2])
    assert counts[:2] == compared
    _check_accumulation(rules, accumulates)


def _check_accumulation(rules, accumulates):
    assert any(accumulates.values()) or rules == "pandas-nullable"  # which has no floats of 16 bits
    for operation, row in accumulates.items():
        for dtype, how in row.items():
            decision = explain(dtype, operation=operation, rules=rules)
            assert (decision.casts[0].target == as_format(dtype).dtype) == (how == "own"), (operation, dtype)


@pytest.mark.parametrize(
    ("rules", "framework", "mode", "compared"),
    [
        slow("numpy-legacy", "numpy-legacy", None, (9486, 0)),
        ("paddle", "paddle", None, (1463, 939)),
        ("mlx", "mlx", None, (2206, 0)),
        ("pandas", "pandas", None, (1918, 0)),
        ("pandas-nullable", "pandas-nullable", None, (1210, 0)),
        ("keras", "keras", None, (1625, 127)),
        ("tf-off", "tensorflow", "off", (1487, 574)),
        ("tf-all", "tensorflow", "all", (1620, 441)),
        ("tf-safe", "tensorflow", "safe", (1657, 404)),
        ("tinygrad", "tinygrad", None, (2126, 0)),
    ],
)
def test_dtypes_agree_with_measured_frameworks_except_departures(rules, framework, mode, compared):
    answers, accumulates, version = judge.measured(framework, mode)
    assert version == VERSIONS[framework]
    _check_answers(rules, answers, accumulates, compared)


@pytest.mark.slow
def test_dtypes_agree_with_installed_numpy():
    answers, accumulates = judge.live(judge.numpy_asked())
    asked = {operation for operation, *_ in answers}
    assert asked == {*REDUCTIONS, *WHOLE}
    _check_answers("numpy", answers, accumulates, (13262, 0))


def test_dtypes_agree_with_array_api_strict_except_departures():
    answers, _ = judge.live(judge.strict_asked())
    assert {operation for operation, *_ in answers} == {*REDUCTIONS, *WHOLE}
    compared, _, covered = _compared("array-api", answers)
    assert covered == {row: row.cells for row in ARRAY_DEPARTURES if row.rules == "array-api"}
    assert compared > 1500


def test_dtypes_agree_with_installed_torch():
    import_or_skip("torch")
    answers, accumulates = judge.live(judge.torch_asked())
    assert {operation for operation, *_ in answers} == {*REDUCTIONS, *WHOLE}
    counts = _compared("torch", answers)
    assert counts[0] > 4000
    assert not counts[2]
    # On the CPU, `at::acc_type` of a cumulative sum is even wider than our rules say; the probe uses 16-bit floats.
    _check_accumulation("torch", accumulates)


@pytest.mark.one_slow_in(6)
@pytest.mark.slow
@pytest.mark.parametrize("rules", judge.JAX_FLAGS)
def test_dtypes_agree_with_installed_jax_except_departures(rules):
    answers, accumulates = judge.live_jax(rules)
    assert {operation for operation, *_ in answers} == {*REDUCTIONS, *WHOLE}
    counts = _compared(rules, answers)
    assert counts[2] == expected_cells({row: row.cells for row in ARRAY_DEPARTURES if row.rules == rules}, counts[2])
    _check_accumulation(rules, accumulates)


@pytest.mark.one_in(4)
@pytest.mark.parametrize("rules", judge.JAX_FLAGS)
def test_reduced_dtypes_agree_with_installed_jax_and_are_never_weak(rules):
    asked, compared = judge.jax_asked(rules), 0
    cell = judge.oracle.cell_of(asked)
    weak = {f"{np.dtype(type(number))}*": number for number in (1, 1.0, 1j)}

    def ask():
        nonlocal compared
        arrays = {name: asked.make([1, 1, 1], name) for name in asked.codes}
        for (operation, call), (name, array) in itertools.product(asked.reductions.items(), arrays.items()):
            theirs = judge._answer(cell(call, array), asked.codes)
            if (found := judge.ours(rules, operation, name, "")) != theirs:
                departs = [row for row in ARRAY_DEPARTURES if row.covers(operation, "array", name, "", found, theirs)]
                assert departs, (operation, name, found, theirs)
            compared += 1
        # Reductions of weak arrays.
        for (operation, call), number in itertools.product(asked.reductions.items(), weak.values()):
            array = jnp.where(jnp.ones(3, bool), number, number)
            assert array.weak_type
            result, decision = call(array), explain(array, operation=operation, rules=rules)
            assert (result.dtype, result.weak_type) == (decision.dtype, decision.weak), (operation, number)

    with judge.flags(*judge.JAX_FLAGS[rules]):
        jax.eval_shape(ask)
    assert compared == len(asked.reductions) * len(asked.codes)


@pytest.mark.parametrize("names", [FEW[::2], slow(FEW)], ids=["few", "more"])
def test_joined_weak_arrays_agree_with_installed_jax(names):
    asked, accepted = judge.jax_asked("jax-x32"), 0

    def ask():
        nonlocal accepted
        arrays = {name: asked.make([1, 1, 1], name) for name in names}
        weak = [jnp.where(jnp.ones(3, bool), number, number) for number in (1, 1.0, 1j)]
        for operation in ("concat", "stack", "diff", "outer", "cross"):
            for a, b in [*itertools.product(weak, repeat=2), *itertools.product(weak, arrays.values())]:
                decision = explain(a, b, operation=operation, rules="jax-x32")
                try:
                    result = asked.several[operation](a, b)
                except TypeError:
                    assert not decision
                    continue
                accepted += 1
                assert (result.dtype, result.weak_type) == (decision.dtype, decision.weak), (operation, a, b)

    with jax.enable_x64(False):
        jax.eval_shape(ask)
    assert accepted > 50


@pytest.mark.parametrize("rules", FOREIGN)
def test_sums_of_numpy_arrays_and_tensors_differ_from_tensors_in_the_listed_number_of_cells(rules):
    framework, _, mode = rules.partition("-")
    found = document("tensorflow-arrays" if framework == "tf" else "paddle-arrays")
    part = found["modes"][mode] if mode else found
    codes, compared, different = found["codes"], 0, 0
    for order, rows in part["foreign"].items():
        columns = part["foreign_columns"].split() if order.endswith("numpy") else [*codes]
        for left, answers in rows.items():
            for right, cell in zip(columns, answers.split(), strict=True):
                if cell == "n":
                    continue
                compared += 1
                theirs = judge._answer(cell, codes)
                ours = judge.ours(rules, "add", codes[left], codes[right])
                different += ours != theirs
                if rules == "tf-off" and left != right and theirs != judge.REFUSED:
                    tensor = left if order.startswith("tensor") else right
                    assert (ours, theirs) == (judge.REFUSED, codes[tensor])
    assert compared > 100
    assert different == FOREIGN[rules]


@pytest.mark.one_in(4)
@pytest.mark.one_slow_in(3)
@pytest.mark.parametrize("rules", RULE_SETS)
@for_each("operation", [*REDUCTIONS, *WHOLE])
def test_decisions_have_reasons_and_refusals_have_fixes(rules, operation):
    rule_set = get_rules(rules)
    names = ["bool", "uint8", "int8", "int32", "bfloat16", "float16", "float32", "float64", "complex64"]
    accepted = 0
    for call in itertools.product(names, repeat=1 if operation in REDUCTIONS else 2):
        decision = explain(*call, operation=operation, rules=rules)
        assert decision.reason
        assert str(decision).startswith(f"{operation}({', '.join(call)}) -> ")
        accepted += bool(decision)
        if decision:
            assert len(decision.casts) == len(call)
        elif decision.fix is not None:
            assert rule_set.decide(operation, decision.fix.apply(decision.operands)), (call, str(decision.fix))
        else:
            # A fix never drops an imaginary part if there is another way, or if the function needs bits or booleans.
            assert "complex64" in call, call
    assert accepted >= 1


def test_user_defined_rules_reduce_as_the_array_api_standard_does():
    mine = RuleSet.from_lattice("mine", {"int8": ["int16"], "int16": ["int32"], "float16": ["float32"]})
    answers = [str(explain(name, operation="sum", rules=mine).dtype) for name in ("int8", "int32", "float16")]
    assert answers == ["int32", "int32", "float16"]
    assert not explain("int8", operation="mean", rules=mine)
    narrow = RuleSet.from_lattice("narrow", {"int8": ["int16"]})  # a lattice without int32
    assert str(explain("int8", operation="sum", rules=narrow).dtype) == "int8"


def test_aliases_resolve_to_standard_names():
    assert [as_operation(name).name for name in ("cumsum", "cumprod", "amin", "amax", "concatenate", "cat")] == [
        "cumulative_sum", "cumulative_prod", "min", "max", "concat", "concat",
    ]  # fmt: skip
    assert len(REDUCTIONS) == 11
    assert len(WHOLE) == 10


@pytest.mark.parametrize("x64", [True, False], ids=["x64", "x32"])
def test_jax_cumsum_keeps_the_narrow_integers_that_cumulative_sum_widens(x64):
    """Both functions share one row of our operations, which follows `cumulative_sum`; only these dtypes differ."""
    asked = judge.jax_asked("jax-x64" if x64 else "jax-x32")

    def ask():
        differing = set()
        for name in asked.codes:
            array = asked.make([1, 1, 1], name)
            try:
                if jnp.cumsum(array).dtype != jnp.cumulative_sum(array).dtype:
                    differing.add(name)
            except (TypeError, ValueError):  # JAX refuses integers of fewer than 8 bits
                differing.add(name)
        default = 64 if x64 else 32
        narrow = {row.name for row in map(as_format, asked.codes) if row.category == "integer" and row.bits < default}
        assert differing == narrow

    with jax.enable_x64(x64):
        jax.eval_shape(ask)
