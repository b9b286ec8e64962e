"""The training loop over batches, with an optimizer, a loss and metrics; its state is saved to checkpoints."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Generator, Hashable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from supremum.argument_checks import instance
from supremum.errors import ArgumentError, ModelInUseError, shown
from supremum.nn import Donation, UninitializedError, has_weights
from supremum.optimizers import Optimizer
from supremum.training.callbacks import CallbackList, History, NumericsMonitor
from supremum.training.checkpoints import Checkpoint, fit_values, load_optimizer, load_resumable
from supremum.training.data import Batch, Data
from supremum.training.default_loss_scale import SkippedSteps, with_loss_scale
from supremum.training.distributed import DataParallel
from supremum.training.donated_carry import DonatedCarry
from supremum.training.evaluation import Evaluator
from supremum.training.last_finite import LastFinite
from supremum.training.measured_step import StepMeasurement
from supremum.training.step import CAPACITY, StepLog, TrainState, TrainStep, place_state, scaling_of, step_of
from supremum.training.step_execution import Execution

# The attributes that a pickle or copy contains; `_compile` creates the others again.
_PICKLED = ("_own_step", "_steps_per_execution", "_warn_after", "epoch", "evaluator", "optimizer")


_RESULT = "the state after the step, such as super().train_step(state, batch)"


@dataclass(frozen=True, slots=True)
class TrainingRun:
    """What one call of `fit` trains with.

    Args:
        data: the batches.
        epochs: the numbers of the epochs.
        shuffle: whether to shuffle arrays anew in each epoch.
        callbacks: called at each stage.
        validate: a function of the epoch's number that returns the results of validation.
        should_stop: called before each epoch and after each dispatch; training ends if it returns True.
        history: receives losses, metrics and times.
    """

    data: Data
    epochs: range = range(1)
    shuffle: bool = False
    callbacks: CallbackList = field(default_factory=CallbackList)
    validate: Callable[[int], Mapping[str, float]] = lambda _: {}
    should_stop: Callable[[], bool] = lambda: False
    history: History = field(default_factory=History)


class Trainer:
    """Train a model.

    Args:
        evaluator: evaluates and predicts with the model, the loss and the metrics to train with.
        optimizer: the optimizer; it is wrapped if the model needs a loss scale.
        steps_per_execution: how many steps are sent to the device at once, as for `Model.compile`.
        warn_after: how many steps in a row may be skipped with the loss scale at its floor before a warning; None for
            no warning.
        own_step: takes the place of `step`, which it may call; None for `step` itself.

    Attributes:
        step: the pure training step of the model, the loss, the optimizer and the metrics.
        count: how many steps were taken, including skipped ones.
        epoch: the number of the next epoch.
        evaluator: the given evaluator.
    """

    def __init__(
        self,
        evaluator: Evaluator,
        optimizer: Optimizer,
        steps_per_execution: int,
        warn_after: int | None,
        own_step: Callable[[TrainState, Batch], TrainState] | None = None,
    ) -> None:
        self.evaluator = evaluator
        self._own_step = own_step
        self.optimizer = with_loss_scale(evaluator.model, optimizer)
        self._key = jax.random.key_data(jax.random.key(evaluator.seed))
        self.count: jax.Array = jnp.zeros((), jnp.int32)
        self.epoch: int = 0
        self._steps_per_execution, self._warn_after = steps_per_execution, warn_after
        self._compile()

    def _compile(self) -> None:
        """Create what a pickle does not contain: compiled functions, locks, running results; and shorter names."""
        self._model = self.evaluator.model
        self.distribution: DataParallel | None = self.evaluator.distribution
        self._use(self.optimizer)
        self._log = self._empty_log()
        self._means = self.evaluator.initial_means()
        self._loans: tuple[Donation, Donation] | None = None
        self._last_finite: LastFinite | None = None
        # This lock is held while the model changes; that of the carry only while values are read or moved.
        self._changing, self._changed_by = threading.RLock(), ""
        self._carry = DonatedCarry(self._state, self._keep)

    def __getstate__(self) -> dict[str, Any]:
        with self._carry.lock:
            state = {name: getattr(self, name) for name in _PICKLED}
            return state | {"_key": np.asarray(self._key), "count": int(self.count)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        # The model may still be incomplete here, so this must not access its attributes.
        vars(self).update(state)
        self._key, self.count = jnp.asarray(self._key), jnp.asarray(state["count"], jnp.int32)
        self._compile()

    def _use(self, optimizer: Optimizer) -> None:
        self.step: TrainStep = step_of(
            self._model, self.evaluator.loss, optimizer, self.evaluator.metrics, self.distribution
        )
        step = self.step if self._own_step is None else self._own_step

        def run(carry: Any, _: None, batch: Batch) -> tuple[Any, None]:
            state = instance("the result of train_step", step(self._carry.tree(carry), batch), TrainState, _RESULT)
            return self._carry.plain(state), None

        self._training = Execution(run, self._steps_per_execution, donate=True, distribution=self.distribution)
        self._measurement = StepMeasurement(self._model, self.evaluator.loss, optimizer, self.distribution)
        self._skipped_steps = SkippedSteps(self._warn_after, optimizer)
        self.optimizer: Optimizer = optimizer  # last, so that an interrupted change is made again

    @contextmanager
    def exclusive(self, doing: str) -> Generator[None]:
        """Keep other threads from changing the model while a block runs.

        Args:
            doing: the name of the operation, for the error.

        Raises:
            ModelInUseError: while another thread changes the model; a `RuntimeError`.
        """
        acquired: list[bool] = []
        try:
            acquired.extend(map(self._changing.acquire, (False,)))  # one C call: an interrupt cannot lose the result
            if not acquired[0]:
                raise ModelInUseError(
                    f"cannot run {doing}: the model is in use by {self._changed_by}; wait until it ends, or set "
                    "model.stop_training = True"
                )
            self._changed_by = f"{doing} in thread {shown(threading.current_thread().name)}"
            yield
        finally:
            if acquired and acquired[0]:
                self._changing.release()

    @contextmanager
    def take_back(self, doing: str) -> Generator[None]:
        """Take the variables back from training, for a block that assigns new values to them.

        Args:
            doing: the name of the operation, for the error.

        Raises:
            ModelInUseError: while another thread changes the model; a `RuntimeError`.
        """
        with self.exclusive(doing):
            self._end_loans()
            yield

    def prepare(self, data: Data | None = None) -> None:
        """Create the model's weights and the optimizer's state if there are none.

        Args:
            data: the data, whose first batch determines the inputs; None if the model must already have weights.

        Raises:
            ArgumentError: for a model without trainable variables; a `ValueError`.
        """
        if data is not None:
            self.evaluator.initialize(data)
        elif not has_weights(self._model):
            raise UninitializedError(
                f"{shown(self._model)} has no weights yet: call it first, model(x), or make them with "
                "nn.initialize(model, x, seed=0)"
            )
        trainable = self._model.trainable_variables
        if not trainable:
            raise ArgumentError(f"{shown(self._model)} has no trainable variables, so there is nothing to train")
        scaled = with_loss_scale(self._model, self.optimizer)
        if scaled is not self.optimizer:  # a layer created in the first call computes in float16
            self._use(scaled)
        self.optimizer.build(trainable)
        if self.distribution is not None:
            self._place(self.distribution)

    def _place(self, distribution: DataParallel) -> None:
        """Move variables and optimizer state to the devices of the distribution; `load_state` loads onto them."""
        variables = self._model.variables
        for path, value in distribution.place_variables(self._model).items():
            if value is not variables[path].read_stored():
                variables[path].assign(value)
        self.optimizer.state = distribution.place(self.optimizer.state)

    def save(self, path: str | os.PathLike[str], *, format: str | None = None) -> None:  # noqa: A002
        """Write everything needed to resume training, as `Model.save_state` does.

        Args:
            path: the file or folder.
            format: as for `save_arrays`.
        """
        with self.exclusive("save_state"):
            self.prepare()
            Checkpoint(
                model=self._model.variables,
                optimizer=self.optimizer.variables,
                rng=jax.random.wrap_key_data(jnp.copy(self._key)),
                step=int(self.count),
                policy=self._model.dtype_policy.get_config(),
                optimizer_config=self.optimizer.get_config(),
                extra={"epoch": self.epoch, "seed": self.evaluator.seed},
            ).save(path, format=format)

    def load(self, path: str | os.PathLike[str]) -> int:
        """Read what `save` wrote, as `Model.load_state` does.

        Args:
            path: the file or folder.

        Returns:
            The epoch to continue with.
        """
        with self.take_back("load_state"):
            self.prepare()
            named = self._model.variables
            checkpoint = load_resumable(path, named, self.optimizer.variables, self._key)
            values, _ = fit_values(self._model, checkpoint.model, source=str(path))

            def load_all() -> None:
                load_optimizer(self.optimizer, checkpoint.optimizer)
                for name, value in values.items():
                    named[name].assign(value)
                self._key = jnp.array(jax.random.key_data(checkpoint.rng))
                self.count = jnp.array(checkpoint.step, jnp.int32)
                self.epoch, self.evaluator.seed = checkpoint.extra["epoch"], checkpoint.extra["seed"]
                self._means = self.evaluator.initial_means()

            _change_whole(load_all)
            return self.epoch

    def train(self, run: TrainingRun) -> None:
        """Train over epochs.

        Args:
            run: the data, the epochs, and what is called meanwhile.
        """
        if self.distribution is not None:
            self.distribution.check_steps(run.data.steps)
        self._skipped_steps = SkippedSteps(self._warn_after, self.optimizer)
        failure: BaseException | None = None

        def end() -> None:
            self._end_loans()
            self._last_finite = None
            run.callbacks.end_training(failure)

        try:
            try:
                self._train_epochs(run)
            except BaseException as error:
                failure = error
                raise
            finally:
                end()
        finally:
            end()  # what is left to do, if an exception from a signal handler or another thread came in between

    def _train_epochs(self, run: TrainingRun) -> None:
        callbacks, history = run.callbacks, run.history
        self._end_loans()  # `train_on_batch` leaves its loans open
        callbacks.call("on_train_begin")
        self._keep_last_finite(callbacks)
        for epoch in run.epochs:
            if run.should_stop():
                break
            callbacks.call("on_epoch_begin", epoch)
            start = time.perf_counter()
            _record(history, self._train_epoch(run, epoch))
            logs = self._logs()
            history.seconds.append(time.perf_counter() - start)
            logs |= run.validate(epoch)
            history.add(epoch, logs)
            self.epoch = epoch + 1
            names = set(logs)
            callbacks.call("on_epoch_end", epoch, logs)
            history.add_to_last({name: value for name, value in logs.items() if name not in names})
        self._end_loans()
        _change_whole(self.optimizer.finalize_variable_values)

    def _keep_last_finite(self, callbacks: CallbackList) -> None:
        """Keep the last finite state for the monitors that explain values that are not finite."""
        monitors = callbacks.of_class(NumericsMonitor)
        if monitors and self._own_step is not None:
            raise ArgumentError(
                f"NumericsMonitor measures the step of the library, not {shown(self._model)}.train_step; remove the "
                "monitor, or override compute_loss instead"
            )
        explaining = [each for each in monitors if each.explains]
        self._last_finite = None
        if explaining and self._training.steps_per_execution > 1:
            raise ArgumentError(
                "NumericsMonitor(on_nonfinite='explain') looks at every step; compile the model with "
                "steps_per_execution=1"
            )
        if explaining:
            self._last_finite = LastFinite(self._model, self.evaluator.loss, self.optimizer)
            for each in explaining:
                each.explain_with(self._last_finite.explain)

    def _end_loans(self) -> None:
        with self._carry.lock:
            self._carry.finish()
            for loan in self._loans or ():
                loan.end()
            self._loans = None
            self._carry.forget()

    def train_on_batch(self, data: Data) -> dict[str, float]:
        """Train for one epoch of data; the variables stay lent to the step until they are read.

        Args:
            data: the batch.

        Returns:
            The loss and the metrics.
        """
        if self._loans is None:
            self.prepare(data)
        self._train_epoch(TrainingRun(data), 0)
        return self._logs()

    def _state(self) -> TrainState:
        loss, metrics = self._means
        if self._loans is None:
            trained = self._model.trainable_variables
            others = {path: each for path, each in self._model.variables.items() if path not in trained}
            lock, finish = self._carry.lock, self._carry.finish
            self._loans = Donation(trained, lock, finish), Donation(others, lock, finish)
        trainable, other = self._loans
        values = trainable.take(), other.take()
        state = TrainState(*values, self.optimizer.state, loss, metrics, self._log, self._key, self.count)
        return state if self.distribution is None else place_state(self.distribution, state)

    def _keep(self, state: TrainState) -> None:
        assert self._loans is not None
        trainable, other = self._loans
        trainable.give(state.trainable)
        other.give(state.other)
        self.optimizer.state = state.optimizer
        self._means = state.loss, state.metrics
        self._log, self._key, self.count = state.log, state.key, state.count

    def _train_epoch(self, run: TrainingRun, epoch: int) -> list[Any]:
        """Train for an epoch, and return the rows of its step log in parts."""
        callbacks = run.callbacks
        parts_of_log: list[Any] = []
        steps_taken = fetched = 0
        # An epoch that was interrupted may have left both.
        self._log, self._means = self._empty_log(), self.evaluator.initial_means()
        scaling = scaling_of(self.optimizer.state)
        self._skipped_before = 0 if scaling is None else int(scaling.num_skipped_steps)
        # The seed and the epoch determine the order of examples, so resumed training repeats it.
        shuffler = np.random.default_rng([self.evaluator.seed % 2**64, epoch]) if run.shuffle else None
        monitors = callbacks.of_class(NumericsMonitor)
        first = int(self.count) if monitors else 0

        def begin(steps: int, first_batch: Callable[[], Batch]) -> Hashable:
            callbacks.call("on_train_batch_begin", steps_taken)
            key = self.optimizer.trace_key
            if monitors:
                self._look(monitors, first + steps_taken, steps, first_batch, key)
            return key

        for steps, _ in self._training.over(run.data, self._carry, None, begin, shuffler):
            steps_taken += steps
            if steps_taken - fetched + self._training.steps_per_execution > len(self._log.rows):
                parts_of_log.append(self._fetch_log())
                self._log, fetched = self._empty_log(), steps_taken
            callbacks.call_after_batch("on_train_batch_end", steps_taken - 1, self._logs)
            if run.should_stop():
                break
        if not steps_taken:
            raise ArgumentError(
                f"the data has no batches left in epoch {epoch}; an iterator gives its batches only once, so use a "
                "list or a DataLoader, or set steps_per_epoch"
            )
        parts_of_log.append(self._fetch_log())
        if sum(map(len, parts_of_log)) != steps_taken:
            raise ArgumentError("train_step must log one step for each batch: call super().train_step once")
        return parts_of_log

    def _look(
        self, monitors: list[NumericsMonitor], step: int, steps: int, first_batch: Callable[[], Batch], key: Hashable
    ) -> None:
        """Give the state before a dispatch, and its first batch, to what looks at them."""
        last_finite = self._last_finite
        due = [each for each in monitors if each.is_due(step, steps)]
        if not due and last_finite is None:
            return
        batch = first_batch()

        def look(state: TrainState) -> None:
            if last_finite is not None:
                last_finite.keep(state, batch)
            for each in due:
                each.add(self._measurement.measure(state, batch, key, step, each.formats))

        self._carry.show(look)

    def _fetch_log(self) -> Any:
        rows = self._log.fetch()
        self._skipped_steps.add(rows)
        return rows

    def _empty_log(self) -> StepLog:
        return StepLog.empty(max(CAPACITY, 2 * self._training.steps_per_execution))

    def _logs(self) -> dict[str, float]:
        """Return the loss, the metrics and the loss scale of the epoch so far."""
        logs = self.evaluator.fetch(self._means)
        scaling = scaling_of(self.optimizer.state)
        if scaling is not None:
            logs["loss_scale"] = float(scaling.loss_scale)
            logs["skipped_steps"] = int(scaling.num_skipped_steps) - self._skipped_before
        return logs


def _change_whole(change: Callable[[], None]) -> None:
    """Make a change that may be made again; if an exception interrupts it, make it before the exception goes on."""
    try:
        change()
    except BaseException:
        change()
        raise


def _record(history: History, log: list[Any]) -> None:
    """Add steps to a history."""
    loss, scale, skipped = np.concatenate(log).T
    history.loss += loss.tolist()
    history.loss_scale += scale.tolist()
    history.skipped += skipped.astype(bool).tolist()
