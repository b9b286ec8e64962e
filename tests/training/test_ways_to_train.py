"""All ways to train give identical bits, and resumed training gives the bits of uninterrupted training.

When XLA optimizes, as in `make test-xla` and for users, `get_gradients` compiles the gradients separately from the
update, and they differ in the last bit from the other ways. The other ways still agree bit for bit.
"""

import jax
import numpy as np
import pytest

import xla
from supremum import nn
from supremum.mixed_precision import DynamicLossScale, Policy
from supremum.optimizers import Adam, LossScaleOptimizer
from supremum.training import ModelCheckpoint, Sequential, SparseCategoricalCrossentropy
from training.blobs import blobs, equal, network, values

LOSS = SparseCategoricalCrossentropy(from_logits=True)
POLICIES = {
    "float32": Policy("float32"),
    "mixed_bfloat16": Policy("mixed_bfloat16"),
    "mixed_float16": Policy("mixed_float16", DynamicLossScale(2.0**24, increment_period=3)),
}
EPOCHS, SIZE = 3, 32
X, Y = blobs(96)


def batches():
    return [(X[start : start + SIZE], Y[start : start + SIZE]) for start in range(0, len(X), SIZE)] * EPOCHS


def initialized_network(policy):
    model = network(policy)
    nn.initialize(model, X[:1])
    return model


def optimizer_for(policy, inner):
    return inner if policy.loss_scale is None else LossScaleOptimizer(inner, policy.loss_scale)


def by_fit(policy, optimizer):
    return fitted(policy, optimizer, X, Y, batch_size=SIZE, epochs=EPOCHS, shuffle=False)


def by_fit_of_batches(policy, optimizer):
    return fitted(policy, optimizer, batches())


def fitted(policy, optimizer, *data, **options):
    model = initialized_network(policy)
    model.compile(optimizer, LOSS)
    model.fit(*data, verbose=0, **options)
    return model


def by_train_on_batch(policy, optimizer):
    model = initialized_network(policy)
    model.compile(optimizer, LOSS)
    for x, y in batches():
        model.train_on_batch(x, y)
    return model


def loss_of(model):
    return lambda x, y: LOSS(y, model(x, training=True))


def by_minimize(policy, optimizer):
    model = initialized_network(policy)
    loss = loss_of(model)
    for batch in batches():
        optimizer.minimize(loss, model.trainable_variables, *batch)
    return model


def by_gradients(policy, optimizer):
    model = initialized_network(policy)
    loss, variables = loss_of(model), model.trainable_variables
    for batch in batches():
        gradients = optimizer.get_gradients(loss, variables, *batch)
        optimizer.apply_gradients(zip(gradients, variables.values(), strict=True))
    return model


def by_pure_step(policy, optimizer):
    """Call `value_and_grad` and `update` in a jitted function, as `fit` does."""
    model = initialized_network(policy)
    optimizer.build(model.trainable_variables)
    trainable, other = nn.split_variables(model)

    def pure_loss(trainable, other, x, y):
        outputs, after = nn.functional_call(model, trainable | other, x, training=True)
        return LOSS(y, outputs), {path: after[path] for path in other}

    @jax.jit
    def step(state, trainable, other, x, y):
        (_, after), gradients = optimizer.value_and_grad(pure_loss, has_aux=True)(state, trainable, other, x, y)
        return optimizer.update(gradients, state, trainable, after=after, before=other)

    for batch in batches():
        updated = step(optimizer.state, trainable, other, *batch)
        optimizer.state, trainable, other = updated.state, updated.values, updated.alongside
    nn.load_variables(model, trainable | other)
    return model


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["float32", "mixed_bfloat16", pytest.param("mixed_float16", marks=pytest.mark.compiled)]
)
def test_every_way_to_train_gives_the_same_bits(name):
    results, policy = {}, POLICIES[name]
    for way in (by_fit, by_fit_of_batches, by_train_on_batch, by_minimize, by_gradients, by_pure_step):
        optimizer = optimizer_for(policy, Adam(0.02))
        model = way(policy, optimizer)
        results[way.__name__] = values(model), {name: np.asarray(each) for name, each in optimizer.variables.items()}
    skipped = results["by_fit"][1].get("loss_scale/num_skipped_steps", 0)
    assert (skipped > 0) == (policy.loss_scale is not None)
    if xla.OPTIMIZES:
        for tree, like in zip(results.pop("by_gradients"), results["by_fit"], strict=True):
            for path in like:
                # A bias before a batch norm has only rounding error as gradient, and Adam scales it to a full step.
                np.testing.assert_allclose(tree[path], like[path], rtol=1e-3, atol=5e-3, err_msg=path)
    for name, each in results.items():
        differing = [
            path
            for tree, like in zip(each, results["by_fit"], strict=True)
            for path in like
            if not equal(tree[path], like[path])
        ]
        assert not differing, (name, differing)


class TestResuming:
    @pytest.mark.slow
    @pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
    @pytest.mark.parametrize("averaged", [False, True], ids=["", "averaged"])
    def test_gives_the_bits_of_uninterrupted_training(self, policy, averaged, tmp_path):
        def compiled(seed=3):
            layers = [
                nn.Dense(8, dtype=policy),
                nn.BatchNorm(dtype=policy),
                nn.ReLU(dtype=policy),
                nn.Dropout(0.3, dtype=policy),
            ]
            model = Sequential([*layers, nn.Dense(3, dtype=policy)])
            optimizer = Adam(0.02, use_ema=averaged, ema_momentum=0.9)
            model.compile(optimizer, LOSS, ["accuracy"], seed=seed)
            return model

        whole, first, second = compiled(), compiled(), compiled(seed=4)
        whole.fit(X, Y, batch_size=SIZE, epochs=5, verbose=0)
        callback = ModelCheckpoint(tmp_path / "{epoch}.safetensors")
        first.fit(X, Y, batch_size=SIZE, epochs=2, callbacks=callback, verbose=0)
        nn.initialize(second, X[:1], seed=7)
        epoch = second.load_state(tmp_path / "1.safetensors")
        assert epoch == 2
        second.fit(X, Y, batch_size=SIZE, epochs=5, initial_epoch=epoch, verbose=0)
        assert equal(values(second), values(whole))
        saved = [
            {name: np.asarray(each) for name, each in model.optimizer.variables.items()} for model in (whole, second)
        ]
        assert equal(*saved)
        assert second.history.loss == whole.history.loss[6:]
        second.save_state(tmp_path / "second")
        whole.save_state(tmp_path / "whole")
        assert (tmp_path / "second").read_bytes() == (tmp_path / "whole").read_bytes()

    @pytest.mark.slow
    def test_a_mixed_model_from_a_float32_state_and_back(self, tmp_path):
        exact, mixed = (by_fit(Policy(name), Adam(0.02)) for name in ("float32", "mixed_float16"))
        exact.save_state(tmp_path / "exact")
        mixed.save_state(tmp_path / "mixed")
        scale = mixed.optimizer.loss_scale
        scale.loss_scale.assign(64.0)
        mixed.load_state(tmp_path / "exact")
        assert equal(values(mixed), values(exact))
        assert float(scale()) == 64
        assert int(mixed.optimizer.iterations) == int(exact.optimizer.iterations)
        exact.fit(X, Y, verbose=0)
        exact.load_state(tmp_path / "mixed")
        assert "loss_scale/loss_scale" not in exact.optimizer.variables
