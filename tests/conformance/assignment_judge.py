"""Whether a result may be stored in an array that keeps its dtype: our decisions, compared with a framework's."""

import collections
import functools
import itertools
import operator

from conformance.assignment_departures import DEPARTURES
from conformance.departures import expected_cells
from conformance.measured import NUMBERS, operand
from supremum.rules import get_rules

STORED, REFUSED, UNKNOWN = "stored", "refused", "unknown"
IN_PLACE = {
    "add": operator.iadd, "subtract": operator.isub, "multiply": operator.imul, "divide": operator.itruediv,
    "floor_divide": operator.ifloordiv, "remainder": operator.imod, "pow": operator.ipow, "bitwise_and": operator.iand,
    "bitwise_or": operator.ior, "bitwise_xor": operator.ixor, "bitwise_left_shift": operator.ilshift,
    "bitwise_right_shift": operator.irshift,
}  # fmt: skip


operand_of = functools.cache(operand)


@functools.cache  # several forms ask the same
def decide(rules, operation, into, value):
    """The decision to store the result of an operation in its first operand, or a value in an array."""
    target, given = operand_of(into), operand_of(value)
    operands = (given,) if operation == "assign" else (target, given)
    return get_rules(rules).decide(operation, operands, target)


def pairs(names):
    """List (into, value), without the values that have more dimensions than the array they are written into."""
    arrays = [*names, *(f"{name}[]" for name in names)]
    for into, value in itertools.product(arrays, [*arrays, *NUMBERS]):
        if value in NUMBERS or value.endswith("[]") or not into.endswith("[]"):
            yield into, value


def set_all(target, value):
    """Assign to all elements."""
    target[...] = value
    return target


def check(rules, form, cells):
    """Compare cells, {(operation, into, value): outcome}, with our decisions, and the differences with the departures.

    At least one cell must have a known outcome.
    """
    assert set(cells.values()) & {STORED, REFUSED}
    listed = [row for row in DEPARTURES if rules in row.rules.split() and row.form == form]
    covered, unlisted = collections.Counter(), []
    for (operation, into, value), theirs in cells.items():
        decision = decide(rules, operation, into, value)
        ours = STORED if decision else REFUSED
        if theirs in (ours, UNKNOWN):
            continue
        reason = " ".join(decision.reason)
        rows = [i for i, r in enumerate(listed) if operation in r.cells and r.ours == ours and r.says in reason]
        covered.update((i, operation) for i in rows)
        if len(rows) != 1:
            unlisted.append((operation, into, value, ours, decision.reason))
    operations = {operation for operation, _, _ in cells}
    expected = {
        (i, name): count for i, row in enumerate(listed) for name, count in row.cells.items() if name in operations
    }
    assert not unlisted, (len(unlisted), unlisted[:12])
    assert covered == expected_cells(expected, covered), (dict(covered), expected)
