"""Weights from and for other libraries: Flax, Keras and PyTorch."""

from supremum.nn.weights.export import export_variables
from supremum.nn.weights.fitting import first_lost
from supremum.nn.weights.load import built_variables, load_variables
from supremum.nn.weights.mismatches import WeightMismatchError

__all__ = ["WeightMismatchError", "built_variables", "export_variables", "first_lost", "load_variables"]
