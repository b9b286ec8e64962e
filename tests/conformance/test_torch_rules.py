"""PyTorch's promotion without an operation, the effect of values, and fixes, compared with the installed PyTorch."""

import collections
import dataclasses
import functools
import itertools
import math
import operator
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conformance import torch_judge as judge
from conformance.departures import DEPARTURES
from slowly import for_each
from supremum import asarray, explain, ops, result_type, use_rules
from supremum.arrays import InPlaceError
from supremum.formats import CATEGORIES, FORMATS, as_format
from supremum.lattice import counterexamples
from supremum.operands import as_operand
from supremum.operations import OPERATIONS
from supremum.rules.array_casts import NATIVE
from supremum.rules.torch import TORCH

torch = judge.torch
SEEN = {name: as_operand(value) for name, value in judge.OPERANDS.items()}
# All formats with kernels, but only one float8, because promotion does not distinguish the float8 formats.
SORTS = [name for name in judge.DTYPES if name not in judge.SHELL and not name.startswith("float8")] + ["float8_e5m2"]


def _ours(rules, operation, *operands):
    decision = rules.decide(operation, operands)
    return str(decision.dtype) if decision else judge.REFUSED


def _rules(default):
    return TORCH if default == "float32" else TORCH.with_default(default)


def test_promote_types_of_pairs_agrees_with_installed_torch():
    assert TORCH.formats <= judge.DTYPES.keys()
    pairs = list(itertools.product(judge.DTYPES, repeat=2))
    theirs = {pair: judge.promote_types(*pair) for pair in pairs}
    ours = {(a, b): _ours(TORCH, "promote_types", as_operand(a), as_operand(b)) for a, b in pairs}
    assert {pair: (ours[pair], theirs[pair]) for pair in pairs if ours[pair] != theirs[pair]} == {}
    assert sum(name != judge.REFUSED for name in theirs.values()) == 231


@pytest.mark.one_in(2)
@pytest.mark.parametrize("default", judge.DEFAULTS)
def test_result_type_of_pairs_agrees_with_installed_torch(default):
    """Compares pairs of tensors with dimensions, 0-d tensors and Python numbers."""
    rules, different = _rules(default), {}
    with judge.default_dtype(default):
        for a, b in itertools.product(judge.OPERANDS, repeat=2):
            ours = _ours(rules, None, SEEN[a], SEEN[b])
            theirs = judge.result_type(judge.OPERANDS[a], judge.OPERANDS[b])
            if ours != theirs:
                different[a, b] = (ours, theirs)
    assert different == {}


NUMPY_SCALARS = [
    np.True_, np.int8(3), np.uint16(3), np.int64(300), np.uint64(300), np.uint64(2**63), np.float16(0.5),
    np.float32(0.5), np.float64(0.5), np.complex64(1j), np.complex128(1j),
]  # fmt: skip
OF_SCALARS = ("add", "subtract", "multiply", "divide", "remainder", "pow", "less", "bitwise_or", "where", "clip")


@for_each("name", OF_SCALARS, one_in=2)
@pytest.mark.filterwarnings("ignore:Casting complex values")
def test_numpy_scalars_are_read_as_the_numbers_that_torch_reads(name):
    departures = [row for row in DEPARTURES if (row.rules, row.form) == ("torch", "NumPy scalar")]
    different, departing = {}, set()
    for scalar, (named, tensor), is_first in itertools.product(NUMPY_SCALARS, judge.TENSORS.items(), (False, True)):
        if named.removesuffix("[]") not in NATIVE or (is_first and name == "clip"):
            continue
        operands, names = (tensor, scalar), (named, f"{scalar.dtype}[]")
        if is_first:
            operands, names = operands[::-1], names[::-1]
        ask = judge.torch.clamp if name == "clip" else functools.partial(judge.operate, name)
        theirs = judge.call(ask, *operands) if name == "clip" else ask(*operands)
        decision = explain(*operands, operation=name, rules=TORCH)
        ours = str(decision.dtype) if decision else judge.REFUSED
        if ours != theirs and not judge.without_kernel(theirs):
            rows = [row for row in departures if row.covers(name, "NumPy scalar", *names, ours, theirs)]
            departing.update(rows)
            if not rows:
                different[names, scalar] = (ours, theirs)
    assert different == {}
    is_of_bits = OPERATIONS[name].accepts == CATEGORIES[:2]  # and refuses complex numbers
    assert departing == {row for row in departures if not (is_of_bits and "complex" in row.right)}


@pytest.mark.parametrize("keyword", ["min", "max"])
def test_clip_with_a_tensor_as_its_one_bound_agrees_with_installed_torch(keyword):
    different = {}
    for a, b in itertools.product(judge.TENSORS, repeat=2):
        theirs = judge.call(lambda x, bound: torch.clamp(x, **{keyword: bound}), judge.TENSORS[a], judge.TENSORS[b])
        ours = _ours(TORCH, "clip", SEEN[a], SEEN[b])
        if ours != theirs and not judge.without_kernel(theirs):
            different[a, b] = (ours, theirs)
    assert different == {}


@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_arrays_read_numpy_scalars_as_numbers_under_the_rules_of_torch(library):
    with use_rules("torch"):
        a, small = (asarray(np.array([1, 2], name), library=library) for name in ("int32", "uint8"))
        half = np.float64(0.5)
        for found in (a * half, half * a, ops.multiply(a, half), np.multiply(a, half), ops.where(a > 1, a, half)):
            assert found.dtype == "float32"
        assert result_type(a, half) == "float32"
        for found in (small * np.int64(300), np.int64(300) * small, ops.multiply(small, np.int64(300))):
            assert found.dtype == "uint8"
            assert np.asarray(found).tolist() == [44, 88]
        small += np.int64(300)
        assert np.asarray(small).tolist() == [45, 46]
        for write in (lambda: operator.iadd(small, half), lambda: operator.setitem(small, 0, np.int64(300))):
            with pytest.raises(InPlaceError, match=r"float\* \(0.5\)|int\* \(300\)"):
                write()
    with use_rules("numpy"):
        assert (a * half).dtype == "float64"


def test_pairs_commute_and_1104_triples_with_wide_unsigned_integers_do_not_associate():
    def join(a, b):
        found = _ours(TORCH, "promote_types", as_operand(a), as_operand(b))
        return None if found == judge.REFUSED else found

    found = list(counterexamples(join, list(judge.DTYPES)))
    assert collections.Counter(each.law for each in found) == {"associative": 1104}
    # Each triple is refused in one grouping and accepted in the other; none has two dtypes.
    assert all(None in (each.left, each.right) for each in found)
    unsigned = {name for name in judge.DTYPES if name.startswith("uint")} - {"uint8"}
    assert all(unsigned & set(each.nodes) for each in found)


def test_three_tensors_of_equal_rank_promote_from_left_to_right():
    different = {}
    for names in itertools.product(SORTS, repeat=3):
        theirs = judge.call(lambda *tensors: torch.cat(tensors), *(judge.TENSORS[name] for name in names))
        ours = _ours(TORCH, None, *(SEEN[name] for name in names))
        if ours != theirs:
            different[names] = (ours, theirs)
    assert different == {}
    assert _ours(TORCH, None, *map(as_operand, ("uint16", "float16", "complex64"))) == "complex64"
    assert _ours(TORCH, None, *map(as_operand, ("uint16", "complex64", "float16"))) == judge.REFUSED


@settings(max_examples=500, deadline=None)
@given(names=st.lists(st.sampled_from(SORTS), min_size=1, max_size=7))
def test_result_type_of_many_tensors_agrees_with_torch_cat(names):
    theirs = judge.call(lambda *tensors: torch.cat(tensors), *(judge.TENSORS[name] for name in names))
    assert _ours(TORCH, None, *(SEEN[name] for name in names)) == theirs


@pytest.mark.slow
@settings(max_examples=1000, deadline=None)
@given(names=st.tuples(*[st.sampled_from(list(judge.TENSORS))] * 3), default=st.sampled_from(judge.DEFAULTS))
def test_result_type_of_three_tensors_of_any_rank_agrees_with_torch_addcmul(names, default):
    """`torch.addcmul(a, b, c)` computes `a + b * c` in the promoted dtype, which errors about missing kernels name."""
    with judge.default_dtype(default):
        theirs = judge.call(torch.addcmul, *(judge.TENSORS[name] for name in names))
    ours = _ours(_rules(default), None, *(SEEN[name] for name in names))
    missing = judge.without_kernel(theirs)
    # The error names a shell dtype even if the tensor only needs a conversion.
    assert ours == (missing or theirs) or missing in judge.SHELL


INTEGERS = [row for row in FORMATS if row.category == "integer" and row.name in set(judge.DTYPES) - set(judge.SHELL)]
INTEGER_BOUNDS = {bound for row in INTEGERS for bound in (row.min, row.max, -row.max)} | {0, 10**20, 10**400}
INTEGER_VALUES = sorted({bound + step for bound in INTEGER_BOUNDS for step in (-1, 0, 1)})
FLOAT_VALUES = [
    sign * value
    for name in ("float16", "bfloat16", "float32", "float64")
    for value in (as_format(name).max, math.nextafter(as_format(name).max, math.inf))
    for sign in (1.0, -1.0)
]
FLOAT_VALUES += [0.0, 1.0, 1.5, -2.0, math.nan]
LOOKS_AT_VALUES = ("add", "multiply", "divide", "where", "pow", "less", "copysign", "bitwise_and", "floor_divide")


@for_each("operation", LOOKS_AT_VALUES, one_in=9, one_slow_in=4)
def test_python_numbers_of_every_size_agree_with_installed_torch(operation):
    """The numbers are at and next to the bounds of every dtype, as left and as right operand."""
    numbers = [*INTEGER_VALUES, *FLOAT_VALUES, *(complex(0, value) for value in FLOAT_VALUES), True, False]
    rules, different = TORCH.with_default("float32"), {}
    tensors = [name for name in judge.TENSORS if name.removesuffix("[]") not in judge.SHELL]
    for name, number in itertools.product(tensors, numbers):
        for call in ((judge.TENSORS[name], number), (number, judge.TENSORS[name])):
            if judge.divides_by_zero(operation, *call):
                continue
            decision = rules.decide(operation, [as_operand(operand) for operand in call])
            theirs, overflow = judge.operate_with_overflow(operation, *call)
            if judge.without_kernel(theirs) is None and (
                theirs != (str(decision.dtype) if decision else judge.REFUSED) or overflow != decision.verdict.overflow
            ):
                different[name, str(number)[:30], call[0] is number] = (str(decision), theirs, overflow)
    assert different == {}


def test_reasons_mention_python_ints_that_wrap():
    count = 0
    for row, number in itertools.product(INTEGERS, [value for value in INTEGER_VALUES if -(2**63) <= value < 2**64]):
        wrapped = torch.mul(judge.TENSORS[row.name], number)[0].item() != number
        assert (
            any("wraps" in why for why in explain(row.name, number, operation="multiply", rules=TORCH).reason)
            == wrapped
        )
        count += wrapped
    assert count > 20


@settings(max_examples=300, deadline=None)
@given(
    operation=st.sampled_from(LOOKS_AT_VALUES),
    name=st.sampled_from(list(judge.TENSORS)),
    number=st.integers(-(2**70), 2**70)
    | st.floats()
    | st.complex_numbers()
    | st.booleans()
    | st.sampled_from(FLOAT_VALUES),
)
def test_cached_verdicts_equal_new_verdicts(operation, name, number):
    operands = (SEEN[name], as_operand(number))
    assert TORCH.decide(operation, operands).verdict == dataclasses.replace(TORCH).decide(operation, operands).verdict


FIXED = ("add", "subtract", "maximum", "hypot", "less", "bitwise_or", "copysign")


@pytest.mark.filterwarnings("ignore:Casting complex values to real:UserWarning")
@for_each("operation", FIXED, one_in=7, one_slow_in=4)
def test_torch_accepts_the_operands_after_the_fix_of_every_refusal(operation):
    fixed = 0
    for call in itertools.product(judge.OPERANDS, repeat=2):
        decision = TORCH.decide(operation, [SEEN[name] for name in call])
        if decision:
            continue
        if any(name.removesuffix("[]") in judge.SHELL for name in call):
            assert decision.fix is None  # torch cannot convert shell dtypes, even explicitly
            continue
        fixed += 1
        operands = decision.fix.apply(decision.operands)
        assert TORCH.decide(operation, operands), (call, decision.fix)
        outcome = judge.operate(
            operation,
            *(
                judge.cast(judge.OPERANDS[name], operand.dtype) if operand != SEEN[name] else judge.OPERANDS[name]
                for name, operand in zip(call, operands, strict=True)
            ),
        )
        # After the fix only a kernel may be missing: float8, complex32 and wide unsigned integers lack some.
        assert outcome != judge.REFUSED, (call, decision.fix)
        assert judge.without_kernel(outcome) not in judge.SHELL, (call, decision.fix)
    assert fixed > 100


@pytest.mark.parametrize("operation", ["where", "add", "pow"])
def test_fixes_of_numbers_out_of_range_hold_the_number(operation):
    overflows = 0
    for name, number in itertools.product(set(judge.DTYPES) - set(judge.SHELL), INTEGER_VALUES):
        decision = explain(name, number, operation=operation, rules=TORCH)
        if decision.verdict.overflow and abs(number) < 10**300:
            overflows += 1
            fixed = decision.fix.apply(decision.operands)
            held_in = as_format(fixed[1].dtype or "float64")
            assert held_in.min <= number <= held_in.max
            assert TORCH.decide(operation, fixed), (name, number)
    assert overflows > 20


def test_accepted_default_dtypes_are_those_of_torch():
    assert TORCH.with_default(torch.float64) == TORCH.with_default("float64") != TORCH
    for name in judge.DTYPES:
        try:
            with judge.default_dtype(name):
                accepted = True
        except TypeError:
            accepted = False
        if accepted:
            assert TORCH.with_default(name).default_dtype == name
        else:
            with pytest.raises(ValueError, match="default dtype must be one of"):
                TORCH.with_default(name)


def test_torch_rules_do_not_import_torch():
    code = "import sys, supremum.rules.torch; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
