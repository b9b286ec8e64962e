"""Models that train themselves."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import jax

from supremum import nn
from supremum.argument_checks import flag, whole_number
from supremum.errors import ArgumentError, OperandError, shown
from supremum.nn.functional import MOST, positive_int
from supremum.optimizers import Optimizer, as_optimizer
from supremum.training.callbacks import Callback, CallbackList, History, as_callbacks, pass_progress, progress_of
from supremum.training.checkpoints import LoadReport, load_weights, save_weights
from supremum.training.data import Batch, as_data, as_one_batch, as_validation_data, split_validation
from supremum.training.distributed import DataParallel
from supremum.training.evaluation import Evaluator
from supremum.training.losses import CompiledLoss
from supremum.training.metrics import compiled_metrics
from supremum.training.state_saving import load_state, save_state
from supremum.training.trainer import Trainer


class Model(nn.Network):
    """A model that trains: `nn.Network`, functional or subclassed, with `compile` and `fit`.

    Args:
        inputs: as for `nn.Network`.
        outputs: likewise.
        options: likewise.

    Attributes:
        stop_training: set it in a callback, and training ends after the batch.
        history: what happened in the last `fit`; None before.

    >>> import numpy as np
    >>> x = nn.Input((3,))
    >>> model = Model(x, nn.Dense(1)(x))
    >>> model.compile("sgd", loss="mse")
    >>> history = model.fit(np.ones((8, 3), "float32"), np.ones((8, 1), "float32"), epochs=2, verbose=0)
    >>> history.history["loss"][1] < history.history["loss"][0]
    True
    """

    stop_training: bool
    history: History | None

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.stop_training = False
        self.history = None
        self._trainer: Trainer | None = None
        self._untrained_evaluator: Evaluator | None = None
        self._compiled_loss = CompiledLoss(None)

    def compile(
        self,
        optimizer: Any = "adam",
        loss: Any = None,
        metrics: Any = (),
        *,
        loss_weights: Any = None,
        steps_per_execution: int | str = 1,
        seed: int = 0,
        distribution: DataParallel | None = None,
        warn_after_skipped_steps: int | None = 10,
    ) -> None:
        """Say how to train.

        If the model or any of its layers computes in float16, the optimizer is wrapped in a `LossScaleOptimizer` with a
        scale of its own: that of the model's policy, else of the first layer that has one. It is around the very object
        that is given: what is set on that later, its `learning_rate` say, acts on the next step. An optimizer that is
        wrapped already is taken as it is. Layers that the model makes in its first call count from then on.

        Args:
            optimizer: an `Optimizer`, a name such as `"adam"`, or an optax transformation.
            loss: a `Loss`, a name such as `"mse"`, or a function of labels and outputs, which gets outputs uncast; for
                several outputs a list or dict of them. None where layers add all the loss there is.
            metrics: likewise; a list of them for a model of one output.
            loss_weights: a number for each loss, in the same structure.
            steps_per_execution: how many steps are sent to the device at once; callbacks of batches are told of the
                last of them. What is left over at the end of an epoch is sent one by one. `"auto"` measures in the
                first steps, of arrays, whether that is faster.
            seed: where weights, the order of examples and what is random in layers come from.
            distribution: `DataParallel()` or `FullyShardedDataParallel()`, to train on several devices; None for one.
            warn_after_skipped_steps: how many steps in a row may be skipped with the loss scale at its floor before
                `fit` warns that the model does not learn; None never to warn. Steps are looked at after each epoch, and
                within an epoch every 1024 steps or so.

        Raises:
            UnknownNameError: for an unknown name; a `ValueError`.
            ArgumentError: for a number of steps below 1, and for a class with a method `train_step`, `test_step` or
                `predict_step`, which nothing would call; a `ValueError`.
            OperandError: for another distribution; a `TypeError`.

        Keras RFC 293, mixed precision, "A policy's loss scale".
        """
        if distribution is not None and not isinstance(distribution, DataParallel):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise OperandError(
                f"distribution must be DataParallel() or FullyShardedDataParallel(), got {shown(distribution)}"
            )
        if warn_after_skipped_steps is not None:
            positive_int("warn_after_skipped_steps", warn_after_skipped_steps)
        _refuse_steps(self)
        self._compiled_loss = CompiledLoss(loss, loss_weights)
        self._trainer = Trainer(
            self,
            as_optimizer(optimizer),
            self._loss_of,
            compiled_metrics(metrics),
            steps_per_execution,
            seed,
            distribution,
            warn_after_skipped_steps,
        )

    def compute_loss(
        self,
        x: Any,  # noqa: ARG002 (for those who override it)
        y: Any,
        y_pred: Any,
        sample_weight: Any = None,
        training: bool = True,  # noqa: ARG002
    ) -> jax.Array:
        """The loss of a batch, in training and in evaluation; what layers add comes on top.

        Override it for a loss that needs more than labels and outputs. It is traced by JAX, and scaled like any other.

        Args:
            x: the inputs of the batch.
            y: its labels; None where there are none.
            y_pred: the outputs.
            sample_weight: how much each example counts, shape (batch,); None if none were given.
            training: whether this is a step of training.

        Returns:
            A floating scalar; unless it is overridden, that of the loss that `compile` was given.
        """
        return self._compiled_loss(y, y_pred, sample_weight)

    def _loss_of(self, batch: Batch, y_pred: Any, training: bool) -> jax.Array:
        return self.compute_loss(batch.x, batch.y, y_pred, batch.sample_weight, training)

    @property
    def optimizer(self) -> Optimizer:
        """The optimizer that trains it, a `LossScaleOptimizer` where a layer computes in float16."""
        return self.compiled().optimizer

    def fit(
        self,
        x: Any,
        y: Any = None,
        *,
        batch_size: int | None = None,
        epochs: int = 1,
        verbose: Any = "auto",
        callbacks: Any = (),
        validation_split: float = 0.0,
        validation_data: Any = None,
        shuffle: bool = True,
        sample_weight: Any = None,
        initial_epoch: int = 0,
        steps_per_epoch: int | None = None,
        validation_batch_size: int | None = None,
        validation_freq: int = 1,
    ) -> History:
        """Train; a model without weights gets them first.

        Args:
            x: inputs, an array of shape (examples, ...), or a list, tuple or dict of them; or an iterable of batches,
                such as a list of pairs `(x, y)`, a generator, or a DataLoader of PyTorch, Grain or tf.data. A list of
                arrays is several inputs, as in Keras.
            y: labels, likewise; an iterable gives its own.
            batch_size: examples in a batch; None for 32.
            epochs: the number of the epoch to stop before.
            verbose: `"auto"` for a bar in a terminal and a line an epoch elsewhere, 0 for nothing, 1 for a bar, 2 for a
                line.
            callbacks: one or several, each a `Callback` or a function of an epoch's number and its logs.
            validation_split: the share of the examples, the last ones, to validate on.
            validation_data: `(x, y)` or `(x, y, sample_weight)`, or an iterable of batches.
            shuffle: whether arrays are put into another order in each epoch.
            sample_weight: how much each example counts, shape (examples,).
            initial_epoch: the number of the first epoch; to go on where another `fit` ended.
            steps_per_epoch: how many batches make an epoch; None for all there are.
            validation_batch_size: None for `batch_size`.
            validation_freq: after how many epochs to validate.

        Returns:
            What happened.

        Raises:
            ArgumentError: for data that do not fit together, options that make no sense, or before `compile`; a
                `ValueError`.
            ModelInUseError: while another thread trains the model; a `RuntimeError`.

        Ctrl-C ends the training after the step that is running, and the model has that step's weights. Callbacks are
        told that training ends. `evaluate`, `predict` and reading variables work from other threads meanwhile.
        """
        trainer = self.compiled()
        flag("shuffle", shuffle)
        initial_epoch = whole_number("initial_epoch", initial_epoch, 0, MOST)
        (x, y, sample_weight), validation_data = split_validation(
            (x, y, sample_weight), validation_split, validation_data
        )
        data = as_data(x, y, sample_weight, batch_size=batch_size, steps=steps_per_epoch)
        size = batch_size if validation_batch_size is None else validation_batch_size
        validation = as_validation_data(validation_data, size)
        positive_int("epochs", epochs)
        positive_int("validation_freq", validation_freq)
        called = CallbackList([*as_callbacks(callbacks), *progress_of(verbose, epochs, data.steps)])

        def validate(epoch: int) -> Mapping[str, float]:
            if validation is None or (epoch + 1) % validation_freq:
                return {}
            return {f"val_{name}": value for name, value in trainer.evaluator.evaluate(validation, called).items()}

        with trainer.alone("fit"):
            called.call("set_model", self)
            trainer.prepare(data)
            self.stop_training = False
            self.history = History()
            trainer.train(
                data,
                range(initial_epoch, epochs),
                self.history,
                shuffle=shuffle,
                callbacks=called,
                validate=validate,
                should_stop=lambda: self.stop_training,
            )
            return self.history

    def evaluate(
        self,
        x: Any,
        y: Any = None,
        *,
        batch_size: int | None = None,
        sample_weight: Any = None,
        steps: int | None = None,
        verbose: Any = "auto",
        callbacks: Any = (),
    ) -> dict[str, float]:
        """The loss and the metrics on some data.

        Args:
            x: as for `fit`.
            y: likewise.
            batch_size: likewise.
            sample_weight: likewise.
            steps: how many batches; None for all there are.
            verbose: as for `fit`; 2 prints the numbers.
            callbacks: as for `fit`; they are told of the beginning and the end of the test and of its batches.

        Returns:
            Numbers by name.
        """
        trainer = self.compiled()
        data = as_data(x, y, sample_weight, batch_size=batch_size, steps=steps)
        with pass_progress("evaluate", verbose, data.steps) as bars:
            return trainer.evaluator.evaluate(data, self._callbacks(callbacks, bars))

    def _callbacks(self, callbacks: Any, progress: Sequence[Callback]) -> CallbackList:
        called = CallbackList([*as_callbacks(callbacks), *progress])
        called.call("set_model", self)
        return called

    def predict(
        self,
        x: Any,
        *,
        batch_size: int | None = None,
        steps: int | None = None,
        verbose: Any = "auto",
        callbacks: Any = (),
    ) -> Any:
        """The outputs for some inputs, batch by batch.

        Layers that draw random numbers outside of training, such as a `Dropout` that is called with `training=True`,
        draw others in every call.

        Args:
            x: as for `fit`; labels of an iterable are left out.
            batch_size: as for `fit`.
            steps: how many batches; None for all there are.
            verbose: as for `fit`.
            callbacks: as for `fit`; they are told of the beginning and the end, and of batches.

        Returns:
            NumPy arrays in the dtypes of the outputs, in their structure.
        """
        evaluator = self._untrained_evaluator if self._trainer is None else self._trainer.evaluator
        if evaluator is None:
            evaluator = self._untrained_evaluator = Evaluator(self, self._loss_of, [], 0, None)
        data = as_data(x, None, None, batch_size=batch_size, steps=steps)
        with pass_progress("predict", verbose, data.steps) as bars:
            return evaluator.predict(data, self._callbacks(callbacks, bars))

    def train_on_batch(self, x: Any, y: Any = None, *, sample_weight: Any = None) -> dict[str, float]:
        """One step of training on one batch.

        Args:
            x: inputs, shape (batch, ...), or a tuple or dict of them.
            y: labels, likewise.
            sample_weight: how much each example counts, shape (batch,).

        Returns:
            Loss and metrics of the batch, from before the step; with a loss scale that too, and whether it was skipped.
        """
        trainer = self.compiled()
        with trainer.alone("train_on_batch"):
            return trainer.train_on_batch(as_one_batch(x, y, sample_weight))

    def test_on_batch(self, x: Any, y: Any = None, *, sample_weight: Any = None) -> dict[str, float]:
        """Loss and metrics on one batch.

        Args:
            x: as for `train_on_batch`.
            y: likewise.
            sample_weight: likewise.
        """
        return self.compiled().evaluator.evaluate(as_one_batch(x, y, sample_weight), CallbackList())

    def predict_on_batch(self, x: Any) -> Any:
        """The outputs for one batch, as NumPy arrays.

        Args:
            x: inputs, shape (batch, ...), or a tuple or dict of them.
        """
        return self.predict(as_one_batch(x), verbose=0)

    @property
    def is_compiled(self) -> bool:
        """Whether it knows how to train."""
        return self._trainer is not None

    def compiled(self) -> Trainer:
        """What trains the model.

        Raises:
            ArgumentError: before `compile`; a `ValueError`.
        """
        if self._trainer is None:
            raise ArgumentError(f"{shown(self)} must be compiled first; use model.compile('adam', loss='mse')")
        return self._trainer

    def save_weights(self, path: str | os.PathLike[str], *, format: str | None = None) -> None:  # noqa: A002
        """Write the weights, in the dtypes they are stored in, to a file of safetensors, or a folder of orbax.

        It is written beside and renamed when it is whole: what was there before is there until then. Where several
        processes train together, every one makes the call.

        Args:
            path: the file or folder.
            format: `"safetensors"` for one file, which None means as well, or `"orbax"` for a folder that
                orbax-checkpoint writes: arrays that are sharded stay so, and each process writes its own parts.

        Raises:
            ArgumentError: for one file of weights that are sharded over several processes.
            UninitializedError: if there are no weights yet.
            CheckpointFileError: where it cannot be written; an `OSError`.
        """
        save_weights(self, path, format=format)

    def load_weights(self, path: str | os.PathLike[str], *, strict: bool = True, cast: bool = False) -> LoadReport:
        """Read weights that `save_weights` or `save_state` wrote, under any policy and on any number of devices.

        Args:
            path: the file or folder.
            strict: whether the file must have every weight, and no other; otherwise what fits is loaded.
            cast: whether floating values are cast to the dtype of their variable where that is another floating one.

        Returns:
            What was loaded.

        Raises:
            MismatchError: for values that do not fit; the model is as it was.
            CheckpointError: for a file that is damaged or not ours.
            UninitializedError: if the model does not know its variables yet.
        """
        with nullcontext() if self._trainer is None else self._trainer.loading("load_weights"):
            return load_weights(self, path, strict=strict, cast=cast)

    def save_state(self, path: str | os.PathLike[str], *, format: str | None = None) -> None:  # noqa: A002
        """Write all that training needs to go on bit for bit: weights, optimizer, loss scale, random keys, counts.

        Where several processes train together, every one makes the call.

        Args:
            path: the file or folder.
            format: `"safetensors"` for one file, which None means as well, or `"orbax"` for a folder that
                orbax-checkpoint writes: arrays that are sharded stay so, and each process writes its own parts.

        Raises:
            ArgumentError: before `compile`, or for one file of arrays that are sharded over several processes.
            UninitializedError: before there are weights.
            CheckpointFileError: where it cannot be written; an `OSError`.
        """
        save_state(self, self.compiled(), path, format=format)

    def load_state(self, path: str | os.PathLike[str]) -> int:
        """Read what `save_state` wrote, into a model that was built and compiled alike.

        The policy may be another one: weights are stored alike, and a loss scale that only one side has is left out, or
        as it was. Values go onto the devices that the model's and the optimizer's are on, wherever they were before.

        Args:
            path: the file or folder.

        Returns:
            The epoch to go on with, for `model.fit(..., initial_epoch=model.load_state(path))`.

        Raises:
            MismatchError: for values that do not fit; model and optimizer are as they were.
            CheckpointError: for a file that is damaged, or holds no training state.
        """
        return load_state(self, self.compiled(), path)


class Sequential(Model, nn.SequentialNetwork):
    """Layers one after the other that train: `nn.SequentialNetwork` with `compile` and `fit`.

    Args:
        layers: as for `nn.SequentialNetwork`.
        options: likewise.
    """


def _refuse_steps(model: Model) -> None:
    found = [name for name in ("train_step", "test_step", "predict_step") if hasattr(model, name)]
    if found:
        raise ArgumentError(
            f"{type(model).__name__}.{found[0]} is never called: override compute_loss(x, y, y_pred, sample_weight, "
            "training), or write the loop yourself with training.init_state and training.train_step"
        )
