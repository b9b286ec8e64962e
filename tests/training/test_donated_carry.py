"""A carry whose memory steps reuse: which steps run on a copy, and what is kept."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import pytest

from supremum.training.donated_carry import DonatedCarry


@jax.tree_util.register_dataclass
@dataclass
class Values:
    weights: Any


class Held:
    """Values that a carry takes and keeps."""

    def __init__(self, dtype):
        self.values = Values({"w": jnp.zeros(3, dtype)})
        self.carry = DonatedCarry(lambda: self.values, self.keep)

    def keep(self, values):
        self.values = values

    def reuses_memory(self, run, *args):
        """Take a step; return whether it ran in the memory of the values before."""
        before = self.values.weights["w"]
        self.carry.step(run, *args)
        return before.is_deleted()


def added():
    return jax.jit(lambda carry, x: (jax.tree.map(lambda each: each + x.astype(each.dtype), carry),), donate_argnums=0)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_the_first_step_of_a_signature_runs_on_a_copy_and_others_in_place(dtype):
    held, run = Held(dtype), added()
    assert [held.reuses_memory(run, jnp.ones(())) for _ in range(3)] == [False, True, True]
    assert [held.reuses_memory(run, jnp.ones(3)) for _ in range(2)] == [False, True]
    assert (held.values.weights["w"].dtype, held.values.weights["w"].tolist()) == (dtype, [5, 5, 5])


def test_values_from_elsewhere_have_the_same_signature_unless_their_types_differ():
    held, run = Held("float32"), added()
    held.reuses_memory(run, jnp.ones(()))
    held.values = Values({"w": jnp.full(3, 7, "float32")})
    assert held.reuses_memory(run, jnp.ones(()))
    assert held.values.weights["w"].tolist() == [8, 8, 8]
    held.values = Values({"w": jnp.zeros(3, "bfloat16")})
    assert not held.reuses_memory(run, jnp.ones(()))


def test_a_step_that_calls_python_runs_on_a_copy_each_time():
    def noted(carry, x):
        jax.debug.callback(lambda _: None, x)
        return (jax.tree.map(lambda each: each + x, carry),)

    held, run = Held("float32"), jax.jit(noted, donate_argnums=0)
    assert [held.reuses_memory(run, jnp.ones(())) for _ in range(3)] == [False, False, False]
    assert held.values.weights["w"].tolist() == [3, 3, 3]
