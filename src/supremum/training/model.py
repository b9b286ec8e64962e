"""Models with `compile`, `fit`, `evaluate` and `predict`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any, Literal, TypedDict, Unpack, overload

import jax
import optax  # pyright: ignore[reportMissingTypeStubs] (it ships no types)

from supremum import nn
from supremum.argument_checks import flag, instance, whole_number
from supremum.errors import ArgumentError, shown
from supremum.nn.functional import MOST, positive_int
from supremum.optimizers import Optimizer, as_optimizer
from supremum.training.callbacks import Callback, CallbackList, History, as_callbacks, pass_progress, progress_of
from supremum.training.checkpoints import LoadReport, load_weights, save_weights
from supremum.training.data import Batch, SampleWeight, as_data, as_fit_data, as_one_batch
from supremum.training.distributed import DataParallel
from supremum.training.evaluation import Evaluator
from supremum.training.losses import CompiledLoss, Loss, record_terms
from supremum.training.metrics import Metric, compile_metrics
from supremum.training.step import TrainState
from supremum.training.trainer import Trainer, TrainingRun
from supremum.training.user_functions import overridden_step
from supremum.typing import PyTree


class EvaluateOptions(TypedDict, total=False):
    """The options of `Model.evaluate`, documented there."""

    batch_size: int | None
    sample_weight: SampleWeight
    steps: int | None
    verbose: str | int
    callbacks: Callback | Callable[..., Any] | Sequence[Any]


class Model(nn.Network):
    """An `nn.Network`, functional or subclassed, that adds `compile` and `fit`.

    Args:
        inputs, outputs, options: as for `nn.Network`.

    Attributes:
        stop_training: set it to True in a callback to end training after the current batch.
        history: the history of the last `fit`; None before the first.

    >>> import numpy as np
    >>> x = nn.Input((3,))
    >>> model = Model(x, nn.Dense(1)(x))
    >>> model.compile("sgd", loss="mse")
    >>> history = model.fit(
    ...     np.ones((8, 3), "float32"), np.ones((8, 1), "float32"), epochs=2, verbose=0
    ... )
    >>> history.history["loss"][1] < history.history["loss"][0]
    True
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.stop_training: bool = False
        self.history: History | None = None
        self._trainer: Trainer | None = None
        self._evaluator: Evaluator | None = None
        self._compiled_loss = CompiledLoss(None)

    def compile(
        self,
        optimizer: Optimizer | str | optax.GradientTransformation = "adam",
        loss: str | Loss | Callable[..., Any] | Sequence[Any] | Mapping[Any, Any] | None = None,
        metrics: str | Metric | Callable[..., Any] | Sequence[Any] | Mapping[Any, Any] = (),
        *,
        loss_weights: float | Sequence[float] | Mapping[Any, float] | None = None,
        steps_per_execution: int = 1,
        seed: int = 0,
        distribution: DataParallel | None = None,
        warn_after_skipped_steps: int | None = 10,
    ) -> None:
        """Configure the model for training.

        If the model or any of its layers computes in float16, `compile` wraps the optimizer in a `LossScaleOptimizer`.
        Its loss scale comes from the model's policy, or else from the first layer that has one. A policy of the model,
        or a global one, that was given `loss_scale=None` turns this off. The wrapper keeps the given optimizer and does
        not copy it, so changes to its `learning_rate`, for example, apply from the next step. An optimizer that is
        already wrapped is used as is. Layers that the model creates in its first call count from then on.

        Args:
            optimizer: an `Optimizer`, a name such as `"adam"`, or an optax transformation.
            loss: a `Loss`, a name such as `"mse"`, or a function of labels and outputs, which receives the outputs
                uncast; for several outputs, a list or dict of these. A functional model whose outputs are a list also
                takes a dict by the names of the layers that return them, and one loss for all. None if the layers add
                the whole loss themselves.
            metrics: likewise; a list for a model with one output.
            loss_weights: a number for each loss, in the same structure.
            steps_per_execution: how many steps are sent to the device at once; batch callbacks run after the last of
                them, and Ctrl-C and `stop_training` wait for its end. Steps left over at the end of an epoch are sent
                one by one.
            seed: the seed for weights, the order of examples and random numbers in layers.
            distribution: `DataParallel()` or `FullyShardedDataParallel()`, to train on several devices; None for one.
            warn_after_skipped_steps: how many steps in a row may be skipped with the loss scale at its floor before
                `fit` warns that the model does not learn; None to never warn. `fit` checks after each epoch, and about
                every 1024 steps within an epoch.

        Raises:
            UnknownNameError: for an unknown name; a `ValueError`.
            ArgumentError: for a number of steps below 1, a `train_step` with other arguments, and a class with a method
                `test_step` or `predict_step`, which would never be called; a `ValueError`.
            OperandError: for any other distribution, and for steps that are not a whole number; a `TypeError`.

        Keras RFC 293, mixed precision, "A policy's loss scale".
        """
        if distribution is not None:
            instance("distribution", distribution, DataParallel, "DataParallel() or FullyShardedDataParallel()")
        if warn_after_skipped_steps is not None:
            positive_int("warn_after_skipped_steps", warn_after_skipped_steps)
        self._compiled_loss = CompiledLoss(loss, loss_weights, self.output_names)
        all_metrics = compile_metrics(metrics, self._compiled_loss.names, self.output_names)
        evaluator = Evaluator(self, self._loss_of, all_metrics, seed, distribution)
        step = overridden_step(self, Model)
        self._trainer = Trainer(evaluator, as_optimizer(optimizer), steps_per_execution, warn_after_skipped_steps, step)
        self._evaluator = evaluator

    def compute_loss(
        self, x: PyTree, y: PyTree, y_pred: PyTree, sample_weight: SampleWeight = None, training: bool = True
    ) -> jax.Array:
        """Compute the loss of a batch, in training and in evaluation; losses that layers add come on top.

        Override it for a loss that needs more than labels and outputs. JAX traces it, and it is scaled like any loss.

        Args:
            x: the inputs of the batch.
            y: the labels of the batch; None if there are none.
            y_pred: the outputs.
            sample_weight: the weight of each example, shape (batch,), or such weights by output; None if not given.
            training: whether this is a training step.

        Returns:
            A floating-point scalar; by default, from the loss given to `compile`.
        """
        del x, training  # for overrides
        return self._compiled_loss(y, y_pred, sample_weight)

    def train_step(self, state: TrainState, batch: Batch) -> TrainState:
        """Take a training step, as a pure function that JAX traces.

        Override it to change the batch or the state around the step of the library, which
        `super().train_step(state, batch)` takes; call that once.

        Args:
            state: the state before the step.
            batch: the batch.

        Returns:
            The state after the step.
        """
        return self.compiled().step(state, batch)

    def _loss_of(self, batch: Batch, y_pred: PyTree, training: bool) -> tuple[jax.Array, dict[str, jax.Array]]:
        with record_terms() as terms:
            loss = self.compute_loss(batch.x, batch.y, y_pred, batch.sample_weight, training)
        return loss, terms

    @property
    def optimizer(self) -> Optimizer:
        """The optimizer that trains the model; a `LossScaleOptimizer` if a layer computes in float16."""
        return self.compiled().optimizer

    def fit(
        self,
        x: PyTree | Iterable[PyTree],
        y: PyTree = None,
        *,
        batch_size: int | None = None,
        epochs: int = 1,
        verbose: str | int = "auto",
        callbacks: Callback | Callable[..., Any] | Sequence[Any] = (),
        validation_split: float = 0.0,
        validation_data: PyTree | Iterable[PyTree] | None = None,
        shuffle: bool = True,
        class_weight: Mapping[int, float] | None = None,
        sample_weight: SampleWeight = None,
        initial_epoch: int = 0,
        steps_per_epoch: int | None = None,
        validation_steps: int | None = None,
        validation_batch_size: int | None = None,
        validation_freq: int = 1,
    ) -> History:
        """Train the model; if it has no weights yet, create them first.

        Args:
            x: inputs, an array of shape (examples, ...), or a list, tuple or dict of arrays; or an iterable of batches,
                such as a list of pairs `(x, y)`, a generator, or a DataLoader from PyTorch, Grain or tf.data. A list of
                arrays means several inputs, as in Keras.
            y: labels, likewise; an iterable yields its own.
            batch_size: examples per batch; None for 32.
            epochs: the number of the epoch to stop before.
            verbose: `"auto"` for a bar in a terminal and one line per epoch elsewhere, 0 for nothing, 1 for a bar, 2
                for lines.
            callbacks: one or several, each a `Callback` or a function of an epoch's number and its logs.
            validation_split: the fraction of the examples, taken from the end, to validate on.
            validation_data: `(x, y)` or `(x, y, sample_weight)`, or an iterable of batches.
            shuffle: whether to shuffle arrays anew in each epoch.
            class_weight: the weight of the examples of each class, by its number; 1 for classes that are not in it.
                Labels are class numbers or one-hot. Validation is not weighted.
            sample_weight: the weight of each example, shape (examples,) or (examples, 1); for several outputs also a
                dict or list of these, in which outputs may be missing.
            initial_epoch: the number of the first epoch; use it to continue where an earlier `fit` ended.
            steps_per_epoch: how many batches make an epoch; None for all of them.
            validation_steps: how many batches to validate on, each time the first ones; None for all of them.
            validation_batch_size: examples per validation batch; None for `batch_size`.
            validation_freq: how many epochs there are between validations; 1 validates after each.

        Returns:
            The history of the training.

        Raises:
            ArgumentError: for data that do not fit together, invalid options, or before `compile`; a `ValueError`.
            ModelInUseError: while another thread trains the model; a `RuntimeError`.

        Ctrl-C ends training, and so does a signal handler that raises, or an exception that another thread sets. The
        model then has the weights of its last finished step, and the callbacks' `on_train_end` still runs. Meanwhile
        other threads may call `evaluate` and `predict` and read variables.
        """
        trainer = self.compiled()
        flag("shuffle", shuffle)
        initial_epoch = whole_number("initial_epoch", initial_epoch, 0, MOST)
        data, validation = as_fit_data(
            (x, y, sample_weight), batch_size, steps_per_epoch, validation_split, validation_data,
            validation_batch_size, validation_steps, class_weight,
        )  # fmt: skip
        positive_int("epochs", epochs)
        positive_int("validation_freq", validation_freq)
        called = CallbackList([*as_callbacks(callbacks), *progress_of(verbose, epochs, data.steps)])

        def validate(epoch: int) -> Mapping[str, float]:
            if validation is None or (epoch + 1) % validation_freq:
                return {}
            return {f"val_{name}": value for name, value in trainer.evaluator.evaluate(validation, called).items()}

        run = TrainingRun(data, range(initial_epoch, epochs), shuffle, called, validate, lambda: self.stop_training)
        with trainer.exclusive("fit"):
            called.call("set_model", self)
            trainer.prepare(data)
            self.stop_training = False
            self.history = run.history
            trainer.train(run)
            return run.history

    @overload
    def evaluate(
        self,
        x: PyTree | Iterable[PyTree],
        y: PyTree = None,
        *,
        return_dict: Literal[True],
        **options: Unpack[EvaluateOptions],
    ) -> dict[str, float]: ...

    @overload
    def evaluate(
        self,
        x: PyTree | Iterable[PyTree],
        y: PyTree = None,
        *,
        return_dict: Literal[False] = False,
        **options: Unpack[EvaluateOptions],
    ) -> float | list[float]: ...

    def evaluate(
        self,
        x: PyTree | Iterable[PyTree],
        y: PyTree = None,
        *,
        batch_size: int | None = None,
        sample_weight: SampleWeight = None,
        steps: int | None = None,
        verbose: str | int = "auto",
        callbacks: Callback | Callable[..., Any] | Sequence[Any] = (),
        return_dict: bool = False,
    ) -> float | list[float] | dict[str, float]:
        """Compute the loss and the metrics on some data.

        Args:
            x: as for `fit`.
            y: as for `fit`.
            batch_size: as for `fit`.
            sample_weight: as for `fit`.
            steps: how many batches; None for all of them.
            verbose: as for `fit`; 2 prints the numbers.
            callbacks: as for `fit`; called when the evaluation and each of its batches begin and end.
            return_dict: whether to return the numbers by name.

        Returns:
            As in Keras, the loss if it is the only number, otherwise a list of the loss, the losses of several outputs
            and the metrics; with `return_dict`, a dict by name.
        """
        evaluator = self.compiled().evaluator
        data = as_data(x, y, sample_weight, batch_size=batch_size, steps=steps)
        with pass_progress("evaluate", self, verbose, callbacks, data.steps) as called:
            numbers = evaluator.evaluate(data, called)
        return numbers if flag("return_dict", return_dict) else evaluator.as_list(numbers)

    def predict(
        self,
        x: PyTree | Iterable[PyTree],
        *,
        batch_size: int | None = None,
        steps: int | None = None,
        verbose: str | int = "auto",
        callbacks: Callback | Callable[..., Any] | Sequence[Any] = (),
    ) -> Any:
        """Compute the outputs for some inputs, batch by batch.

        Layers that draw random numbers outside of training, such as a `Dropout` called with `training=True`, draw
        new ones in every call.

        Args:
            x: as for `fit`; labels that an iterable yields are ignored.
            batch_size: as for `fit`.
            steps: how many batches; None for all of them.
            verbose: as for `fit`.
            callbacks: as for `fit`; called when the prediction and each of its batches begin and end.

        Returns:
            NumPy arrays with the dtypes and the structure of the outputs.
        """
        if self._evaluator is None:
            self._evaluator = Evaluator(self, self._loss_of, [], 0, None)
        data = as_data(x, batch_size=batch_size, steps=steps)
        with pass_progress("predict", self, verbose, callbacks, data.steps) as called:
            return self._evaluator.predict(data, called)

    def train_on_batch(
        self,
        x: PyTree,
        y: PyTree = None,
        *,
        sample_weight: SampleWeight = None,
        class_weight: Mapping[int, float] | None = None,
        return_dict: bool = False,
    ) -> float | list[float] | dict[str, float]:
        """Run one training step on one batch.

        Args:
            x: inputs, shape (batch, ...), or a tuple or dict of them.
            y: labels, likewise.
            sample_weight: the weight of each example, shape (batch,).
            class_weight: as for `fit`.
            return_dict: as for `evaluate`.

        Returns:
            The loss and the metrics of the batch before the step, as `evaluate` returns them; a dict also has the loss
            scale, if there is one, and whether the step was skipped.
        """
        trainer = self.compiled()
        with trainer.exclusive("train_on_batch"):
            numbers = trainer.train_on_batch(as_one_batch(x, y, sample_weight, class_weight))
        return numbers if flag("return_dict", return_dict) else trainer.evaluator.as_list(numbers)

    def test_on_batch(
        self, x: PyTree, y: PyTree = None, *, sample_weight: SampleWeight = None, return_dict: bool = False
    ) -> float | list[float] | dict[str, float]:
        """Compute the loss and the metrics on one batch.

        Args:
            x: as for `train_on_batch`.
            y: as for `train_on_batch`.
            sample_weight: as for `train_on_batch`.
            return_dict: as for `evaluate`.

        Returns:
            As for `evaluate`.
        """
        evaluator = self.compiled().evaluator
        numbers = evaluator.evaluate(as_one_batch(x, y, sample_weight), CallbackList())
        return numbers if flag("return_dict", return_dict) else evaluator.as_list(numbers)

    def predict_on_batch(self, x: PyTree) -> Any:
        """Compute the outputs for one batch, as NumPy arrays.

        Args:
            x: inputs, shape (batch, ...), or a tuple or dict of them.
        """
        return self.predict(as_one_batch(x), verbose=0)

    def compiled(self) -> Trainer:
        """Return the trainer of the model.

        Raises:
            ArgumentError: before `compile`; a `ValueError`.
        """
        if self._trainer is None:
            raise ArgumentError(f"{shown(self)} must be compiled first; use model.compile('adam', loss='mse')")
        return self._trainer

    def save_weights(self, path: str | os.PathLike[str], *, format: str | None = None) -> None:  # noqa: A002
        """Write the weights, in the dtypes they are stored in, to a safetensors file or an orbax folder.

        The new checkpoint replaces an existing one only once it is complete. If several processes train together, all
        of them must make the call.

        Args:
            path: the file or folder.
            format: `"safetensors"` for one file, the default, or `"orbax"` for a folder that orbax-checkpoint writes:
                sharded arrays stay sharded, and each process writes its own parts.

        Raises:
            ArgumentError: for one file, if the weights are sharded over several processes.
            UninitializedError: if there are no weights yet.
            CheckpointFileError: if the file or folder cannot be written; an `OSError`.
        """
        save_weights(self, path, format=format)

    def load_weights(self, path: str | os.PathLike[str], *, strict: bool = True, cast: bool = False) -> LoadReport:
        """Read weights that `save_weights` or `save_state` wrote, under any policy and on any number of devices.

        Args:
            path: the file or folder.
            strict: whether the file must have exactly the model's weights; otherwise the weights that fit are loaded.
            cast: whether to cast floating-point values to the dtype of their variable if that is a different
                floating-point dtype.

        Returns:
            What was loaded.

        Raises:
            MismatchError: for values that do not fit; the model is unchanged.
            CheckpointError: for a file that is damaged or that supremum did not write.
            UninitializedError: if the model has no variables yet.
        """
        with nullcontext() if self._trainer is None else self._trainer.take_back("load_weights"):
            return load_weights(self, path, strict=strict, cast=cast)

    def save_state(self, path: str | os.PathLike[str], *, format: str | None = None) -> None:  # noqa: A002
        """Write everything needed to resume training bit for bit: weights, optimizer, loss scale, random keys, counts.

        If several processes train together, all of them must make the call.

        Args:
            path: the file or folder.
            format: as for `save_weights`.

        Raises:
            ArgumentError: before `compile`, or for one file, if arrays are sharded over several processes.
            UninitializedError: if there are no weights yet.
            CheckpointFileError: if the file or folder cannot be written; an `OSError`.
        """
        self.compiled().save(path, format=format)

    def load_state(self, path: str | os.PathLike[str]) -> int:
        """Read what `save_state` wrote, into a model that was built and compiled in the same way.

        The policy may differ: weights are stored in the same form under every policy. A loss scale that only the file
        has is ignored; one that only the model has is unchanged. Values go to the devices of the model's and the
        optimizer's current values, whichever devices they were saved from.

        Args:
            path: the file or folder.

        Returns:
            The epoch to continue with, for `model.fit(..., initial_epoch=model.load_state(path))`.

        Raises:
            MismatchError: for values that do not fit; the model and the optimizer are unchanged.
            CheckpointError: for a file that is damaged or does not hold a training state.
        """
        return self.compiled().load(path)


class Sequential(Model, nn.SequentialNetwork):
    """An `nn.SequentialNetwork` that adds `compile` and `fit`.

    Args:
        layers, options: as for `nn.SequentialNetwork`.

    >>> import numpy as np
    >>> model = Sequential(
    ...     [nn.Dense(8), nn.ReLU(), nn.Dense(1)], dtype="mixed_bfloat16"
    ... )
    >>> model.compile("adam", "mse")
    >>> history = model.fit(
    ...     np.ones((8, 3), "float32"), np.ones((8, 1), "float32"), epochs=2, verbose=0
    ... )
    >>> model.predict(np.ones((8, 3), "float32"), verbose=0).dtype
    dtype(bfloat16)
    """

    def add(self, layer: nn.Layer | nn.SymbolicTensor) -> None:
        """Add a layer, as for `nn.SequentialNetwork`; the model must then be compiled again."""
        super().add(layer)
        self._trainer = self._evaluator = None

    def pop(self) -> nn.Layer:
        """Remove the last layer, as for `nn.SequentialNetwork`; the model must then be compiled again."""
        self._trainer = self._evaluator = None
        return super().pop()
