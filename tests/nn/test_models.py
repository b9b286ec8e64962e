"""Tests of functional models, subclasses, policy maps, summaries and mixed dtypes."""

import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nn.arrays import built
from supremum import nn
from supremum.mixed_precision import Policy, PolicyMap, UnmatchedPatternWarning, use_policy


def two_headed(policy="mixed_bfloat16"):
    """Return a model with two inputs, three outputs and a layer that is used twice."""
    with use_policy(policy):
        left, right = nn.Input((3,), name="left"), nn.Input((3,), "float16", name="right")
        shared = nn.Dense(4)
        a, b = shared(left), shared(right)
        joined = nn.ReLU()(a + 2 * b)
        head = nn.Dense(2, dtype="float32")
        return nn.Network({"l": left, "r": right}, {"head": head(joined), "parts": [a, -b]})


INPUTS = {"l": jnp.ones((5, 3)), "r": jnp.full((5, 3), 2, "float16")}


class TestFunctional:
    @pytest.mark.one_in(2)
    @pytest.mark.parametrize("jitted", [False, True])
    def test_functional_model_runs_its_layers(self, jitted):
        model = two_headed()
        nn.initialize(model, seed=3)
        values = {path: v.value for path, v in model.variables.items()}

        def run(values, x):
            return nn.functional_call(model, values, x)[0]

        out = (jax.jit(run) if jitted else run)(values, INPUTS)
        shared, head = model.layers_by_path()["dense"], model.layers_by_path()["dense_1"]
        a, b = shared(INPUTS["l"]), shared(INPUTS["r"])
        np.testing.assert_array_equal(out["parts"][0], a)
        np.testing.assert_array_equal(out["parts"][1], -b)
        np.testing.assert_allclose(out["head"], head(jax.nn.relu(a + 2 * b)), rtol=1e-2)
        assert [leaf.dtype for leaf in jax.tree.leaves(out)] == ["float32", "bfloat16", "bfloat16"]

    def test_functional_model_does_not_cast(self):
        class DtypeRecorder(nn.Layer):
            def call(self, x):
                seen.append(x.dtype)
                return x

        seen = []
        x = nn.Input((3,), "float16")
        with use_policy("mixed_bfloat16"):
            model = nn.Network(x, DtypeRecorder(autocast=False)(x))
        assert model.compute_dtype == "bfloat16"
        del seen[:]
        for dtype in ("float16", "float32", "int8"):
            model(jnp.ones((2, 3), dtype))
        assert seen == ["float16", "float32", "int8"]

    def test_each_layer_has_one_path(self):
        model = two_headed()
        assert list(model.layers_by_path()) == ["", "dense", "mul", "add", "relu", "dense_1", "neg"]
        assert list(model.variables) == ["dense/kernel", "dense/bias", "dense_1/kernel", "dense_1/bias"]

    def test_model_can_be_a_layer_of_a_model(self):
        inner = two_headed()
        x = nn.Input((3,))
        outer = nn.Network(x, inner({"l": x, "r": x})["head"] + 1)
        nn.initialize(outer)
        assert next(iter(outer.variables)) == "network/dense/kernel"
        out = outer(INPUTS["l"])
        np.testing.assert_allclose(out, inner({"l": INPUTS["l"], "r": INPUTS["l"]})["head"] + 1)

    def test_axes_of_any_length_are_traced(self):
        x = nn.Input((None, 4))
        y = nn.Dense(2)(x)
        assert (x.shape, y.shape, nn.Flatten()(y).shape) == ((None, None, 4), (None, None, 2), (None, None))
        assert nn.Input(3, batch_size=7).shape == (7, 3)
        model = nn.Network(x, y)
        nn.initialize(model)
        for length in (1, 5):
            assert model(jnp.ones((2, length, 4))).shape == (2, length, 2)

    def test_inputs_can_be_positional(self):
        a, b = nn.Input((2,)), nn.Input((2,))
        model = nn.Network([a, b], (a - b, a @ b[0]))
        assert [float(x.sum()) for x in model([jnp.ones((2, 2)), jnp.zeros((2, 2))])] == [4, 0]
        assert len(model((jnp.ones((2, 2)), jnp.zeros((2, 2))))) == 2

    @pytest.mark.parametrize("call", [bool, np.asarray, list, lambda x: np.ones(2) @ x if x.ndim > 5 else float(x)])
    def test_symbolic_tensors_have_no_values(self, call):
        with pytest.raises(TypeError):
            call(nn.Input((2,)))

    @pytest.mark.parametrize(
        "inputs", [(jnp.ones((2, 3)),), ({"l": jnp.ones((2, 3))},), ({"l": jnp.ones((2, 3)), "r": jnp.ones((2, 4))},),
                   ({"l": jnp.ones((2, 3)), "r": jnp.ones(3)},), ({"l": jnp.ones((2, 3)), "r": [jnp.ones((2, 3))]},)],
    )  # fmt: skip
    def test_inputs_of_a_different_structure_raise(self, inputs):
        model = two_headed()
        nn.initialize(model)
        with pytest.raises(ValueError, match=r"(the inputs must have the structure of|an input must match)"):
            model(*inputs)


class Block(nn.Network):
    """A subclass with layers in a list and one that is made in the first call."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.steps = [nn.Dense(3), nn.Dense(3, dtype="float32")]

    def build(self, input_shape):
        self.late = nn.Dense(2)

    def call(self, x, *, training=False):
        self.seen = x.dtype, training
        for step in self.steps:
            x = step(x)
        return self.late(x).astype(self.compute_dtype)


class TestSubclass:
    def test_subclass_is_a_layer_and_casts(self):
        model = built(Block(dtype="mixed_bfloat16"), jnp.ones((2, 3)))
        assert model(jnp.ones((2, 3)), training=True).dtype == "bfloat16"
        assert model.seen == ("bfloat16", True)
        assert list(model.variables)[::2] == ["steps/0/kernel", "steps/1/kernel", "late/kernel"]

    def test_training_reaches_inner_layers(self):
        class TrainingRecorder(nn.Layer):
            def call(self, x, *, training=False):
                seen.append(training)
                return x

        class Wrapper(nn.Layer):
            def __init__(self, layer):
                super().__init__()
                self.layer = layer

            def call(self, x):
                return self.layer(x), self.layer(x, training=False)

        seen = []
        layer = built(Wrapper(Wrapper(TrainingRecorder())), jnp.ones(2))
        seen.clear()
        layer(jnp.ones(2), training=True)
        assert seen == [True, False, False, False]

    def test_equal_seeds_and_paths_give_equal_weights_which_initialize_keeps(self):
        models = [built(Block(), jnp.ones((2, 3)), seed=5) for _ in range(2)]
        a, b = ({path: np.asarray(v) for path, v in model.variables.items()} for model in models)
        assert len(a) == 6
        assert all(np.array_equal(a[path], b[path]) for path in a)
        assert not np.array_equal(a["steps/0/kernel"], a["steps/1/kernel"])
        nn.initialize(models[0], jnp.ones((2, 3)), seed=6)
        assert np.array_equal(models[0].variables["late/kernel"], b["late/kernel"])


class TestPolicyMap:
    MAP = PolicyMap({"steps/0": "mixed_float16", "late": "float16"}, default="mixed_bfloat16")

    def policies(self, model):
        return {path: layer.dtype_policy.name for path, layer in model.layers_by_path().items()}

    def test_patterns_decide_and_the_default_is_for_the_rest(self):
        model = built(Block(dtype=self.MAP), jnp.ones((2, 3)))
        assert self.policies(model) == {
            "": "mixed_bfloat16", "steps/0": "mixed_float16", "steps/1": "float32", "late": "float16",
        }  # fmt: skip
        assert [v.true_dtype for v in model.variables.values()][::2] == ["float32", "float32", "float16"]
        assert model(jnp.ones((2, 3))).dtype == "bfloat16"

    @pytest.mark.parametrize("kind", ["functional", "sequential"])
    def test_policy_map_works_in_functional_and_subclassed_models(self, kind):
        policy_map = PolicyMap({"dense_1": "float32"}, default="mixed_float16")
        if kind == "functional":
            x = nn.Input((3,))
            model = nn.Network(x, nn.Dense(2)(nn.Dense(4)(x)), dtype=policy_map)
            nn.initialize(model)
        else:
            model = nn.SequentialNetwork([nn.Dense(4), nn.Dense(2)], dtype=policy_map)
            nn.initialize(model, jnp.ones((1, 3)))
        assert self.policies(model) == {"": "mixed_float16", "dense": "mixed_float16", "dense_1": "float32"}
        assert model.dtype_policy == Policy("mixed_float16")
        out, mid = model(jnp.ones((1, 3))), model.layers_by_path()["dense"](jnp.ones((1, 3)))
        assert (out.dtype, mid.dtype) == ("float32", "float16")
        assert isinstance(model.variables["dense/kernel"], nn.AutoCastVariable)

    def test_pattern_without_a_match_warns(self):
        with pytest.warns(UnmatchedPatternWarning, match="'dnese'"):
            nn.initialize(nn.SequentialNetwork([nn.Dense(2)], dtype=PolicyMap({"dnese": "float32"})), jnp.ones((1, 3)))

    def test_existing_weights_are_not_converted(self):
        layer = built(nn.Dense(2), jnp.ones((1, 3)))
        with pytest.raises(
            ValueError,
            match="layer 'dense' already has weights of the policy 'float32', but the model asks for 'mixed_float16'",
        ):
            nn.SequentialNetwork([layer], dtype=PolicyMap({"dense": "mixed_float16"}))


class TestSummary:
    def test_summary_counts_layers_parameters_and_bytes(self):
        model = two_headed()
        nn.initialize(model)
        summary = model.summary()
        rows = {row.path: row for row in summary.rows}
        assert (rows["dense"].layer, rows["dense"].output_shape, rows["dense"].output_dtype) == (
            "Dense",
            "(None, 4)",
            "bfloat16",
        )
        assert (rows["dense"].trainable, rows["dense"].nbytes, rows["dense"].variable_dtype) == (16, 64, "float32")
        assert (rows["dense_1"].compute_dtype, rows["add"].compute_dtype) == ("float32", "infer")
        assert (summary.trainable, summary.other, summary.nbytes) == (26, 0, 104)
        assert "26 trainable parameters, 104 bytes" in str(summary)
        assert json.loads(json.dumps(summary.to_dict()))["nbytes"] == 104
        page = summary._repr_html_()
        assert page.startswith("<div><b>26 trainable parameters, 104 bytes</b><table>")
        assert page.count("<tr>") == len(summary.rows) + 1
        assert '<td style="text-align:right;padding:0 .6em">16</td>' in page

    def test_summary_counts_statistics_separately_and_shared_variables_once(self):
        norm = nn.BatchNorm()
        model = built(nn.SequentialNetwork([norm, norm, nn.ReLU()]), jnp.ones((2, 3)))
        assert (model.summary().trainable, model.summary().other) == (6, 6)
        assert model.summary().rows[1].output_shape == "(2, 3)"

    def test_summary_works_before_the_first_call(self):
        assert "0 trainable parameters" in str(nn.Dense(3).summary())


class TestMixedDtypes:
    class Noisy(nn.Layer):
        def call(self, x):
            x = x * 2
            noise = jnp.ones(x.shape)
            return x + noise  # the line

    @pytest.mark.parametrize("jitted", [False, True])
    def test_strong_float32_warns_once_with_its_line(self, jitted):
        layer = self.Noisy(dtype="mixed_bfloat16")
        run = jax.jit(lambda x: layer(x)) if jitted else layer
        with pytest.warns(nn.MixedDtypeWarning, match="must return its compute dtype bfloat16, got float32") as caught:
            assert run(jnp.ones(2)).dtype == "float32"
        layer(jnp.ones(2))
        line = next(
            n for n, text in enumerate(Path(__file__).read_text().splitlines(), 1) if text.endswith("# the line")
        )
        assert f"test_models.py:{line}" in str(caught[0].message)
        assert "noisy (" in str(caught[0].message)

    @pytest.mark.parametrize("where", ["layer", "around"])
    def test_strict_layers_raise_for_a_different_output_dtype(self, where):
        layer = self.Noisy(dtype="mixed_float16", strict=where == "layer")
        model = nn.SequentialNetwork([layer], strict=where == "around")
        with pytest.raises(
            nn.MixedDtypeError,
            match=r"the layer must return its compute dtype float16, got float32 because .* turns float16 into float32",
        ):
            model(jnp.ones(2))
        assert issubclass(nn.MixedDtypeError, TypeError)  # as the RFC says

    @pytest.mark.slow
    def test_recommended_policy_works(self):
        class HelperUser(nn.Layer):
            def call(self, x):
                made = [self.zeros(x.shape), self.ones(x.shape), self.full(x.shape, 3), self.constant([1.0, 2.0])]
                made += [self.arange(2), self.eye(2)[0], self.random_normal(x.shape), self.random_uniform(x.shape)]
                return sum(made, x)

        with nn.random_key(jax.random.key(0)):
            assert HelperUser(dtype="mixed_float16", strict=True)(jnp.ones(2)).dtype == "float16"
            inferred = nn.SequentialNetwork([HelperUser(dtype="infer")])
            allowed = self.Noisy(dtype="variable=float32,compute=bfloat16,output=float32")
            assert allowed(jnp.ones(2)).dtype == "float32"

        class Weak(nn.Layer):
            def call(self, x):
                return x + self.zeros(x.shape) + self.ones(x.shape)

        assert Weak(dtype="infer")(jnp.ones(2, "float16")).dtype == "float16"
        assert inferred.built is False

    def test_random_numbers_need_a_key(self):
        class Random(nn.Layer):
            def call(self, x):
                return self.random_normal((2,)) + self.random_normal((2,)) * 0

        with pytest.raises(ValueError, match=r"random \(Random.*random_key=jax\.random\.key\(0\)"):
            Random()(1)
        a, b = (nn.functional_call(Random(), {}, 1, random_key=jax.random.key(k))[0] for k in (0, 1))
        assert not np.array_equal(a, b)
        assert np.array_equal(a, nn.functional_call(Random(), {}, 1, random_key=jax.random.key(0))[0])
