"""Weights from and for other libraries: Flax, Keras and PyTorch.

It converts arrays of the same model, and does not translate models.
"""

from supremum.nn.weights.fitting import first_lost
from supremum.nn.weights.mismatches import WeightMismatchError
from supremum.nn.weights.transfer import built_variables, export_variables, load_variables

__all__ = ["WeightMismatchError", "built_variables", "export_variables", "first_lost", "load_variables"]
