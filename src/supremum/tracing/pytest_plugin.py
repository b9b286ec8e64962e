"""A pytest fixture; `pytest_plugins = ["supremum.tracing.pytest_plugin"]` in a conftest.py enables it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from supremum.tracing.baseline import Baseline
from supremum.tracing.forbid import Allowed, forbid_casts


@pytest.fixture(name="forbid_casts")
def forbid_casts_fixture() -> Callable[..., Any]:
    """A function that calls another and raises if it casts: `forbid_casts(step, state, batch)`.

    `kinds=`, `allow=` and `baseline=` work as in `supremum.tracing.forbid_casts`; the other arguments go to the
    function.
    """

    def call(
        function: Callable[..., Any],
        *args: Any,
        kinds: Iterable[str] = ("promotion",),
        allow: Allowed | Iterable[Allowed] = (),
        baseline: Baseline | str | os.PathLike[str] | None = None,
        **kwargs: Any,
    ) -> Any:
        return forbid_casts(*kinds, allow=allow, baseline=baseline)(function)(*args, **kwargs)

    return call
