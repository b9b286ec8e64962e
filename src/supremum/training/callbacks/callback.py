"""Callbacks, the list of all callbacks of one run, and the logs that they get after a batch."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from operator import length_hint, methodcaller
from typing import Any, NoReturn, TypeVar

from supremum import nn
from supremum.errors import ArgumentError, OperandError, shown


class Callback:
    """Called at each stage of training, evaluation and prediction; a method does nothing unless it is overridden.

    `logs` are numbers by name. The logs of a batch are fetched from the device when they are read, which waits for the
    step. With several steps in one dispatch, batch methods are called once, for the last step.

    Attributes:
        model: the `Model` or `Sequential` in training; `model.stop_training = True` ends training after the batch.

    >>> import numpy as np
    >>> from supremum import nn, training
    >>> class StopBelow(training.Callback):
    ...     def on_epoch_end(self, epoch, logs):
    ...         self.model.stop_training = logs["loss"] < 0.5
    >>> model = training.Sequential([nn.Dense(1)])
    >>> model.compile("sgd", "mse")
    >>> x, y = np.ones((64, 3), "float32"), np.ones((64, 1), "float32")
    >>> history = model.fit(x, y, epochs=50, callbacks=StopBelow(), verbose=0)
    >>> len(history.epoch) < 50, history.history["loss"][-1] < 0.5
    (True, True)
    """

    model: Any

    def set_model(self, model: nn.Network) -> None:
        """Set the model, before any other method is called.

        Args:
            model: the model.
        """
        self.model = model

    def on_train_begin(self) -> None:
        """Called before the first epoch."""

    def on_epoch_begin(self, epoch: int) -> None:
        """Called before an epoch.

        Args:
            epoch: its number, from 0.
        """

    def on_train_batch_begin(self, batch: int) -> None:
        """Called before each dispatch.

        Args:
            batch: the number of the first batch in it, from 0 in each epoch.
        """

    def on_train_batch_end(self, batch: int, logs: Mapping[str, float]) -> None:
        """Called after each dispatch.

        Args:
            batch: the number of the last batch in it, from 0 in each epoch.
            logs: the loss and the metrics of the epoch so far.
        """

    def on_epoch_end(self, epoch: int, logs: dict[str, float]) -> None:
        """Called after an epoch and its validation.

        Args:
            epoch: its number, from 0.
            logs: the loss and the metrics of the epoch. Numbers that a callback adds are also in the logs of the
                callbacks after it, and in the history.
        """

    def on_train_end(self) -> None:
        """Called after the last epoch, and also when training is stopped or fails."""

    def on_test_begin(self) -> None:
        """Called before an evaluation, including the validation in `fit`."""

    def on_test_batch_begin(self, batch: int) -> None:
        """Called before each batch of an evaluation.

        Args:
            batch: its number, from 0.
        """

    def on_test_batch_end(self, batch: int, logs: Mapping[str, float]) -> None:
        """Called after each batch of an evaluation.

        Args:
            batch: its number, from 0.
            logs: the loss and the metrics so far.
        """

    def on_test_end(self, logs: Mapping[str, float]) -> None:
        """Called after an evaluation.

        Args:
            logs: the loss and the metrics.
        """

    def on_predict_begin(self) -> None:
        """Called before the first batch of `predict`."""

    def on_predict_batch_begin(self, batch: int) -> None:
        """Called before each batch of `predict`.

        Args:
            batch: its number, from 0.
        """

    def on_predict_batch_end(self, batch: int) -> None:
        """Called after each batch of `predict`.

        Args:
            batch: its number, from 0.
        """

    def on_predict_end(self) -> None:
        """Called after the last batch of `predict`."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


C = TypeVar("C", bound=Callback)


class LambdaCallback(Callback):
    """Call a function after each epoch.

    Args:
        function: a function of the epoch's number and its logs.

    >>> import numpy as np
    >>> from supremum import nn, training
    >>> model = training.Sequential([nn.Dense(1)])
    >>> model.compile("sgd", "mse")
    >>> x, y = np.ones((8, 3), "float32"), np.ones((8, 1), "float32")
    >>> writes = training.LambdaCallback(lambda epoch, logs: print(epoch, *logs))
    >>> _ = model.fit(x, y, epochs=2, callbacks=writes, verbose=0)
    0 loss
    1 loss
    """

    def __init__(self, function: Callable[[int, Mapping[str, float]], Any]) -> None:
        self._function = function

    def on_epoch_end(self, epoch: int, logs: Mapping[str, float]) -> None:
        """Call the function."""
        self._function(epoch, logs)


class BatchLogs(Mapping[str, float]):
    """Numbers by name, fetched once, on first use.

    Args:
        fetch: returns the numbers.
    """

    def __init__(self, fetch: Callable[[], dict[str, float]]) -> None:
        self._fetch = fetch

    def expire(self) -> None:
        """Stop fetching, because the next step reuses the memory."""
        self._fetch = _refuse_to_fetch

    @cached_property
    def _numbers(self) -> dict[str, float]:
        return self._fetch()

    def __getitem__(self, name: str) -> float:
        return self._numbers[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._numbers)

    def __len__(self) -> int:
        return len(self._numbers)

    def __repr__(self) -> str:
        return repr(self._numbers)


def _overrides(callback: Callback, event: str) -> bool:
    return getattr(getattr(callback, event), "__func__", None) is not getattr(Callback, event)


def _refuse_to_fetch() -> NoReturn:
    raise ArgumentError("these logs belong to a batch that has ended; read them in the callback, or keep dict(logs)")


class CallbackList:
    """A list of callbacks; `on_train_end` of each is called even if others fail or the user presses Ctrl-C.

    Args:
        callbacks: the callbacks, in the order in which they are called.

    >>> class Printer(Callback):
    ...     def on_train_end(self):
    ...         print("training has ended")
    >>> callbacks = CallbackList([Printer()])
    >>> callbacks.end_training(None)
    training has ended
    >>> callbacks.end_training(None)  # nobody is left
    """

    def __init__(self, callbacks: Sequence[Callback] = ()) -> None:
        self._callbacks = callbacks
        self._on_batch_end = {
            event: [each for each in callbacks if _overrides(each, event)]
            for event in ("on_train_batch_end", "on_test_batch_end")
        }
        # C code takes a callback and calls it at once, so that no exception from a signal handler can come in between.
        self._left = iter(callbacks)
        self._endings = map(methodcaller("on_train_end"), self._left)

    def of_class(self, kind: type[C]) -> list[C]:
        """Return the callbacks of a class.

        Args:
            kind: the class.
        """
        return [each for each in self._callbacks if isinstance(each, kind)]

    def call(self, event: str, *values: object) -> None:
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

    def end_training(self, failure: BaseException | None) -> None:
        """Call `on_train_end` of each callback that is left; a second call goes on where an interrupted one stopped.

        Args:
            failure: the error that ended training, if any; errors of callbacks are added to it as notes.

        Raises:
            BaseException: the first error of a callback, after all were called, if training itself did not fail.
        """
        first = failure
        while (error := self._end_until_error()) is not None:
            if first is None:
                first = error
            else:
                callback = self._callbacks[len(self._callbacks) - length_hint(self._left) - 1]
                first.add_note(f"{type(callback).__name__}.on_train_end failed as well: {shown(error)}")
        if first is not failure and first is not None:
            raise first

    def _end_until_error(self) -> BaseException | None:
        try:
            deque(self._endings, maxlen=0)
        except BaseException as error:  # including Ctrl-C: call the other callbacks first
            return error
        return None


def as_callbacks(callbacks: Callback | Callable[..., Any] | Sequence[Any]) -> list[Callback]:
    """Convert the `callbacks` of `fit`, one or several `Callback`s or functions of epoch and logs, to a list.

    Raises:
        OperandError: for an object that is not callable; a `TypeError`.
    """
    several: Iterable[Any] = callbacks if isinstance(callbacks, (list, tuple)) else [callbacks]
    for each in several:
        if isinstance(each, type) or not (isinstance(each, Callback) or callable(each)):
            raise OperandError(f"a callback must be a Callback or a function of epoch and logs, got {shown(each)}")
    return [each if isinstance(each, Callback) else LambdaCallback(each) for each in several]
