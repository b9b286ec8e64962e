"""Tests of the policy of a model, and of which layers take it."""

import jax
import jax.numpy as jnp
import pytest

from nn.arrays import built
from supremum import nn
from supremum.errors import ArgumentError
from supremum.mixed_precision import Policy, PolicyMap, global_policy, set_global_policy, use_policy

X = jnp.ones((2, 3))


def policies(model):
    return {path: layer.dtype_policy.name for path, layer in model.layers_by_path().items() if path}


def compute_dtypes(model, x=X):
    """Count the products of a model by dtype."""
    nn.initialize(model, x)
    found = [str(e.invars[0].aval.dtype) for e in jax.make_jaxpr(model)(x).eqns if e.primitive.name == "dot_general"]
    return {name: found.count(name) for name in found}


class Subclass(nn.Network):
    """A model with one layer from `__init__`, one from the first call, and one with a given policy."""

    def __init__(self, **options):
        super().__init__(**options)
        self.early = nn.Dense(3)
        self.own = nn.Dense(3, dtype="float32")

    def build(self, input_shape):
        self.late = nn.Dense(3)

    def call(self, x):
        return self.own(self.late(self.early(x))).astype(x.dtype)


def sequential(**options):
    return nn.SequentialNetwork([nn.Dense(3), nn.ReLU(), nn.Dense(3, dtype="float32"), nn.Dense(3)], **options)


def functional(**options):
    x = nn.Input((3,))
    return nn.Network(x, nn.Dense(3)(nn.Dense(3, dtype="float32")(nn.ReLU()(nn.Dense(3)(x)))), **options)


MODELS = {"sequential": sequential, "functional": functional, "subclass": Subclass}


class TestModel:
    @pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
    def test_model_has_the_given_policy_or_the_global_one(self, make):
        assert make(dtype="mixed_bfloat16").dtype_policy == Policy("mixed_bfloat16")
        assert make().dtype_policy == Policy("float32")
        with use_policy("mixed_float16"):
            model = make()
            assert make(dtype="float32").dtype_policy == Policy("float32")
        assert model.dtype_policy == Policy("mixed_float16")

    def test_model_does_not_take_the_policy_of_its_first_layer(self):
        with use_policy("mixed_float16"):
            model = nn.SequentialNetwork([nn.Dense(3, dtype="float32"), nn.Dense(3)])
        assert repr(model) == "SequentialNetwork(dtype='mixed_float16')"
        assert policies(model) == {"dense": "float32", "dense_1": "mixed_float16"}


class TestLayers:
    @pytest.mark.one_in(2)
    @pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
    @pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"])
    def test_layers_take_the_policy_unless_given_one(self, make, policy):
        model = make(dtype=policy)
        assert compute_dtypes(model) == {policy.removeprefix("mixed_"): 2, "float32": 1}
        assert set(policies(model).values()) == {policy, "float32"}
        assert {str(variable.true_dtype) for variable in model.variables.values()} == {"float32"}

    @pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
    def test_layers_keep_their_policy_if_the_model_has_none(self, make):
        model = make()
        with use_policy("mixed_bfloat16"):
            assert compute_dtypes(model) == ({"float32": 3} if make is not Subclass else {"float32": 2, "bfloat16": 1})

    def test_layers_made_under_a_different_global_policy_take_it(self):
        with use_policy("mixed_float16"):
            layers = [nn.Dense(3), nn.RNN(nn.GRUCell(2))]
        rnn = nn.Bidirectional(layers[1])
        model = nn.SequentialNetwork([layers[0], rnn], dtype="mixed_bfloat16")
        assert set(policies(model).values()) == {"mixed_bfloat16"}

    @pytest.mark.slow
    def test_layers_take_the_policy_at_any_depth(self):
        model = nn.SequentialNetwork(
            [nn.Bidirectional(nn.RNN(nn.GRUCell(4))), nn.MultiHeadAttention(2), nn.SequentialNetwork([nn.Dense(2)])],
            dtype="mixed_bfloat16",
        )
        nn.initialize(model, jnp.ones((2, 5, 3)))
        assert set(policies(model).values()) == {"mixed_bfloat16"}
        assert len(policies(model)) == 12
        assert model(jnp.ones((2, 5, 3))).dtype == "bfloat16"

    @pytest.mark.slow
    def test_layers_of_a_functional_model_are_built_again(self):
        x = nn.Input((5, 4))
        attention = nn.MultiHeadAttention(2)
        model = nn.Network(x, attention(x) + 1, dtype="mixed_bfloat16")
        assert policies(model)["multi_head_attention"] == "mixed_bfloat16"
        nn.initialize(model)
        assert model(jnp.ones((2, 5, 4), "bfloat16")).dtype == "bfloat16"
        assert isinstance(model.variables["multi_head_attention/query/kernel"], nn.AutoCastVariable)

    def test_layers_of_an_inner_functional_model_are_built_again(self):
        inner = functional()
        model = nn.SequentialNetwork([inner], dtype="mixed_bfloat16")
        assert inner.output_spec.dtype == "bfloat16"
        nn.initialize(inner)  # needs no inputs
        assert model(X).dtype == "bfloat16"

    @pytest.mark.parametrize("inner", ["mixed_float16", "float32"])
    @pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
    def test_layers_take_the_policy_of_the_innermost_model_with_one(self, make, inner):
        model = nn.SequentialNetwork([make(dtype=inner), make(), nn.Dense(3)], dtype="mixed_bfloat16")
        nn.initialize(model, X)
        found = policies(model)
        first, second, *_ = (path for path in found if "/" not in path)
        assert {name for path, name in found.items() if path.startswith(f"{first}/")} <= {inner, "float32"}
        others = {name for path, name in found.items() if path.startswith(f"{second}/")}
        assert others == {"mixed_bfloat16", "float32"}
        assert found[first] == inner
        assert found[second] == found["dense"] == "mixed_bfloat16"

    def test_layers_take_the_outer_policy_if_the_inner_model_passes_the_global_one(self):
        class Wrapping(nn.Layer):
            def __init__(self):
                super().__init__()
                self.inner = nn.SequentialNetwork([nn.Dense(3)], dtype=self.dtype_policy)

            def call(self, x):
                return self.inner(x)

        assert set(policies(nn.SequentialNetwork([Wrapping()], dtype="mixed_bfloat16")).values()) == {"mixed_bfloat16"}

    def test_patterns_of_an_outer_map_decide_over_inner_models(self):
        policy_map = PolicyMap({"sequential_network/dense_1": "mixed_float16"}, default="mixed_bfloat16")
        model = nn.SequentialNetwork(
            [nn.SequentialNetwork([nn.Dense(3), nn.Dense(3)], dtype="float32")], dtype=policy_map
        )
        assert policies(model) == {
            "sequential_network": "float32", "sequential_network/dense": "float32",
            "sequential_network/dense_1": "mixed_float16",
        }  # fmt: skip

    @pytest.mark.parametrize("scoped", [False, True])
    def test_explicit_policy_equal_to_the_global_one_counts_as_given(self, scoped):
        policy = Policy("float32")
        try:
            if scoped:
                with use_policy(policy):
                    layer = nn.Dense(3, dtype=policy)
            else:
                set_global_policy(policy)
                layer = nn.Dense(3, dtype=policy)
            assert policies(nn.SequentialNetwork([layer], dtype="mixed_bfloat16")) == {"dense": "float32"}
        finally:
            set_global_policy(None)
        assert global_policy() == Policy("float32")

    @pytest.mark.parametrize("kind", ["sequential", "functional", "subclass"])
    def test_layers_with_weights_of_a_different_policy_raise(self, kind):
        layer = built(nn.Dense(3), X)

        class Wrapper(nn.Network):
            def __init__(self, **options):
                super().__init__(**options)
                self.layer = layer

            def call(self, x):
                return self.layer(x)

        x = nn.Input((3,))
        run = {
            "sequential": lambda: nn.SequentialNetwork([layer], dtype="mixed_bfloat16"),
            "functional": lambda: nn.Network(x, layer(x), dtype="mixed_bfloat16"),
            "subclass": lambda: Wrapper(dtype="mixed_bfloat16")(X),
        }[kind]
        with pytest.raises(
            ArgumentError,
            match=r"layer '(layer|dense)' already has weights of the policy 'float32', but the model asks for",
        ):
            run()
        assert layer.dtype_policy == Policy("float32")
        assert (
            nn.SequentialNetwork([layer])(X).dtype
            == nn.SequentialNetwork([layer], dtype="float32")(X).dtype
            == "float32"
        )
