"""Mark test parameters and examples as slow: `make test` runs a few parameters, `.ci/run` runs all."""

import pytest

LONG_EXAMPLES = {
    "supremum.demo.digits.Digits", "supremum.demo.figures.draw_underflow", "supremum.demo.underflow.first_gradients",
    "supremum.mixed_precision.weight_storage.rounding.rounded",
    "supremum.mixed_precision.scaled_gradients.ScaledGradients",
    "supremum.mixed_precision.weight_storage.memory.weight_memory",
    "supremum.mixed_precision.weight_storage.moments.BlockScaled",
    "supremum.mixed_precision.weight_storage.transformation.NarrowStep", "supremum.nn.donation.Donation",
    "supremum.nn.layers.attention.MultiHeadAttention", "supremum.nn.layers.bidirectional.Bidirectional",
    "supremum.nn.layers.normalization.GroupNorm", "supremum.nn.layers.recurrent.RNN",
    "supremum.nn.losses.collected_losses", "supremum.nn.network.Network", "supremum.numerics.attribution.attribute",
    "supremum.numerics.attribution_report.Attribution", "supremum.numerics.rounding.rounded",
    "supremum.numerics.watching.watch", "supremum.training.callbacks.callback.Callback",
    "supremum.training.callbacks.numerics_monitor.NumericsMonitor",
    "supremum.training.callbacks.tensorboard.TensorBoard",
    "supremum.training.losses.cross_entropy.CategoricalCrossentropy",
    "supremum.training.losses.cross_entropy.SparseCategoricalCrossentropy", "supremum.training.model.Sequential",
}  # fmt: skip
"""Examples in docstrings that train or compile for long. They are slow, because fast tests run the same code."""


def mostly_slow(values, *fast):
    """Mark all parameters as slow, except the given fast ones.

    Args:
        values: the parameters.
        fast: the parameters that `make test` runs too; each must be one of `values`.
    """
    values = list(values)
    missing = [each for each in fast if each not in values]
    assert not missing, f"not among the parameters: {missing}"
    return [value if value in fast else pytest.param(value, marks=pytest.mark.slow) for value in values]


def slow(*values, **options):
    """Mark a set of parameters that `make test` leaves out."""
    return pytest.param(*values, marks=pytest.mark.slow, **options)
