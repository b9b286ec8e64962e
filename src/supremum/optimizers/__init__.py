"""Optimizers under Keras' names, each an optax transformation, and wrappers around them."""

from supremum.optimizers.adagrad import Adagrad
from supremum.optimizers.adam import Adam, AdamW
from supremum.optimizers.eager_step import RetraceWarning
from supremum.optimizers.hyperparameters import Hyperparameter
from supremum.optimizers.lion import Lion
from supremum.optimizers.lookup import as_optimizer
from supremum.optimizers.loss_scale_optimizer import LossScaleOptimizer
from supremum.optimizers.loss_scales import StatefulLossScale
from supremum.optimizers.moving_average import MovingAverage
from supremum.optimizers.optimizer import Optimizer
from supremum.optimizers.rmsprop import RMSprop
from supremum.optimizers.serialization import deserialize_optimizer, serialize_optimizer
from supremum.optimizers.sgd import SGD
from supremum.optimizers.state import OptimizerState, Update
from supremum.optimizers.wrapper import OptimizerWrapper, optimizers_within

__all__ = [
    "SGD",
    "Adagrad",
    "Adam",
    "AdamW",
    "Hyperparameter",
    "Lion",
    "LossScaleOptimizer",
    "MovingAverage",
    "Optimizer",
    "OptimizerState",
    "OptimizerWrapper",
    "RMSprop",
    "RetraceWarning",
    "StatefulLossScale",
    "Update",
    "as_optimizer",
    "deserialize_optimizer",
    "optimizers_within",
    "serialize_optimizer",
]
