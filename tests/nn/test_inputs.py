"""Tests of how a layer checks and casts its inputs, and of its errors."""

import collections
import copy
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental.sparse import BCOO

from supremum import nn
from supremum.mixed_precision import PolicyWarning
from supremum.nn.inputs import cast_inputs

Pair = collections.namedtuple("Pair", "left right")


class Seeing(nn.Layer):
    """A layer that records the inputs of its `call`."""

    def call(self, *args, **kwargs):
        self.seen = args, kwargs
        return jnp.zeros(2, self.compute_dtype)


def dtypes(tree):
    return jax.tree.map(lambda leaf: str(getattr(leaf, "dtype", leaf)), tree)


class TestCasts:
    def test_all_arguments_and_nested_structures_are_cast(self):
        """Keras RFC 293, mixed precision, "Currently, only inputs in the first argument are casted"."""
        layer = Seeing(dtype="mixed_bfloat16")
        f32 = jnp.ones(2)
        given = [f32, (np.ones(2, "float16"), {"x": f32}), Pair(f32, np.float32(1))]
        layer(f32, given, mask=None, other={"deep": [f32]}, eps=1e-8, count=3, flag=True, name="n")
        bf16 = "bfloat16"
        (first, second), kwargs = layer.seen
        assert (dtypes(first), dtypes(second)) == (bf16, [bf16, (bf16, {"x": bf16}), Pair(bf16, bf16)])
        assert dtypes(kwargs) == {
            "mask": None, "other": {"deep": [bf16]}, "eps": "1e-08", "count": "3", "flag": "True", "name": "n",
        }  # fmt: skip
        assert isinstance(second[2], Pair)

    @pytest.mark.parametrize("dtype", ["bool", "int8", "uint32", "complex64"])
    def test_integers_bools_and_complex_keep_their_dtype(self, dtype):
        layer = Seeing(dtype="mixed_float16")
        for array in (jnp.ones(2, dtype), np.ones(2, dtype)):
            layer(array)
            assert layer.seen[0][0] is array

    @pytest.mark.parametrize("policy", ["mixed_float16", "infer"])
    def test_containers_of_the_caller_do_not_change(self, policy):
        class Mutating(nn.Layer):
            def call(self, x, extra):
                extra["list"].append(1.0)
                extra["list"][0] = None
                extra["new"] = 1
                return x

        extra = {"list": [jnp.ones(2)], "array": np.ones(2, "float32")}
        before = copy.copy(extra), list(extra["list"])
        Mutating(dtype=policy)(jnp.ones(2), extra)
        assert (extra.keys(), len(extra["list"])) == (before[0].keys(), 1)
        assert extra["list"][0] is before[1][0]
        assert extra["array"].dtype == "float32"

    @pytest.mark.slow
    @pytest.mark.parametrize("jitted", [False, True])
    def test_sparse_data_is_cast_but_its_indices_are_not(self, jitted):
        def run(x):
            layer(x)
            return layer.seen[0][0]

        layer = Seeing(dtype="mixed_float16")
        sparse = BCOO.fromdense(jnp.eye(3))
        out = (jax.jit(run) if jitted else run)(sparse)
        assert (out.data.dtype, sparse.data.dtype, out.indices.dtype) == ("float16", "float32", "int32")
        np.testing.assert_array_equal(out.todense(), np.eye(3))
        assert run(BCOO.fromdense(jnp.eye(3, dtype="int32"))).data.dtype == "int32"

    def test_a_layer_without_autocast_casts_nothing(self):
        layer = Seeing(dtype="mixed_float16", autocast=False)
        layer(jnp.ones(2), np.ones(2))
        assert [x.dtype for x in layer.seen[0]] == ["float32", "float64"]

    @pytest.mark.parametrize("policy", ["infer", "int32", "complex64"])
    def test_inputs_keep_their_dtype_without_a_floating_compute_dtype(self, policy):
        layer = Seeing(dtype=policy)
        layer(jnp.ones(2, "bfloat16"), np.ones(2, "float16"))
        assert [x.dtype for x in layer.seen[0]] == ["bfloat16", "float16"]

    def test_classes_with_keeps_dtype_are_not_cast(self):
        class Kept(collections.namedtuple("Kept", "x")):
            keeps_dtype = True

        assert cast_inputs([Kept(np.ones(2))], np.dtype("float16"))[0].x.dtype == "float64"


class TestNarrowing:
    def test_float64_inputs_warn_once_for_each_layer(self):
        layer = Seeing(dtype="float32", name="wide")
        with pytest.warns(
            PolicyWarning, match=r"wide \(Seeing.*narrows its float64 inputs to float32: use dtype='infer'"
        ) as caught:
            layer({"x": np.ones(2)})
        assert caught[0].filename == __file__
        assert "dtype='float64'" in str(caught[0].message)
        layer(np.ones(2))

    def test_infer_warns_about_narrowing_by_jax(self):
        layer = Seeing(dtype="infer")
        with pytest.warns(
            PolicyWarning, match="narrows its float64 inputs to float32: call jax.config.update"
        ) as caught:
            layer(np.ones(2))
        assert caught[0].filename == __file__
        with jax.enable_x64(True):
            Seeing(dtype="infer")(np.ones(2), jnp.ones(2, "float64"))

    def test_inputs_without_narrowing_do_not_warn(self):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for dtype in ("float32", "mixed_float16", "mixed_bfloat16"):
                Seeing(dtype=dtype)(np.ones(2, "float32"), 1.5, np.ones(2, "int64"), np.ones(2, "complex128"))
            Seeing(dtype="infer")(np.ones(2, "float32"), 1.5)
            with jax.enable_x64(True):
                Seeing(dtype="float64")(np.ones(2))
        assert caught == []


class TestInputSpec:
    # The specification, an input that does not meet it, the problem, and the shape of one that does.
    CASES = (
        (nn.InputSpec(ndim=2), (2,), "float32", "must have 2 axes, got 1", (2, 3)),
        (nn.InputSpec(min_ndim=2), (2,), "float32", "must have at least 2 axes, got 1", (2, 3)),
        (nn.InputSpec(max_ndim=1), (2, 3), "float32", "must have at most 1 axes, got 2", (2,)),
        (nn.InputSpec(shape=(None, 3)), (2, 4), "float32", "must have length 3 along axis 1, got 4", (2, 3)),
        (nn.InputSpec(shape=(None, 3)), (2,), "float32", "must have 2 axes, got 1", (2, 3)),
        (nn.InputSpec(axes={-1: 3}), (2, 4), "float32", "must have length 3 along axis -1, got 4", (2, 3)),
        (nn.InputSpec(axes={2: 3}), (2, 4), "float32", "must have length 3 along axis 2, got 2 axes", (2, 3, 3)),
        (nn.InputSpec(dtype="float32"), (2,), "bfloat16", "must be float32, got bfloat16", (2,)),
    )

    @pytest.mark.parametrize(("spec", "shape", "dtype", "said", "fitting"), CASES)
    @pytest.mark.parametrize("policy", ["mixed_float16", "infer"])
    def test_inputs_are_checked_before_the_cast(self, spec, shape, dtype, said, fitting, policy):
        layer = Seeing(dtype=policy, name="looking")
        layer.input_spec = spec
        with pytest.raises(ValueError, match="input 0 " + said) as caught:
            layer(jnp.ones(shape, dtype))
        size = ",".join(map(str, shape))
        assert str(caught.value).startswith(f"looking (Seeing(dtype={policy!r})), given {dtype}[{size}]: ")
        layer(jnp.ones(fitting))

    def test_several_inputs_by_position_and_by_name(self):
        class Two(nn.Layer):
            def call(self, query, key=None):
                return query

        layer = Two()
        layer.input_spec = (None, nn.InputSpec(ndim=3))
        layer(jnp.ones(2))
        with pytest.raises(ValueError, match="input 1 must have 3 axes, got 1"):
            layer(jnp.ones(2), jnp.ones(2))
        layer.input_spec = {"key": nn.InputSpec(ndim=3)}
        for call in (lambda: layer(jnp.ones(2), jnp.ones(2)), lambda: layer(jnp.ones(2), key=jnp.ones(2))):
            with pytest.raises(ValueError, match="key must have 3 axes, got 1"):
                call()
        layer(jnp.ones(2))


class TestErrors:
    @pytest.mark.slow
    def test_errors_name_path_inputs_and_expectation(self):
        model = nn.SequentialNetwork(
            [nn.SequentialNetwork([nn.ReLU(), nn.Dense(2, dtype="mixed_bfloat16")], name="inner")]
        )
        x = jnp.ones((4, 3))
        with pytest.raises(
            nn.UninitializedError, match=r"the layer has no weights yet; call nn.initialize\(model, \*inputs, seed=0\)"
        ):
            nn.functional_call(model, {}, x)
        nn.initialize(model, x)
        with pytest.raises(
            ValueError,
            match=r"inner/dense .* given bfloat16|inner/dense .* given float32\[4,5\]: input 0 must have.*, got 5",
        ):
            model(jnp.ones((4, 5)))
        assert model(x).shape == (4, 2)

    def test_missing_super_init_raises(self):
        class Forgetful(nn.Layer):
            def __init__(self):
                self.x = 1

            def call(self, x):
                return x

        with pytest.raises(ValueError, match=r"Forgetful.__init__ must call super\(\).__init__\(\) first"):
            Forgetful()(jnp.ones(2))

    def test_two_variables_of_one_name_raise(self):
        class Twice(nn.Layer):
            def build(self, input_shape):
                self.a = self.add_weight("w", 2)
                self.b = self.add_weight("w", 2)

            def call(self, x):
                return x

        with pytest.raises(ValueError, match=r"Twice\(dtype='float32'\) already has a variable 'w'"):
            nn.initialize(Twice(), jnp.ones(2))
