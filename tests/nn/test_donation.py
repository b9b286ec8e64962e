"""Tests of variables with values that are lent to a training loop."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nn.arrays import built
from supremum import nn
from supremum.nn.donation import Donation
from supremum.nn.variables import Variable


@jax.jit
def plain_step(values):
    return jax.tree.map(lambda value: value + 1, values)


step = jax.jit(lambda values: jax.tree.map(lambda value: value + 1, values), donate_argnums=0)


def variables():
    return {"a": Variable(jnp.zeros(2), name="a"), "b": Variable(jnp.ones(3, "int32"), name="b")}


def test_read_values_survive_reuse_of_their_memory():
    named = variables()
    first = named["a"].value
    loan = Donation(named)
    loan.give(step(loan.take()))
    second = named["a"].value
    loan.give(step(loan.take()))
    third = named["b"].value
    loan.give(step(loan.take()))
    loan.end()
    last = named["a"].value
    loan.give(step(loan.take()))
    assert [each.tolist() for each in (first, second, third, last)] == [[0, 0], [1, 1], [3, 3, 3], [3, 3]]
    assert named["a"].value.tolist() == [4, 4]


def test_no_values_are_copied_without_reads():
    named = variables()
    loan = Donation(named)
    values = loan.take()
    assert loan.take() is values
    loan.give(step(values))
    assert all(each.is_deleted() for each in values.values())
    loan.give(step(loan.take()))
    loan.end()
    assert named["a"].value.tolist() == [2, 2]


def test_loop_continues_with_values_assigned_between_steps():
    named = variables()
    loan = Donation(named)
    loan.give(step(loan.take()))
    named["a"].assign(jnp.full(2, 10.0))
    named["b"].assign_add(5)
    loan.give(step(loan.take()))
    assert named["a"].value.tolist() == [11, 11]
    assert named["b"].value.tolist() == [8, 8, 8]
    given = jnp.full(2, 20.0)
    named["a"].assign(given)
    loan.give(step(loan.take()))
    assert given.tolist() == [20, 20]


def test_lent_variables_are_initialised_and_read_in_a_trace():
    named = variables()
    loan = Donation(named)
    loan.give(plain_step(loan.take()))
    assert named["a"].is_initialized
    traced = jax.jit(lambda x: x + named["a"].value)(jnp.ones(2))
    np.testing.assert_array_equal(traced, [2, 2])
    assert isinstance(named["b"].value, jax.Array)
    assert not isinstance(named["b"].value, jax.core.Tracer)


def test_two_loans_of_one_variable_see_each_others_values():
    named = variables()
    one, other = Donation(named), Donation(named)
    one.give(step(one.take()))
    other.give(step(other.take()))
    one.give(step(one.take()))
    one.end()
    other.end()
    assert named["a"].value.tolist() == [3, 3]


@pytest.mark.parametrize("policy", ["float32", "mixed_bfloat16"])
def test_lent_layer_computes_and_splits_as_usual(policy):
    layer = built(nn.Dense(2, dtype=policy), jnp.ones((1, 3)))
    before = layer(jnp.ones((1, 3)))
    loan = Donation(layer.variables)
    loan.give(loan.take())
    np.testing.assert_array_equal(layer(jnp.ones((1, 3))), before)
    trainable, _ = nn.split_variables(layer)
    assert trainable["kernel"].dtype == "float32"
