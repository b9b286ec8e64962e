"""Parameters of tests, of which `make test` takes a few and `make test-all` all."""

import pytest


def mostly_slow(values, *fast):
    """Mark all parameters slow but those that are named.

    Args:
        values: the parameters.
        fast: those that `make test` takes, too; each must be one of the parameters.
    """
    values = list(values)
    missing = [each for each in fast if each not in values]
    assert not missing, f"not among the parameters: {missing}"
    return [value if value in fast else pytest.param(value, marks=pytest.mark.slow) for value in values]


def slow(*values, **options):
    """One set of parameters that only `make test-all` takes."""
    return pytest.param(*values, marks=pytest.mark.slow, **options)
