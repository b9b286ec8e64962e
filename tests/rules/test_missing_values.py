"""Operands that may have missing values: the flag changes no dtype, except under the rules of pandas."""

import pickle
from dataclasses import replace
from itertools import product

import pytest

from conformance.measured import document
from optional_packages import import_or_skip
from slowly import slow
from supremum import OperandError, asarray, explain, result_type
from supremum.data_frames import NULLABLE_NAME_OF, NULLABLE_NAMES
from supremum.formats import format_names
from supremum.operands import as_operand
from supremum.operations import REDUCTIONS
from supremum.rules import RuleSet, get_rules
from supremum.rules.names import HOMES

FRAMES = {
    "pandas": "pandas",
    "pandas-nullable": "pandas",
    "polars": "polars",
    "polars-1": "polars",
    "pyarrow": "pyarrow",
}
REMARK = "the arrays of these rules have no missing values, so fill or drop those of "
FLAGS = [(True, False), (False, True), (True, True)]
OF_TWO = ("add", "divide", "where", "concat")
OF_ONE = ("sum", "mean", "max", "sqrt", "negative", "cumulative_sum")


def flagged(names, flags):
    return [replace(as_operand(name), nullable=flag) for name, flag in zip(names, flags, strict=True)]


def test_rule_sets_of_data_frames_are_those_with_missing_values():
    assert {name for name in HOMES if get_rules(name).columns.never_missing is not None} == FRAMES.keys()


@pytest.mark.parametrize("every_pair", [False, slow(True)])
def test_the_flag_changes_no_dtype_and_no_casts(every_pair):
    """Compare every rule set for every format with the next one, and those of data frames for every pair of formats."""
    names, compared, wrong = format_names(), 0, []
    next_to_each_other = list(zip(names, names[1:] + names[:1], strict=True))
    for rules in [name for name in HOMES if name != "pandas"]:
        pairs = product(names, repeat=2) if every_pair or rules in FRAMES else next_to_each_other
        calls = [(name, pair, FLAGS) for name, pair in product(OF_TWO, pairs)]
        calls += [(name, (each,), [(True,)]) for name, each in product(OF_ONE, names)]
        for operation, operands, flags in calls:
            plain = get_rules(rules).decide(operation, [as_operand(name) for name in operands])
            for each in flags:
                decision = get_rules(rules).decide(operation, flagged(operands, each))
                compared += 1
                if not only_marked(decision, plain, operation, rules, each):
                    wrong.append(f"{rules}: {operation}{operands} with {each}: {decision.reason}, not {plain.reason}")
    assert wrong == []
    of_one = (len(HOMES) - 1) * len(OF_ONE) * len(names)
    whole = len(HOMES) - 1 if every_pair else len(FRAMES) - 1
    of_two = len(OF_TWO) * len(FLAGS) * len(names) * (whole * len(names) + len(HOMES) - 1 - whole)
    assert compared == of_one + of_two


def only_marked(decision, plain, operation, rules, flags):
    """Return whether a decision about operands with flags is that without, and says what it has to about them."""
    same = decision.verdict.compute == plain.verdict.compute
    same &= (decision.result and decision.dtype) == (plain.result and plain.dtype)
    same &= decision.reason[: len(plain.reason)] == plain.reason
    added = decision.reason[len(plain.reason) :]
    if rules not in FRAMES:
        letters = " and ".join(letter for letter, flag in zip("ab", flags, strict=False) if flag)
        return same and added == (f"{REMARK}{letters} first",) and decision.result == plain.result
    if not decision:
        return same and added == ()
    never_missing = operation in get_rules(rules).columns.never_missing
    return same and len(added) == 1 and decision.result.nullable != never_missing


@pytest.mark.parametrize("rules", FRAMES)
def test_reductions_that_skip_missing_values_are_those_that_were_measured(rules):
    measured = document(f"{FRAMES[rules]}-missing")
    assert get_rules(rules).columns.never_missing == {*measured["never"].split()}
    assert {*measured["never"].split(), *measured["missing"].split()} == REDUCTIONS.keys()


def test_a_fix_of_a_refusal_works_on_nullable_operands():
    wrong, without = [], []
    for rules in HOMES:
        rule_set, fixed = get_rules(rules), 0
        for names, flags in product(product(NULLABLE_NAMES.values(), repeat=2), FLAGS):
            decision = rule_set.decide("matmul", flagged(names, flags))
            if (fix := decision.fix) is not None:
                fixed += 1
                if not rule_set.decide("matmul", fix.apply(decision.operands)):
                    wrong.append(f"{rules}: {names} with {flags}: {fix}")
        if not fixed and not rule_set.decide("matmul", flagged(("bool", "float32"), (True, False))):
            without.append(rules)
    assert (wrong, without) == ([], [])


def test_a_fix_of_a_nullable_column_of_pandas_keeps_it_nullable():
    assert str(explain("Int8", 1000, operation="add", rules="pandas").fix) == "a.astype('Int16')"
    assert str(explain("int8", 1000, operation="add", rules="pandas").fix) == "a.astype('int16')"
    # After missing values are filled, NumPy's array has NumPy's dtypes.
    assert str(explain("Int8", 1000, operation="add", rules="numpy").fix) == "a.astype('int16')"


@pytest.mark.parametrize(
    ("rules", "operation", "operands", "into", "remark"),
    [
        ("numpy", "add", ("Int8", "float32"), None, f"{REMARK}a first"),
        ("jax-x64", "add", ("Int8", "boolean"), None, f"{REMARK}a and b first"),
        ("torch", "add", ("int8", "int8"), "Int8", f"{REMARK}the target first"),
        ("polars", "add", ("int8", "Int8"), None, "the result is nullable, because b is"),
        ("pyarrow", "sum", ("Int8",), None, "the result is nullable, because a is"),
        ("polars", "sum", ("Int8",), None, "sum skips missing values"),
        ("pandas", "add", ("Int8", "Int16"), None, "the result is nullable, because a and b are"),
        ("pandas", "add", ("Int8", "int8"), "Int8", "the result is nullable, because a and the target are"),
        ("pandas", "assign", ("Int8",), "int8", "a column of int8 cannot store missing values"),
        ("pandas", "add", ("Int8", "complex64"), None, "a column of complex64 has no mask, and pandas makes missing"),
        ("pandas", "stack", ("Int8", "Int8"), None, "NumPy computes stack; with missing values"),
        ("pandas", "clip", ("int8", "Int8"), None, "keeps its dtype if that holds the bounds, and pandas raises for"),
        ("pandas", "max", ("Int8",), None, "the result is nullable, because a is"),
        ("pandas", "any", ("boolean",), None, "any skips missing values"),
    ],
)  # fmt: skip
def test_the_last_reason_says_what_becomes_of_missing_values(rules, operation, operands, into, remark):
    decision = explain(*operands, operation=operation, into=into, rules=rules)
    assert decision
    assert remark in decision.reason[-1]
    assert decision.result.nullable == remark.startswith("the result is nullable")


def test_every_view_of_a_decision_says_what_is_nullable():
    decision = explain("Int8", "float32", operation="add", rules="pandas")
    first, a, *_ = str(decision).splitlines()
    assert first == "add(int8 (nullable), float32) -> float32 (nullable)   [rules pandas]"
    assert a == "  a    int8 (nullable) -> float32"
    assert "int8 (nullable)" in decision._repr_html_()
    data = decision.to_dict()
    assert [each["nullable"] for each in data["operands"]] == [True, False]
    assert data["result"] == {"name": "float32", "dtype": "float32", "weak": False, "nullable": True}
    assert "into=int8 (nullable)" in str(explain("int8", operation="assign", into="Int8", rules="pandas"))
    assert pickle.loads(pickle.dumps(decision)) == decision
    assert decision != explain("int8", "float32", operation="add", rules="pandas")


def test_a_cached_answer_is_not_that_of_the_other_flag():
    for _ in range(2):
        assert explain("Int8", "int8", operation="divide", rules="pandas").result.nullable
        assert not explain("int8", "int8", operation="divide", rules="pandas").result.nullable
        assert result_type("Int8", "float16", rules="numpy") == result_type("int8", "float16", rules="numpy")
    assert explain("bool", "Int8", operation="where", rules="pandas").result is None
    assert explain("Float32", "int64", operation="where", rules="pandas").dtype == "float32"
    assert explain("float32", "int64", operation="where", rules="pandas").dtype == "float64"


def test_a_lattice_of_ones_own_has_no_missing_values():
    mine = RuleSet.from_lattice("mine", {"int8": ["int16"], "int16": []})
    assert explain("Int8", "int16", rules=mine).reason[-1] == f"{REMARK}a first"


def _stored(pandas, name, value):
    column = pandas.Series([1, 0], dtype=name)
    column.iloc[0] = value
    return column


@pytest.mark.parametrize("rules", ["pandas", "pandas-nullable"])
def test_nan_and_na_beside_nullable_columns_give_the_dtypes_of_pandas(rules):
    pandas = import_or_skip("pandas")
    mask, different, compared = pandas.Series([True, False]), {}, 0
    calls = {
        "where": lambda column, value: column.where(mask, value),
        "clip": lambda column, value: column.clip(value, value),
        "assign": None,
        "add": lambda column, value: column + value,
        "divide": lambda column, value: column / value,
        "pow": lambda column, value: column**value,
        "equal": lambda column, value: column == value,
    }
    for (name, plain), (operation, call), value in product(
        NULLABLE_NAMES.items(), calls.items(), (float("nan"), pandas.NA, float("inf"), 1.5)
    ):
        column = name if rules == "pandas" else plain
        try:
            stored = _stored(pandas, name, value) if call is None else call(pandas.Series([1, 0], dtype=name), value)
            theirs = str(stored.dtype)
        except (TypeError, NotImplementedError):
            theirs = "refused"
        given = {"assign": (value,), "clip": (column, value, value)}.get(operation, (column, value))
        decision = explain(*given, operation=operation, into=column if call is None else None, rules=rules)
        ours = NULLABLE_NAME_OF[str(decision.dtype)] if decision else "refused"
        assert decision.number_changes == () or value == 1.5  # NaN becomes a missing value
        compared += theirs != "refused"
        if ours != theirs:
            different[operation, name, value] = (ours, theirs)
    assert different == {}
    assert compared > 150


def test_na_is_refused_without_a_nullable_column():
    pandas = import_or_skip("pandas")
    for rules in [name for name in HOMES if name != "pandas-nullable"]:
        decision = explain("int8", pandas.NA, operation="add", rules=rules)
        assert not decision, rules
        assert "pd.NA" in decision.reason[-1]
        assert decision.fix is None
    assert str(explain("Int8", pandas.NA, operation="where", rules="pandas")).startswith(
        "where(int8 (nullable), pd.NA)"
    )


def test_columns_and_tables_with_missing_values_are_refused_as_arrays_and_the_fixes_work():
    pandas, polars, pyarrow = map(import_or_skip, ("pandas", "polars", "pyarrow"))
    large = 2**53 + 1
    columns = [
        pandas.Series([large, None], dtype="Int64"), pandas.array([large, None], dtype="Int64"),
        pandas.Series([large, None], dtype="int64[pyarrow]"), pandas.Series([True, None], dtype="boolean"),
        polars.Series([large, None]), polars.Series([True, None]),
        pyarrow.array([large, None]), pyarrow.chunked_array([[large], [None]]), pyarrow.array([True, None]),
    ]  # fmt: skip
    tables = [
        pandas.DataFrame({"a": columns[0]}), polars.DataFrame({"a": [large, None]}),
        pyarrow.table({"a": [large, None]}),
    ]  # fmt: skip
    for a, dtype in product([*columns, *tables, [columns[0]]], (None, "int64")):
        with pytest.raises(OperandError, match="must not have missing values") as refused:
            asarray(a, dtype=dtype)
        a = a[0] if isinstance(a, list) else a
        for fix in str(refused.value).partition("use ")[2].split(" or "):
            found = asarray(eval(fix, {"a": a}), dtype=dtype)
            assert found.dtype in ("int64", "bool")
            assert found[0].item() in (large, True)
    for a in columns:
        assert asarray(a, dtype="float64")[1].item() != asarray(a, dtype="float64")[1].item()  # NaN, as asked for
    for a in (polars.Series([1.5, None]), pandas.Series([1.5, None], dtype="Float64"), pyarrow.array([1.5, None])):
        assert asarray(a).dtype == "float64"
        with pytest.raises(OperandError, match="must not have missing values"):
            asarray(a, dtype="int64")
