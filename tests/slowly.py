"""Mark test parameters as slow: `make test` runs a few parameters, `.ci/run` runs all."""

import pytest


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
