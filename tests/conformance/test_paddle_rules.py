"""Properties of Paddle's rules; `test_measured_rules.py` compares them with Paddle and with its page."""

import collections
import dataclasses
import itertools

import numpy as np

from conformance.measured import NUMBERS
from conformance.measured_rules import ORACLE_OF
from supremum import explain
from supremum.formats import as_format
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
