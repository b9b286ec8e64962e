"""Arrays of JAX under `"jax"` and `"jax-strict"` while JAX's flags change, compared with JAX, eager and jitted."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import memory
import supremum
from rules.test_jax_flags import DISTINCT, flags
from slowly import for_each
from supremum import Array, PromotionError, asarray, namespace, ops
from supremum.arrays import RuntimeDtypeError
from supremum.operations import OPERATIONS

pytestmark = pytest.mark.filterwarnings("ignore:Explicitly requested dtype:UserWarning")  # JAX's, with x64 off
NUMBERS = {"1": 1, "1.5": 1.5}
NAMES = ("add", "divide", "equal", "atan2", "bitwise_and", "negative", "sin", "abs", "isfinite", "round")
FUNCTIONS = {name: getattr(jnp, "arctan2" if name == "atan2" else name) for name in NAMES}
NARROW = ("int8", "uint32", "bfloat16", "float32")
WIDE = ("bool", "int64", "uint64", "float64", "complex128")


def _operands(*, wide=False):
    arrays = {name: jnp.ones(1, name) for name in (*NARROW, *(WIDE if wide else ()))}
    return arrays | {"weak int": jnp.asarray(1), "weak float": jnp.asarray(1.0)}


def _said(function, *operands):
    try:
        result = function(*operands)
    except (TypeError, ValueError):  # JAX's refusal is a ValueError, ours a TypeError
        return "refused"
    return str(result.dtype), result.weak_type and result.dtype != bool


def _ours(name):
    return lambda *given: getattr(ops, name)(*(Array(x) if isinstance(x, jax.Array) else x for x in given))


def _different(name, operands):
    """Calls whose dtypes differ from JAX's in a traced function."""
    different = {}

    def ask(arrays):
        known = arrays | NUMBERS
        for call in itertools.product(known, repeat=OPERATIONS[name].arity):
            if NUMBERS.keys() >= set(call):
                continue
            given = [known[each] for each in call]
            ours, theirs = _said(_ours(name), *given), _said(FUNCTIONS[name], *given)
            if ours != theirs:
                different[call] = ours, theirs
        return 0

    jax.eval_shape(ask, operands)
    return different


@for_each("combination, name", itertools.product(DISTINCT, FUNCTIONS), one_in=20, one_slow_in=3)
def test_traced_operations_agree_with_jax_under_all_flags(combination, name):
    x64, explicit, _ = combination
    with flags(*combination):
        assert _different(name, _operands(wide=x64 or explicit == "allow")) == {}


@pytest.mark.slow
@pytest.mark.parametrize("scoped", [True, False], ids=["scoped", "global"])
def test_eager_and_jitted_operations_agree_with_jax_under_all_flags(scoped):
    both = jax.jit(lambda a, b: (Array(a) + Array(b)).unwrap()), jax.jit(jnp.add)
    for combination in [*DISTINCT, *reversed(DISTINCT)]:
        with flags(*combination, scoped=scoped):
            arrays = _operands()
            eager = [arrays[each] for each in ("uint32", "bfloat16", "float32", "weak float", "weak int")]
            eager += [jnp.ones(1, each) for each in ("int64", "float64") if combination[1] == "allow"]
            for a, b in itertools.product(eager, repeat=2):
                assert _said(_ours("add"), a, b) == _said(jnp.add, a, b), (combination, a, b)
                ours, theirs = (_said(function, a, b) for function in both)
                assert ours == theirs, (combination, a, b)
        memory.give_back()


def test_sums_of_jax_and_numpy_arrays_agree_with_jax_under_its_flags():
    """With explicit 64 bits our arrays keep the 64 bits of NumPy's arrays, which JAX narrows."""
    for combination in [each for each in DISTINCT if each[1] != "allow"]:
        with flags(*combination):
            for narrow, wide in itertools.product(("int8", "float32"), ("int64", "float64", "float32")):
                a, b = jnp.ones(1, narrow), np.ones(1, wide)
                assert _said(_ours("add"), a, b) == _said(jnp.add, a, b), (combination, narrow, wide)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("explicit", ["warn", "allow"])
def test_strict_rules_work_with_x64_off(explicit):
    for x64, width in ((False, "32"), (True, "64"), (False, "32")):
        with flags(x64, explicit, "standard"), supremum.use_rules("jax-strict"):
            xp = namespace("jax")
            made = [
                xp.zeros(3),
                asarray([1.0, 2.0], library="jax"),
                asarray(1.0, library="jax") + 1,
                xp.linspace(0, 1, 3),
            ]
            assert [str(each.dtype) for each in made] == [f"float{width}"] * 4
            assert (asarray(1, library="jax") + 1).dtype == xp.arange(3).dtype == xp.add(1, 2).dtype == f"int{width}"
            assert asarray([1.0, 2.0]).dtype == "float64"  # an array of NumPy
            with pytest.raises(PromotionError, match=f"jax-strict-{'explicit-' * (not x64 and explicit == 'allow')}x"):
                xp.zeros(3, dtype="float16") + xp.zeros(3)


def test_rules_chosen_by_name_do_not_follow_the_flags():
    a, b = asarray(jnp.ones(1, "bfloat16")), asarray(jnp.ones(1, "float32"))
    wide = asarray(np.ones(1))
    with flags(True, "warn", "strict"):
        with supremum.use_rules("jax-x32"):
            assert (a + b).dtype == (wide + wide).dtype == "float32"
            assert "rules of JAX with x64 off" in str(supremum.explain(wide, wide))
        with supremum.use_rules("jax-x64"):
            assert (a + b).dtype == "float32"
    with flags(False, "warn", "standard"), supremum.use_rules("jax-x64"), pytest.raises(RuntimeDtypeError):
        b + wide


def test_explain_agrees_with_add_under_all_flags():
    jaxs, numpys = Array(jnp.ones(1, "float32")), Array(np.ones(1, "float64"))
    for combination in DISTINCT:
        with flags(*combination):
            for a, b in itertools.product((jaxs, numpys, numpys.unwrap(), jaxs.unwrap(), np.float64(1), 1.5), repeat=2):
                decision = supremum.explain(a, b, operation="add")
                if not decision:
                    with pytest.raises(PromotionError):
                        ops.add(a, b)
                elif (a, b) != (1.5, 1.5):  # ops.add needs at least one array
                    assert ops.add(a, b).dtype == decision.dtype == supremum.result_type(a, b), (combination, a, b)
