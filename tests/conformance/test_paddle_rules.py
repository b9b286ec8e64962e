"""Properties of Paddle's rules; `test_measured_rules.py` compares them with Paddle and with its page."""

import collections
import dataclasses
import itertools

import numpy as np

from conformance.measured import NUMBERS, fixed_operands
from conformance.measured_rules import ORACLE_OF
from slowly import for_each
from supremum import explain
from supremum.formats import FORMATS, as_format
from supremum.operands import as_operand
from supremum.operations import OPERATIONS
from supremum.rules.paddle import PADDLE

MEASURED = ORACLE_OF["paddle"]
CODES, operand = MEASURED.codes, MEASURED.operand
SCALARS = [*NUMBERS]


def test_equal_dtypes_are_kept():
    """Two operands of one dtype always work if the operation accepts their category."""
    compared = collections.Counter()
    for row, name in itertools.product(OPERATIONS.values(), CODES.values()):
        accepted = PADDLE.accepts.get(row.name, row.accepts)
        if row.arity != 1 and as_format(name).category in accepted and name not in PADDLE.lacks.get(row.name, ()):
            target = PADDLE.decide(row.name, [operand(name)] * 2).casts[0].target
            # Some operations compute integers in a float dtype.
            assert str(target) == name or as_format(name).category == "integer", row.name
            compared[row.name] += 1
    assert compared.keys() == {row.name for row in OPERATIONS.values() if row.arity != 1}
    assert min(compared.values()) >= 2


def test_three_operands_promote_at_once_and_agree_with_every_accepted_grouping():
    """Paddle promotes two operands at a time; three operands are refused if a pair of them is."""

    def promoted(*names):
        decision = PADDLE.decide("result_type", [operand(name) for name in names])
        return str(decision.dtype) if decision else None

    everything = [*CODES.values(), "bool[]", "int64[]", "float64[]", "complex128[]", "float8_e5m2[]", *SCALARS]
    groupings = 0
    for triple in itertools.combinations_with_replacement(everything, 3):
        together = promoted(*triple)
        assert {promoted(*order) for order in itertools.permutations(triple)} == {together}, triple
        pairs = [promoted(*pair) for pair in itertools.combinations(triple, 2) if not {*pair} <= {*SCALARS}]
        if not {*triple} <= {*SCALARS}:
            assert (together is None) == (None in pairs), triple
        if together and all(name in CODES.values() for name in triple):
            groupings += 1
            left = promoted(promoted(*triple[:2]), triple[2])
            assert {left, promoted(triple[0], promoted(*triple[1:]))} == {together}, triple
    assert groupings == 94  # triples of floats, of complex with other dtypes, and of the same dtype three times
    assert "all are promoted at once" in str(explain("float16", "bfloat16", "complex64", rules=PADDLE))


def test_decisions_depend_on_dimensions_and_on_python_bools():
    one, none, zero = (dataclasses.replace(as_operand("float64"), ndim=ndim) for ndim in (1, None, 0))
    narrow = as_operand("float32")
    for wide, dtype in ((one, "float64"), (none, "float64"), (zero, "float32")):
        assert str(PADDLE.decide("add", [narrow, wide]).dtype) == dtype
    # A Python bool differs from a bool tensor: it is accepted where a 0-d tensor is refused.
    assert explain(np.ones(3, "int8"), True, operation="bitwise_and", rules=PADDLE)
    assert not explain(np.ones(3, "int8"), np.bool_(True), operation="bitwise_and", rules=PADDLE)
    assert not explain(np.ones(3, "int8"), True, operation="fmax", rules=PADDLE)


FIXED = ["add", "equal", "floor_divide", "where", "copysign", "fmax", "poisson_nll_loss"]
FIXED += ["bitwise_and", "bitwise_left_shift"]


@for_each("operation", FIXED, one_in=9, one_slow_in=4)
def test_rules_accept_the_operands_after_the_fix_of_every_refusal(operation):
    refused = 0
    for a, b in itertools.product([*(row.name for row in FORMATS), "int64[]", "float32[]", *SCALARS], repeat=2):
        decision = PADDLE.decide(operation, [operand(a), operand(b)])
        if decision:
            continue
        refused += 1
        assert PADDLE.decide(operation, decision.fix.apply(decision.operands)), (a, b)
        if "complex32" in a + b and ".real" in str(decision.fix):
            continue  # NumPy's `real` does not work for the complex formats of ml_dtypes
        fixed = fixed_operands(decision, (_value(a), _value(b)))
        assert explain(*fixed, operation=operation, rules=PADDLE), (a, b, str(decision.fix))
    assert refused > 1000


def _value(name):
    return NUMBERS[name] if name in NUMBERS else np.ones(() if name.endswith("[]") else 3, name.removesuffix("[]"))
