"""Measurements of the demonstration's claims."""

import pytest

from supremum import demo
from supremum.demo.classifier import SCALE, demonstration_policy
from supremum.errors import ArgumentError
from supremum.mixed_precision import Policy

SEEDS = range(5)


@pytest.fixture(scope="module")
def digits():
    return demo.load_digits()


def train(digits, case, policy, scale, seed, epochs=None):
    chosen = demo.CASES[case]
    settings = demonstration_policy(policy, scale)
    return demo.train_classifier(
        digits, settings, chosen, seed=seed, epochs=epochs or chosen.epochs, weight=chosen.weight
    )


def test_the_digits_have_a_fixed_split(digits):
    assert [len(part) for part in vars(digits).values()] == [1437, 1437, 360, 360]
    assert digits.x_train.shape[1:] == (8, 8, 1)
    assert (digits.x_train.min(), digits.x_train.max()) == (0, 1)
    assert sorted(set(digits.y_test.tolist())) == list(range(10))
    assert (demo.load_digits().y_test == digits.y_test).all()


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_every_policy_reaches_97_percent_within_a_point_of_the_others(digits, seed):
    reports = [train(digits, "policies", policy, scale, seed) for policy, scale in demo.CASES["policies"].runs]
    accuracies = [report.test_accuracy for report in reports]
    assert [report.policy.name for report in reports] == ["float32", "mixed_bfloat16", "mixed_float16"]
    assert min(accuracies) >= 0.97
    assert max(accuracies) - min(accuracies) <= 0.01
    assert len({report.variable_bytes for report in reports}) == 1  # variables are float32 under all three


@pytest.mark.slow
def test_float16_needs_loss_scaling_to_train_on_a_small_loss(digits):
    exact, stalled, scaled = (train(digits, "underflow", *run, seed=0) for run in demo.CASES["underflow"].runs)
    assert [report.label for report in (exact, stalled, scaled)] == [
        "float32",
        "mixed_float16, unscaled",
        "mixed_float16",
    ]
    assert stalled.test_accuracy < 0.3
    assert min(stalled.history.loss[-22:]) > 0.5 * stalled.history.loss[0]
    assert abs(exact.test_accuracy - scaled.test_accuracy) <= 0.01
    assert exact.test_accuracy >= 0.97


@pytest.mark.slow
def test_float16_weights_lose_small_steps(digits):
    """Micikevicius and others, 2017, "Mixed Precision Training", section 3.1."""
    runs = demo.CASES["master-weights"].runs
    exact, mixed, narrow = (train(digits, "master-weights", *run, seed=0, epochs=250) for run in runs)
    assert [report.label for report in (exact, mixed, narrow)] == ["float32", "mixed_float16", "float16"]
    assert exact.variable_bytes == mixed.variable_bytes == 2 * narrow.variable_bytes
    assert abs(exact.test_accuracy - mixed.test_accuracy) <= 0.01
    assert exact.test_accuracy > 0.8
    assert narrow.test_accuracy < exact.test_accuracy - 0.25
    assert narrow.history.skipped_steps == 0


@pytest.mark.slow
def test_smaller_weights_give_more_zeros_unless_scaled(digits):
    found = demo.measure_underflow(digits, weight=1e-6)
    assert set(found.layers) == {"conv", "conv_1", "batch_norm", "batch_norm_1", "dense"}
    assert found.weights[1.0].float16 == 0
    shares = [shares.float16 for shares in found.weights.values()]
    assert list(found.weights) == sorted(demo.UNDERFLOW_WEIGHTS, reverse=True)
    assert shares == sorted(shares)
    assert shares[-1] == 1
    assert 0 < found.weights[1e-5].float16 < 0.2
    assert all(s.float32 == 0 and s.float16_scaled < 0.01 for s in (*found.layers.values(), *found.weights.values()))


def test_demonstration_policies_scale_fast_and_wrong_ones_raise():
    assert demonstration_policy("mixed_float16", "auto").loss_scale == SCALE
    assert demonstration_policy("mixed_float16", None).loss_scale is None
    assert demonstration_policy("float32", "auto") == Policy("float32")
    with pytest.raises(ArgumentError, match="The policy of the demonstration must be one of"):
        demonstration_policy("int32", "auto")
