"""The data of the page, read in Python, have the decisions of the rule sets."""

import math
import random
import re
from bisect import bisect_right
from functools import cache
from itertools import product

import pytest

from explorer.explanations import explanations
from supremum import explain
from supremum.explorer.answers import (
    CHANGED,
    CLIMBED,
    NAMED,
    OPERATION,
    RESULT,
    TYPES,
    WRITTEN,
    Answers,
    Asker,
    distinct,
)
from supremum.explorer.number_classes import number_classes
from supremum.formats import as_format, format_names
from supremum.number_conversion import NumberChange, change, converted
from supremum.operands import as_operand, parse_operand
from supremum.rules import get_rules

ZERO_D = tuple(parse_operand(f"{name}[]") for name in format_names())
WHOLE = (0, 1, -1, 127, 128, 256, -129, 65520, 2**31, 2**63, 10**40)
NUMBERS = tuple(map(as_operand, (*WHOLE, 0.0, 1.5, 65520.0, 1e39, math.nan, 2j, 1e39j)))


class Reader:
    """The answers of one rule set, looked up as the page does it."""

    def __init__(self, rules):
        self.classes, self.answers = number_classes([rules]), Answers()
        self.asker = Asker(rules, self.classes, self.answers)
        self.question, self.table = cache(self.asker.question), cache(self.asker.table)

    def float_class(self, value):
        whole, fractional = self.classes.whole.cuts, self.classes.fractional.cuts
        if not math.isfinite(value):
            numbers = (math.isnan(value), value == -math.inf, value == math.inf)
            return len(whole) + len(fractional) + 2 + numbers.index(True)
        is_whole = value.is_integer()
        return bisect_right(whole, value) if is_whole else len(whole) + 1 + bisect_right(fractional, value)

    def row(self, question, operand):
        value = operand.value
        if isinstance(value, complex):
            real, imaginary = map(self.float_class, (value.real, value.imag))
            return question.complex[question.real[real]][question.imaginary[imaginary]]
        if isinstance(value, float):
            return question.floats[self.float_class(value)]
        if operand.dtype is None and value is not None:
            return question.integers[bisect_right(self.classes.integers.cuts, value)]
        return question.named[(*TYPES, *ZERO_D).index(operand)]

    def told(self, operation, operands):
        """The result and the explanation of a call."""
        question = self.question(operation)
        rows = [self.row(question, operand) for operand in operands]
        cell = question.table[rows[0]][rows[1]] if len(rows) == 2 else question.alone[rows[0]]
        return self.filled(cell, operation, operands)

    def filled(self, cell, operation, operands):
        cells, results, texts, ways = map(
            list, (self.answers.cells, self.answers.results, self.answers.texts, self.answers.paths)
        )
        result, text, *paths = cells[cell]
        _, dtype, account = results[result]
        fill = {RESULT: dtype, OPERATION: operation or "result_type"}
        for i, operand in enumerate(operands):
            fill |= {WRITTEN[i]: str(operand), NAMED[i]: operand.name, CLIMBED[i]: " -> ".join(ways[paths[i]])}

        def marks_filled(text):
            return re.sub("[\x01-\x08]", lambda mark: fill[mark[0]], text)

        def changed(match):
            value = operands[int(match[1])].value
            steps = [as_format(name) for name in marks_filled(match[2]).split(",")]
            becomes = converted(value, steps)
            how = change(value, becomes, steps[-1])
            return "" if how is None else f", {NumberChange(int(match[1]), value, becomes, how)}"

        told = re.sub(f"{CHANGED[0]}(.):([^{CHANGED[1]}]*){CHANGED[1]}", changed, texts[text])
        return account, marks_filled(told), text in self.answers.lossy


def expected(decision):
    """The result, the explanations that the data may have, and whether values are lost."""
    result = str(decision.result) if decision else "refused"
    return result, explanations(decision), any(cast.lossy for cast in decision.casts)


@pytest.mark.parametrize("rules", ["jax-x64", "torch", "tf-rfc-safe"])
def test_the_data_have_the_decisions_of_a_rule_set(rules):
    reader, chosen = Reader(rules), random.Random(rules)
    names, different = (*TYPES, *ZERO_D), []
    for operation, named in ((None, names), ("divide", TYPES)):
        pairs = [chosen.choices(named, k=2) for _ in range(300)]
        pairs += [(name, number) for name in chosen.sample(named, 12) for number in NUMBERS]
        alone = [(operand,) for operand in (*names, *NUMBERS) if operation is None]
        for call in (*pairs, *(pair[::-1] for pair in pairs), *alone):
            account, told, is_lossy = reader.told(operation, call)
            wanted = expected(explain(*call, operation=operation, rules=rules))
            if (account, is_lossy) != wanted[::2] or told not in wanted[1]:
                different.append((operation, *map(str, call), account, told, is_lossy))
    assert different == []


def test_a_table_has_every_pair_of_types():
    reader = Reader("tinygrad")
    table, sorts = reader.table("maximum"), distinct(get_rules("tinygrad"), TYPES)[1]
    for (i, a), (j, b) in product(enumerate(TYPES), repeat=2):
        account, told, _ = reader.filled(table[sorts[i]][sorts[j]], "maximum", (a, b))
        wanted = expected(explain(a, b, operation="maximum", rules="tinygrad"))
        assert (account, {told}) == wanted[:2], (a, b)
