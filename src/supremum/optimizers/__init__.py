"""Optimizers under Keras' names, each an optax transformation, and wrappers around them.

The algorithms are those of optax; names, dtypes of the state and loss scaling are ours.
"""

from typing import TYPE_CHECKING, NoReturn

from supremum.extras import require

require(__name__, "jax", "optax")

from supremum.optimizers.algorithms import SGD, Adagrad, Adam, AdamW, Lion, RMSprop
from supremum.optimizers.eager_step import RetraceWarning
from supremum.optimizers.eager_step import across as across
from supremum.optimizers.hyperparameters import Hyperparameter
from supremum.optimizers.loss_scale_optimizer import LossScaleOptimizer, StatefulLossScale
from supremum.optimizers.loss_scale_optimizer import is_float16 as is_float16
from supremum.optimizers.optimizer import Optimizer
from supremum.optimizers.serialization import as_optimizer, deserialize_optimizer, serialize_optimizer
from supremum.optimizers.state import OptimizerState, Update
from supremum.optimizers.wrapper import OptimizerWrapper, optimizers_within
from supremum.public_names import missing_name, public_names

__all__ = [
    "SGD", "Adagrad", "Adam", "AdamW", "Hyperparameter", "Lion", "LossScaleOptimizer", "Optimizer", "OptimizerState",
    "OptimizerWrapper", "RMSprop", "RetraceWarning", "StatefulLossScale", "Update", "as_optimizer",
    "deserialize_optimizer", "optimizers_within", "serialize_optimizer",
]  # fmt: skip


if not TYPE_CHECKING:  # or type checkers would accept every name

    def __getattr__(name: str) -> NoReturn:
        raise missing_name(__name__, name)


def __dir__() -> list[str]:
    return public_names(globals())
