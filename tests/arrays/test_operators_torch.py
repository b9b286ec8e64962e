"""Every operation on PyTorch's tensors follows the rules, also for raw tensors on either side of an `Array`."""

import itertools

import jax
import numpy as np
import pytest

from arrays import calls
from arrays.calls import (
    BINARY,
    CLASSIC,
    LACKING,
    MORE_NUMBERS,
    NUMBERS,
    OPERATORS,
    REFUSED,
    RULE_SETS,
    UNARY,
)
from arrays.departures import TORCH_LACKS
from conformance import assignment_judge
from conformance import torch_judge as judge
from slowly import mostly_slow
from supremum import OperandError, PromotionError, explain, get_rules, use_rules
from supremum.arrays import Array, DeviceError, InPlaceError, LibraryError, RuntimeDtypeError, asarray, ops
from supremum.arrays.functions.losses import LOSSES
from supremum.arrays.wrapped import wrap
from supremum.errors import ArgumentError
from supremum.formats import as_format

torch = judge.torch
# Torch cannot fill tensors of shell dtypes, or compute with them.
NAMES = [name for name in judge.DTYPES if name not in judge.SHELL]
ARRAYS = {name: wrap(torch.ones(1, dtype=judge.DTYPES[name])) for name in NAMES}
ZERO_D = {name: wrap(torch.ones((), dtype=judge.DTYPES[name])) for name in NAMES}
RULES = ("torch", "numpy", "jax-x64", "tf-rfc-safe")
IN_FULL = ("add", "divide", "pow", "less", "bitwise_and")
IN_PLACE = ("add", "multiply", "divide", "bitwise_and")
SYMBOLS = {name: function for name, function in OPERATORS.items() if name in BINARY}


def _lacks(name, compute, result, _to_int=False):
    """Whether torch lacks a function for these dtypes; losses are ours and lack what one of their steps lacks."""
    if {*map(str, compute), str(result)} - judge.DTYPES.keys():
        return True
    tensors = [torch.ones(1, dtype=judge.DTYPES[str(dtype)]) for dtype in compute]
    try:
        if name in LOSSES:
            torch.abs(tensors[0] - tensors[1])
            if name == "poisson_nll_loss":
                torch.exp(tensors[0])
        else:
            drops_fraction = name == "divide" and as_format(result).category == "integer"
            judge.ASKED["floor_divide" if drops_fraction else name](*tensors)
    except (RuntimeError, TypeError):
        return True
    return False


def _check_calls(rules, names, tables):
    cells, rule_set = calls.Cells(_lacks), get_rules(rules)
    every = [call for table in tables for call in itertools.product(*(each.values() for each in table))]
    with use_rules(rules):
        for name in names:
            function = calls.function_of(name)
            for call in every:
                cells.ask(rule_set, name, function, call)
    cells.check()
    return cells


def _known(rules):
    """The formats that the rules accept; a format refused with itself is refused with every operand."""
    return {name: array for name, array in ARRAYS.items() if explain(name, name, rules=rules)}


@pytest.mark.one_slow_in(3)
@pytest.mark.one_in(2)
@pytest.mark.parametrize("rules", mostly_slow(RULE_SETS, "torch", "tf-rfc-safe"))
def test_operations_on_pairs_of_tensors_follow_the_rules(rules):
    known = _known(rules)
    cells = _check_calls(rules, BINARY, [(known, known)])
    assert cells.number["given"] > 200
    _check_calls(rules, ["add"], [(ARRAYS, ARRAYS)])
    _check_calls(rules, UNARY, [(ARRAYS,), (ZERO_D,)])


@pytest.mark.slow
@pytest.mark.parametrize("rules", ["torch", "paddle"])
def test_operations_with_0d_tensors_follow_the_rules(rules):
    adding = [name for name in NAMES if explain(name, name, operation="add", rules=rules)]
    some, zero_d = {name: ARRAYS[name] for name in adding}, {name: ZERO_D[name] for name in adding}
    cells = _check_calls(rules, BINARY, [(some, zero_d), (zero_d, some), (zero_d, zero_d)])
    assert cells.number["given"] > 3000


@pytest.mark.one_slow_in(3)
@pytest.mark.one_in(2)
@pytest.mark.parametrize("rules", mostly_slow(RULE_SETS, "torch", "paddle"))
def test_operations_with_python_numbers_follow_the_rules(rules):
    others, arithmetic = {"2": 2, "2.5": 2.5, "2j": 2j}, [name for name in BINARY if name != "pow"]
    known = _known(rules)
    cells = _check_calls(rules, arithmetic, [(known, NUMBERS), (NUMBERS, known)])
    # Powers of 1 and True are left out, because torch computes them even for dtypes without a kernel.
    _check_calls(rules, ["pow"], [(known, others), (others, known)])
    assert cells.number["given"] > 200
    beyond = {name: number for name, number in MORE_NUMBERS.items() if number != -1}
    _check_calls(rules, ("add", "divide", "equal", "where"), [(known, MORE_NUMBERS), (MORE_NUMBERS, known)])
    _check_calls(rules, ("pow",), [(known, beyond), (MORE_NUMBERS, known)])


@pytest.mark.slow
def test_dtypes_that_torch_lacks_are_as_listed():
    missing = {}
    for rules, name in itertools.product(RULE_SETS, (*BINARY, *UNARY)):
        for array in ARRAYS.values():
            arity = 2 if name in BINARY else 1
            decision = get_rules(rules).decide(name, (array.key.operand,) * arity)
            if decision and _lacks(name, decision.verdict.compute, decision.dtype):
                missing.setdefault(name, set()).add(str(decision.verdict.compute[0]))
    written = {name: set(dtypes.split()) for name, dtypes in TORCH_LACKS.items()}
    assert {name: missing.get(name, set()) for name in TORCH_LACKS} == written


def _outcome(function, *operands):
    try:
        result = function(*operands)
    except PromotionError:
        return REFUSED
    except RuntimeDtypeError:
        return LACKING
    assert type(result) is Array, type(result)
    return result.dtype, result.weak_type


@pytest.mark.slow
@pytest.mark.one_slow_in(3)
@pytest.mark.parametrize("rules", RULES)
def test_raw_tensors_and_numpy_arrays_on_both_sides_give_the_dtypes_of_arrays(rules):
    """Compares with two `Array` operands, which `test_operations_on_pairs_of_tensors_follow_the_rules` covers."""
    different, given = {}, 0
    with use_rules(rules):
        for name, (a, b) in itertools.product(SYMBOLS, itertools.product(CLASSIC, repeat=2)):
            left, right, function = ARRAYS[a], ARRAYS[b], SYMBOLS[name]
            expected = _outcome(function, left, right)
            given += expected not in (REFUSED, LACKING)
            sides = [(left.unwrap(), right), (left, right.unwrap())]
            if name in IN_FULL:
                sides += [(np.ones(1, a), right), (left, np.ones(1, b)), (wrap(np.ones(1, a)), right)]
            found = [_outcome(function, *call) for call in sides]
            if name in IN_FULL:
                found += [
                    _outcome(judge.ASKED[name], left.unwrap(), right),
                    _outcome(judge.ASKED[name], left, right.unwrap()),
                ]
            if set(found) != {expected}:
                different[name, a, b] = (expected, found)
    assert different == {}
    assert given > 1000


def test_scalars_and_0d_tensors_on_the_left_follow_the_rules():
    a = wrap(torch.ones(2, dtype=torch.float16))
    with use_rules("torch"):
        assert (np.float32(2) + a).dtype == "float16"  # a 0-d array for torch
        assert (torch.ones((), dtype=torch.float64) + a).dtype == "float16"
        assert (torch.ones(2, dtype=torch.float64) + a).dtype == "float64"
        assert (2.5 - a).tolist() == [1.5, 1.5]
        assert (2 ** wrap(torch.tensor([3], dtype=torch.int8))).tolist() == [8]
        assert torch.sub(2.5, a).tolist() == [1.5, 1.5]
    with use_rules("numpy"):
        assert (np.float32(2) + a).dtype == "float32"
        assert (torch.ones((), dtype=torch.float64) + a).dtype == "float64"


@pytest.mark.one_slow_in(3)
@pytest.mark.one_in(4)
@pytest.mark.parametrize("rules", RULES)
def test_in_place_operators_keep_the_dtype_of_tensors_or_raise(rules):
    wrong, kept, refused = [], 0, 0
    with use_rules(rules):
        for name, (a, b) in itertools.product(
            ("add", "multiply", "divide", "bitwise_and"), itertools.product(CLASSIC, repeat=2)
        ):
            other, said = ARRAYS[b], _outcome(SYMBOLS[name], ARRAYS[a], ARRAYS[b])
            plain, array = torch.ones(1, dtype=judge.DTYPES[a]), wrap(torch.ones(1, dtype=judge.DTYPES[a]))
            memory = array.unwrap()
            for target, value in ((plain, other), (array, other), (array, other.unwrap())):
                keeps = said != LACKING and bool(explain(ARRAYS[a], other, operation=name, into=ARRAYS[a]))
                try:
                    result = assignment_judge.IN_PLACE[name](target, value)
                except (PromotionError, InPlaceError, RuntimeDtypeError):
                    refused += 1
                    if keeps:
                        wrong.append((name, a, b, "refused"))
                    continue
                changed = plain if target is plain else memory
                if result is target:
                    kept += 1
                    if changed.dtype != judge.DTYPES[a] or not keeps:
                        wrong.append((name, a, b, result, said))
                    changed.fill_(1)
                else:
                    wrong.append((name, a, b, result, said))
    assert wrong == []
    assert kept > 100
    assert refused > 100


def test_in_place_methods_of_tensors_keep_dtype_and_shape_or_raise():
    with use_rules("torch"):
        tensor = torch.ones(2, dtype=torch.float32)
        assert tensor.add_(wrap(torch.ones(2, dtype=torch.int8))) is tensor
        assert tensor.tolist() == [2.0, 2.0]
        small = torch.ones(2, dtype=torch.int8)
        with pytest.raises(InPlaceError, match="float32"):
            small.add_(wrap(torch.ones(2)))
        assert small.tolist() == [1, 1]
        with pytest.raises(ArgumentError, match="shape"):
            tensor.add_(wrap(torch.ones((3, 2))))


def test_torch_functions_without_rules_are_refused():
    a = wrap(torch.ones(2))
    for call in (lambda: torch.median(a), lambda: torch.equal(a, a), lambda: torch.mean(a, dtype=torch.float64)):
        with pytest.raises(TypeError, match="does not support an Array"):
            call()
    with use_rules("numpy"):
        assert torch.where(torch.ones(2, dtype=torch.bool), a, torch.ones(2, dtype=torch.int32)).dtype == "float64"


def test_jax_and_torch_arrays_do_not_mix_and_the_fix_works():
    a, b = wrap(jax.numpy.ones(2)), wrap(torch.ones(2, dtype=torch.float16))
    with use_rules("torch"):
        for call in (
            lambda: a + b,
            lambda: b + a,
            lambda: a.unwrap() + b,
            lambda: b + a.unwrap(),
            lambda: b.unwrap() + a,
        ):
            with pytest.raises(LibraryError, match=r"jax.*torch|torch.*jax"):
                call()
        for x, y in ((a, b), (b, a)):
            with pytest.raises(LibraryError) as caught:
                ops.add(x, y)
            library, letter = str(caught.value).partition("supremum.namespace(")[2].rstrip(")").split(").asarray(")
            moved = {"a": x, "b": y} | {letter: asarray({"a": x, "b": y}[letter], library=library.strip("'"))}
            assert ops.add(moved["a"], moved["b"]).dtype == "float32"
        for target, value in ((a, b), (b, a)):
            with pytest.raises(LibraryError):
                target += value


@pytest.mark.slow
def test_tensors_on_different_devices_are_refused_except_0d_cpu_tensors():
    here, there = torch.ones(2), torch.ones(2, dtype=torch.float16, device="meta")
    a, b = wrap(here), wrap(there)
    with use_rules("torch"):
        for call in (lambda: a + b, lambda: b * a, lambda: here + b, lambda: a < there, lambda: ops.maximum(b, a)):
            with pytest.raises(DeviceError, match=r"cpu and meta.*to_device"):
                call()
        # As in torch, 0-d tensors on the CPU and numbers work with tensors on any device.
        mixed = [
            b + wrap(torch.ones(())),
            wrap(torch.ones(())) + b,
            2.0 * b,
            b + np.float32(1),
            b + np.ones(2, "float32"),
        ]
        assert [each.unwrap().device.type for each in mixed] == ["meta"] * 5
        assert [each.dtype.name for each in mixed] == ["float16"] * 4 + ["float32"]
        assert (mixed[0] + mixed[1]).unwrap().device.type == "meta"
        assert "meta" in repr(b)
        with pytest.raises((DeviceError, RuntimeError)):
            a += b


@pytest.mark.filterwarnings("ignore::UserWarning")  # torch deprecates quantized tensors
def test_quantized_tensors_and_other_objects_are_refused():
    quantized = torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8)
    a = wrap(torch.ones(2))
    for call in (lambda: a + quantized, lambda: quantized + a, lambda: Array(quantized)):
        with pytest.raises(OperandError, match="qint8"):
            call()
    for other in ([1.0], None, "1"):
        for call in ((a, other), (other, a)):
            with pytest.raises(TypeError):
                SYMBOLS["add"](*call)


def test_gradients_flow_to_torch_parameters_through_arrays():
    weight = torch.nn.Parameter(torch.ones(2, dtype=torch.float16))
    with use_rules("torch"):
        loss = (wrap(weight) * wrap(torch.full((2,), 3.0)) + weight).unwrap()
        loss.sum().backward()
    assert loss.dtype == torch.float32
    assert weight.grad.dtype == torch.float16
    assert weight.grad.tolist() == [4.0, 4.0]


def test_copies_of_tensors_keep_dtype_and_weak_flag():
    import copy
    import pickle

    with use_rules("jax"):
        for array in (asarray(2.0, library="torch"), wrap(torch.ones(2, dtype=torch.bfloat16)), wrap(torch.ones(2))):
            for made in (pickle.loads(pickle.dumps(array)), copy.copy(array), copy.deepcopy(array)):
                assert (made.dtype, made.weak_type, made.shape) == (array.dtype, array.weak_type, array.shape)
                assert made.backend.name == "torch"
                assert made.tolist() == array.tolist()


def test_tensors_are_pytree_leaves_and_keep_the_weak_flag():
    with use_rules("jax"):
        weak = asarray(2.0, library="torch")
        made = jax.tree.map(lambda x: x, weak)
        assert (type(made), made.weak_type) == (Array, True)
        assert not (made * 2 + wrap(torch.ones(2, dtype=torch.float16))).weak_type
    assert jax.tree.map(lambda x: x * 2, wrap(torch.ones(2))).tolist() == [2.0, 2.0]
