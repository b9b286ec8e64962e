import dataclasses

import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

from supremum.errors import UnknownNameError
from supremum.formats import FORMATS
from supremum.mixed_precision import DynamicLossScale, FixedLossScale, Policy, as_policy


@pytest.mark.parametrize(
    ("name", "compute", "variable", "scale"),
    [
        ("mixed_float16", "float16", "float32", DynamicLossScale()),
        ("mixed_bfloat16", "bfloat16", "float32", None),
        *((row.name, row.name, row.name, None) for row in FORMATS),
    ],
)
def test_the_names_of_the_rfc_and_every_dtype(name, compute, variable, scale):
    policy = Policy(name)
    assert (policy.name, str(policy)) == (name, name)
    assert (str(policy.compute_dtype), str(policy.variable_dtype), policy.loss_scale) == (compute, variable, scale)
    assert policy.should_cast_variables == (compute != variable)


def test_a_loss_scale_of_ones_own():
    assert Policy("mixed_float16", None).loss_scale is None
    assert Policy("mixed_float16", 128).loss_scale == FixedLossScale(128.0)
    assert Policy("float32", "dynamic").loss_scale == DynamicLossScale()


def test_dtypes_are_as_good_as_their_names():
    assert Policy(np.float16) == Policy("float16") == Policy(jnp.float16) == Policy(np.dtype("float16"))
    assert Policy(ml_dtypes.bfloat16) == Policy(jnp.bfloat16) == Policy("bfloat16")


def test_policies_are_values():
    policy = Policy("mixed_float16")
    assert hash(policy) == hash(Policy("mixed_float16"))
    assert policy != Policy("mixed_float16", None)
    with pytest.raises(dataclasses.FrozenInstanceError):
        policy.name = "float32"
    assert as_policy(policy) is policy


@pytest.mark.parametrize("bad", ["mixed_flaot16", "string", "float", "", None, 3, []])
def test_other_names_are_value_errors(bad):
    with pytest.raises(ValueError, match="unknown policy") as caught:
        Policy(bad)
    assert isinstance(caught.value, UnknownNameError)
