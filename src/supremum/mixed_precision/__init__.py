"""Mixed precision for any JAX library: pure functions on pytrees."""

from supremum.mixed_precision.all_reduce import all_reduce_gradients
from supremum.mixed_precision.autocasting import (
    OPERATIONS,
    AutocastFunction,
    AutocastReport,
    AutocastRow,
    ProductCounts,
    UncastFunction,
    UncastProductsWarning,
    autocast,
    register_operation,
)
from supremum.mixed_precision.hardware import HardwareWarning
from supremum.mixed_precision.loss_scale.finite import all_finite
from supremum.mixed_precision.loss_scale.loss_scales import (
    DynamicLossScale,
    FixedLossScale,
    LossScale,
    as_loss_scale,
    deserialize_loss_scale,
    serialize_loss_scale,
)
from supremum.mixed_precision.loss_scale.optimizer import (
    LossScaledState,
    find_loss_scale_state,
    loss_scaled,
    scale_loss,
)
from supremum.mixed_precision.loss_scale.state import LossScaleState
from supremum.mixed_precision.policy.global_policy import (
    PolicyWarning,
    floatx,
    global_policy,
    set_floatx,
    set_global_policy,
    use_policy,
)
from supremum.mixed_precision.policy.policy import Policy, as_policy
from supremum.mixed_precision.policy.policy_map import PolicyMap, UnmatchedPatternWarning
from supremum.mixed_precision.scaled_gradients import ScaledGradients, scaled_value_and_grad
from supremum.mixed_precision.select import select_tree
from supremum.mixed_precision.tree_casting import cast_floating

__all__ = [
    "OPERATIONS",
    "AutocastFunction",
    "AutocastReport",
    "AutocastRow",
    "DynamicLossScale",
    "FixedLossScale",
    "HardwareWarning",
    "LossScale",
    "LossScaleState",
    "LossScaledState",
    "Policy",
    "PolicyMap",
    "PolicyWarning",
    "ProductCounts",
    "ScaledGradients",
    "UncastFunction",
    "UncastProductsWarning",
    "UnmatchedPatternWarning",
    "all_finite",
    "all_reduce_gradients",
    "as_loss_scale",
    "as_policy",
    "autocast",
    "cast_floating",
    "deserialize_loss_scale",
    "find_loss_scale_state",
    "floatx",
    "global_policy",
    "loss_scaled",
    "register_operation",
    "scale_loss",
    "scaled_value_and_grad",
    "select_tree",
    "serialize_loss_scale",
    "set_floatx",
    "set_global_policy",
    "use_policy",
]
