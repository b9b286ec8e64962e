"""Layers with dtype policies, on JAX."""

from supremum.nn import functional
from supremum.nn.activations import Activation, ReLU
from supremum.nn.batch_norm import BatchNorm
from supremum.nn.conv import Conv
from supremum.nn.dense import Dense
from supremum.nn.functional import promote_dtype
from supremum.nn.input_spec import InputSpec
from supremum.nn.layer import Layer
from supremum.nn.mixing import MixedDtypeError, MixedDtypeWarning
from supremum.nn.model import Model
from supremum.nn.pooling import MaxPool
from supremum.nn.pure import functional_call, initialize, load_variables, output_spec, split_variables
from supremum.nn.scopes import random_key
from supremum.nn.sequential import Sequential
from supremum.nn.shapes import Flatten
from supremum.nn.symbolic import Input, SymbolicTensor
from supremum.nn.variables import AutoCastVariable, UninitializedError, Variable

__all__ = [
    "Activation",
    "AutoCastVariable",
    "BatchNorm",
    "Conv",
    "Dense",
    "Flatten",
    "Input",
    "InputSpec",
    "Layer",
    "MaxPool",
    "MixedDtypeError",
    "MixedDtypeWarning",
    "Model",
    "ReLU",
    "Sequential",
    "SymbolicTensor",
    "UninitializedError",
    "Variable",
    "functional",
    "functional_call",
    "initialize",
    "load_variables",
    "output_spec",
    "promote_dtype",
    "random_key",
    "split_variables",
]
