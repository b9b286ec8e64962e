"""Cross-entropy losses, which use the logits that probabilities were computed from if they are known.

Keras RFC 293, mixed precision, "Softmax and cross entropy".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar, Unpack

import jax
import jax.numpy as jnp

from supremum.argument_checks import flag, real_within, whole_number
from supremum.errors import ArgumentError, shown
from supremum.formats import as_format, at_least_float32
from supremum.mixed_precision import PolicyWarning, is_floating
from supremum.nn import origin_of
from supremum.nn.functional import MOST, as_axes, log_softmax
from supremum.training.data import aligned_pair, array_pair, at_labels, check_has_axes, class_numbers, same_shaped_pair
from supremum.training.losses.loss import IN_Y_PRED, Loss, LossOptions, replace_nonfinite
from supremum.training.losses.regression import mean_of_each, weight_times
from supremum.typing import ArrayLike, PyTree
from supremum.user_frame import warn_user

# These functions sum in at least float32, and the callers round once. A label of 0 contributes nothing: a logit of
# -inf, which rules a class out, adds no loss if that class is not the label.


def binary_cross_entropy(y_true: jax.Array, y_pred: jax.Array, *, from_logits: bool, eps: float) -> jax.Array:
    """Compute `-y_true * log(p) - (1 - y_true) * log(1 - p)` of each element, in at least float32.

    Args:
        y_true: probabilities, or labels of 0 and 1.
        y_pred: an array of the same shape: logits, whose sigmoid is `p`, or `p` itself, which is clipped to `eps` from
            0 and 1.
        from_logits: whether `y_pred` holds logits.
        eps: the smallest distance of `p` from 0 and 1.

    >>> binary_cross_entropy(
    ...     jnp.ones(2), jnp.asarray([100.0, -100.0]), from_logits=True, eps=0
    ... ).tolist()
    [0.0, 100.0]
    """
    wide = y_pred.astype(at_least_float32(y_pred.dtype))
    y_true = y_true.astype(wide.dtype)
    if from_logits:
        return weight_times(y_true, jax.nn.softplus(-wide)) + weight_times(1 - y_true, jax.nn.softplus(wide))
    wide = jnp.clip(wide, eps, 1 - eps)
    return -y_true * jnp.log(wide) - (1 - y_true) * jnp.log1p(-wide)


class Crossentropy(Loss):
    """A cross entropy of the output of a softmax or sigmoid, computed from its logits if they are known.

    The logits are known if the loss gets the very array that `nn.Softmax`, `nn.Sigmoid`, `nn.Activation` of JAX's own
    functions, `nn.functional.softmax` or `nn.functional.sigmoid` returned, or that array as cast by a layer or the
    loss. They are not known after any other operation, `x.astype` included, nor across the boundary of a `jax.jit`,
    `jax.vmap`, `jax.checkpoint` or `jax.lax.scan`. Probabilities in a dtype of narrow range, such as float16, have then
    lost accuracy for good, and the loss warns once.

    Args:
        from_logits: whether `y_pred` holds logits rather than probabilities.
        options: the options of every `Loss`: `reduction`, `dtype`, `name`.
    """

    _activation: ClassVar[str] = "softmax"
    axis: int | None = -1

    def __init__(self, *, from_logits: bool = False, **options: Unpack[LossOptions]) -> None:
        super().__init__(**options)
        self.from_logits: bool = flag("from_logits", from_logits)
        self._has_warned = False

    def class_axes(self, ndim: int) -> tuple[int, ...]:
        """The axes of the softmax; none for a sigmoid."""
        return () if self.axis is None else as_axes("axis", self.axis, ndim)

    def __call__(self, y_true: PyTree, y_pred: PyTree, sample_weight: ArrayLike | None = None) -> jax.Array:
        """Compute the loss; see `Loss.__call__`."""
        self._warn_about_narrow_probabilities(y_pred)
        return super().__call__(y_true, y_pred, sample_weight)

    def logits_or_probabilities(self, y_pred: jax.Array) -> tuple[jax.Array, bool]:
        """Return logits if given or known, else probabilities, in the loss's dtype, and whether they are logits."""
        logits = None if self.from_logits else self._found_logits(y_pred)
        return (y_pred.astype(self.dtype), self.from_logits) if logits is None else (logits.astype(self.dtype), True)

    def log_probabilities(self, y_pred: jax.Array, axis: int) -> jax.Array:
        """Compute the logarithms of probabilities, in at least float32.

        Probabilities are divided by their sum and clipped to the epsilon of the loss's dtype from 0 and 1, as in Keras:
        float32 has no number between 1 - 6e-8 and 1, and the logarithm of 0 is `-inf`.

        Args:
            y_pred: logits or probabilities.
            axis: the axis of the classes.
        """
        values, are_logits = self.logits_or_probabilities(y_pred)
        wide = values.astype(at_least_float32(values.dtype))
        if are_logits:
            return log_softmax(wide, axis)
        total, eps = jnp.sum(wide, axis, keepdims=True), as_format(self.dtype).eps
        return jnp.log(jnp.clip(wide / jnp.where(total == 0, jnp.ones_like(total), total), eps, 1 - eps))

    def _found_logits(self, y_pred: Any) -> jax.Array | None:
        origin = origin_of(y_pred)
        if origin is None or origin.kind != self._activation or origin.axes != self.class_axes(y_pred.ndim):
            return None
        return origin.logits

    def _warn_about_narrow_probabilities(self, y_pred: Any) -> None:
        if self._has_warned or self.from_logits or not is_floating(y_pred):
            return
        row = as_format(y_pred.dtype)
        if row.max_exponent >= as_format("float32").max_exponent or self._found_logits(y_pred) is not None:
            return
        self._has_warned = True
        warn_user(
            f"{self.name} gets {row} probabilities that do not come from a {self._activation} directly, so those "
            f"near 0 and 1 are lost, and gradients with them; remove the {self._activation} and use "
            f"{type(self).__name__}(from_logits=True), or pass its output to the loss unchanged",
            PolicyWarning,
        )


class CategoricalOptions(LossOptions, total=False):
    """The options of `CategoricalCrossentropy`, documented there."""

    from_logits: bool
    label_smoothing: float
    axis: int


class CategoricalCrossentropy(Crossentropy):
    """Cross entropy between probabilities, such as one-hot labels, and probabilities or logits of the same shape.

    Args:
        from_logits: whether `y_pred` holds logits. If it does not, and its logits are not known, the probabilities are
            divided by their sum, and clipped to the dtype's epsilon (the gap between 1 and the next number) from 0 and
            1.
        label_smoothing: the fraction of each label that is spread evenly over all classes, from 0 to 1 (Szegedy and
            others, "Rethinking the Inception Architecture", 2016).
        axis: the axis of the classes.
        options: the options of every `Loss`: `reduction`, `dtype`, `name`.

    Raises:
        ArgumentError: if the smoothing is not from 0 to 1, or if the shapes differ; a `ValueError`.

    >>> from supremum.nn.functional import softmax
    >>> logits = jnp.asarray([[0.0, 20.0]], "float16")
    >>> CategoricalCrossentropy()([[1.0, 0.0]], softmax(logits))
    Array(20., dtype=float32)
    """

    def __init__(
        self, *, from_logits: bool = False, label_smoothing: float = 0.0, axis: int = -1, **options: Unpack[LossOptions]
    ) -> None:
        super().__init__(from_logits=from_logits, **options)
        self.label_smoothing: float = real_within("label_smoothing", label_smoothing, 0, 1)
        self.axis: int | None = axis

    def reduced_axes(self, ndim: int) -> tuple[int, ...]:
        """The axis of the classes."""
        return self.class_axes(ndim)

    def call(self, y_true: jax.Array, y_pred: jax.Array) -> jax.Array:
        """Compute the loss of each example; the result has the shape of `y_pred` without the axis of the classes."""
        y_true, y_pred = same_shaped_pair(self.name, y_true, y_pred)
        check_has_axes(self.name, y_pred)
        (axis,) = self.class_axes(y_pred.ndim)
        logs = self.log_probabilities(y_pred, axis)
        y_true = y_true.astype(self.dtype)
        if self.label_smoothing:
            y_true = y_true * (1 - self.label_smoothing) + self.label_smoothing / y_pred.shape[axis]
        return -jnp.sum(self.of_classes(y_true.astype(logs.dtype), logs, axis), axis)

    def of_classes(self, y_true: jax.Array, logs: jax.Array, axis: int) -> jax.Array:  # noqa: ARG002 (for overrides)
        """Compute what each class contributes, with the sign of the logarithms.

        Args:
            y_true: smoothed labels.
            logs: the logarithms of the probabilities, in at least float32.
            axis: the axis of the classes.
        """
        return weight_times(y_true, logs)


class CategoricalFocalCrossentropy(CategoricalCrossentropy):
    """Categorical cross entropy times `alpha * (1 - p) ** gamma`, which reduces the loss of classes with a large `p`.

    Lin and others, "Focal Loss for Dense Object Detection", 2017.

    Args:
        alpha: a factor, or a factor for each class.
        gamma: how much the loss of large probabilities is reduced; 0 for not at all.
        options: the options of `CategoricalCrossentropy`.

    Raises:
        ArgumentError: if a number is negative, or if there is not one factor for each class; a `ValueError`.

    >>> loss = CategoricalFocalCrossentropy(from_logits=True, alpha=1.0)
    >>> loss(jnp.asarray([[1.0, 0.0]]), jnp.asarray([[0.0, 20.0]], "float16"))
    Array(20., dtype=float32)
    """

    def __init__(
        self,
        *,
        alpha: float | Sequence[float] = 0.25,
        gamma: float = 2.0,
        **options: Unpack[CategoricalOptions],
    ) -> None:
        super().__init__(**options)
        each = tuple(alpha) if isinstance(alpha, Sequence) else (alpha,)
        self.alpha: tuple[float, ...] = tuple(_not_negative("alpha", number) for number in each)
        self.gamma: float = _not_negative("gamma", gamma)

    def of_classes(self, y_true: jax.Array, logs: jax.Array, axis: int) -> jax.Array:
        """Compute what each class contributes, as for `CategoricalCrossentropy`."""
        number, classes = len(self.alpha), logs.shape[axis]
        if number not in (1, classes):
            raise ArgumentError(f"alpha must be one number or {classes}, one for each class, got {number}")
        alpha = jnp.asarray(self.alpha, logs.dtype).reshape(-1, *(1 for _ in logs.shape[axis + 1 :]))
        return alpha * _focal_factor(-jnp.expm1(logs), self.gamma) * super().of_classes(y_true, logs, axis)


class SparseCategoricalCrossentropy(Crossentropy):
    """Cross entropy between class numbers, shape (...) or (..., 1), and probabilities or logits, shape (..., classes).

    The loss of a label outside the classes, such as a negative one, is NaN, as with `mode="fill"` of
    `jax.numpy.ndarray.at`: a traced function cannot raise, and any number would be wrong.

    Args:
        from_logits: as for `CategoricalCrossentropy`.
        ignore_class: a label to ignore: its examples have a loss of 0 and do not count in a mean. None ignores none.
        options: the options of every `Loss`: `reduction`, `dtype`, `name`.

    Raises:
        OperandError: if the labels are not integers; a `TypeError`.
        ArgumentError: for shapes that do not fit; a `ValueError`.

    >>> loss = SparseCategoricalCrossentropy(from_logits=True, ignore_class=-1)
    >>> loss(jnp.asarray([1, -1]), jnp.asarray([[60000.0, 0.0], [0.0, 0.0]], "float16"))
    Array(60000., dtype=float32)
    """

    def __init__(
        self, *, from_logits: bool = False, ignore_class: int | None = None, **options: Unpack[LossOptions]
    ) -> None:
        super().__init__(from_logits=from_logits, **options)
        self.ignore_class: int | None = (
            None if ignore_class is None else whole_number("ignore_class", ignore_class, -MOST, MOST)
        )

    def call(self, y_true: jax.Array, y_pred: jax.Array) -> jax.Array:
        """Compute the loss of each label, shape (...)."""
        y_true, y_pred = array_pair(self.name, y_true, y_pred)
        check_has_axes(self.name, y_pred)
        y_true = class_numbers(self.name, y_true, y_pred)
        counts = self.counts(y_true)
        if counts is not None:
            y_pred = replace_nonfinite(y_pred, counts, IN_Y_PRED)
        at_label, is_class = at_labels(self.log_probabilities(y_pred, -1), y_true)
        losses = jnp.where(is_class, self.of_labels(at_label), jnp.full_like(at_label, jnp.nan))
        return losses if counts is None else jnp.where(counts, losses, jnp.zeros_like(losses))

    def of_labels(self, logs: jax.Array) -> jax.Array:
        """Compute the losses from the logarithms of the labels' probabilities."""
        return -logs

    def counts(self, y_true: jax.Array) -> jax.Array | None:
        """Return which labels count; None if none are ignored."""
        return None if self.ignore_class is None else y_true != self.ignore_class


class CategoricalGeneralizedCrossEntropy(SparseCategoricalCrossentropy):
    """`(1 - p ** q) / q`, where `p` is the probability of the label: for a small `q` almost the cross entropy.

    Zhang and Sabuncu, "Generalized Cross Entropy Loss for Training Deep Neural Networks with Noisy Labels", 2018.

    Args:
        q: how little wrong labels weigh, above 0 and below 1.
        from_logits, ignore_class, options: as for `SparseCategoricalCrossentropy`.

    Raises:
        ArgumentError: if `q` is not between 0 and 1; a `ValueError`.

    >>> CategoricalGeneralizedCrossEntropy()(
    ...     jnp.asarray([0]), jnp.asarray([[0.25, 0.75]])
    ... )
    Array(1., dtype=float32)
    """

    def __init__(
        self,
        q: float = 0.5,
        *,
        from_logits: bool = False,
        ignore_class: int | None = None,
        **options: Unpack[LossOptions],
    ) -> None:
        super().__init__(from_logits=from_logits, ignore_class=ignore_class, **options)
        self.q: float = real_within("q", q, 0, 1)
        if self.q in (0, 1):
            raise ArgumentError(f"q must be above 0 and below 1, got {shown(q)}: give q=0.5")

    def of_labels(self, logs: jax.Array) -> jax.Array:
        """Compute the losses from the logarithms of the labels' probabilities."""
        return -jnp.expm1(self.q * logs) / self.q


class BinaryCrossentropy(Crossentropy):
    """Cross entropy between labels of 0 and 1, or probabilities, and probabilities or logits of the same shape.

    The loss is averaged over the last axis of each example; for inputs of shape (batch,) there is nothing to average.

    Args:
        from_logits: whether `y_pred` holds logits. If it does not, and its logits are not known, the probabilities are
            clipped to the dtype's epsilon (the gap between 1 and the next number) from 0 and 1.
        label_smoothing: how far labels are moved towards one half, from 0 to 1.
        options: the options of every `Loss`: `reduction`, `dtype`, `name`.

    Raises:
        ArgumentError: if the smoothing is not from 0 to 1, or if the shapes differ; a `ValueError`.

    >>> logits = jnp.asarray([[-100.0], [100.0]], "float16")
    >>> BinaryCrossentropy(from_logits=True)(jnp.asarray([[1.0], [1.0]]), logits)
    Array(50., dtype=float32)
    """

    _activation = "sigmoid"
    axis: int | None = None  # a sigmoid acts on each element

    def __init__(
        self, *, from_logits: bool = False, label_smoothing: float = 0.0, **options: Unpack[LossOptions]
    ) -> None:
        super().__init__(from_logits=from_logits, **options)
        self.label_smoothing: float = real_within("label_smoothing", label_smoothing, 0, 1)

    def call(self, y_true: jax.Array, y_pred: jax.Array) -> jax.Array:
        """Compute the loss of each example, shape (batch, ...) without the last axis; (batch,) for (batch,) inputs."""
        y_true, y_pred = aligned_pair(self.name, y_true, y_pred)
        values, are_logits = self.logits_or_probabilities(y_pred)
        y_true = y_true.astype(self.dtype)
        if self.label_smoothing:
            y_true = y_true * (1 - self.label_smoothing) + 0.5 * self.label_smoothing
        return mean_of_each(self.of_elements(y_true, values, are_logits))

    def of_elements(self, y_true: jax.Array, values: jax.Array, are_logits: bool) -> jax.Array:
        """Compute the loss of each element.

        Args:
            y_true: smoothed labels.
            values: logits or probabilities.
            are_logits: which of the two.
        """
        return binary_cross_entropy(y_true, values, from_logits=are_logits, eps=as_format(self.dtype).eps)


class BinaryFocalCrossentropy(BinaryCrossentropy):
    """Binary cross entropy times `(1 - p) ** gamma`, where `p` is the probability of the label.

    Lin and others, "Focal Loss for Dense Object Detection", 2017.

    Args:
        apply_class_balancing: whether labels of 1 are weighted by `alpha` and labels of 0 by `1 - alpha`.
        alpha: the weight of labels of 1, from 0 to 1.
        gamma: how much the loss of large probabilities is reduced; 0 for not at all.
        from_logits, label_smoothing, options: as for `BinaryCrossentropy`.

    Raises:
        ArgumentError: if `gamma` is negative, or another number is not from 0 to 1; a `ValueError`.

    >>> loss = BinaryFocalCrossentropy(from_logits=True, gamma=2.0)
    >>> loss(jnp.asarray([[1.0], [1.0]]), jnp.asarray([[-100.0], [100.0]], "float16"))
    Array(50., dtype=float32)
    """

    def __init__(
        self,
        *,
        apply_class_balancing: bool = False,
        alpha: float = 0.25,
        gamma: float = 2.0,
        from_logits: bool = False,
        label_smoothing: float = 0.0,
        **options: Unpack[LossOptions],
    ) -> None:
        super().__init__(from_logits=from_logits, label_smoothing=label_smoothing, **options)
        self.apply_class_balancing: bool = flag("apply_class_balancing", apply_class_balancing)
        self.alpha: float = real_within("alpha", alpha, 0, 1)
        self.gamma: float = _not_negative("gamma", gamma)

    def of_elements(self, y_true: jax.Array, values: jax.Array, are_logits: bool) -> jax.Array:
        """Compute the loss of each element, as for `BinaryCrossentropy`."""
        losses = super().of_elements(y_true, values, are_logits)
        wide, y_true = values.astype(losses.dtype), y_true.astype(losses.dtype)
        one, zero = (jax.nn.sigmoid(wide), jax.nn.sigmoid(-wide)) if are_logits else (wide, 1 - wide)
        losses = losses * _focal_factor(y_true * zero + (1 - y_true) * one, self.gamma)
        if self.apply_class_balancing:
            losses = losses * (y_true * self.alpha + (1 - y_true) * (1 - self.alpha))
        return losses


def _focal_factor(rest: jax.Array, gamma: float) -> jax.Array:
    """Compute a power of `1 - p`; it and its slope are 0 where `p` is 1, which has no loss."""
    return jnp.where(rest == 0, jnp.zeros_like(rest), jnp.where(rest == 0, jnp.ones_like(rest), rest) ** gamma)


def _not_negative(name: str, value: object) -> float:
    return real_within(name, value, 0, math.inf, "0 or more")
