"""Mixed precision for any JAX library: pure functions on pytrees."""

from supremum.mixed_precision.autocasting import (
    OPERATIONS,
    AutocastFunction,
    AutocastReport,
    AutocastRow,
    autocast,
    register_operation,
)
from supremum.mixed_precision.casting import cast_floating
from supremum.mixed_precision.finite import all_finite
from supremum.mixed_precision.gradients import ScaledGradients, scaled_value_and_grad
from supremum.mixed_precision.loss_scale import (
    DynamicLossScale,
    FixedLossScale,
    LossScale,
    LossScaleState,
    as_loss_scale,
)
from supremum.mixed_precision.policy import Policy, as_policy

__all__ = [
    "OPERATIONS",
    "AutocastFunction",
    "AutocastReport",
    "AutocastRow",
    "DynamicLossScale",
    "FixedLossScale",
    "LossScale",
    "LossScaleState",
    "Policy",
    "ScaledGradients",
    "all_finite",
    "as_loss_scale",
    "as_policy",
    "autocast",
    "cast_floating",
    "register_operation",
    "scaled_value_and_grad",
]
