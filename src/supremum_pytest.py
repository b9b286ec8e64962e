"""The pytest plugin of Supremum: the fixture `forbid_casts`.

Pytest loads every installed plugin at each start, so this module is outside of the package: loading it imports neither
Supremum nor JAX.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    import os

    from supremum.tracing.baseline import Baseline
    from supremum.tracing.forbid import Allowed


@pytest.fixture(name="forbid_casts")
def forbid_casts_fixture() -> Callable[..., Any]:
    """A function that calls another and raises if it casts: `forbid_casts(step, state, batch)`.

    `kinds=`, `allow=` and `baseline=` work as in `supremum.tracing.forbid_casts`; the other arguments go to the
    function.
    """
    from supremum.tracing import forbid_casts  # needs JAX, and only tests that use the fixture wait for it

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
