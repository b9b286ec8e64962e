"""Whether XLA optimizes as it does for users: only `make test-xla` keeps the default XLA flags."""

import os

OPTIMIZES = os.environ.get("SUPREMUM_XLA", "") == "default"
"""If true, programs that are compiled separately can differ in the last bit from one combined program."""
