"""Tells whether XLA optimizes as it does for users; only `make test-xla` keeps its default flags."""

import os

OPTIMIZES = os.environ.get("SUPREMUM_XLA", "") == "default"
"""If true, programs that are compiled separately can differ in the last bit from one combined program."""
