"""Measurements of the demonstration's claims."""

import json
from pathlib import Path

import numpy as np
import pytest

from supremum import demo
from supremum.demo.classifier import NARROW_WEIGHTS, REMEDY, SCALE, UNSCALED
from supremum.formats import as_format
from supremum.mixed_precision import Policy

SEEDS = range(5)
UNDERFLOW, DIGITS = demo.CASES["underflow"], demo.CASES["digits"]


@pytest.fixture(scope="module")
def digits():
    return demo.load_digits()


@pytest.fixture(scope="module")
def underflow(digits):
    """The runs of the case, by name."""
    return {
        label: demo.train_classifier(digits, UNDERFLOW, label, seed=0, epochs=UNDERFLOW.epochs)
        for label in UNDERFLOW.runs
    }


@pytest.fixture(scope="module")
def gradients(digits):
    return demo.first_gradients(digits, UNDERFLOW, seed=0)


@pytest.mark.slow  # scikit-learn takes seconds to import, and the examples of the docstrings check most of this
def test_the_digits_have_a_fixed_split(digits):
    assert [len(part) for part in vars(digits).values()] == [1437, 1437, 360, 360]
    assert digits.x_train.shape[1:] == (8, 8, 1)
    assert (digits.x_train.min(), digits.x_train.max()) == (0, 1)
    assert sorted(set(digits.y_test.tolist())) == list(range(10))
    assert (demo.load_digits().y_test == digits.y_test).all()


def test_the_remedy_is_the_policy_that_the_caption_names():
    for case in (UNDERFLOW, DIGITS):
        assert case.runs[REMEDY] == Policy("mixed_float16", SCALE)
    assert UNDERFLOW.runs[UNSCALED] == Policy("mixed_float16", None)
    assert list(DIGITS.runs) == ["float32", REMEDY]


@pytest.mark.slow
@pytest.mark.one_slow_in(5)
@pytest.mark.parametrize("seed", SEEDS)
def test_mixed_precision_reaches_97_percent_within_a_point_of_float32(digits, seed):
    exact, mixed = (
        demo.train_classifier(digits, DIGITS, label, seed=seed, epochs=DIGITS.epochs) for label in DIGITS.runs
    )
    assert min(exact.test_accuracy, mixed.test_accuracy) >= 0.97
    assert abs(exact.test_accuracy - mixed.test_accuracy) <= 0.01
    assert exact.variable_bytes == mixed.variable_bytes  # variables are float32 under both


@pytest.mark.slow
def test_float16_learns_nothing_from_a_small_loss_unless_it_is_scaled(underflow):
    exact, stalled, scaled = (underflow[label] for label in ("float32", UNSCALED, REMEDY))
    assert stalled.moved == 0
    assert stalled.test_accuracy < 0.2
    assert abs(exact.test_accuracy - scaled.test_accuracy) <= 0.01
    assert exact.test_accuracy >= 0.8


@pytest.mark.slow
def test_bfloat16_needs_no_loss_scale(underflow):
    assert underflow["bfloat16"].policy.loss_scale is None
    assert abs(underflow["bfloat16"].test_accuracy - underflow["float32"].test_accuracy) <= 0.01


@pytest.mark.slow
def test_float16_weights_lose_small_steps(underflow):
    """Micikevicius and others, 2017, "Mixed Precision Training", section 3.1."""
    exact, narrow = underflow["float32"], underflow[NARROW_WEIGHTS]
    assert exact.variable_bytes == 2 * narrow.variable_bytes
    assert narrow.test_accuracy < exact.test_accuracy - 0.4
    assert narrow.moved < exact.moved / 2
    # Adam's steps are about as long as the learning rate.
    spacing = np.spacing(np.abs(narrow.initial_weights).astype("float16")).astype("float32")
    moved = narrow.initial_weights != narrow.final_weights
    assert moved[spacing / 2 > 2 * UNDERFLOW.learning_rate].mean() < 0.05
    assert moved[spacing / 2 < UNDERFLOW.learning_rate].mean() > 0.85


@pytest.mark.slow
def test_gradients_of_a_small_loss_underflow_unless_they_are_scaled(gradients):
    assert np.all(gradients > 0)
    assert 0.99 < demo.underflowing(gradients) < 1
    assert demo.underflowing(gradients, SCALE.initial_loss_scale) < 0.01
    assert demo.underflowing(np.float32([2.9e-8, 3.1e-8])) == 0.5
    assert as_format("float16").smallest_subnormal / 2 == pytest.approx(3e-8, rel=0.01)


@pytest.mark.slow
def test_the_caption_has_the_figures_of_the_runs(underflow, gradients):
    caption = demo.underflow_caption(UNDERFLOW, underflow, gradients)
    assert list(caption) == [UNSCALED, REMEDY, "bfloat16", NARROW_WEIGHTS, "the remedy"]
    for label in list(caption)[:-1]:
        assert f" {100 * underflow[label].test_accuracy:.0f} % " in f" {caption[label]} "
    assert f"{100 * underflow[NARROW_WEIGHTS].moved:.0f} % of the weights move" in caption[NARROW_WEIGHTS]
    assert f"{100 * demo.underflowing(gradients):.3g} % of the gradients are below 3e-8" in caption[UNSCALED]


@pytest.mark.slow
def test_the_picture_of_the_readme_shows_the_losses_of_these_runs(underflow):
    measured = json.loads((Path(__file__).parents[2] / "docs/pictures/readme.json").read_text("utf-8"))
    assert measured["runs"].keys() == underflow.keys()
    for label, report in underflow.items():
        steps, losses = demo.smoothed_losses(report.history.loss)
        shown = measured["runs"][label]
        assert measured["steps"][-1] == int(steps[-1])
        assert losses[-1] / UNDERFLOW.weight == pytest.approx(shown["losses"][-1], rel=0.01), label
        assert report.test_accuracy == pytest.approx(shown["test_accuracy"], abs=0.03), label


@pytest.mark.slow
def test_bfloat16_weights_lose_small_steps_unless_the_optimizer_keeps_them(digits):
    case = demo.CASES["master-weights"]
    assert {case.runs[label].name for label in case.narrow_weights} == {"bfloat16"}
    runs = {label: demo.train_classifier(digits, case, label, seed=0, epochs=75) for label in case.runs}
    exact, lost, stochastic, kahan, master = runs.values()
    assert [round(report.bytes_per_parameter, 2) for report in runs.values()] == [4, 2, 2, 4, 6]
    assert lost.test_accuracy < exact.test_accuracy - 0.3
    for kept in (stochastic, kahan, master):
        assert abs(kept.test_accuracy - exact.test_accuracy) <= 0.03
