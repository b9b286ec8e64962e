"""All callbacks of one run, called together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from supremum.errors import OperandError, shown
from supremum.training.callbacks.batch_logs import BatchLogs
from supremum.training.callbacks.callback import Callback, LambdaCallback


class CallbackList:
    """A list of callbacks; `on_train_end` of each is called even if others fail or the user presses Ctrl-C.

    Args:
        callbacks: the callbacks, in the order in which they are called.

    Attributes:
        is_ending: whether Ctrl-C must wait. Set it before calling `end_training`; setting it inside would leave a gap
            in which Ctrl-C acts.

    >>> class Printer(Callback):
    ...     def on_train_end(self):
    ...         print("training has ended")
    >>> callbacks = CallbackList([Printer()])
    >>> callbacks.is_ending = True
    >>> callbacks.holds_interrupts_back()
    True
    >>> callbacks.end_training(None)
    training has ended
    """

    def __init__(self, callbacks: Sequence[Callback] = ()) -> None:
        self._callbacks = callbacks
        self._on_batch_end = {
            event: [each for each in callbacks if getattr(type(each), event) is not getattr(Callback, event)]
            for event in ("on_train_batch_end", "on_test_batch_end")
        }
        self._is_in_callback = False
        self.is_ending = False

    def call(self, event: str, *values: Any) -> None:
        """Call a method of each callback.

        Args:
            event: the name of the method.
            values: its arguments.
        """
        for callback in self._callbacks:
            getattr(callback, event)(*values)

    def call_after_batch(self, event: str, batch: int, fetch: Callable[[], dict[str, float]]) -> None:
        """Call a method of the callbacks that override it, with logs that are fetched when a callback reads them.

        Args:
            event: the name of the method, `"on_train_batch_end"` or `"on_test_batch_end"`.
            batch: the number of the batch.
            fetch: returns the logs.
        """
        if watching := self._on_batch_end[event]:
            logs = BatchLogs(fetch)
            for callback in watching:
                getattr(callback, event)(batch, logs)
            logs.expire()

    def holds_interrupts_back(self) -> bool:
        """Whether Ctrl-C must wait: while training ends, but not while a callback runs."""
        return self.is_ending and not self._is_in_callback

    def end_training(self, failure: BaseException | None) -> None:
        """Call `on_train_end` of each callback.

        Args:
            failure: the error that ended training, if any; errors of callbacks are added to it as notes.

        Raises:
            BaseException: the first error of a callback, after all were called, if training itself did not fail.
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
        except BaseException as error:  # including Ctrl-C: call the other callbacks first
            return error
        finally:
            self._is_in_callback = False
        return None


def as_callbacks(callbacks: Any) -> list[Callback]:
    """Convert the `callbacks` of `fit`, one or several `Callback`s or functions of epoch and logs, to a list.

    Raises:
        OperandError: for an object that is not callable; a `TypeError`.
    """
    given: Iterable[Any] = callbacks if isinstance(callbacks, (list, tuple)) else [callbacks]
    made: list[Callback] = []
    for each in given:
        if isinstance(each, type) or not (isinstance(each, Callback) or callable(each)):
            raise OperandError(f"a callback must be a Callback or a function of epoch and logs, got {shown(each)}")
        made.append(each if isinstance(each, Callback) else LambdaCallback(each))
    return made
