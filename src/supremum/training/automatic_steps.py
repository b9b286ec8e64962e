"""The choice between single steps and several in one dispatch, for `steps_per_execution="auto"`."""

from __future__ import annotations

from statistics import median
from typing import Any

import jax
import numpy as np

from supremum.errors import UnsupportedJaxError
from supremum.jaxprs import walk

SEVERAL = 16
"""How many steps `"auto"` tries in one dispatch."""

_MEASURED = 4
"""How many dispatches of one step are measured, after the one that compiles."""

_LONGEST = 0.5
"""The longest dispatch of several steps, in seconds: Ctrl-C, `stop_training` and the progress bar wait for its end."""

_PAYBACK = 4.0
"""How many times longer than a compilation the steps must take, since sending several saves about a quarter at best."""

_MOST_BYTES = 2**28
"""The largest total size of the batches of a dispatch."""


class AutomaticSteps:
    """Decide for one compiled step whether several of them are sent at once.

    Single steps are measured first. If compiling several could pay, several are tried on copies of the carry. They are
    used if they were faster, and if the same steps, sent one by one, then lead to the same bits.

    Attributes:
        chosen: how many steps to send at once; None until that is known.
        taken: how many steps were sent alone, which is also how many more may follow in later calls of `fit`.

    >>> steps = AutomaticSteps()
    >>> for seconds in (1.0, 0.01, 0.01, 0.01, 0.01):
    ...     steps.add_single(seconds, {"loss": np.zeros(2)})
    >>> (
    ...     steps.should_try(left=100, to_come=100),
    ...     steps.should_try(left=100, to_come=10000),
    ... )
    (False, True)
    >>> steps.add_trial(0.1, {"loss": np.ones(2)})
    >>> for number in range(SEVERAL):
    ...     steps.add_single(0.01, {"loss": np.ones(2)})
    >>> steps.chosen
    16
    """

    def __init__(self) -> None:
        self.chosen: int | None = None
        self.taken = 0
        self._seconds: list[float] = []
        self._expected: Any = None
        self._left_to_compare = 0

    def add_single(self, seconds: float, carry: Any) -> None:
        """Add a step that was sent alone.

        Args:
            seconds: its time.
            carry: the values after it.
        """
        self._seconds.append(seconds)
        if len(self._seconds) > _MEASURED and SEVERAL * self._single() > _LONGEST:
            self.chosen = 1
        if self._left_to_compare:
            self._left_to_compare -= 1
            if not self._left_to_compare:
                self.chosen = SEVERAL if _has_same_bits(carry, self._expected) else 1
                self._expected = None

    @property
    def is_measuring(self) -> bool:
        """Whether the next single step must be added."""
        return self.chosen is None and (len(self._seconds) <= _MEASURED or self._left_to_compare > 0)

    def should_try(self, left: int, to_come: int) -> bool:
        """Whether to try several steps now.

        Args:
            left: how many steps of the same size are left in this epoch.
            to_come: how many steps are left in all epochs of this `fit`.
        """
        if self.chosen is not None or self.is_measuring or left < SEVERAL:
            return False
        return (self.taken + to_come) * self._single() > _PAYBACK * self._seconds[0]

    def add_trial(self, seconds: float, carry: Any) -> None:
        """Add a dispatch of several steps.

        Args:
            seconds: its time, without compilation.
            carry: the values after it; the same steps are now expected one by one.
        """
        if seconds < SEVERAL * self._single():
            self._expected, self._left_to_compare = carry, SEVERAL
        else:
            self.chosen = 1

    def _single(self) -> float:
        return median(self._seconds[1 : _MEASURED + 1])  # the first includes compilation


def can_try(jaxpr: Any, batches: Any) -> bool:
    """Whether nothing but time differs between several steps in a dispatch and single ones, and memory suffices.

    Args:
        jaxpr: the jaxpr of the dispatch.
        batches: the arrays that it gets in addition to those of a single step.
    """
    return sum(leaf.nbytes for leaf in jax.tree.leaves(batches)) <= _MOST_BYTES and not calls_python(jaxpr)


def calls_python(jaxpr: Any) -> bool:
    """Whether a program has effects or calls functions of Python, or may do so."""
    if jaxpr.effects:
        return True
    try:
        return any("callback" in site.equation.primitive.name for site in walk(jaxpr))
    except UnsupportedJaxError:
        return True


def is_debugging() -> bool:
    """Whether JAX looks for NaN or inf after each operation, or runs without jit."""
    config: Any = jax.config
    return config.jax_debug_nans or config.jax_debug_infs or config.jax_disable_jit


def _has_same_bits(one: Any, other: Any) -> bool:
    values = zip(*map(jax.tree.leaves, jax.device_get((one, other))), strict=True)
    return all(np.asarray(a).tobytes() == np.asarray(b).tobytes() for a, b in values)
