"""Norms compared with Flax's: outputs, gradients and dtypes, for all dtypes of inputs, parameters and computation."""

import flax.linen as linen
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from conformance.flax_judge import (
    EXACT,
    TRUNCATED,
    Cell,
    assert_imaginary_parts_are_kept,
    differences_with_some_gradients,
    gradients_everywhere,
    random_like,
)
from slowly import for_each
from supremum import nn
from supremum.formats import as_format
from supremum.nn.functional import at_least_float32, common_dtype, moments
from supremum.nn.functional import normalization as ours
from supremum.nn.layers.normalization import BatchNorm, GroupNorm, InstanceNorm, LayerNorm, RMSNorm

EPSILON = 1e-3
SHAPE = (2, 3, 4)
"""A batch of 2, 3 points in space and 4 channels."""
PARAMS = {"scale": (4,), "bias": (4,)}


@pytest.fixture(autouse=True)
def _x64():
    with jax.enable_x64(True):
        yield


def flax(make, **call):
    def layer(params, x, dtype):
        return make(dtype=dtype, epsilon=EPSILON, use_fast_variance=False).apply({"params": params}, x, **call)

    return layer


def batch_norm_in_training(params, x, dtype):
    wide = at_least_float32(common_dtype(x, *params.values(), dtype=dtype))
    mean, variance = moments(x.astype(wide), (0, 1))
    return ours.batch_norm(x, mean, variance, params["scale"], params["bias"], epsilon=EPSILON, dtype=dtype)


def batch_norm_outside_training(params, x, dtype):
    mean, variance = running()
    return ours.batch_norm(x, mean, variance, params["scale"], params["bias"], epsilon=EPSILON, dtype=dtype)


def running():
    return jnp.asarray([0.5, -1, 0, 2]), jnp.asarray([1, 2, 0.5, 3])


def flax_outside_training(params, x, dtype):
    layer = linen.BatchNorm(use_running_average=True, dtype=dtype, epsilon=EPSILON)
    stats = dict(zip(("mean", "var"), running(), strict=True))
    return layer.apply({"params": params, "batch_stats": stats}, x)


def flax_in_training(params, x, dtype):
    layer = linen.BatchNorm(use_running_average=False, dtype=dtype, epsilon=EPSILON, use_fast_variance=False)
    stats = dict(zip(("mean", "var"), running(), strict=True))
    return layer.apply({"params": params, "batch_stats": stats}, x, mutable=["batch_stats"])[0]


def affine(form, **options):
    return lambda p, x, dtype: form(x, p["scale"], p["bias"], epsilon=EPSILON, dtype=dtype, **options)


NORMS = {
    "layer_norm": (affine(ours.layer_norm), flax(linen.LayerNorm), PARAMS),
    "layer_norm over two axes": (lambda p, x, dtype: ours.layer_norm(x, axes=(1, 2), epsilon=EPSILON, dtype=dtype),
     flax(lambda **o: linen.LayerNorm(reduction_axes=(1, 2), use_bias=False, use_scale=False, **o)), {}),
    "rms_norm": (lambda p, x, dtype: ours.rms_norm(x, p["scale"], epsilon=EPSILON, dtype=dtype), flax(linen.RMSNorm),
     {"scale": (4,)}),
    "group_norm": (affine(ours.group_norm, groups=2), flax(lambda **o: linen.GroupNorm(num_groups=2, **o)), PARAMS),
    "instance_norm": (affine(ours.instance_norm), flax(linen.InstanceNorm), PARAMS),
    "batch_norm in training": (batch_norm_in_training, flax_in_training, PARAMS),
    "batch_norm outside training": (batch_norm_outside_training, flax_outside_training, PARAMS),
}  # fmt: skip
every_norm = pytest.mark.parametrize("name", NORMS)


WITH_GRADIENTS = [
    Cell(inputs, params, None)
    for inputs, params in [
        ("float16",) * 2,
        ("bfloat16", "float32"),
        ("complex64", "float32"),
        ("float64", "complex64"),
    ]
]
ULPS = 8
"""On both sides, gradients differ by up to 5 ulp from twice the precision, because two large terms nearly cancel."""


@gradients_everywhere
@for_each("name", NORMS, one_in=0, one_slow_in=7)
def test_norm_outputs_gradients_and_dtypes_agree_with_flax(name, everywhere):
    mine, theirs, params = NORMS[name]
    cells = EXACT if params else [cell for cell in EXACT if cell.params == "float32"]
    options = {"cells": cells, "with_gradients": WITH_GRADIENTS, "everywhere": everywhere, "ulps": ULPS}
    assert differences_with_some_gradients(mine, theirs, SHAPE, params, **options) == []


@pytest.mark.slow
@every_norm
def test_norms_keep_imaginary_parts_that_flax_truncates(name):
    mine, _, params = NORMS[name]
    cells = TRUNCATED if params else [cell for cell in TRUNCATED if cell.inputs == "complex64"]
    assert_imaginary_parts_are_kept(mine, SHAPE, params, cells)


LAYERS = {
    "layer_norm": (LayerNorm, linen.LayerNorm, {}),
    "rms_norm": (RMSNorm, linen.RMSNorm, {}),
    "group_norm": (lambda **o: GroupNorm(2, **o), lambda **o: linen.GroupNorm(num_groups=2, **o), {}),
    "instance_norm": (InstanceNorm, linen.InstanceNorm, {}),
    "batch_norm": (BatchNorm, lambda **o: linen.BatchNorm(use_running_average=False, **o), {"training": True}),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", LAYERS)
def test_norm_layers_agree_with_flax(name):
    make, theirs, options = LAYERS[name]
    names = {"gamma": "scale", "beta": "bias"}
    for cell in [*WITH_GRADIENTS, Cell("float32", "float16", "bfloat16")]:
        x = random_like(SHAPE, cell.inputs, 1)
        layer = make(dtype=cell.asked or "infer", param_dtype=cell.params, epsilon=EPSILON)
        nn.initialize(layer, x)
        params = {path: random_like((4,), cell.params, 2) for path in layer.trainable_variables}
        assert params
        got = nn.functional_call(layer, params, x, **options)[0]
        module = theirs(dtype=cell.asked, epsilon=EPSILON, use_fast_variance=False)
        given = {"params": {names[path]: value for path, value in params.items()}}
        want = module.apply(given, x, mutable=["batch_stats"])[0]
        assert got.dtype == want.dtype, cell
        eps = max(as_format(d).eps for d in cell if d is not None)
        error = np.abs(np.asarray(got, "complex128") - np.asarray(want, "complex128")).max()
        assert error <= ULPS * eps * max(np.abs(np.asarray(want, "complex128")).max(), 1), cell
