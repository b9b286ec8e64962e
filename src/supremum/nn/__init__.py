"""Layers with dtype policies, on JAX."""

from supremum.nn.batch_norm import BatchNorm
from supremum.nn.conv import Conv
from supremum.nn.dense import Dense
from supremum.nn.layer import Layer
from supremum.nn.pure import functional_call, initialize, split_variables
from supremum.nn.sequential import Sequential
from supremum.nn.shapes import Activation, Flatten, MaxPool, ReLU
from supremum.nn.variables import AutoCastVariable, Variable

__all__ = [
    "Activation",
    "AutoCastVariable",
    "BatchNorm",
    "Conv",
    "Dense",
    "Flatten",
    "Layer",
    "MaxPool",
    "ReLU",
    "Sequential",
    "Variable",
    "functional_call",
    "initialize",
    "split_variables",
]
