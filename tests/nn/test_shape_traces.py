"""Functions are traced once for inputs of the same shapes and dtypes, and only while layers declare their weights."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from supremum import nn
from supremum.errors import ArgumentError
from supremum.nn.functional.shape_traces import trace_once

X = np.ones((2, 3), "float32")


def counted(calls):
    @trace_once
    def scale(x, factor=1, *, shift=None):
        """Scale and shift."""
        calls.append(x)
        if x.shape[-1] == 5:
            raise ArgumentError("five features")
        return x * factor if shift is None else x * factor + shift

    return scale


class Calls(nn.Layer):
    """Calls a function with each of several sets of options."""

    def __init__(self, function, *options):
        super().__init__(dtype="infer")
        self.function, self.options = function, options

    def call(self, x):
        return [self.function(x, *args, **kwargs) for args, kwargs in self.options]


def test_equal_calls_are_traced_once_and_eager_ones_run_each_time():
    calls = []
    layer = Calls(counted(calls), *[((2,), {})] * 3, ((), {"factor": 2}), ((3,), {}))
    specs = nn.output_spec(layer, X)
    assert [spec.shape for spec in specs] == [(2, 3)] * 5
    assert len(calls) == 3
    assert counted([]).__doc__ == "Scale and shift."
    calls.clear()
    for output, factor in zip(layer(X), [2, 2, 2, 2, 3], strict=True):
        np.testing.assert_array_equal(output, factor * X)
    # the first call builds the layer, and then computes
    assert sum(not isinstance(x, jax.core.Tracer) for x in calls) == 5


def test_jitted_calls_are_not_changed():
    calls = []
    layer = Calls(counted(calls), *[((2,), {})] * 3)
    nn.initialize(layer, X)
    calls.clear()
    jaxpr = jax.make_jaxpr(layer)(X)
    assert len(calls) == 3
    assert {equation.primitive.name for equation in jaxpr.eqns} == {"mul"}


@pytest.mark.parametrize("shape", [(2, 3), (4, 3)])
def test_numbers_of_different_types_give_different_dtypes(shape):
    layer = Calls(counted([]), ((1,), {}), ((1.0,), {}), ((True,), {}), ((1,), {"shift": jnp.ones(())}))
    specs = nn.output_spec(layer, jax.ShapeDtypeStruct(shape, "int32"))
    assert [str(spec.dtype) for spec in specs] == ["int32", "float32", "int32", "float32"]
    assert all(spec.shape == shape for spec in specs)


def test_configuration_is_part_of_the_key():
    layer = Calls(counted([]), ((1,), {"shift": jnp.ones((), "float32")}))
    integers = jax.ShapeDtypeStruct((2, 3), "int32")
    assert nn.output_spec(layer, integers)[0].dtype == "float32"
    with jax.numpy_dtype_promotion("strict"), pytest.raises(Exception, match="implicit dtype promotion path"):
        nn.output_spec(layer, integers)


@pytest.mark.parametrize(
    ("shift", "traces"),
    [(np.ones(3, "float32"), 2), (nn.Variable(np.ones(3, "float32")), 1)],
    ids=["array", "variable"],
)
def test_other_options_are_not_kept(shift, traces):
    """A variable is passed as its value, an array of JAX, and is not kept either."""
    calls = []
    specs = nn.output_spec(Calls(counted(calls), *[((2,), {"shift": shift})] * 2), X)
    assert [spec.shape for spec in specs] == [(2, 3)] * 2
    assert len(calls) == traces


def test_errors_are_those_of_the_function():
    with pytest.raises(ArgumentError, match="five features") as caught:
        nn.output_spec(Calls(counted([]), ((), {})), np.ones((2, 5), "float32"))
    assert not getattr(caught.value, "__notes__", [])
