"""Which models train with a loss scale."""

import numpy as np
import pytest

from slowly import mostly_slow, slow
from supremum import nn
from supremum.mixed_precision import DynamicLossScale, FixedLossScale, Policy, PolicyMap, use_policy
from supremum.optimizers import SGD, LossScaleOptimizer, OptimizerWrapper
from supremum.training import Model, Sequential
from training.blobs import values

X, Y = np.ones((4, 3), "float32"), np.ones((4, 1), "float32")


def loss_scale_settings(model):
    """The settings of the compiled loss scale, or None without a loss scale."""
    model.compile(optimizer := SGD(0.1), "mse")
    if model.optimizer is optimizer:
        return None
    assert isinstance(model.optimizer, LossScaleOptimizer)
    assert model.optimizer.inner_optimizer is optimizer
    return model.optimizer.loss_scale.settings


def dense(*policies, **options):
    return Sequential([nn.Dense(1, dtype=policy) for policy in policies], **options)


@pytest.mark.parametrize(
    ("layers", "model", "expected"),
    [
        (("float32", None), None, None),
        (("float32", "mixed_bfloat16"), None, None),
        (("float32", "mixed_float16"), None, DynamicLossScale()),
        (("float32", "float16"), None, DynamicLossScale()),
        (("variable=float32,compute=float16,output=float32",), None, DynamicLossScale()),
        ((Policy("mixed_float16", 8.0), Policy("mixed_float16", 16.0)), None, FixedLossScale(8.0)),
        ((Policy("mixed_float16", None), "mixed_float16"), None, DynamicLossScale()),
        ((Policy("mixed_float16", None), "float32"), None, None),
        ((None, "float32"), "mixed_float16", DynamicLossScale()),
        (("mixed_float16", "float32"), "float32", DynamicLossScale()),
        ((Policy("mixed_float16", 8.0),), Policy("mixed_float16", 16.0), FixedLossScale(16.0)),
        ((None,), Policy("mixed_float16", None), None),
        ((None, None), PolicyMap({"dense_1": "mixed_float16"}), DynamicLossScale()),
        (("mixed_float16",), Policy("mixed_float16", None), None),
        (("mixed_float16",), Policy("float32", None), None),
        ((Policy("mixed_float16", 8.0),), Policy("infer", None), None),
        ((None,), Policy("float16", None), None),
        ((Policy("float16", None),), None, None),
        ((None, None), PolicyMap({"dense_1": "mixed_float16"}, default=Policy("float32", None)), None),
    ],
)
def test_the_loss_is_scaled_if_any_layer_computes_in_float16(layers, model, expected):
    assert loss_scale_settings(dense(*layers, dtype=model)) == expected


def test_a_global_mixed_float16_policy_scales_the_loss_of_a_mixed_model():
    with use_policy("mixed_float16"):
        model = dense("float32", None)
    assert loss_scale_settings(model) == DynamicLossScale()


@pytest.mark.parametrize(("policy", "expected"), [("float32", DynamicLossScale()), (Policy("float32", None), None)])
def test_a_global_policy_without_loss_scale_holds_for_a_model_with_float16_layers(policy, expected):
    with use_policy(policy):
        model = dense("mixed_float16")
    assert loss_scale_settings(model) == expected
    assert loss_scale_settings(Sequential.from_config(model.get_config())) == expected


@pytest.mark.parametrize("own", [slow(None), slow("mixed_float16")])
def test_small_gradients_through_float16_layers_vanish_only_without_a_loss_scale(own):
    # The layers use the dtypes of their own policy, and the model decides on the loss scale, as in Keras.
    trains_first_layer = {}
    for scale in ("auto", None):
        with use_policy(Policy("mixed_float16", scale)):
            model = Sequential([nn.Dense(8, dtype="float32"), nn.Dense(8, dtype=own), nn.Dense(1, dtype=own)])
        model.compile(SGD(1e3), lambda y_true, y_pred: 1e-8 * (y_pred - y_true).astype("float32").mean())
        nn.initialize(model, X)
        before = values(model)
        model.fit(X, Y, verbose=0)
        trains_first_layer[scale] = not np.array_equal(before["dense/kernel"], values(model)["dense/kernel"])
    assert trains_first_layer == {"auto": True, None: False}


class LateBuiltModel(Model):
    def build(self, input_shape):
        self.dense = nn.Dense(1, dtype="mixed_float16")

    def call(self, x):
        return self.dense(x).astype("float32")


@pytest.mark.parametrize("train", mostly_slow(["fit", "train_on_batch"], "train_on_batch"))
def test_float16_layers_built_in_the_first_call_add_a_loss_scale(train):
    model = LateBuiltModel()
    optimizer = OptimizerWrapper(SGD(0.1))
    model.compile(optimizer, "mse")
    assert model.optimizer is optimizer
    getattr(model, train)(X, Y, **({"verbose": 0} if train == "fit" else {}))
    assert isinstance(model.optimizer, LossScaleOptimizer)
    assert model.optimizer.inner_optimizer is optimizer
    assert float(model.optimizer.loss_scale()) == 2.0**15


@pytest.mark.one_in(2)
@pytest.mark.parametrize(("dtype", "scales"), [("float16", True), ("float32", False)])
def test_layers_that_infer_float16_from_inputs_add_a_loss_scale(dtype, scales):
    model = Sequential([nn.Dense(1, dtype="infer", param_dtype="float16")])
    model.compile(SGD(0.1), "mse")
    model.fit(X.astype(dtype), Y, verbose=0)
    assert isinstance(model.optimizer, LossScaleOptimizer) == scales


@pytest.mark.slow
def test_a_loss_scale_added_in_the_first_call_is_saved_and_loaded(tmp_path):
    one, other = LateBuiltModel(), LateBuiltModel()
    for model in (one, other):
        model.compile(SGD(0.1), "mse")
    one.fit(X, Y, verbose=0)
    one.optimizer.loss_scale.loss_scale.assign(64.0)
    one.save_state(tmp_path / "state")
    nn.initialize(other, X)
    assert other.load_state(tmp_path / "state") == 1
    assert float(other.optimizer.loss_scale()) == 64.0
