"""Whether XLA optimizes as it does for users: `make test-xla` leaves its flags alone, the other tests do not."""

import os

OPTIMIZES = os.environ.get("SUPREMUM_XLA", "") == "default"
"""Then programs that are compiled apart may differ in the last bit from one that does the same at once."""
