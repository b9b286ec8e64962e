"""The answers of the page in a browser are those of the rule sets."""

import math
import random
from dataclasses import replace
from functools import cache
from itertools import compress, product

import numpy as np
import pytest

from explorer.explanations import explanations, is_0d
from supremum import explain, result_type
from supremum.decisions import PromotionError
from supremum.errors import SupremumError
from supremum.explorer.number_classes import number_classes
from supremum.formats import format_names
from supremum.operands import WEAK_NAMES, parse_operand
from supremum.rules.names import HOMES

pytestmark = pytest.mark.slow

RULES = tuple(HOMES)
NAMED = (*format_names(), *(f"{name}[]" for name in format_names()), *WEAK_NAMES, "True", "False")
NUMBERS = (
    "0", "1", "-1", "127", "128", "-128", "-129", "255", "256", "32768", "65504", "65535", "65536", "2147483647",
    "2147483648", "-2147483649", "4294967296", "9223372036854775807", "9223372036854775808", "-9223372036854775809",
    "18446744073709551615", "18446744073709551616", str(10**40), str(2**1024), str(-(10**400)),
    "0.0", "-0.0", "1.5", "-0.5", "255.5", "65504.5", "65519.5",
    "65520.5", "-65519.5", "-65520.5", "64999.0", "65000.0", "65519.999", "65520.0", "3.4e38", "3.5e38", "-1e39",
    "1e-46",
    "1e308", "inf", "-inf", "nan", "2j", "1+2j", "1e39j", "1e39+1j", "65520+0j", "nan+1j", "infj", "1.5-1e300j",
)  # fmt: skip
ODD = """
1_000 1__0 _1 1_ +3 -0 007 0x10 1e400 -1e400 1e-320 .5 5. . 1E5 1e Infinity -INF NaN +nan infinit
1+2j (1+2j) (1) () -2J 1-j j -j + 1e5j 1e16 1e15 1e-5 0.0001 123456789.125 1.7976931348623157e308
1j2 1+2 2jj 1++2j inf+nanj -0.0 -0j 0j 1_0.5_0e1_0 1.5+1_0j e 1e5e5 10j5 --1 +-1 1d5
int float uint8[] uint8[ int* int*[] True true True[] f4 <f4 f4[] half double b1 object str M8 c16 ? d G bool_ Bool
""".split()  # noqa: SIM905 (a list of seventy lines)
ASK = """([rules, operation, texts]) => window.explorer.then(({decided, parser}) => {
    const operands = texts.map((text) => parser.parse(text));
    return operands.flatMap((a) => operands.map((b) =>
        decided.has(operation, [a, b]) ? decided.answer(rules, operation, [a, b]).account : null));
})"""
EXPLAIN = """([rules, calls]) => window.explorer.then(({decided, parser}) => calls.map(([operation, pair]) =>
    decided.answer(rules, operation, pair.map((text) => parser.parse(text))).filled))"""
PARSE = "(texts) => window.explorer.then(({parser}) => texts.map((text) => parser.parse(text)?.written ?? null))"


def account(decision):
    return "refused" if decision.result is None else str(decision.result)


def is_answered(a, b, operation=None):
    """Whether the page answers: not for two numbers, and in operations not for arrays without dimensions."""
    numbers = [each for each in (a, b) if each.dtype is None and each.value is not None]
    return len(numbers) < 2 and (operation is None or not (is_0d(a) or is_0d(b)))


def different_answers(page, rules, texts, operation=None):
    """The pairs for which the answer of the page differs from that of the rule set."""
    answers = page.evaluate(ASK, [rules, operation or "result_type", texts])
    operands = [parse_operand(text) for text in texts]
    expected = [
        account(explain(a, b, operation=operation, rules=rules)) if is_answered(a, b, operation) else None
        for a, b in product(operands, repeat=2)
    ]
    return [pair for pair, x, y in zip(product(texts, repeat=2), answers, expected, strict=True) if x != y]


@pytest.mark.one_slow_in(3)
@pytest.mark.parametrize("rules", RULES)
def test_any_two_operands_have_the_answer_of_the_rule_set(open_page, rules):
    assert different_answers(open_page(), rules, (*NAMED, *NUMBERS)) == []


def test_answers_agree_with_result_type(open_page):
    # The test above compares decisions; this one compares with the public function.
    texts = (*format_names(), *WEAK_NAMES)
    answers = open_page().evaluate(ASK, ["numpy", "result_type", texts])
    for (a, b), answer in zip(product(texts, repeat=2), answers, strict=True):
        try:
            assert answer.split(" as ")[-1] == str(result_type(a, b, rules="numpy"))
        except PromotionError:
            assert answer == "refused"


@pytest.mark.one_slow_in(3)
@pytest.mark.parametrize("rules", RULES)
def test_operators_have_the_answers_of_the_rule_set(open_page, rules):
    chosen, page = random.Random(rules), open_page()
    for operation in ("add", "divide", "less"):
        texts = (*format_names(), *WEAK_NAMES, "True", *NUMBERS[::2], *(number_near_a_cut(chosen) for _ in range(8)))
        assert different_answers(page, rules, (*texts, "int8[]"), operation) == [], operation


def test_other_operations_have_answers_for_arrays_and_kinds(open_page):
    texts = (*format_names(), *WEAK_NAMES, "True", "False")
    page, operands = open_page(), [parse_operand(text) for text in texts]
    for rules in RULES:
        answers = page.evaluate(ASK, [rules, "maximum", texts])
        decisions = [explain(a, b, operation="maximum", rules=rules) for a, b in product(operands, repeat=2)]
        assert answers == list(map(account, decisions)), rules


@pytest.mark.one_slow_in(3)
@pytest.mark.parametrize("rules", RULES)
def test_explanations_match_the_decisions(open_page, rules):
    chosen = random.Random(rules)
    simple = (*format_names(), *WEAK_NAMES, "True")
    near = [number_near_a_cut(chosen) for _ in range(40)]
    calls = [("maximum", chosen.choices(simple, k=2)) for _ in range(20)]
    for operations, texts in (
        (("result_type",), (*NAMED, *NUMBERS * 2, *near)),
        (("add", "divide", "less"), (*simple, *NUMBERS, *near)),
    ):
        calls += [(chosen.choice(operations), chosen.choices(texts, k=2)) for _ in range(250)]
    asked = [(operation, [parse_operand(text) for text in pair]) for operation, pair in calls]
    kept = [is_answered(*pair, None if operation == "result_type" else operation) for operation, pair in asked]
    told = open_page().evaluate(EXPLAIN, [rules, list(compress(calls, kept))])
    for (operation, pair), text in zip(compress(asked, kept), told, strict=True):
        assert text in explanations(explain(*pair, operation=operation, rules=rules)), (operation, *map(str, pair))


@cache
def cuts():
    classes = number_classes(RULES)
    return classes.integers.cuts, classes.whole.cuts + classes.fractional.cuts


def number_near_a_cut(chosen):
    of_integers, of_floats = cuts()
    at = chosen.choice(of_integers) + chosen.choice((-1, 0, 1))
    if chosen.random() < 0.4:
        return str(at)
    near = [math.nextafter(float(x), to) for x in of_floats for to in (-math.inf, x, math.inf)]
    first, second = chosen.choices(near, k=2)
    return repr(first) if chosen.random() < 0.6 else repr(complex(first, second))


def test_operands_are_parsed_as_on_the_command_line(open_page):
    texts = [
        *ODD,
        "9" * 80,
        "",
        "int8 ",
        chr(0x661),
        *(name for name in np.sctypeDict if isinstance(name, str)),
    ]
    read = open_page().evaluate(PARSE, texts)
    for text, written in zip(texts, read, strict=True):
        try:
            expected = str(parse_operand(text))
        except SupremumError:
            expected = None
        assert written == expected or (written is None and not text.isascii()) or text.strip() != text, text


def test_0d_arrays_have_different_answers(open_page):
    # A control for the tests above: these answers differ.
    page = open_page()
    told = [page.evaluate(ASK, ["torch", "result_type", ["float64" + end, "float32"]])[1] for end in ("", "[]")]
    assert told == ["float64", "float32"]
    zero_d = replace(parse_operand("float64"), ndim=0)
    assert account(explain(zero_d, "float32", rules="torch")) == "float32"
