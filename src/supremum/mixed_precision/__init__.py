"""Mixed precision for any JAX library: pure functions of pytrees.

It needs no layers, models or optimizers of Supremum; `nn`, `optimizers` and `training` are built on it.
"""

import importlib
from typing import Any

from supremum.extras import require

require(__name__, "jax")

from supremum.mixed_precision.all_reduce import all_reduce_gradients
from supremum.mixed_precision.all_reduce import replica_sum as replica_sum
from supremum.mixed_precision.autocasting.operations import AUTOCAST_OPERATIONS, register_operation
from supremum.mixed_precision.autocasting.presets import AUTOCAST_PRESETS
from supremum.mixed_precision.autocasting.reports import (
    AutocastReport,
    AutocastRow,
    ProductCounts,
    UncastFunction,
    UncastProductsWarning,
)
from supremum.mixed_precision.autocasting.settings import Settings as Settings
from supremum.mixed_precision.autocasting.settings import as_settings as as_settings
from supremum.mixed_precision.autocasting.transform import AutocastFunction, autocast
from supremum.mixed_precision.autocasting.transform import autocasted as autocasted
from supremum.mixed_precision.loss_scales import COUNTS as COUNTS
from supremum.mixed_precision.loss_scales import (
    DynamicLossScale,
    FixedLossScale,
    LossScale,
    LossScaleState,
    as_loss_scale,
    deserialize_loss_scale,
    serialize_loss_scale,
)
from supremum.mixed_precision.loss_scales import as_state as as_state
from supremum.mixed_precision.loss_scales import one_more as one_more
from supremum.mixed_precision.narrowing import Narrowed, NarrowedArray, NarrowingReport, narrow
from supremum.mixed_precision.policy.global_policy import (
    floatx,
    global_policy,
    set_floatx,
    set_global_policy,
    use_policy,
)
from supremum.mixed_precision.policy.hardware import HardwareWarning
from supremum.mixed_precision.policy.hardware import warn_if_it_gains_nothing as warn_if_it_gains_nothing
from supremum.mixed_precision.policy.policy import Policy, PolicyWarning, as_policy
from supremum.mixed_precision.policy.policy_map import PolicyMap, UnmatchedPatternWarning
from supremum.mixed_precision.pytrees import OptaxOptimizer as OptaxOptimizer
from supremum.mixed_precision.pytrees import all_finite, cast_floating, select_tree
from supremum.mixed_precision.pytrees import as_loss as as_loss
from supremum.mixed_precision.pytrees import as_optax as as_optax
from supremum.mixed_precision.pytrees import as_real_floating as as_real_floating
from supremum.mixed_precision.pytrees import described as described
from supremum.mixed_precision.pytrees import is_array as is_array
from supremum.mixed_precision.pytrees import is_floating as is_floating
from supremum.mixed_precision.pytrees import is_inexact as is_inexact
from supremum.mixed_precision.pytrees import keep_64_bits as keep_64_bits
from supremum.mixed_precision.pytrees import native as native
from supremum.mixed_precision.pytrees import unscale as unscale
from supremum.mixed_precision.pytrees import widen as widen
from supremum.mixed_precision.scaled_gradients import (
    ScaledGradients,
    ScaledOptimizerState,
    find_loss_scale_state,
    loss_scaled,
    scale_loss,
    scaled_value_and_grad,
)
from supremum.mixed_precision.scaled_gradients import apply_or_skip as apply_or_skip
from supremum.mixed_precision.scaled_gradients import differentiate_scaled as differentiate_scaled
from supremum.mixed_precision.scaled_gradients import split_loss as split_loss
from supremum.mixed_precision.weight_storage.memory import WeightMemory, WeightMemoryRow, weight_memory
from supremum.mixed_precision.weight_storage.moments import BlockScaled
from supremum.mixed_precision.weight_storage.moments import read_moments as read_moments
from supremum.mixed_precision.weight_storage.moments import storage_of_moments as storage_of_moments
from supremum.mixed_precision.weight_storage.moments import store_moment as store_moment
from supremum.mixed_precision.weight_storage.moments import store_moments as store_moments
from supremum.mixed_precision.weight_storage.rounding import round_to_format as round_to_format
from supremum.mixed_precision.weight_storage.rounding import to_float32 as to_float32
from supremum.mixed_precision.weight_storage.transformation import (
    NarrowStep,
    NarrowWeights,
    NarrowWeightsState,
    narrow_weights,
)
from supremum.mixed_precision.weight_storage.weights import ExtraWeights
from supremum.mixed_precision.weight_storage.weights import StoredWeights as StoredWeights
from supremum.mixed_precision.weight_storage.weights import storage_of_weights as storage_of_weights
from supremum.public_names import missing_name, public_names

__all__ = [
    "AUTOCAST_OPERATIONS", "AUTOCAST_PRESETS", "AutocastFunction", "AutocastReport", "AutocastRow", "BlockScaled",
    "DynamicLossScale", "ExtraWeights", "FixedLossScale", "HardwareWarning", "LossScale", "LossScaleState",
    "NarrowStep", "NarrowWeights", "NarrowWeightsState", "Narrowed", "NarrowedArray", "NarrowingReport", "Policy",
    "PolicyMap", "PolicyWarning", "ProductCounts", "ScaledGradients", "ScaledOptimizerState", "UncastFunction",
    "UncastProductsWarning", "UnmatchedPatternWarning", "WeightMemory", "WeightMemoryRow", "all_finite",
    "all_reduce_gradients", "as_loss_scale", "as_policy", "autocast", "cast_floating", "deserialize_loss_scale",
    "find_loss_scale_state", "floatx", "global_policy", "loss_scaled", "narrow", "narrow_weights",
    "register_operation", "scale_loss", "scaled_value_and_grad", "select_tree", "serialize_loss_scale", "set_floatx",
    "set_global_policy", "use_policy", "weight_memory",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name == "LossScaleOptimizer":  # Keras has it here, but optimizers need this package
        return importlib.import_module("supremum.optimizers").LossScaleOptimizer
    raise missing_name(__name__, name)


def __dir__() -> list[str]:
    return public_names(globals())
