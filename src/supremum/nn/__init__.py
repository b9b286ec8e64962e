"""Layers with dtype policies, on JAX.

Losses, metrics and the training loop are not here but in `training`.
"""

from typing import TYPE_CHECKING, NoReturn

from supremum.extras import require

require(__name__, "jax")

from supremum.nn import functional
from supremum.nn.cast_variables import cast_variables
from supremum.nn.constraints import Constraint, MaxNorm, MinMaxNorm, NonNeg, UnitNorm
from supremum.nn.constructor_arguments import Configurable as Configurable
from supremum.nn.custom_derivatives import custom_jvp, custom_vjp
from supremum.nn.donation import Donation as Donation
from supremum.nn.donation import copy_tree as copy_tree
from supremum.nn.dtype_checks import MixedDtypeError, MixedDtypeWarning
from supremum.nn.functional import promote_dtype
from supremum.nn.inputs import InputSpec
from supremum.nn.inputs import cast_inputs as cast_inputs
from supremum.nn.inputs import described as described
from supremum.nn.layer import Layer
from supremum.nn.layer import as_layer as as_layer
from supremum.nn.layers.activations import ELU, GELU, Activation, Lambda, LeakyReLU, ReLU, Sigmoid, SiLU, Softmax, Tanh
from supremum.nn.layers.attention import KeyValueCache, MultiHeadAttention
from supremum.nn.layers.bidirectional import Bidirectional
from supremum.nn.layers.convolution import Conv, ConvTranspose
from supremum.nn.layers.dropout import Dropout
from supremum.nn.layers.embedding import Embedding
from supremum.nn.layers.keras_recurrent import GRU, LSTM, SimpleRNN
from supremum.nn.layers.merging import Add, Average, Concatenate, Maximum, Multiply, Subtract
from supremum.nn.layers.normalization import BatchNorm, GroupNorm, InstanceNorm, LayerNorm, RMSNorm
from supremum.nn.layers.pooling import AvgPool, GlobalAveragePool, GlobalMaxPool, MaxPool
from supremum.nn.layers.products import Dense, DenseGeneral, Einsum
from supremum.nn.layers.recurrent import RNN
from supremum.nn.layers.recurrent_cells import GRUCell, LSTMCell, RecurrentCell, SimpleRNNCell
from supremum.nn.layers.reshaping import Flatten, Permute, Reshape
from supremum.nn.lazy_build import has_weights as has_weights
from supremum.nn.logits_registry import origin_of as origin_of
from supremum.nn.logits_registry import record as record
from supremum.nn.losses import collected_losses
from supremum.nn.module_tree import snake_case as snake_case
from supremum.nn.network import Input, Network, SymbolicTensor
from supremum.nn.regularizers import L1, L1L2, L2, Regularizer
from supremum.nn.scopes import OUTPUT as OUTPUT
from supremum.nn.scopes import marked_outputs as marked_outputs
from supremum.nn.scopes import next_random_key as next_random_key
from supremum.nn.scopes import overlay as overlay
from supremum.nn.scopes import random_key
from supremum.nn.sequential import SequentialNetwork
from supremum.nn.stateless_call import functional_call, initialize, output_spec, split_variables
from supremum.nn.summary import Summary
from supremum.nn.symbolic import is_spec as is_spec
from supremum.nn.variable_operators import VariableOperators as VariableOperators
from supremum.nn.variables import AutoCastVariable, UninitializedError, Variable
from supremum.nn.variables import Shard as Shard
from supremum.nn.weights import WeightMismatchError, export_variables, load_variables
from supremum.nn.weights import built_variables as built_variables
from supremum.nn.weights import first_lost as first_lost
from supremum.public_names import missing_name, public_names

__all__ = [
    "ELU", "GELU", "GRU", "L1", "L1L2", "L2", "LSTM", "RNN", "Activation", "Add", "AutoCastVariable", "Average",
    "AvgPool", "BatchNorm", "Bidirectional", "Concatenate", "Constraint", "Conv", "ConvTranspose", "Dense",
    "DenseGeneral", "Dropout", "Einsum", "Embedding", "Flatten", "GRUCell", "GlobalAveragePool", "GlobalMaxPool",
    "GroupNorm", "Input", "InputSpec", "InstanceNorm", "KeyValueCache", "LSTMCell", "Lambda", "Layer", "LayerNorm",
    "LeakyReLU", "MaxNorm", "MaxPool", "Maximum", "MinMaxNorm", "MixedDtypeError", "MixedDtypeWarning",
    "MultiHeadAttention", "Multiply", "Network", "NonNeg", "Permute", "RMSNorm", "ReLU", "RecurrentCell",
    "Regularizer", "Reshape", "SequentialNetwork", "SiLU", "Sigmoid", "SimpleRNN", "SimpleRNNCell", "Softmax",
    "Subtract", "Summary", "SymbolicTensor", "Tanh", "UninitializedError", "UnitNorm", "Variable",
    "WeightMismatchError", "cast_variables", "collected_losses", "custom_jvp", "custom_vjp", "export_variables",
    "functional", "functional_call", "initialize", "load_variables", "output_spec", "promote_dtype", "random_key",
    "split_variables",
]  # fmt: skip


if not TYPE_CHECKING:  # or type checkers would accept every name

    def __getattr__(name: str) -> NoReturn:
        raise missing_name(__name__, name)


def __dir__() -> list[str]:
    return public_names(globals())
