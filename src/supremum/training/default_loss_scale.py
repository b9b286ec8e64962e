"""The loss scale that a model needs, and a warning when it cannot fall any further."""

from __future__ import annotations

import math
from typing import Any

import jax
import numpy as np

from supremum.formats import as_format
from supremum.mixed_precision import DynamicLossScale, LossScale
from supremum.nn import Layer, is_spec
from supremum.optimizers import LossScaleOptimizer, Optimizer, is_float16, optimizers_within
from supremum.training.warnings import TrainingWarning
from supremum.user_frame import warn_user


def with_loss_scale(model: Layer, optimizer: Optimizer) -> Optimizer:
    """Wrap an optimizer so that it scales the loss, if the model needs that; otherwise return it unchanged.

    Args:
        model: the model. Layers that it creates in its first call count only after that call.
        optimizer: the optimizer; one that already scales the loss is returned unchanged.

    Keras RFC 293, mixed precision, "A policy's loss scale".
    """
    scale = loss_scale_of(model)
    if scale is None or scaling_optimizer(optimizer) is not None:
        return optimizer
    # The policy also decides in which dtype gradients are aggregated.
    return LossScaleOptimizer(optimizer, scale, aggregate_in_float16=is_float16(model.dtype_policy.reduce_dtype))


def loss_scale_of(model: Layer) -> LossScale | None:
    """Return the loss scale of the model's policy, or else of its first layer that computes in float16, or None.

    Where the model's policy, given or global, has None as its loss scale because somebody said so, there is none.

    Args:
        model: the model.

    >>> from supremum import nn
    >>> loss_scale_of(
    ...     nn.SequentialNetwork([nn.Dense(1), nn.Dense(1, dtype="mixed_float16")])
    ... ).initial_loss_scale
    32768.0
    """
    if not model.dtype_policy.is_loss_scale_open:
        return model.dtype_policy.loss_scale
    scales = (_loss_scale_of_layer(layer) for layer in model.layers_by_path().values())
    return next((scale for scale in scales if scale is not None), None)


def _loss_scale_of_layer(layer: Layer) -> LossScale | None:
    policy = layer.dtype_policy
    outputs = jax.tree.leaves(layer.output_spec, is_leaf=is_spec) if policy.compute_dtype is None else []
    if not is_float16(policy.compute_dtype) and not any(is_float16(getattr(each, "dtype", None)) for each in outputs):
        return None
    return DynamicLossScale() if policy.is_loss_scale_open else policy.loss_scale


def scaling_optimizer(optimizer: Optimizer) -> LossScaleOptimizer | None:
    """Return the part of an optimizer that scales the loss, or None."""
    return next((each for each in optimizers_within(optimizer) if isinstance(each, LossScaleOptimizer)), None)


class SkippedSteps:
    """Warn once if too many steps in a row are skipped with the loss scale at its floor.

    Args:
        limit: how many skipped steps in a row cause the warning; None to never warn.
        optimizer: the optimizer; its loss scale defines the floor.
    """

    def __init__(self, limit: int | None, optimizer: Optimizer) -> None:
        scaled = scaling_optimizer(optimizer)
        self._limit = None if scaled is None else limit
        self._floor = np.float32(0 if scaled is None else scaled.loss_scale.settings.bounds[0])
        self._length = 0

    def add(self, rows: np.ndarray[Any, Any]) -> None:
        """Check more steps.

        Args:
            rows: the rows of `StepLog.fetch`.
        """
        if self._limit is None:
            return
        for loss, scale, skipped in rows.tolist():
            self._length = self._length + 1 if skipped and scale <= self._floor else 0
            if self._length == self._limit:
                self._limit = None
                warn_user(_message(self._length, float(self._floor), loss), TrainingWarning)


def _message(steps: int, floor: float, loss: float) -> str:
    if math.isfinite(loss):
        why = (
            "The loss is finite, so only the gradients overflow; lower the floor with "
            "model.compile(LossScaleOptimizer(optimizer, DynamicLossScale(minimum=2.0**-10)), ...)"
        )
    else:
        why = (
            f"The loss is {loss}, so a lower scale would not help: check x and y for inf and NaN; if they have none, "
            f"the model's values exceed {as_format('float16').max:g}, the largest float16: use the policy "
            "'mixed_bfloat16', or dtype='float32' for the layers that overflow"
        )
    return (
        f"{steps} steps in a row were skipped, because their gradients were not finite, with the loss scale at its "
        f"floor of {floor:g}, so the model does not learn. {why}"
    )
