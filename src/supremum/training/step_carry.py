"""The carry: the values that one step passes to the next."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeAlias

import jax

from supremum.training.interrupts import Interrupts


class KeptCarry:
    """A carry whose memory steps do not reuse.

    Args:
        value: the input of the first step.

    >>> carry = KeptCarry(1)
    >>> carry.step(lambda value: (value + 1, "other results"))
    (2, 'other results')
    >>> carry.value
    2
    """

    def __init__(self, value: Any) -> None:
        self.value = value

    def step(self, run: Callable[[Any], tuple[Any, ...]]) -> tuple[Any, ...]:
        """Run a step, and keep the next value.

        Args:
            run: a function of the value; its first result is the next value.

        Returns:
            The results.
        """
        results = run(self.value)
        self.value = results[0]
        return results


class DonatedCarry:
    """A carry whose memory each step may reuse.

    Once a step reuses the memory, only the values that it returns exist. Ctrl-C waits until they are kept, as do other
    threads that take the lock. Before that, while a step is traced and compiled, Ctrl-C acts at once.

    Args:
        take: returns the values, to which there must be no other reference.
        keep: stores the next values.
        interrupts: delays Ctrl-C.
        lock: held by other threads while they read the values.
    """

    def __init__(
        self, take: Callable[[], Any], keep: Callable[[Any], None], interrupts: Interrupts, lock: threading.RLock
    ) -> None:
        self._take, self._keep = take, keep
        self._interrupts, self._lock = interrupts, lock
        self._donated: Any = None
        self._is_running = False

    def step(self, run: Callable[[Any], tuple[Any, ...]]) -> tuple[Any, ...]:
        """Run a step, and keep the next values, as `KeptCarry.step` does."""
        self._interrupts.enter(self._must_wait)
        try:
            with self._lock:
                self._donated = self._take()
                self._is_running = True
                results = run(self._donated)
                self._is_running = False
                self._keep(results[0])
            return results
        except Exception as error:
            if self._is_lost():
                error.add_note(
                    "The step failed after it took over the memory of the model's values, so they are lost. Restore "
                    "them with model.load_state(path), or with model.compile(...) and model.load_weights(path)."
                )
            raise
        finally:
            self._is_running, self._donated = False, None
            self._interrupts.leave()

    def _must_wait(self) -> bool:
        return not self._is_running or self._is_lost()

    def _is_lost(self) -> bool:
        return any(leaf.is_deleted() for leaf in jax.tree.leaves(self._donated))


Carry: TypeAlias = KeptCarry | DonatedCarry
