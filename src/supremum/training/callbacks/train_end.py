"""The end of a training, which all callbacks are told of."""

from __future__ import annotations

from collections.abc import Sequence

from supremum.errors import shown
from supremum.training.callbacks.callbacks import Callback


class Ending:
    """Tells every callback that training has ended, whatever the others make of it, and whenever Ctrl-C comes.

    Args:
        callbacks: all of them.

    Attributes:
        has_begun: whether Ctrl-C has to wait. Set it before any call is made: after one Ctrl-C could act.

    >>> class Watching(Callback):
    ...     def on_train_end(self):
    ...         print("it has ended")
    >>> ending = Ending([Watching()])
    >>> ending.has_begun = True
    >>> ending.holds_back()
    True
    >>> ending.tell(None)
    it has ended
    """

    def __init__(self, callbacks: Sequence[Callback]) -> None:
        self._callbacks = callbacks
        self._is_in_callback = False
        self.has_begun = False

    def holds_back(self) -> bool:
        """Whether Ctrl-C has to wait: in all that is done here, but not in what a callback does."""
        return self.has_begun and not self._is_in_callback

    def tell(self, failure: BaseException | None) -> None:
        """Tell every callback.

        Args:
            failure: why training ended, if it failed; errors of callbacks are noted on it.

        Raises:
            BaseException: the first error of a callback, where training did not fail, once all were told.
        """
        first = failure
        for callback in self._callbacks:
            error = self._failure_of(callback)
            if first is None:
                first = error
            elif error is not None:
                first.add_note(f"{type(callback).__name__}.on_train_end failed as well: {shown(error)}")
        if first is not failure and first is not None:
            raise first

    def _failure_of(self, callback: Callback) -> BaseException | None:
        try:
            self._is_in_callback = True
            callback.on_train_end()
        except BaseException as error:  # Ctrl-C too: the others are told first
            return error
        finally:
            self._is_in_callback = False
        return None
