"""Programs that measure a function are compiled in the first call of each kind, and later calls are as right as it."""

import gc
import weakref

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from supremum.jaxprs import traced_call
from supremum.numerics import attribute, first_nonfinite, profile
from supremum.numerics.kept_programs import KeptPrograms
from supremum.numerics.undone_promotions import promotion_costs

MEASURES = {
    # What a call tells, as numbers or text that depend on the values of the arguments.
    "profile": (profile, lambda found: [row.values.largest for row in found.rows]),
    "first_nonfinite": (first_nonfinite, lambda found: [(each.kind, each.cause) for each in found]),
    "attribute": (lambda fn: attribute(fn, "declared"), lambda found: repr(found.error)),
    "promotion_costs": (promotion_costs, lambda found: repr(found.causes[0].narrow_error.after)),
}
SCALE = jnp.float32(1.7)
FIRST, SECOND = (jnp.linspace(start, 8, 5, dtype="bfloat16") for start in (1, 0))
every_measure = pytest.mark.parametrize("name", MEASURES)


@jax.jit
def entropy(x):
    p = x / x.sum()
    return -jnp.sum(p * jnp.log(p) * SCALE)


def compiled(caplog, call):
    """What a call returns, and how many programs it compiles."""
    caplog.clear()
    with jax.log_compiles(True):
        found = call()
    return found, sum(record.message.startswith("Finished XLA compilation") for record in caplog.records)


@every_measure
def test_a_later_call_compiles_nothing_and_tells_what_a_first_one_would(name, caplog):
    measure, told = MEASURES[name]
    measured = measure(entropy)
    first, number = compiled(caplog, lambda: measured(FIRST))
    assert number > 0
    told_first = told(first)
    measured(SECOND)  # its NaN is followed in a program of its own
    (second, number), fresh = compiled(caplog, lambda: measured(SECOND)), measure(entropy)(SECOND)
    assert number == 0
    assert told(second) == told(fresh) != told_first
    assert str(second) == str(fresh)
    assert told(measured(FIRST)) == told_first


@every_measure
def test_arguments_of_another_kind_and_other_flags_have_programs_of_their_own(name):
    measure, told = MEASURES[name]
    measured = measure(lambda x: jnp.sum(jnp.sin(x + SCALE)) if x.ndim == 1 else x.astype("bfloat16") * SCALE)
    matrix = jnp.ones((2, 2), "bfloat16")
    for x in (FIRST, matrix, FIRST):
        assert told(measured(x)) == told(measure(measured.__wrapped__)(x))
    with jax.enable_x64(True):
        wide = np.linspace(0, 8, 5)
        found, expected = profile(jax.jit(jnp.cos))(wide), MEASURES["profile"][1]
        assert expected(found) == [np.cos(wide).max()]


@every_measure
def test_a_function_that_is_not_jitted_may_read_what_changes(name):
    measure, told = MEASURES[name]
    scales = [SCALE]
    measured = measure(lambda x: jnp.sum(x * jnp.log(x) * scales[-1]))
    before = told(measured(FIRST))
    scales.append(jnp.float32(3))
    after = told(measured(FIRST))
    assert after == told(measure(measured.__wrapped__)(FIRST))
    assert (before != after) == (name != "first_nonfinite")


@every_measure
def test_arguments_are_not_kept_and_programs_are_freed_with_the_function(name):
    measured, x = MEASURES[name][0](entropy), jnp.linspace(1, 3, 5, dtype="bfloat16")
    argument = weakref.ref(x)
    measured(x)
    del x
    gc.collect()
    assert argument() is None
    (own,) = (each.cell_contents for each in measured.__closure__ if isinstance(each.cell_contents, KeptPrograms))
    freed = weakref.ref(own)
    del own, measured
    gc.collect()
    assert freed() is None


SQUARE, ONES = np.ones((2, 2), "float32"), [jnp.full((2, 2), float(number)) for number in range(2)]
# A maker of functions, and what to make two of that must not share a program; each runs at one position.
OTHERS = {
    "another primitive": (lambda op: lambda x: op(x), (lax.sin, lax.cos)),
    "another number": (lambda number: lambda x: x * number, (2.0, 3.0)),
    "another parameter": (lambda axis: lambda x: lax.rev(x, (axis,)), (0, 1)),
    "other operands": (lambda at: lambda x: lax.sub(*(x, lax.sin(x))[:: 2 * at - 1]), (0, 1)),
    "another constant": (lambda constant: lambda x: x * constant, ONES),
    "another result": (lambda at: lambda x: (lax.sin(x), lax.cos(x))[at], (0, 1)),
    "another result that is no array": (lambda text: lambda x: (lax.sin(x), text), ("a", "b")),
    "results that cannot be hashed": (lambda each: lambda x: (lax.sin(x), each), ({1}, {2})),
}


def kept_programs():
    """Kept programs, and the list of the calls that were prepared."""
    prepared = []

    def prepare(call):
        prepared.append(call)
        return object()

    return KeptPrograms(prepare), prepared


def call_of(function, *args):
    return traced_call(function, args, {}, "the test")


@pytest.mark.parametrize("name", OTHERS)
def test_functions_that_differ_have_different_programs(name):
    make, (one, other) = OTHERS[name]
    (kept, _), one, other = kept_programs(), make(one), make(other)
    first = kept.of(call_of(one, SQUARE))
    assert kept.of(call_of(other, SQUARE)) is not first
    assert (kept.of(call_of(one, SQUARE)) is first) == (name != "results that cannot be hashed")
    assert kept.of(call_of(one, SQUARE.astype("float16"))) is not first


def test_equal_operations_of_different_lines_have_different_programs():
    kept, _ = kept_programs()
    functions = (
        lambda x: lax.sin(x),
        lambda x: lax.sin(x),
    )
    one, other = (kept.of(call_of(function, SQUARE)) for function in functions)
    assert one is not other


def test_eight_programs_are_kept_and_each_is_prepared_once():
    kept, prepared = kept_programs()
    sizes = [np.ones(size, "float32") for size in range(1, 9)]
    first = [kept.of(call_of(lax.sin, x)) for x in sizes]
    assert [kept.of(call_of(lax.sin, x)) for x in sizes] == first
    assert len(prepared) == 8
    kept.of(call_of(lax.sin, np.ones(9, "float32")))
    assert kept.of(call_of(lax.sin, sizes[0])) is not first[0]


def test_constants_stay_alive_with_their_program():
    """Their identities are part of what programs are found by."""
    (kept, prepared), constants = kept_programs(), [jnp.full(2, 3.0)]
    kept.of(call_of(lambda x: x * constants[0], np.ones(2, "float32")))
    constant = weakref.ref(constants.pop())
    prepared.clear()
    gc.collect()
    assert constant() is not None
    del kept
    gc.collect()
    assert constant() is None


def test_calls_of_tracers_and_of_mutable_objects_are_not_kept():
    nnx = pytest.importorskip("flax.nnx")
    kept, prepared = kept_programs()
    jax.jit(lambda x: kept.of(call_of(lax.sin, x)) and x)(SQUARE)
    jax.jit(lambda y: kept.of(call_of(lambda x: x * y, SQUARE)) and y)(SQUARE)
    kept.of(call_of(nnx.Linear(2, 2, rngs=nnx.Rngs(0)), SQUARE))
    assert len(prepared) == 3
    assert not kept._kept


def test_a_call_that_jax_traces_keeps_nothing():
    measured = profile(entropy)
    with jax.checking_leaks():
        found = jax.jit(lambda x: measured(x))(FIRST)
    assert MEASURES["profile"][1](found) == MEASURES["profile"][1](measured(FIRST))
