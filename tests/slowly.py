"""Choose the parameters with which a test is fast, slow or exhaustive, and run many of them in one item."""

import functools
import inspect

import pytest

import memory

SHOWN = 20
"""How many failed cases `for_each` shows."""
LONG_EXAMPLES = {
    "supremum.demo.digits.Digits", "supremum.demo.underflow.first_gradients",
    "supremum.mixed_precision.weight_storage.rounding.rounded",
    "supremum.mixed_precision.scaled_gradients.ScaledGradients",
    "supremum.mixed_precision.weight_storage.memory.weight_memory",
    "supremum.mixed_precision.weight_storage.moments.BlockScaled",
    "supremum.mixed_precision.weight_storage.transformation.NarrowStep", "supremum.nn.donation.Donation",
    "supremum.nn.layers.attention.MultiHeadAttention", "supremum.nn.layers.bidirectional.Bidirectional",
    "supremum.nn.layers.normalization.GroupNorm", "supremum.nn.layers.recurrent.RNN",
    "supremum.nn.losses.collected_losses", "supremum.nn.network.Network", "supremum.numerics.attribution.attribute",
    "supremum.numerics.attribution_report.Attribution", "supremum.numerics.rounding.round_to",
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


def exhaustive(*values, **options):
    """Mark a set of parameters that only `make exhaustive` runs."""
    return pytest.param(*values, marks=pytest.mark.exhaustive, **options)


def for_each(names, values, *, one_in=1, one_slow_in=1):
    """Decorate a test that is called once for each value, in one item for all fast, slow or exhaustive values.

    An item fails if the test fails for any value, and names all such values. It is skipped if the test is for all.

    >>> @for_each("number", [1, 2])
    ... def test_numbers_are_small(number):
    ...     assert number < 3

    Args:
        names: the parameters that get a value, separated by commas.
        values: the values; tuples if there are several parameters.
        one_in: every nth value is fast, the others are slow or exhaustive; 0 if none is fast.
        one_slow_in: every nth of the others is slow; 0 if none is slow.
    """
    names = [name.strip() for name in names.split(",")]

    def decorate(test):
        @functools.wraps(test)
        def run(share, **others):
            failed, skipped, errors = [], [], []
            for value in share:
                given = dict(zip(names, value if len(names) > 1 else [value], strict=True))
                try:
                    test(**given, **others)
                except pytest.skip.Exception as reason:
                    skipped.append(str(reason))
                except (Exception, pytest.fail.Exception) as error:
                    failed.append(f"{value}: {type(error).__name__}: {str(error)[:1000]}")
                    errors.append(error)
                memory.give_back()
            if failed:
                text = "\n".join([f"{len(failed)} of {len(share)} cases failed:", *failed[:SHOWN]])
                raise AssertionError(text) from errors[0]
            if len(skipped) == len(share):
                pytest.skip(skipped[0])

        kept = [each for name, each in inspect.signature(test).parameters.items() if name not in names]
        share = inspect.Parameter("share", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        run.__signature__ = inspect.Signature([share, *kept])
        return pytest.mark.parametrize("share", _shares(values, one_in, one_slow_in))(run)

    return decorate


def _every(n, values):
    """Split values into every nth, and all others; with 0 all are others."""
    return values[::n] if n else [], [value for at, value in enumerate(values) if not n or at % n]


def _shares(values, one_in, one_slow_in):
    """Split values into one set of parameters for each group of tests that has some."""
    fast, others = _every(one_in, list(values))
    some, rest = _every(one_slow_in, others)
    whole = pytest.mark.one_slow_in(1)  # of the sets of parameters, which are few
    marks = {
        "fast" if others else "all": (fast, [whole] if others else ()),
        "slow": (some, [pytest.mark.slow, whole]),
        "exhaustive": (rest, [pytest.mark.exhaustive]),
    }
    return [pytest.param(share, id=name, marks=of) for name, (share, of) in marks.items() if share]
