"""The pytest fixture `forbid_casts`, for a conftest.py from before pytest found it by itself."""

from __future__ import annotations

from supremum_pytest import forbid_casts_fixture as forbid_casts_fixture
