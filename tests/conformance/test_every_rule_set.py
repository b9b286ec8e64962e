"""Properties of every rule set, over every pair of formats, 0-d arrays and Python numbers."""

import copy
import itertools
import math
from dataclasses import replace

import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

from rule_sets import FRAMEWORK_RULES
from slowly import for_each
from supremum import PromotionError, RuleSet, ScalarOverflowError, explain, get_rules
from supremum.analysis.tables import STANDARD_TYPES
from supremum.formats import COLUMN_FORMATS, FORMATS, as_format, is_available
from supremum.lattice import counterexamples
from supremum.operands import WEAK_NAMES, Operand, as_operand
from supremum.operations import OPERATIONS, Family, Operation, Result, as_operation
from supremum.rules import rule_names
from supremum.rules.names import HOMES, JAX_ALIASES
from supremum.rules.verdicts import LOSSES_AS_DIVISION, MEASURED

FORMAT_NAMES = [row.name for row in FORMATS]
NUMBERS = {"True": True, "1": 1, "1.0": 1.0, "1j": 1j}
TYPES = {name: as_operand(name) for name in (*FORMAT_NAMES, *WEAK_NAMES)}
ZERO_DIMENSIONAL = {f"{row.name}[]": Operand(row.category, row.dtype, ndim=0) for row in FORMATS}
OPERANDS = TYPES | ZERO_DIMENSIONAL | {name: as_operand(number) for name, number in NUMBERS.items()}
ASKED = ("result_type", "add", "divide", "equal", "bitwise_and")
ASKED_TOO = {
    "tinygrad": ("bitwise_left_shift", "logical_and", "solve"),
}
"""More operations whose fixes are tried."""
RULE_SETS = FRAMEWORK_RULES
every_rule_set = pytest.mark.parametrize("rules", RULE_SETS)


NEW_OPERATIONS = [
    Operation("gcd", 2, Result.COMMON, ("integer",)), Operation("erf", 1, Result.FLOAT, ("float",)),
    Operation("median", 1, Result.FLOAT, ("float",), family=Family.REDUCTION),
    Operation("block", None, Result.COMMON, ("integer", "float"), family=Family.WHOLE),
]  # fmt: skip


@every_rule_set
def test_operations_that_were_not_measured_are_refused_for_that_reason(rules):
    rule_set = get_rules(rules)
    asked = {name for name, row in OPERATIONS.items() if row.family is not Family.QUESTION}
    # A new row is not among them until the rule set names it.
    assert MEASURED <= rule_set.measured <= asked
    for row in NEW_OPERATIONS:
        operands = [as_operand("float32")] * (row.arity or 2)
        for into in (None, as_operand("float32")):
            decision = rule_set.decide(row, operands, into)
            assert decision.reason == (f"{row.name} was not measured with {rule_set.library or rules}",)
            assert (decision.result, decision.fix) == (None, None)


def test_lattices_of_users_decide_new_operations_by_the_row_alone():
    mine = RuleSet.from_lattice("mine", {"int8": ["int16"], "int16": ["float32"]})
    gcd, erf, median, block = NEW_OPERATIONS
    narrow, wide = as_operand("int8"), as_operand("int16")
    assert [mine.decide(row, (narrow, wide)).dtype for row in (gcd, block)] == ["int16", "int16"]
    assert "does not accept float" in mine.decide(gcd, (narrow, as_operand("float32"))).reason[-1]
    assert mine.decide(erf, (as_operand("float32"),)).dtype == "float32"
    assert not mine.decide(median, (wide,))  # reductions have rows of their own


LATTICE, RFC = "the lattice of these rules does not contain {}", "the RFC does not define promotion of {}"
SAYS = {
    **dict.fromkeys((*JAX_ALIASES["jax"], "array-api"), LATTICE),
    **dict.fromkeys(("tf-rfc-all", "tf-rfc-safe", "tf-rfc-none"), RFC),
    "numpy-legacy": "ml_dtypes 0.5.4, the last for NumPy 1.26, has no {}",
    "tinygrad": "tinygrad has no {} tensors", "pyarrow": "pyarrow has no {} arrays",
    "pandas": "pandas has no {} columns", "pandas-nullable": "nullable pandas has no {} columns",
}  # fmt: skip
"""How rule sets say that they lack a format of arrays; all others say it as for a format of columns."""
OF_THE_SAME = {
    "tinygrad": "tinygrad assigns only tensors of the same dtype, got int8 for {}",
    "pyarrow": "pyarrow stores only values of the same type, got int8 for {}",
}


@every_rule_set
def test_formats_that_the_framework_lacks_are_refused_and_the_fixes_work(rules):
    """Formats of columns are asked for in every operation, all others in some, with each second operand."""
    rule_set, wrong = get_rules(rules), []
    in_lattice = getattr(rule_set, "lattice", None) and rule_set.lattice.nodes
    known = {*(rule_set.formats or in_lattice or {row.name for row in FORMATS})}
    lacking = [row for row in (*FORMATS, *COLUMN_FORMATS) if row.name not in known]
    assert lacking
    assert rules.startswith("polars") or {*COLUMN_FORMATS} < {*lacking, as_format("int8")}
    without = f"{rule_set.library or rules} has no {{}}"
    says = {row.name: (SAYS.get(rules, without) if row.is_of_arrays else without).format(row) for row in lacking}
    for row in lacking:
        second = (row.name, "int8", "float32", 3, True)
        if row.is_of_arrays:
            asked = itertools.product(("result_type", "add", "where", "sum", "sin"), (*second, 1.0))
            asked = itertools.chain(asked, (("result_type", each) for each in TYPES if rules == "array-api"))
        else:
            asked = itertools.product(OPERATIONS.keys() - {"assign"}, second)
        for operation, other in asked:
            is_no_truth = (rules, operation[:8]) == ("pyarrow", "logical_")  # PyArrow makes no bool of a number
            others = [other] * ((OPERATIONS[operation].arity or 2) - 1)
            for operands in {(row.name, *others), (*others, row.name), (row.name, *[row.name] * len(others))}:
                decision = explain(*operands, operation=operation, rules=rules)
                if (fix := decision.fix) is None:  # a complex column has no real part that a fix could use
                    works = row.category == "complex" or operation == "imag"
                    works |= other == 3 and is_no_truth
                else:
                    works = rule_set.decide(operation, fix.apply(decision.operands))
                expected = {says[each] for each in operands if each in says}
                if len(expected) == 2:  # the lattice of the standard names both in one sentence
                    expected = {LATTICE.format(", ".join(sorted({*operands})))}
                if not works or not {*decision.reason} <= expected or not isinstance(decision.error(), PromotionError):
                    wrong.append(str(decision))
        decision = explain(row.name, rules=rules)
        if decision.reason != (says[row.name],):
            wrong.append(str(decision))
        for operand in ("int8", row.name):
            decision = explain(operand, operation="assign", into=row.name, rules=rules)
            of_the_same = operand == "int8" and row.is_of_arrays and OF_THE_SAME.get(rules)
            if decision.reason != ((of_the_same or says[row.name]).format(row),):
                wrong.append(str(decision))
    assert wrong == []


# NumPy searches for a function's loop. Some formats of ml_dtypes can be cast safely to each other, and NumPy then finds
# the loop of the first operand first. test_numpy_rules.py checks that NumPy does this.
FOREIGN = {row.name for row in FORMATS if not row.is_builtin and row.name != "bfloat16"}
ONE_WAY = {
    "numpy": {"add": 89, "multiply": 89, "maximum": 37},
    "numpy-legacy": {"add": 70, "multiply": 70, "maximum": 36},
}


@pytest.mark.one_in(32)
@every_rule_set
def test_pairs_commute_except_listed_ml_dtypes_pairs_in_numpy(rules):
    rule_set, one_way = get_rules(rules), {}
    for operation in ("result_type", "add", "multiply", "maximum", "equal", "bitwise_and"):
        for a, b in itertools.combinations(OPERANDS, 2):
            forth = rule_set.decide(operation, (OPERANDS[a], OPERANDS[b]))
            back = rule_set.decide(operation, (OPERANDS[b], OPERANDS[a]))
            if forth.result != back.result:
                assert rules in ONE_WAY, (operation, a, b)
                one_way.setdefault(operation, set()).add(frozenset((a.strip("[]"), b.strip("[]"))))
    assert {operation: len(pairs) for operation, pairs in one_way.items()} == ONE_WAY.get(rules, {})
    assert all(FOREIGN.issuperset(pair) for pairs in one_way.values() for pair in pairs)


# For the triples of STANDARD_TYPES, without and with the weak kinds: how many depend on grouping (including a refusal
# in one grouping only), and how many of those give two dtypes. In most frameworks, two Python numbers get a dtype when
# they are combined, and are not weak afterwards. Lattices keep them weak, and the array API standard refuses them.
NOT_ASSOCIATIVE = {
    "jax-x64": ((0, 0), (0, 0)),
    "jax-x32": ((0, 0), (0, 0)),
    "jax-explicit-x64": ((0, 0), (0, 0)),
    "jax-strict-x64": ((0, 0), (0, 0)),
    "jax-strict-x32": ((0, 0), (0, 0)),
    "jax-strict-explicit-x64": ((0, 0), (0, 0)),
    "numpy": ((184, 28), (508, 290)),
    "numpy-legacy": ((184, 28), (532, 280)),
    "torch": ((432, 0), (874, 148)),
    "keras": ((104, 104), (240, 240)),
    "tf-rfc-all": ((40, 40), (360, 360)),
    "tf-rfc-safe": ((260, 0), (706, 30)),
    "tf-rfc-none": ((0, 0), (76, 0)),
    "tf-off": ((0, 0), (76, 0)),
    "tf-all": ((0, 0), (0, 0)),
    "tf-safe": ((260, 0), (452, 0)),
    "paddle": ((312, 0), (648, 12)),
    "mlx": ((32, 32), (152, 152)),
    "tinygrad": ((0, 0), (0, 0)),
    "polars": ((20, 20), (120, 120)),
    "polars-1": ((8, 8), (76, 76)),
    "pyarrow": ((0, 0), (0, 0)),
    "pandas": ((28, 28), (256, 256)),
    "pandas-nullable": ((8, 8), (82, 82)),
    "array-api": ((0, 0), (88, 0)),
}
if not is_available("complex32"):  # torch's rules refuse float16 with a complex number
    NOT_ASSOCIATIVE["torch"] = ((432, 0), (888, 108))


def _not_associative(rules, names):
    rule_set = get_rules(rules)

    def join(a, b):
        result = rule_set.decide("result_type", (as_operand(a), as_operand(b))).result
        return None if result is None else result.name

    return [found for found in counterexamples(join, names) if found.law == "associative"]


@every_rule_set
def test_number_of_non_associative_triples_is_as_listed(rules):
    assert len(STANDARD_TYPES) == 18
    without = [name for name in STANDARD_TYPES if name not in WEAK_NAMES]
    found = [_not_associative(rules, names) for names in (without, STANDARD_TYPES)]
    counts = tuple((len(each), sum(None not in (one.left, one.right) for one in each)) for each in found)
    assert counts == NOT_ASSOCIATIVE[rules]


@pytest.mark.parametrize("rules", ["tf-rfc-safe", "tf-rfc-none"])
def test_grouping_gives_two_dtypes_only_if_two_python_numbers_come_first(rules):
    triples = _not_associative(rules, [*FORMAT_NAMES, *WEAK_NAMES])
    assert len(triples) == {"tf-rfc-safe": 706, "tf-rfc-none": 76}[rules]
    for found in triples:
        assert None in (found.left, found.right) or len([name for name in found.nodes if name in WEAK_NAMES]) == 2


@pytest.mark.parametrize("rules", [*JAX_ALIASES["jax"], "array-api"])
def test_joins_of_lattices_obey_the_laws_over_every_triple(rules):
    lattice = get_rules(rules).lattice
    assert {*lattice.nodes} > {*WEAK_NAMES, "bool", "float32"}
    assert [*counterexamples(lattice.join, lattice.nodes)] == []


@every_rule_set
def test_python_types_are_decided_as_small_numbers(rules):
    rule_set = get_rules(rules)
    for (kind, number), name in itertools.product(((int, 1), (float, 1.0), (complex, 1j)), FORMAT_NAMES):
        of_kind, of_number = (rule_set.decide("add", (OPERANDS[name], as_operand(each))) for each in (kind, number))
        assert of_kind.result == of_number.result, (kind, name)


OVERFLOWS = [
    ("jax-x32", "add", ("int8", 2**31), "does not fit int32"),
    ("jax-x32", "add", ("int8", -(2**31) - 1), "does not fit int32"),
    ("jax-x64", "add", ("int8", 2**63), "does not fit int64"),
    ("numpy", "add", ("uint8", 256), "the Python int b is out of range for uint8"),
    ("array-api", None, ("uint8", 256), "the Python int b is out of range for uint8; the standard defines no result"),
    ("tf-rfc-all", "add", ("int8", 1000), "out of range: b; int8 goes from -128 to 127"),
    ("torch", "where", ("uint8", 256), "does not fit uint8"),
    ("polars", None, ("uint8", 2**64), "Polars makes a Python int null"),
]


@for_each("rules, operation, operands, words", OVERFLOWS)
def test_numbers_out_of_range_raise_an_error_of_three_classes(rules, operation, operands, words):
    with pytest.raises(ScalarOverflowError, match=words) as caught:
        _ = explain(*operands, operation=operation, rules=rules).dtype
    assert isinstance(caught.value, OverflowError)
    assert isinstance(caught.value, TypeError)
    assert isinstance(caught.value, PromotionError)
    assert caught.value.fix is None or get_rules(rules).decide(operation, caught.value.fix.apply(caught.value.operands))


# Python numbers without an array, and the dtype that they get.
ALONE = {
    "paddle": [((1,), "int64"), ((True, 1), "int64"), ((1, 2.0), "float32"), ((2.0, 1j), "complex64")],
    "tinygrad": [((1,), "int32"), ((True, 1), "int32"), ((1, 2.0), "float32")],
    "polars": [
        ((1,), "int32"), ((True, 1), "int32"), ((1, 2.0), "float64"), ((2**31, 1), "int64"), ((2**63,), "uint64"),
        ((-1, 2**63), "int128"),
    ],
    "polars-1": [((-1, 2**63), "float64")],
}  # fmt: skip


@pytest.mark.parametrize("rules", ALONE)
def test_python_numbers_alone_get_default_dtypes(rules):
    assert [(numbers, str(explain(*numbers, rules=rules).dtype)) for numbers, _ in ALONE[rules]] == ALONE[rules]


@pytest.mark.parametrize("rules", ["numpy", "torch", "jax-x32", "tf-rfc-all", "tf-rfc-safe", "array-api"])
def test_numbers_with_equal_limits_share_a_verdict(rules):
    def verdict(*operands):
        return explain(*operands, operation="add", rules=rules).verdict

    assert verdict("float32", 3.5) is verdict("float32", 3.25)
    assert verdict("int8", 300) is verdict("int8", 301)
    before = len(get_rules(rules).memory.verdicts)
    assert len({id(verdict("int16", value)) for value in range(260, 30_000, 10)}) < 10
    assert len(get_rules(rules).memory.verdicts) < before + 10


def test_jax_names_resolve_to_one_of_the_listed_rule_sets():
    assert rule_names() == ("jax", "jax-strict", *HOMES)
    assert JAX_ALIASES.keys() == {"jax", "jax-strict"}
    assert all(get_rules(name) in map(get_rules, names) for name, names in JAX_ALIASES.items())
    assert set(NOT_ASSOCIATIVE) == set(RULE_SETS)


def test_formats_include_every_ml_dtypes_scalar_type():
    scalars = [value for value in vars(ml_dtypes).values() if isinstance(value, type) and issubclass(value, np.generic)]
    assert scalars
    assert {as_format(scalar).name for scalar in scalars} == {row.name for row in FORMATS if not row.is_builtin}
    assert {as_operand(scalar) for scalar in scalars} < set(TYPES.values())


@pytest.mark.one_in(18)
@every_rule_set
def test_decisions_have_reasons_casts_and_printed_forms(rules):
    rule_set, accepted, refused = get_rules(rules), 0, 0
    for operation, (a, b) in zip(itertools.cycle(("add", "divide")), itertools.product(TYPES, repeat=2), strict=False):
        decision = rule_set.decide(operation, (TYPES[a], TYPES[b]))
        assert decision.reason
        assert all(sentence.strip() for sentence in decision.reason)
        text, html = str(decision), decision._repr_html_()
        title, *lines = text.splitlines()
        assert title.startswith(f"{operation}({a}, {b}) -> ")
        assert title.endswith(f"[rules {rule_set.name}]")
        assert lines[0].startswith(f"  a    {a}")
        assert lines[1].startswith(f"  b    {b}")
        assert lines[2].startswith(f"  why  {decision.reason[0]}")
        assert html.startswith("<div><b style=")
        assert html.count("<tr>") == len(lines)
        if decision:
            assert len(decision.casts) == len(decision.verdict.compute) == 2
            assert [cast.source for cast in decision.casts] == [TYPES[a].dtype, TYPES[b].dtype]
            assert str(decision.dtype) in title
            assert not decision.verdict.overflow
            accepted += 1
        else:
            refused += 1
            assert decision.casts == decision.verdict.compute == ()
            assert "-> refused" in title
            assert not decision.weak
            error = decision.error()
            assert str(error) == text
            assert error.decision is decision
    assert accepted > 20
    assert (refused > 100) == (rules != "numpy")


# The refusals without a fix: their number and a function that selects them. All other fixes are executed.
def _has_shell_dtype(a, b, operation):
    """PyTorch cannot convert shell dtypes, even explicitly."""
    return any(name in ("uint1", "uint2", "uint4", "int1", "int2", "int4") for name in (a, b))


def _would_lose_a_part(a, b, operation):
    """A fix never drops an imaginary part or the fraction of a Python number, and bitwise operations need integers."""
    return operation == "bitwise_and" and any(
        OPERANDS[name].category == "complex" or (OPERANDS[name].category == "float" and OPERANDS[name].dtype is None)
        for name in (a, b)
    )


def _has_no_real_part(a, b, operation):
    """MLX has no complex128 and so no real part of one, and bitwise operations need integers."""
    return operation == "bitwise_and" and "complex128" in (a, b)


def _has_complex_array(a, b, operation):
    """Libraries without complex arrays have no function that gives their real part."""
    return any(OPERANDS[name].category == "complex" and OPERANDS[name].dtype is not None for name in (a, b))


WITHOUT_FIX = {
    "torch": (2178, _has_shell_dtype),
    "tf-rfc-all": (592, _would_lose_a_part),
    "tf-rfc-safe": (592, _would_lose_a_part),
    "tf-rfc-none": (592, _would_lose_a_part),
    "mlx": (81, _has_no_real_part),
    **dict.fromkeys(("tinygrad", "polars", "polars-1", "pyarrow", "pandas-nullable"), (1560, _has_complex_array)),
}


@pytest.mark.one_slow_in(6)
@pytest.mark.slow
@every_rule_set
def test_rules_accept_the_operands_after_every_fix(rules):
    names, rule_set, fixed, unfixed = [*TYPES, *NUMBERS], get_rules(rules), 0, set()
    for operation, a, b in itertools.product((*ASKED, *ASKED_TOO.get(rules, ())), names, names):
        decision = rule_set.decide(operation, (OPERANDS[a], OPERANDS[b]))
        fix = decision.fix  # computed on each access
        if decision:
            assert fix is None
            continue
        if fix is None:
            unfixed |= {(operation, a, b)} if operation in ASKED else set()
            continue
        fixed += 1
        operands = fix.apply(decision.operands)
        assert rule_set.decide(operation, operands), (operation, a, b, str(fix))
        assert 1 <= len(fix.casts) <= 2
        assert [str(cast) for cast in fix.casts] == list(fix.expressions().values())
    assert fixed > 1000
    count, has_no_fix = WITHOUT_FIX.get(rules, (0, lambda *_: False))
    assert len(unfixed) == count
    refused = (
        (operation, a, b)
        for operation, a, b in itertools.product(ASKED, names, names)
        if has_no_fix(a, b, operation) and not rule_set.decide(operation, (OPERANDS[a], OPERANDS[b]))
    )
    assert unfixed == set(refused)


STAND_INS = {
    "fmax": "maximum", "fmin": "minimum", "hypot": "atan2", "logaddexp": "atan2", "copysign": "atan2", "trunc": "floor",
    "signbit": "isnan", "log2": "log", "log10": "log", "positive": "negative", "vecdot": "matmul",
    "outer": "multiply", "diff": "concat", "nextafter": "atan2", "tensordot": "matmul", "expm1": "exp", "log1p": "log",
    "solve": "atan2", "square": "abs", "reciprocal": "sqrt", "matmul": "multiply", "cross": "multiply",
    "stack": "concat", "clip": "maximum",
}  # fmt: skip
_OF_POLARS = {
    "conj": "positive", "real": "positive", "matmul": "vecdot", "tensordot": "vecdot",
    "fmax": "maximum", "fmin": "minimum", "signbit": "isnan", "expm1": "exp", "reciprocal": "sqrt", "square": "abs",
    "bitwise_left_shift": "bitwise_and", "bitwise_right_shift": "bitwise_and", "trunc": "floor", "outer": "multiply",
    "cross": "multiply",
}  # fmt: skip
OTHER_STAND_INS = {
    "tinygrad": {**STAND_INS, "hypot": "divide", "nextafter": "divide"},  # it has no atan2
    "polars": _OF_POLARS,
    "polars-1": _OF_POLARS,
    # It has no product of matrices that others could be decided like, and its division keeps integers.
    "pyarrow": STAND_INS | {"tensordot": "multiply", "vecdot": "multiply"} | dict.fromkeys(LOSSES_AS_DIVISION, "atan2"),
}
LACKING = [(rules, name) for rules in RULE_SETS for name in get_rules(rules).stands_in]


def test_stand_ins_of_every_rule_set_are_as_listed():
    assert {rules for rules, _ in LACKING} == {
        *JAX_ALIASES["jax"], "numpy", "numpy-legacy", "keras", "tf-off", "tf-all", "tf-safe", "mlx", "tinygrad",
        "polars", "polars-1", "pyarrow", "pandas", "pandas-nullable", "array-api",
    }  # fmt: skip
    for rules, name in LACKING:
        assert get_rules(rules).stands_in[name] == OTHER_STAND_INS.get(rules, STAND_INS).get(name, "divide")


@for_each("rules, name", LACKING, one_in=10, one_slow_in=4)
def test_missing_functions_are_decided_as_their_stand_ins(rules, name):
    rule_set, accepted = get_rules(rules), 0
    library = rule_set.library
    why = f"{library} has no {name}, so it is decided like {rule_set.stands_in[name]}"
    row = as_operation(name)
    for asked in itertools.product([*TYPES, *NUMBERS], repeat=row.arity or 2):
        decision, other = (
            rule_set.decide(each, [OPERANDS[key] for key in asked]) for each in (name, rule_set.stands_in[name])
        )
        computed = other.verdict.compute[0] if other else None
        is_complex = other and as_format(computed).category == "complex"
        if is_complex and "complex" not in row.accepts:  # losses accept real numbers only
            assert not decision
            assert decision.reason == (
                why, *other.reason, f"{name} does not accept complex operands, got {computed}",
            )  # fmt: skip
            continue
        accepted += bool(decision)
        formats = [OPERANDS[key].format for key in asked if OPERANDS[key].dtype is not None]
        knows_all = all(map(rule_set._has_format, formats))  # whatever the operation
        assert decision.reason == ((why,) * knows_all + other.reason)
        assert replace(decision.verdict, reason=()) == replace(other.verdict, reason=())
    assert accepted >= (4 if row.arity == 1 else 20)


def test_missing_functions_have_fixes():
    assert str(explain("int8", "float32", operation="mse_loss", rules="array-api").fix) == "a.astype('float32')"
    assert str(explain("int4", "int2", operation="mse_loss", rules="jax-strict").fix) == "b.astype('int4')"
    assert str(explain("complex64", 1.5, operation="l1_loss", rules="numpy").fix) == "a.real.astype('float32')"


@pytest.mark.one_in(4)
@every_rule_set
def test_second_decision_reuses_the_same_verdict(rules):
    rule_set = get_rules(rules)
    for operation, (a, b) in itertools.product(ASKED, itertools.product(STANDARD_TYPES, repeat=2)):
        first, second = (rule_set.decide(operation, [as_operand(a), as_operand(b)]) for _ in range(2))
        assert first.verdict is second.verdict
        assert first == second
        assert first.verdict is explain(a, b, operation=operation, rules=rules).verdict


@every_rule_set
def test_explanations_of_any_number_are_shown(rules):
    numbers = (0, 10**400, -0.5, math.inf, math.nan, complex(math.inf, math.nan))
    for number, array in itertools.product(numbers, ("uint8", "complex64")):
        calls = [("clip", [array, number, 0], None), ("assign", [number], array), ("add", [array, number], array)]
        for operation, operands, into in calls:
            shown = str(explain(*operands, operation=operation, into=into, rules=rules))
            assert shown.startswith(f"{operation}(")


@pytest.mark.one_in(32)
@every_rule_set
def test_explain_changes_neither_operands_nor_rules(rules):
    arrays = [np.ones((2,), row.dtype) for row in FORMATS]
    for array in arrays:
        array.flags.writeable = False
    values = [*arrays, jnp.ones(2, jnp.bfloat16), 3, 2.5, True]
    before = [(np.asarray(value).tobytes(), np.asarray(value).dtype, np.shape(value)) for value in values]
    rule_set = get_rules(rules)
    described, verdict = repr(rule_set), copy.deepcopy(explain("int8", "float32", rules=rules).verdict)
    for a, b in itertools.product(values, repeat=2):
        decision = explain(a, b, operation="add", rules=rules)
        shown, operands = str(decision), decision.operands
        for _ in range(2):
            assert (str(decision), decision.operands) == (shown, operands)
            if not decision:
                with pytest.raises(PromotionError):
                    _ = decision.dtype
        assert operands == (as_operand(a), as_operand(b))
    assert [(np.asarray(value).tobytes(), np.asarray(value).dtype, np.shape(value)) for value in values] == before
    assert repr(rule_set) == described
    assert explain("int8", "float32", rules=rules).verdict == verdict
