"""Calls of functions are prepared once, and looked up by all that they depend on."""

import itertools
import math
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import supremum
from supremum import PromotionError, count_conversions, explain, namespace, use_rules
from supremum.arrays import ComputationError, RuntimeDtypeError
from supremum.arrays.backends.base import CallPlan
from supremum.arrays.backends.jax import JAX
from supremum.arrays.backends.jax_key import for_all_rules
from supremum.arrays.calls import Function, function_of, read
from supremum.decisions import ResultType
from supremum.errors import SupremumError
from supremum.operations import OPERATIONS
from supremum.rules import ARRAY_API as STRICT
from supremum.rules import JAX_X32, NUMPY

# Calls with arrays x (a matrix), y (a vector of int8), b (of bools) and i (of indices).
CALLS = """
xp.exp(x) xp.add(x,y) xp.multiply(x,2.5) xp.where(b,x,y) xp.clip(x,0.5,2.0) xp.sum(x)
xp.mean(x,axis=(0,1),keepdims=True) x.max(axis=0) x@x xp.tensordot(x,x,axes=1) xp.concat((x,x),axis=1) xp.stack([x,x])
x.reshape((-1,1)) x.T xp.take(x,i,axis=0) x.astype("float16") xp.sort(x,axis=0) x.dot(y) xp.einsum("ij,j->i",x,y)
xp.squeeze(x[None],axis=0) x.transpose(1,0) x.reshape(4,-1) xp.broadcast_to(y,(2,2)) xp.concat([y,y,y]) x.argmax()
np.sum(x,0) np.clip(x,0.5,2.0) np.where(b,x,0.5) np.dot(x,x) np.transpose(x) np.reshape(x,-1)
np.concatenate((x,x),axis=0)
"""


def _operands(xp):
    return (
        xp.asarray([[1.0, 2.0], [3.0, 4.0]], dtype="float32"), xp.asarray([1, 2], dtype="int8"),
        xp.asarray([True, False]), xp.asarray([1, 0], dtype="int32"),
    )  # fmt: skip


@pytest.mark.parametrize("rules", [NUMPY, JAX_X32])
def test_a_call_is_examined_once(xp, rules, monkeypatch):
    names, examined = {"np": np, "xp": xp} | dict(zip("xybi", _operands(xp), strict=True)), []
    find = Function.find
    monkeypatch.setattr(Function, "find", lambda self, *call: (examined.append(self), find(self, *call))[1])
    # A rule set of another name has caches of its own, in which nothing is prepared yet.
    with use_rules(replace(rules, name=f"{rules.name} examined with {xp.__name__}")):
        for call in CALLS.split():
            first = eval(call, names)
            assert examined != [], call
            examined.clear()
            second = eval(call, names)
            assert examined == [], call
            assert (first.dtype, first.weak_type, first.tolist()) == (second.dtype, second.weak_type, second.tolist())
            assert second.key is supremum.arrays.wrap(second.unwrap(), second.weak_type).key, call


def test_programs_of_jax_are_shared_by_what_they_compute():
    def build(backend, plan):
        return lambda x: x

    dtype, other = np.dtype("float32"), np.dtype("float16")
    keys = [(supremum.asarray(jnp.ones(2, each)).key,) for each in (dtype, other)]
    plan = CallPlan(OPERATIONS["cumulative_sum"], keys[0], (dtype,), ResultType(dtype), "a", build, {"axis": 0})
    kernel = JAX._kernel(plan, None)
    same = {"rules": "b", "number_steps": (("float32",),), "decision": explain("int8", rules="numpy")}
    for field, value in same.items():
        assert JAX._kernel(replace(plan, **{field: value}), None) is kernel, field
    changes = [
        {"operation": OPERATIONS["cumulative_prod"]}, {"keys": keys[1]}, {"compute": (other,)},
        {"result": ResultType(other)},
        {"result": ResultType(dtype, True)}, {"build": lambda *_: jnp.exp}, {"gives_indices": True}, {"options": {}},
        {"options": {"axis": 1}}, {"options": {"axis": False}}, {"options": {"axis": 0.0}}, {"options": {"axis": -0.0}},
        {"options": {"axis": [0]}},
    ]  # fmt: skip
    kernels = [kernel, JAX._kernel(plan, 0), *(JAX._kernel(replace(plan, **each), None) for each in changes)]
    assert len(set(map(id, kernels))) == len(changes) + 2


def test_calls_with_different_arguments_have_different_descriptions():
    function, x = function_of(namespace("numpy").reshape), supremum.asarray([1.0])
    calls = [
        ((1,), {}), ((True,), {}), ((1.0,), {}), ((0.0,), {}), ((-0.0,), {}), ((None,), {}), (("axis",), {}),
        (("axis", 1), {}), ((), {"axis": 1}), ((), {"axis": True}), (([1],), {}), (((1,),), {}), (([1, 2],), {}),
        (([1], 2), {}), (([[1], 2],), {}), (([1, [2]],), {}), ((np.int64(1),), {}), ((np.dtype("int8"),), {}),
        ((x,), {}), ((x, x), {}), (([x], x), {}), (([x, x],), {}), ((x,), {"x": x}),
    ]  # fmt: skip
    assert len({read(function, args, options, "numpy")[0] for args, options in calls}) == len(calls)


def test_promoted_numbers_that_rules_treat_alike_have_one_description():
    add, x = function_of(namespace("numpy").add), supremum.asarray([1.0])
    described = [read(add, (x, number), {}, "jax")[0] for number in (2.0, 3.0, -0.0, 2, True, 2j)]
    assert len({*described}) == 4
    assert described[0] == described[1] == described[2]


def test_operators_leave_other_objects_to_the_right_operand():
    class Other:
        __radd__ = __rmatmul__ = __eq__ = lambda self, other: "theirs"

    x = supremum.asarray([[1.0]])
    for _ in range(2):
        assert (x + Other(), x @ Other(), x == Other()) == ("theirs",) * 3
        with pytest.raises((SupremumError, ValueError)):
            namespace("numpy").matmul(x, 2)
        with pytest.raises(TypeError, match="unsupported operand"):
            x @ 2


def test_options_that_are_equal_but_not_valid_are_refused(xp):
    x = _operands(xp)[0]
    for _ in range(2):
        assert xp.sum(x, axis=1).tolist() == [3.0, 7.0]
        assert xp.sum(x, axis=(0, 1)).tolist() == 10.0
        assert xp.sum(x, axis=0, keepdims=False).shape == (2,)
        for junk in ({"axis": True}, {"axis": 1.0}, {"axis": (False, True)}, {"keepdims": 0}, {"axiss": 1}):
            with pytest.raises((SupremumError, TypeError), match=r"must be a whole number|must be True or False|axiss"):
                xp.sum(x, **junk)


def test_zeros_of_both_signs_are_different_options(xp):
    for value in (0.0, -0.0, 0.0):
        assert math.copysign(1, float(xp.full(1, value)[0])) == math.copysign(1, value)
        assert math.copysign(1, float(xp.multiply(xp.ones(1), value)[0])) == math.copysign(1, value)
        if not xp.__name__.endswith("torch"):
            replaced = xp.nan_to_num(xp.full(1, float("nan")), nan=value)
            assert math.copysign(1, float(replaced[0])) == math.copysign(1, value)


def test_arrays_of_other_ranks_and_dtypes_are_different_calls(xp):
    x = _operands(xp)[0]
    for _ in range(2):
        assert xp.argmax(x).shape == ()
        assert xp.argmax(x[0], axis=0).shape == ()
        assert xp.argmax(x, axis=0).shape == (2,)
        assert [xp.flip(x.astype(dtype)).dtype for dtype in ("float32", "int8")] == ["float32", "int8"]
        assert xp.reshape(x, (4,)).shape == (4,)
        assert xp.reshape(x, (1, 4)).shape == (1, 4)


def test_errors_name_the_operands_of_the_call(xp):
    x, y = _operands(xp)[:2]
    for shape in ((3,), (5,)):
        with pytest.raises(ComputationError, match=rf"reshape\(float32\[2, 2\], \[{shape[0]}\]\) failed"):
            x.reshape(shape)
    with use_rules("array-api"):
        for _ in range(2):
            with pytest.raises(PromotionError, match=r"concat\(float32, int8\)"):
                xp.concat((x[0], y))


def test_a_refusal_of_a_new_call_is_the_only_error_in_its_traceback(xp):
    x, y = _operands(xp)[:2]
    for call in (lambda: x[0] + y, lambda: xp.add(x[0], y), lambda: np.add(x[0], y), lambda: np.concatenate((x[0], y))):
        with (
            use_rules(replace(STRICT, name=f"{STRICT.name} at {xp.__name__}")),
            pytest.raises(PromotionError) as caught,
        ):
            call()
        assert caught.value.__context__ is caught.value.__cause__ is None


def test_dtypes_that_are_asked_for_follow_the_x64_flag_at_each_call():
    xp = namespace("jax")
    x = xp.asarray([1, 2], dtype="int8")
    calls = (
        lambda: xp.zeros_like(x, dtype="int64"), lambda: x.astype("int64"), lambda: xp.zeros(2, dtype="int64"),
        lambda: x.sum(dtype="int64"),
    )  # fmt: skip
    for rules, x64 in itertools.product(("jax", "jax-x64"), (True, False, True, False)):
        with jax.enable_x64(x64), use_rules(rules):
            for call in calls:
                if x64:
                    assert call().dtype == np.int64
                else:
                    with pytest.raises(
                        RuntimeDtypeError, match=r"(?m)not have int64 while its x64 is off; .* at most 32 bits$"
                    ):
                        call()
            assert x.sum(dtype="int32").dtype == np.int32
            assert xp.argmax(x).dtype == ("int64" if x64 else "int32")


FAR = 10


def test_elements_of_jax_arrays_are_those_of_jax():
    raw = jnp.arange(24.0).reshape(2, 3, 4)
    mask = jnp.array([True, False, True])
    x = supremum.Array(raw)
    indices = (
        0, -1, (1, 2), (0, -1, 3), slice(1, None), (slice(None), 1), (..., 0), None,
        (None, 1, ..., slice(None, None, 2)), (slice(None, None, -1), 0), FAR, np.int64(1), jnp.array([1, 0]),
        (0, mask), (),
    )  # fmt: skip
    # One program each, because compilation takes long.
    jitted = jax.jit(lambda a: [a[index] for index in indices])(x)
    theirs = jax.jit(lambda a: [(a[index], a.at[index].set(7), a.at[index].add(1)) for index in indices])(raw)
    for index, result, (element, replaced, added) in zip(indices, jitted, theirs, strict=True):
        assert np.array_equal(x[index].unwrap(), element), index
        assert np.array_equal(result.unwrap(), element), index
        if index is not FAR:
            assert np.array_equal(x.at[index].set(7).unwrap(), replaced), index
            assert np.array_equal(x.at[index].add(1).unwrap(), added), index


def test_elements_at_other_positions_of_jax_arrays_are_not_compiled_again(caplog):
    x = supremum.Array(jnp.arange(5.0))
    _ = x[0], x.at[0].set(1.5), x.at[0].add(1.5)
    with jax.log_compiles(True):
        found = [(float(x[i]), x.at[i].set(i), x.at[i].add(2.5)) for i in (3, -1)]
    assert [record for record in caplog.records if "Compiling" in record.getMessage()] == []
    assert [value for value, *_ in found] == [3.0, 4.0]
    assert [array.tolist() for array in found[1][1:]] == [[0.0, 1.0, 2.0, 3.0, -1.0], [0.0, 1.0, 2.0, 3.0, 6.5]]


# Further calls on JAX, with an array h of NumPy.
ON_JAX = """
x+1.5 x<1 x**2 x+y x+h x[0] x[:,0] x.at[0].set(1.5) x.at[0].add(y) xp.zeros(3) xp.asarray(h)
xp.asarray(h,dtype="float16") xp.roll(x,1) xp.fft.fft(x) x.sum() supremum.ArrayVariable(x).assign_add(y)
"""


_EDGES = {"int*": ["int8"], "int8": ["float*"], "float*": ["float16"], "float16": ["float32"], "float32": ["float64"]}
# Blocks in which these calls are decided alike, each with a cache key of its own in JAX.
BLOCKS = {
    "a first name": lambda: use_rules(replace(JAX_X32, name="first")),
    "a second name": lambda: use_rules(replace(JAX_X32, name="second")),
    "other edges": lambda: use_rules(supremum.RuleSet.from_lattice("mine", _EDGES)),
    "more edges": lambda: use_rules(supremum.RuleSet.from_lattice("mine", _EDGES | {"uint8": ["float64"]})),
    "counts": count_conversions,
}


def test_jax_compiles_once_for_all_rule_sets_that_decide_alike(caplog):
    """It would keep what it compiles for a rule set when that is dropped."""
    xp = namespace("jax")
    x, y, *_ = _operands(xp)
    names = {"xp": xp, "x": x, "y": y, "h": np.ones(2, "float32"), "supremum": supremum}
    compiled = {}
    for block, enter in BLOCKS.items():
        caplog.clear()
        with enter(), jax.log_compiles(True):
            for call in ON_JAX.split():
                eval(call, names)
            ours = len(caplog.records)
            jnp.sinc(x.unwrap())  # JAX's own functions do not know that rules do not change them
        compiled[block] = ours > 0, len(caplog.records) > ours
    del compiled["a first name"]
    assert compiled == dict.fromkeys(compiled, (False, True))


def test_a_block_that_ends_while_jax_computes_stays_ended():
    """The garbage collector may close a generator, which ends its block."""
    traces = []
    function = jax.jit(lambda x: (traces.append(x), x)[1])
    with use_rules(replace(JAX_X32, name="outer")):
        function(1.0)
        inner = use_rules(replace(JAX_X32, name="inner"))
        inner.__enter__()
        for_all_rules(inner.__exit__)(None, None, None)
        function(1.0)
    assert len(traces) == 1


def test_assigned_values_are_converted_by_their_own_kind_and_range():
    with use_rules("numpy"):
        x = supremum.asarray(np.zeros(3, "int8"))
        for value in (1, 100, -5, True, 1):
            x[0] = value
            assert x[0].item() == value
        for _ in range(2):
            for wrong in (300, 1.5j):
                with pytest.raises((SupremumError, OverflowError)):
                    x[0] = wrong
        y = supremum.asarray(np.zeros(2, "float32"))
        for value in (0.1, -3.5, 2, np.float64(0.5)):
            y[0] = value
            assert y.unwrap()[0] == np.asarray(value).astype("float32")


def test_key_of_an_index_follows_the_flags_of_jax_at_every_call():
    xp = namespace("jax")
    x = xp.asarray([1.0, 3.0, 2.0], dtype="float32")
    found = []
    for wide in (False, True, False):
        with jax.enable_x64(wide):
            index = xp.argmax(x)
            found.append((str(index.dtype), str(index.unwrap().dtype), str((index + 1).dtype)))
    assert found == [("int32",) * 3, ("int64",) * 3, ("int32",) * 3]


def test_functions_of_numpy_are_prepared_for_each_number_of_dimensions(xp):
    shapes = [(3,), (3, 3), (2, 3, 3), (3, 3), ()]
    plain = [np.arange(float(math.prod(shape)), dtype="float32").reshape(shape) for shape in shapes]
    arrays = [xp.asarray(each) for each in plain]
    calls = (np.transpose, np.cumsum, np.ravel, lambda x: np.swapaxes(x, 0, -1), lambda x: np.take(x, [2, 0]))
    for call in calls:
        for x, raw in zip(arrays[:-1], plain[:-1], strict=True):
            assert np.array_equal(np.asarray(call(x)), call(raw))
    for function in (np.dot, np.inner):
        for (x, raw), (y, other) in itertools.product(zip(arrays, plain, strict=True), repeat=2):
            assert np.allclose(np.asarray(function(x, y)), function(raw, other))


def test_where_of_a_condition_alone_is_nonzero(xp):
    condition = xp.asarray([[True, False], [True, True]])
    for found in (xp.where(condition), np.where(condition), xp.nonzero(condition)):
        assert [each.tolist() for each in found] == [[0, 1, 1], [0, 0, 1]]
