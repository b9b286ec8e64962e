"""Layers with dtype policies, on JAX."""

from supremum.nn import functional
from supremum.nn.activations import ELU, GELU, Activation, LeakyReLU, ReLU, Sigmoid, SiLU, Softmax, Tanh
from supremum.nn.attention import MultiHeadAttention
from supremum.nn.batch_norm import BatchNorm
from supremum.nn.bidirectional import Bidirectional
from supremum.nn.collecting import collected_losses
from supremum.nn.conv import Conv
from supremum.nn.conv_transpose import ConvTranspose
from supremum.nn.custom_derivatives import custom_jvp, custom_vjp
from supremum.nn.dense import Dense
from supremum.nn.dense_general import DenseGeneral
from supremum.nn.dropout import Dropout
from supremum.nn.einsum import Einsum
from supremum.nn.embedding import Embedding
from supremum.nn.functional import promote_dtype
from supremum.nn.input_spec import InputSpec
from supremum.nn.key_value_cache import KeyValueCache
from supremum.nn.layer import Layer
from supremum.nn.merging import Add, Average, Concatenate, Maximum, Multiply, Subtract
from supremum.nn.mixing import MixedDtypeError, MixedDtypeWarning
from supremum.nn.model import Model
from supremum.nn.normalisation import GroupNorm, InstanceNorm, LayerNorm, RMSNorm
from supremum.nn.pooling import AvgPool, GlobalAveragePool, GlobalMaxPool, MaxPool, MinPool
from supremum.nn.pure import functional_call, initialize, load_variables, output_spec, split_variables
from supremum.nn.recurrent import GRUCell, LSTMCell, RecurrentCell, SimpleRNNCell
from supremum.nn.regularizers import L1, L1L2, L2, Regularizer
from supremum.nn.rnn import RNN
from supremum.nn.scopes import random_key
from supremum.nn.sequential import Sequential
from supremum.nn.shapes import Flatten, Permute, Reshape
from supremum.nn.summary import Summary
from supremum.nn.symbolic import Input, SymbolicTensor
from supremum.nn.variables import AutoCastVariable, UninitializedError, Variable

__all__ = [
    "ELU",
    "GELU",
    "L1",
    "L1L2",
    "L2",
    "RNN",
    "Activation",
    "Add",
    "AutoCastVariable",
    "Average",
    "AvgPool",
    "BatchNorm",
    "Bidirectional",
    "Concatenate",
    "Conv",
    "ConvTranspose",
    "Dense",
    "DenseGeneral",
    "Dropout",
    "Einsum",
    "Embedding",
    "Flatten",
    "GRUCell",
    "GlobalAveragePool",
    "GlobalMaxPool",
    "GroupNorm",
    "Input",
    "InputSpec",
    "InstanceNorm",
    "KeyValueCache",
    "LSTMCell",
    "Layer",
    "LayerNorm",
    "LeakyReLU",
    "MaxPool",
    "Maximum",
    "MinPool",
    "MixedDtypeError",
    "MixedDtypeWarning",
    "Model",
    "MultiHeadAttention",
    "Multiply",
    "Permute",
    "RMSNorm",
    "ReLU",
    "RecurrentCell",
    "Regularizer",
    "Reshape",
    "Sequential",
    "SiLU",
    "Sigmoid",
    "SimpleRNNCell",
    "Softmax",
    "Subtract",
    "Summary",
    "SymbolicTensor",
    "Tanh",
    "UninitializedError",
    "Variable",
    "collected_losses",
    "custom_jvp",
    "custom_vjp",
    "functional",
    "functional_call",
    "initialize",
    "load_variables",
    "output_spec",
    "promote_dtype",
    "random_key",
    "split_variables",
]
