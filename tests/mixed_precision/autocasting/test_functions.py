"""JAX functions with a row in the table of operations, such as `expm`, which autocast does not cast inside."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from supremum.jaxprs import name_of_call, walk
from supremum.mixed_precision import autocast
from supremum.mixed_precision.autocasting.operations import FUNCTIONS

A = jnp.asarray(np.random.default_rng(0).normal(size=(8, 8)), jnp.float32)
SPD = A @ A.T + 8 * jnp.eye(8)
POLICIES = ("mixed_float16", "mixed_bfloat16")
CALLS = {
    "expm": lambda x: jax.scipy.linalg.expm(x / 8),
    "expm_frechet": lambda x: jax.scipy.linalg.expm_frechet(x / 8, x / 9),
    "qdwh": jax.scipy.linalg.polar,
    "_lstsq": lambda x: jnp.linalg.lstsq(x, x[:, :3])[0],
    "_pinv": jnp.linalg.pinv,
    "cov": jnp.cov,
    "corrcoef": jnp.corrcoef,
    "_owens_t_impl": lambda x: jax.scipy.special.owens_t(x / 20, x / 30),
    "lu": lambda x: jax.scipy.linalg.lu(x, permute_l=True),
    "_rsf2csf_2d": lambda x: jax.scipy.linalg.rsf2csf(jnp.triu(x), jnp.eye(8)),
    "convolution_matrix": lambda x: jax.scipy.linalg.convolution_matrix(x[0], 3),
}


def test_every_function_row_has_a_call():
    assert CALLS.keys() == FUNCTIONS.keys()


@pytest.mark.filterwarnings("ignore:autocast casts nothing")
@pytest.mark.one_in(16)
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("name", CALLS)
def test_results_equal_those_without_autocast(name, policy):
    function = CALLS[name]
    assert name in {name_of_call(site.equation) for site in walk(jax.make_jaxpr(function)(SPD))}
    for cast, exact in zip(
        jax.tree.leaves(autocast(function, policy)(SPD)), jax.tree.leaves(function(SPD)), strict=True
    ):
        np.testing.assert_array_equal(cast, exact)
    rows = autocast(function, policy).report(SPD).rows
    assert {row.dtype for row in rows if row.operation == "dot_general"} <= {"float32", "complex64"}


def test_ops_inside_casts_within_expm():
    """Without the row, the powers of the matrix overflow float16."""
    m = jnp.array([[1.0, 2.0], [3.0, 4.0]])
    assert not jnp.isnan(autocast(jax.scipy.linalg.expm, "mixed_float16")(m)).any()
    asked = autocast(jax.scipy.linalg.expm, "mixed_float16", ops={"expm": "inside"})
    assert jnp.isnan(asked(m)).any()


def test_user_functions_named_like_a_row_are_cast():
    @jax.jit
    def expm(x):
        return x @ x

    assert autocast(expm, "mixed_bfloat16").report(SPD).summary() == "bfloat16  1 x dot_general"


@pytest.mark.slow
def test_gradients_equal_those_without_autocast():
    m = SPD / 16
    exact = jax.grad(lambda x: jax.scipy.linalg.expm(x).sum())(m)
    cast = jax.grad(lambda x: autocast(lambda x: jax.scipy.linalg.expm(x).sum(), "mixed_bfloat16")(x))(m)
    np.testing.assert_array_equal(cast, exact)
